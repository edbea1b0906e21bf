"use strict";
// What the explorer draws: Plotly figures of what is chosen, coloured by the page.
(() => {
  const explore = globalThis.hdicaExplore;
  const MARK = "#d6006e";
  const ERRORS = 2;
  const TICKS = 8;
  // Share of an axis that a label takes beside an upright one, and that a letter takes below a level one.
  const LABEL = 0.12;
  const LETTER = () => (window.innerWidth < TELEPHONE ? 0.05 : 0.018);
  const TELEPHONE = 640;
  const MARKERS = 60;
  const THEORY_MARKERS = 16;
  // Share of its largest value above which a density is seen.
  const SEEN = 2e-3;
  const plain = explore.escaped;
  const pale = (color) => color + "38";

  function layout(x, y, more = {}) {
    return {
      // The last label carries the power of ten of all, and must not be left out where it ends beyond the axis.
      xaxis: { zeroline: false, exponentformat: "power", showexponent: "last", ticklabeloverflow: "allow", ...x },
      yaxis: { zeroline: false, exponentformat: "power", showexponent: "last", ...y },
      margin: { l: 62, r: 18, t: 24, b: 50 },
      hovermode: "closest",
      legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom", x: 0 },
      meta: { heat: false },
      ...more,
    };
  }

  // Where the values of a swept parameter lie: evenly, evenly in their logarithm, or side by side.
  function side(axis, level = true) {
    const even = axis.scale !== "places";
    const at = even ? axis.values : axis.shown.map((_, place) => place);
    const found = { title: { text: axis.html }, ...(axis.scale === "log" ? { type: "log" } : {}) };
    const count = axis.shown.length;
    // A logarithmic axis of Plotly's own would have digits alone between its powers of ten.
    if (axis.scale === "linear" && count > TICKS) return { at, layout: found };
    const step = Math.max(1, (count - 1) / (TICKS - 1));
    const ticks = [...new Set(Array.from({ length: Math.min(count, TICKS) }, (_, k) => Math.round(k * step)))];
    const text = axis.named || axis.shown.map(plain);
    const kept = apart(ticks, at.map((value) => (axis.scale === "log" ? Math.log(value) : value)),
      text.map((one) => (level && axis.values ? LETTER() * (1 + one.replace(/<[^>]*>|&\w+;/g, "").length) : LABEL)));
    return { at, layout: { ...found, tickvals: kept.map((k) => at[k]), ticktext: kept.map((k) => text[k]) } };
  }

  // Ticks whose labels, which take some share of the axis, leave each other room, from the first on; words are turned.
  function apart(ticks, at, share) {
    const [low, high] = ends(at);
    const kept = [];
    for (const k of ticks) {
      const last = kept.at(-1);
      if (!kept.length || Math.abs(at[k] - at[last]) >= (share[k] + share[last]) / 2 * (high - low)) kept.push(k);
    }
    return kept;
  }

  function ends(values) {
    let [low, high] = [Infinity, -Infinity];
    for (const value of values) {
      if (!Number.isFinite(value)) continue;
      if (value < low) low = value;
      if (value > high) high = value;
    }
    return low <= high ? [low, high] : [0, 1];
  }

  const told = (label, value, error) => label + ": " + explore.measured(value, error);

  function without(data, table, point) {
    const found = explore.fates(data, table, point).map(([status, many]) => (table.seeds ? many + " " : "") + status);
    return found.length ? "<br>" + found.join(", ") : "";
  }

  // Colours cover all times of the map, so that they stay what they are when time moves.
  explore.map = (data, state) => {
    const { table, point } = state;
    const [across, up] = [table.axis(state.x), table.axis(state.y)];
    const rows = up.shown.map((_, row) => across.shown.map((_, column) => ({ ...point, [across.name]: column, [up.name]: row })));
    const cells = rows.map((row) => row.map((place) => explore.at(table, place)));
    const text = cells.map((row, j) => row.map((cell, i) => explore.named(across, i) + "<br>" + explore.named(up, j)
      + "<br>" + table.html + ": " + explore.measured(cell.mean, cell.error) + without(data, table, rows[j][i])));
    const times = table.along ? table.axis(table.along).shown.map((_, k) => k) : [0];
    const [low, high] = ends(function* () {
      for (const row of rows) for (const place of row) for (const k of times) {
        yield explore.at(table, table.along ? { ...place, [table.along]: k } : place).mean;
      }
    }());
    const [x, y] = [side(across), side(up, false)];
    const heat = {
      type: "heatmap", x: x.at, y: y.at, z: cells.map((row) => row.map((cell) => (Number.isFinite(cell.mean) ? cell.mean : null))),
      text, hovertemplate: "%{text}<extra></extra>", hoverongaps: true, zmin: low, zmax: high, colorscale: "Viridis", showlegend: false,
      colorbar: { title: { text: table.html, side: "right" }, thickness: 12 },
    };
    const chosen = {
      type: "scatter", mode: "markers", x: [x.at[point[across.name]]], y: [y.at[point[up.name]]], hoverinfo: "skip", showlegend: false,
      marker: { symbol: "square-open", size: 15, color: MARK, line: { width: 3, color: MARK } },
    };
    return { data: [heat, chosen], layout: layout(x.layout, y.layout, { meta: { heat: true } }) };
  };

  // A mean with a band of errors, or theory as a line in the ink of the page.
  function curve(x, found, one, said, shape = "linear") {
    const few = x.length <= (one.theory ? THEORY_MARKERS : MARKERS) && !one.table.density && (!one.theory || one.alone);
    const line = {
      type: "scatter", mode: few ? "lines+markers" : "lines", x, y: found.mean, name: one.label, legendgroup: one.key, showlegend: true,
      line: { width: one.theory ? 2.2 : 1.8, shape, ...(one.theory ? {} : { color: one.color }) }, marker: { size: one.theory ? 5 : 6 },
      text: found.mean.map((mean, k) => [said(k), told(one.label, mean, found.error[k])].filter(Boolean).join("<br>")), hovertemplate: "%{text}<extra></extra>",
      meta: { ink: one.theory, key: one.key },
    };
    if (one.theory || !found.error.some(Number.isFinite)) return [line];
    const end = (sign) => found.mean.map((mean, k) => mean + sign * ERRORS * (found.error[k] || 0));
    const edge = { type: "scatter", mode: "lines", x, line: { width: 0, shape }, hoverinfo: "skip", showlegend: false, legendgroup: one.key };
    return [{ ...edge, y: end(-1) }, { ...edge, y: end(1), fill: "tonexty", fillcolor: pale(one.color) }, line];
  }

  function level(x, one) {
    const { mean, error } = explore.at(one.table, one.point);
    return curve(x, { mean: x.map(() => mean), error: x.map(() => error) }, one, () => "");
  }

  const mark = (x) => ({ type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: { color: MARK, width: 1.5, dash: "dot" } });

  // Along the variable's own dimension, as time, at the chosen point.
  explore.course = (data, state) => {
    const name = state.table.along;
    const drawn = state.curves.filter((one) => one.table.along === name).flatMap((one) => {
      const axis = one.table.axis(name);
      return curve(axis.values, explore.along(one.table, one.point, name), one, (k) => explore.named(axis, k));
    });
    const axis = state.table.axis(name);
    const x = { title: { text: state.table.clock || axis.html } };
    return { data: drawn, layout: layout(x, { title: { text: state.table.html } }, { shapes: [mark(axis.values[state.point[name]])] }) };
  };

  // One axis for all methods: where values lie side by side, those of every method in their order.
  function together([axis, ...others]) {
    if (axis.scale !== "places") return axis;
    const found = new Map([axis, ...others].flatMap((one) => one.shown.map((text, k) => [text, one.values ? one.values[k] : 0])));
    const sorted = [...found].sort((a, b) => a[1] - b[1]);
    return { ...axis, shown: sorted.map(([text]) => text), values: axis.values && sorted.map(([, value]) => value) };
  }

  // Along one swept parameter, at the chosen values of all others; a limit that knows nothing of it is the same everywhere.
  explore.cut = (data, state) => {
    const every = state.curves.map((one) => one.table.axis(state.along)).filter(Boolean);
    const axis = together(every);
    const place = side(axis);
    const lies = (own, k) => (axis.scale === "places" ? axis.shown.indexOf(own.shown[k]) : own.values[k]);
    const drawn = state.curves.map((one) => ({ ...one, label: one.across })).flatMap((one) => {
      const own = one.table.axis(state.along);
      if (!own) return one.theory ? level(place.at, one) : [];
      const at = own.shown.map((_, k) => lies(own, k));
      return curve(at, explore.along(one.table, one.point, state.along), one,
        (k) => explore.named(own, k) + without(data, one.table, { ...one.point, [own.name]: k }));
    });
    const at = lies(every[0], state.point[state.along]);
    return { data: drawn, layout: layout(place.layout, { title: { text: state.table.html } }, { shapes: [mark(at)] }) };
  };

  // Histograms with the limit at a snapshot; the axes are those of all snapshots of the point.
  explore.density = (data, state) => {
    const every = state.densities.map((one) => ({ one, axis: one.table.axis(one.table.along) }));
    const drawn = every.flatMap(({ one, axis }) => curve(axis.values, explore.along(one.table, one.point, axis.name), one,
      (k) => explore.named(axis, k), one.theory ? "linear" : "hvh"));
    const all = every.flatMap(({ one, axis }) => {
      const times = one.table.axis(data.played) ? one.table.axis(data.played).shown.map((_, k) => ({ [data.played]: k })) : [{}];
      return times.flatMap((time) => {
        const found = explore.along(one.table, { ...one.point, ...time }, axis.name);
        return found.mean.map((mean, k) => [axis.values[k], mean, mean + ERRORS * (found.error[k] || 0)]);
      });
    });
    const top = ends(all.map(([, , upper]) => upper))[1];
    const seen = ends(all.filter(([, mean]) => mean > SEEN * top).map(([x]) => x));
    const free = 0.03 * (seen[1] - seen[0]);
    const x = { title: { text: data.across }, range: [seen[0] - free, seen[1] + free] };
    return { data: drawn, layout: layout(x, { title: { text: "density" }, range: [0, 1.1 * top] }) };
  };
})();
