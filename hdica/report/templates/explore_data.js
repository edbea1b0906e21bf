"use strict";
// What the explorer looks at: a catalogue of tables, and slices of them from this page or from a server; numbers in words.
(() => {
  const explore = (globalThis.hdicaExplore ??= {});
  const range = (size) => Array.from({ length: size }, (_, k) => k);
  const changed = (record, change) => Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));

  // The highest bytes of numbers in single precision, first all highest ones, then all second ones, ...
  function numbers(body, { begin, size, width }) {
    const bits = new Uint32Array(size);
    for (let k = 0; k < width; k++) {
      const from = begin + k * size;
      const shift = 24 - 8 * k;
      for (let i = 0; i < size; i++) bits[i] |= body[from + i] << shift;
    }
    return Array.from(new Float32Array(bits.buffer));
  }

  // A message: the length of its header, the header, and numbers.
  function parsed(buffer) {
    const length = new DataView(buffer).getUint32(0);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
    return { header, body: new Uint8Array(buffer, 4 + length) };
  }

  explore.source = async (text) => {
    const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    const { header, body } = parsed(await new Response(stream).arrayBuffer());
    explore.digits = header.digits;
    return header.served ? served(header) : inside(header, body);
  };

  function catalogue(header) {
    const axes = header.axes.map(axisOf);
    return { ...header, axes, tables: header.tables.map((table) => tableOf(table, axes)) };
  }

  // Of a long axis only the ends are there: its values are even, or even in their logarithm.
  function axisOf(axis) {
    if (!axis.ends) return { ...axis, numeric: Boolean(axis.values), at: (place) => axis.values[place], text: (place) => axis.shown[place] };
    const [first, last] = axis.ends;
    const share = (place) => place / (axis.size - 1);
    const at = (place) => (axis.scale === "log" ? first * (last / first) ** share(place) : first + (last - first) * share(place));
    return { ...axis, numeric: true, at, text: (place) => explore.number(at(place), 6) };
  }

  function tableOf(table, every) {
    const axes = table.axes.map((k) => every[k]);
    const swept = axes.filter((axis) => table.swept.includes(axis.name));
    return {
      ...table, axes, swept, key: table.method + "/" + table.variable, own: axes.filter((axis) => !swept.includes(axis)),
      sides: swept.filter((axis) => axis.size > 1), axis: (name) => axes.find((axis) => axis.name === name),
    };
  }

  // Slices of the numbers in this page; those of a table are unpacked when they are first wanted.
  function inside(header, body) {
    const later = (where) => {
      let values = null;
      return () => (values ??= where && numbers(body, where));
    };
    const data = catalogue(header);
    const means = new Map(data.tables.map((table) => [table, { mean: later(table.mean), error: later(table.error) }]));
    const counts = changed(header.counts, (some) => changed(some, later));
    data.slices = (wanted) => wanted.map(({ table, point, sides }) => {
      const [mean, error] = [means.get(table).mean(), means.get(table).error()];
      const [at, cells] = [places(table.axes, point, sides), places(table.swept, point, sides)];
      const all = sides.length > 1 && table.along ? places(table.axes, point, [...new Set([...sides, table.along])]) : at;
      return {
        mean: at.map((k) => mean[k]), error: error && at.map((k) => error[k]), ends: explore.ends(all.map((k) => mean[k])),
        counts: changed(counts[table.method] || {}, (many) => cells.map((k) => many()[k])), every: sides.map(() => 1), why: "",
      };
    });
    return data;
  }

  // Where a slice lies in an array over some axes: the first of its sides changes slowest.
  function places(axes, point, sides) {
    const steps = axes.map((_, k) => axes.slice(k + 1).reduce((product, axis) => product * axis.size, 1));
    const first = axes.reduce((sum, axis, k) => sum + (sides.includes(axis.name) ? 0 : steps[k] * point[axis.name]), 0);
    return sides.reduce((some, name) => {
      const k = axes.findIndex((axis) => axis.name === name);
      return k < 0 ? some : some.flatMap((at) => range(axes[k].size).map((place) => at + place * steps[k]));
    }, [first]);
  }

  // Slices, what is new, and another catalogue, of the server from which this page came.
  function served(header) {
    const ask = async (path, settings = {}) => {
      const answer = await fetch(path, settings).catch(() => { throw new Error("hdica explore does not answer: it may have ended."); });
      if (!answer.ok) throw new Error(answer.status === 400 ? await answer.text() : "hdica explore could not answer: it says why where it runs.");
      return answer;
    };
    const message = async (...request) => parsed(await (await ask(...request)).arrayBuffer());
    const source = {
      news: async () => (await ask("news")).json(),
      again: async () => served((await message("catalogue")).header),
      slices: async (wanted) => {
        const asked = wanted.map(({ table, point, sides, runs }) => ({ table: table.key, point, sides, runs: Boolean(runs) }));
        const body = JSON.stringify({ number: header.served.number, wanted: asked });
        const answer = await message("slices", { method: "POST", body });
        const own = (where) => where && numbers(answer.body, where);
        return answer.header.slices.map((slice) => ({ ...slice, mean: own(slice.mean), error: own(slice.error), counts: changed(slice.counts, own) }));
      },
    };
    return { ...catalogue(header), ...source, shape: JSON.stringify([header.tables, header.axes]) };
  }

  // Place of the chosen value on an axis: of a number the closest, of a word the same; -1 if it is not there.
  explore.closest = (axis, chosen) => {
    if (!chosen) return -1;
    if (!axis.numeric || typeof chosen.value !== "number") return axis.shown ? axis.shown.indexOf(chosen.shown) : -1;
    if (axis.ends) {
      const [first, last, value] = [...axis.ends, chosen.value].map((one) => (axis.scale === "log" ? Math.log(Math.max(one, 1e-300)) : one));
      return Math.min(Math.max(Math.round((axis.size - 1) * (value - first) / (last - first)), 0), axis.size - 1);
    }
    const far = axis.values.map((value) => (value === null ? Infinity : Math.abs(value - chosen.value)));
    return far.indexOf(Math.min(...far));
  };

  explore.same = (axis, chosen) => {
    const place = chosen ? (axis.ends ? explore.closest(axis, chosen) : axis.shown.indexOf(chosen.shown)) : -1;
    return place >= 0 && axis.text(place) === chosen.shown ? place : -1;
  };
  explore.value = (axis, place) => ({ value: axis.numeric ? axis.at(place) : null, shown: axis.text(place) });

  // Where a table is looked at: at the chosen values; where it does not have one, at its last.
  explore.point = (table, chosen) => Object.fromEntries(table.axes.map((axis) => {
    const place = explore.same(axis, chosen[axis.name]);
    return [axis.name, place < 0 ? axis.size - 1 : place];
  }));

  explore.at = (slice, k) => ({ mean: slice.mean[k], error: slice.error ? slice.error[k] : NaN });

  // Counts by status at a place of a slice, without those of points that are done; empty if all are.
  explore.lost = (slice, k = 0) => Object.entries(slice.counts).map(([status, many]) => [status, many[k]])
    .filter(([status, many]) => status !== "done" && many > 0);

  explore.range = range;
  explore.ends = (values) => {
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) {
      if (!Number.isFinite(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return low <= high ? [low, high] : [0, 1];
  };

  // Text, as HTML and as Plotly take it.
  explore.escaped = (text) => text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[c]);

  // A value with its symbol, as HTML; in lines of text none ends within it.
  explore.named = (axis, place) => axis.symbol + axis.equals + explore.escaped(axis.text(place));
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

  // A value with its standard error to two digits; without one, or with one beyond the digits that are there, as it is.
  explore.measured = (value, error, digits = explore.digits) => {
    if (!Number.isFinite(value)) return "–";
    if (!(error > 2 * 10 ** -digits * Math.abs(value)) || !Number.isFinite(error)) return explore.number(value, digits);
    const power = value === 0 ? 0 : Math.floor(Math.log10(Math.abs(value)));
    const unit = power < -3 || power >= 5 ? 10 ** power : 1;
    const places = Math.min(Math.max(1 - Math.floor(Math.log10(error / unit)), 0), 20);
    const text = minus((value / unit).toFixed(places)) + " ± " + (error / unit).toFixed(places);
    return unit === 1 ? text : "(" + text + ") × 10" + raised(power);
  };
})();
