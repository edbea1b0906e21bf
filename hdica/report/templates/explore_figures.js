"use strict";
// What the explorer draws: Plotly figures of slices, coloured by the page.
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
  // Share of its largest value above which a density is seen, and lines of theory among single seeds.
  const SEEN = 2e-3;
  const LINES = 3;
  const plain = explore.escaped;
  const pale = (color) => color + "38";
  const { range, ends } = explore;
  // How cells are filled that have no value, the best status of their points first.
  explore.fills = { diverged: "#e69f00", failed: "#c43c39", pending: "#a3adba" };

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
    const lies = axis.scale === "places" ? (place) => place : axis.at;
    const found = { title: { text: axis.html }, ...(axis.scale === "log" ? { type: "log" } : {}) };
    const count = axis.size;
    // A logarithmic axis of Plotly's own would have digits alone between its powers of ten.
    if (axis.scale === "linear" && count > TICKS) return { lies, layout: found };
    const step = Math.max(1, (count - 1) / (TICKS - 1));
    const ticks = [...new Set(range(Math.min(count, TICKS)).map((k) => Math.round(k * step)))];
    const text = (place) => (axis.named ? axis.named[place] : plain(axis.text(place)));
    const share = (place) => (level && axis.numeric ? LETTER() * (1 + text(place).replace(/<[^>]*>|&\w+;/g, "").length) : LABEL);
    const kept = apart(ticks, (place) => (axis.scale === "log" ? Math.log(lies(place)) : lies(place)), share, count);
    return { lies, layout: { ...found, tickvals: kept.map(lies), ticktext: kept.map(text) } };
  }

  // Ticks whose labels, which take some share of the axis, leave each other room, from the first on; words are turned.
  function apart(ticks, at, share, count) {
    const length = Math.abs(at(count - 1) - at(0)) || 1;
    const kept = [];
    for (const k of ticks) {
      const last = kept.at(-1);
      if (!kept.length || Math.abs(at(k) - at(last)) >= (share(k) + share(last)) / 2 * length) kept.push(k);
    }
    return kept;
  }

  const told = (label, { mean, error }) => label + ": " + explore.measured(mean, error);

  function without(table, slice, k) {
    const lost = explore.lost(slice, k).map(([status, many]) => (table.seeds ? many + " " : "") + status);
    return lost.length ? "<br>" + lost.join(", ") : "";
  }

  // Colours cover all times of the map, so that they stay what they are when time moves.
  explore.map = (state) => {
    const { table, point, map } = state;
    const [up, across] = [table.axis(state.y), table.axis(state.x)];
    const [rows, columns] = [up, across].map((axis, k) => range(Math.ceil(axis.size / map.every[k])).map((place) => place * map.every[k]));
    const [x, y] = [side(across), side(up, false)];
    const grid = (made) => rows.map((_, j) => columns.map((_, i) => made(j * columns.length + i, j, i)));
    const [names, lines] = [columns.map((k) => explore.named(across, k)), rows.map((k) => explore.named(up, k))];
    const text = grid((k, j, i) => names[i] + "<br>" + lines[j] + "<br>" + told(table.html, explore.at(map, k)) + without(table, map, k));
    const place = { type: "heatmap", x: columns.map(x.lies), y: rows.map(y.lies), showlegend: false };
    const [low, high] = map.ends;
    const heat = {
      ...place, z: grid((k) => (Number.isFinite(map.mean[k]) ? map.mean[k] : null)), text, hovertemplate: "%{text}<extra></extra>", hoverongaps: true,
      zmin: low, zmax: high > low ? high : low + 1, colorscale: "Viridis",
      colorbar: { title: { text: table.html, side: "right" }, thickness: 12 },
    };
    const fates = Object.keys(explore.fills);
    const fate = (k) => {
      const best = ["done", ...fates].findIndex((status) => map.counts[status] && map.counts[status][k]);
      return best > 0 ? best - 1 : null;
    };
    const lost = Object.keys(map.counts).length ? [{
      ...place, z: grid(fate), zmin: 0, zmax: fates.length - 1, colorscale: fates.map((status, k) => [k / (fates.length - 1), explore.fills[status]]),
      showscale: false, hoverinfo: "skip",
    }] : [];
    const [i, j] = [[across, columns, 1], [up, rows, 0]].map(([axis, drawn, k]) => drawn[Math.min(Math.round(point[axis.name] / map.every[k]), drawn.length - 1)]);
    const chosen = {
      type: "scatter", mode: "markers", x: [x.lies(i)], y: [y.lies(j)], hoverinfo: "skip", showlegend: false,
      marker: { symbol: "square-open", size: 15, color: MARK, line: { width: 3, color: MARK } },
    };
    return { data: [...lost, heat, chosen], layout: layout(x.layout, y.layout, { meta: { heat: true } }) };
  };

  // A mean with a band of errors, or theory as a line in the ink of the page.
  function curve(x, slice, one, label, shape = "linear") {
    const few = x.length <= (one.theory ? THEORY_MARKERS : MARKERS) && !one.table.density && (!one.theory || one.alone);
    const line = {
      type: "scatter", mode: few ? "lines+markers" : "lines", x, y: slice.mean, name: one.label, legendgroup: one.key, showlegend: true,
      line: { width: one.theory ? 2.2 : 1.8, shape, ...(one.theory ? { dash: one.dash } : { color: one.color }) }, marker: { size: one.theory ? 5 : 6 },
      text: x.map((_, k) => [label(k), told(one.label, explore.at(slice, k))].filter(Boolean).join("<br>")), hovertemplate: "%{text}<extra></extra>",
      meta: { ink: one.theory, key: one.key },
    };
    if (one.theory || !slice.error || !slice.error.some(Number.isFinite)) return [line];
    // The band is an outline around every row of values that are there: it must not bridge those that are not.
    const rows = range(x.length).filter((k) => Number.isFinite(slice.mean[k]))
      .reduce((some, k) => (some.at(-1)?.at(-1) === k - 1 ? [...some.slice(0, -1), [...some.at(-1), k]] : [...some, [k]]), []);
    const end = (k, sign) => [x[k], slice.mean[k] + sign * ERRORS * (slice.error[k] || 0)];
    const around = rows.flatMap((row) => [...row.map((k) => end(k, 1)), ...[...row].reverse().map((k) => end(k, -1)), [null, null]]);
    const band = {
      type: "scatter", mode: "lines", x: around.map(([at]) => at), y: around.map(([, at]) => at), fill: "toself", fillcolor: pale(one.color),
      line: { width: 1, color: pale(one.color), shape }, hoverinfo: "skip", showlegend: false, legendgroup: one.key,
    };
    return [band, line];
  }

  // The value of a curve at the chosen point.
  explore.chosen = ({ table, point, own }) => explore.at(own, table.along ? point[table.along] : 0);

  const mark = (x) => ({ type: "line", x0: x, x1: x, yref: "paper", y0: 0, y1: 1, line: { color: MARK, width: 1.5, dash: "dot" } });

  // Along the variable's own dimension, as time, at the chosen point.
  explore.course = (state) => {
    const name = state.table.along;
    const drawn = state.curves.filter((one) => one.table.along === name).flatMap((one) => {
      const axis = one.table.axis(name);
      return curve(range(axis.size).map(axis.at), one.own, one, (k) => explore.named(axis, k));
    });
    const axis = state.table.axis(name);
    const x = { title: { text: state.table.clock || axis.html } };
    return { data: drawn, layout: layout(x, { title: { text: state.table.html } }, { shapes: [mark(axis.at(state.point[name]))] }) };
  };

  // One axis for all methods: where values lie side by side, those of every method in their order.
  function together([axis, ...others]) {
    if (axis.scale !== "places" || others.every((one) => one === axis)) return axis;
    const found = new Map([axis, ...others].flatMap((one) => one.shown.map((text, k) => [text, one.numeric ? one.at(k) : 0])));
    const sorted = [...found].sort((a, b) => a[1] - b[1]);
    return { ...axis, size: sorted.length, shown: sorted.map(([text]) => text), text: (k) => sorted[k][0], at: (k) => sorted[k][1] };
  }

  // Along one swept parameter, at the chosen values of all others; a limit that knows nothing of it is the same everywhere.
  explore.cut = (state) => {
    const axis = together(state.curves.map((one) => one.table.axis(state.along)).filter(Boolean));
    const place = side(axis);
    const lies = (own, k) => (axis.scale !== "places" ? own.at(k) : axis === own ? k : axis.shown.indexOf(own.text(k)));
    const drawn = state.curves.map((one) => ({ ...one, label: one.across })).flatMap((one) => {
      const own = one.table.axis(state.along);
      if (own) {
        const at = range(one.cut.mean.length).map((k) => k * one.cut.every[0]);
        return curve(at.map((k) => lies(own, k)), one.cut, one, (k) => explore.named(own, at[k]) + without(one.table, one.cut, k));
      }
      const { mean, error } = explore.chosen(one);
      const x = [0, axis.size - 1].map(place.lies);
      return one.theory ? curve(x, { mean: [mean, mean], error: [error, error] }, one, () => "") : [];
    });
    const at = lies(state.table.axis(state.along), state.point[state.along]);
    return { data: drawn, layout: layout(place.layout, { title: { text: state.table.html } }, { shapes: [mark(at)] }) };
  };

  // Histograms with the limit at a snapshot; the axes are those of all snapshots of the point.
  explore.density = (state) => {
    const every = state.densities.map((one) => ({ one, axis: one.table.axis(one.table.along) }));
    const drawn = every.flatMap(({ one, axis }) => {
      const first = (one.own.sides.length > 1 ? one.point[one.own.sides[0]] : 0) * axis.size;
      const at = (values) => values && values.slice(first, first + axis.size);
      return curve(range(axis.size).map(axis.at), { mean: at(one.own.mean), error: at(one.own.error) }, one, (k) => explore.named(axis, k), one.theory ? "linear" : "hvh");
    });
    const all = every.flatMap(({ one, axis }) => one.own.mean.map((mean, k) => {
      return [axis.at(k % axis.size), mean, mean + ERRORS * (one.own.error && one.own.error[k] || 0)];
    }));
    const top = ends(all.map(([, , upper]) => upper))[1];
    const seen = ends(all.filter(([, mean]) => mean > SEEN * top).map(([x]) => x));
    const free = 0.03 * (seen[1] - seen[0]);
    const x = { title: { text: state.across }, range: [seen[0] - free, seen[1] + free] };
    return { data: drawn, layout: layout(x, { title: { text: "density" }, range: [0, 1.1 * top] }) };
  };

  // Edges of bins, of a width that suits equal values, too.
  explore.bins = (values) => {
    const [low, high] = ends(values);
    const pad = high > low ? 0 : Math.max(Math.abs(low), 1) * 0.05;
    const count = high > low ? Math.min(Math.max(Math.floor(Math.sqrt(values.length) * 1.5), 5), 40) : 3;
    return range(count + 1).map((k) => low - pad + (high - low + 2 * pad) * k / count);
  };

  // A histogram of the single seeds at the chosen point and time; lines are theory.
  explore.seeds = (state) => {
    const [{ mean: values }, mine] = [state.runs, state.curves[0]];
    const edges = values.length ? explore.bins(values) : [0, 1];
    const width = edges[1] - edges[0];
    const counts = edges.slice(1).map(() => 0);
    for (const value of values) counts[Math.min(Math.floor((value - edges[0]) / width), counts.length - 1)] += 1;
    const bars = {
      type: "bar", x: counts.map((_, k) => edges[k] + width / 2), y: counts, width, name: mine.label, showlegend: true,
      marker: { color: pale(mine.color), line: { color: mine.color, width: 1 } }, hovertemplate: "%{text}<extra></extra>",
      text: counts.map((many, k) => explore.number(edges[k]) + " to " + explore.number(edges[k + 1]) + ": " + many), textposition: "none",
    };
    const theory = state.curves.filter((one) => one.theory).slice(0, LINES).flatMap((one) => {
      const [value, text] = [explore.chosen(one), told(one.label, explore.chosen(one))];
      if (!Number.isFinite(value.mean)) return [];
      const [line] = curve([value.mean, value.mean], { mean: [0, Math.max(...counts, 1)] }, { ...one, alone: false }, () => "");
      return { ...line, text: [text, text] };
    });
    return { data: [bars, ...theory], layout: layout({ title: { text: state.table.html } }, { title: { text: "seeds" }, rangemode: "tozero" }) };
  };
})();
