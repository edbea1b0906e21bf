"use strict";
// The tables of means in this page: unpacked, and looked up.
(() => {
  const explore = (globalThis.hdicaExplore ??= {});

  // The highest bytes of numbers in single precision, first all highest ones, then all second ones, ...
  function numbers(body, { begin, size, width }) {
    const bits = new Uint32Array(size);
    for (let k = 0; k < width; k++) {
      const from = begin + k * size;
      const shift = 24 - 8 * k;
      for (let i = 0; i < size; i++) bits[i] |= body[from + i] << shift;
    }
    return new Float32Array(bits.buffer);
  }

  async function bytes(text) {
    const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  // Tables with their axes; numbers of a table are unpacked when they are first asked for.
  explore.unpack = async (text) => {
    const raw = await bytes(text);
    const length = new DataView(raw.buffer).getUint32(0);
    const header = JSON.parse(new TextDecoder().decode(raw.subarray(4, 4 + length)));
    const body = raw.subarray(4 + length);
    const later = (where) => {
      let found = null;
      return () => (found ??= where && numbers(body, where));
    };
    const tables = header.tables.map((table) => made(table, header.axes, later));
    const fates = Object.fromEntries(Object.entries(header.fates).map(([method, counts]) => [
      method, Object.entries(counts).map(([status, where]) => [status, later(where)])]));
    return { ...header, tables, fates };
  };

  function made(table, known, later) {
    const axes = table.axes.map((k) => known[k]);
    const steps = axes.map((_, k) => axes.slice(k + 1).reduce((product, axis) => product * axis.shown.length, 1));
    const own = axes.filter((axis) => !table.swept.includes(axis.name));
    return {
      ...table, axes, steps, own,
      key: table.method + "/" + table.variable,
      mean: later(table.mean), error: later(table.error),
      sides: axes.filter((axis) => table.swept.includes(axis.name) && axis.shown.length > 1),
      axis: (name) => axes.find((axis) => axis.name === name),
    };
  }

  const places = (axis) => axis.shown.map((_, place) => place);

  // Place of the chosen value on an axis: of a number the closest, of a word the same; -1 if it is not there.
  function closest(axis, chosen) {
    if (!chosen) return -1;
    if (axis.values && typeof chosen.value === "number") {
      const far = axis.values.map((value) => (value === null ? Infinity : Math.abs(value - chosen.value)));
      return far.indexOf(Math.min(...far));
    }
    return axis.shown.indexOf(chosen.shown);
  }

  explore.same = (axis, chosen) => axis.shown.indexOf(chosen ? chosen.shown : null);
  explore.closest = closest;
  explore.value = (axis, place) => ({ value: axis.values ? axis.values[place] : null, shown: axis.shown[place] });

  // Where a table is looked at: at the chosen values; where it does not have one, at its last.
  explore.point = (table, chosen) => Object.fromEntries(table.axes.map((axis) => {
    const place = explore.same(axis, chosen[axis.name]);
    return [axis.name, place < 0 ? axis.shown.length - 1 : place];
  }));

  const index = (table, point) => table.axes.reduce((sum, axis, k) => sum + table.steps[k] * point[axis.name], 0);

  explore.at = (table, point) => {
    const k = index(table, point);
    return { mean: table.mean()[k], error: table.error() ? table.error()[k] : NaN };
  };

  // Values along one axis through a point.
  explore.along = (table, point, name) => {
    const found = places(table.axis(name)).map((place) => explore.at(table, { ...point, [name]: place }));
    return { mean: found.map((one) => one.mean), error: found.map((one) => one.error) };
  };

  // Counts by status at a point of a method, without those of points that are done; empty if all are.
  explore.fates = (data, table, point) => {
    const swept = table.axes.filter((axis) => table.swept.includes(axis.name));
    const place = swept.reduce((sum, axis) => sum * axis.shown.length + point[axis.name], 0);
    const counts = (data.fates[table.method] || []).map(([status, many]) => [status, many()[place]]);
    return counts.filter(([status, many]) => status !== "done" && many > 0);
  };

  // Text, as HTML and as Plotly take it.
  explore.escaped = (text) => text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);

  // A value with its symbol, as HTML; in lines of text none ends within it.
  explore.named = (axis, place) => axis.symbol + axis.equals + explore.escaped(axis.shown[place]);
  explore.tied = (axis, place) => '<span class="tied">' + explore.named(axis, place) + "</span>";

  const raised = (power) => String(power).replace(/[-0-9]/g, (c) => "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"["-0123456789".indexOf(c)]);
  const minus = (text) => text.replace(/-/g, "−");

  // A number to so many digits, without needless zeros; very small and large ones as 1.2 × 10⁻⁵.
  explore.number = (value, digits = 4) => {
    if (!Number.isFinite(value)) return "–";
    const size = Math.abs(value);
    if (value !== 0 && (size < 1e-4 || size >= 1e7)) {
      const [mantissa, power] = value.toExponential(digits - 1).split("e");
      return minus(String(Number(mantissa))) + " × 10" + raised(Number(power));
    }
    return minus(String(Number(value.toPrecision(digits))));
  };

  // A value with its standard error to two digits; without one, or with one beyond the digits of this page, as it is.
  explore.measured = (value, error) => {
    if (!Number.isFinite(value)) return "–";
    if (!(error > 2e-5 * Math.abs(value)) || !Number.isFinite(error)) return explore.number(value, 5);
    const power = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
    const unit = power < -3 || power >= 5 ? 10 ** power : 1;
    const digits = Math.min(Math.max(1 - Math.floor(Math.log10(error / unit)), 0), 20);
    const text = minus((value / unit).toFixed(digits)) + " ± " + (error / unit).toFixed(digits);
    return unit === 1 ? text : "(" + text + ") × 10" + raised(power);
  };
})();
