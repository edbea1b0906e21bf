"use strict";
// The explorer: what is chosen, the controls for it, and what is drawn and said of it.
(() => {
  const explore = globalThis.hdicaExplore;
  const FRAME = 150;
  // Milliseconds between two looks for news of a server.
  const EVERY = 1000;
  // Values from which on a dimension of a variable is a mesh and does not number entries.
  const MESH = 20;
  // Seeds from which on their values are shown as a histogram.
  const SEEDS = 5;
  const DASHES = ["solid", "dash", "dot", "dashdot"];
  const FIGURES = ["map", "course", "cut", "density", "seeds"];
  const section = document.getElementById("explore");
  const part = (name) => document.getElementById("explore-" + name);
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");

  const make = (name, attributes = {}, ...inside) => {
    const found = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
    found.append(...inside);
    return found;
  };
  const html = (text) => { const one = make("span"); one.innerHTML = text; return one; };

  // Starts the explorer; what comes back draws it, as often as the page asks.
  explore.begin = async (page) => {
    let data, byKey, densities, table;
    // By the name of each dimension, the value that was chosen last.
    const chosen = {};
    let sides = { x: "", y: "", along: "" };
    let state = null;
    // Slices of the last state by what was asked for.
    let slices = new Map();
    let playing = 0;

    function adopt(next) {
      data = next;
      byKey = Object.fromEntries(data.tables.map((one) => [one.key, one]));
      densities = data.tables.filter((one) => one.density).sort((a, b) => (a.seeds ? 0 : 1) - (b.seeds ? 0 : 1));
      table = (table && byKey[table.key]) || data.tables[data.first];
      slices = new Map();
    }

    // The last time and n, the first entry, and the middle of every other parameter and of a fine mesh, as of
    // angles, until a reader chooses.
    function settle(axis) {
      const last = axis.name === "n" || axis.name === table.along;
      const own = table.own.includes(axis) && !last && axis.size < MESH;
      return last ? axis.size - 1 : own ? 0 : Math.floor((axis.size - 1) / 2);
    }

    function axesShown() {
      const more = densities.slice(0, 1).flatMap((one) => one.own.filter((axis) => axis.name !== one.along));
      return [...table.axes, ...more.filter((axis) => !table.axis(axis.name))];
    }

    // What is not there yet gets a first value; what the table does not have gets its closest.
    function place() {
      for (const axis of axesShown()) {
        const own = axis.numeric || !chosen[axis.name] ? explore.closest(axis, chosen[axis.name]) : explore.same(axis, chosen[axis.name]);
        if (!chosen[axis.name] || table.axis(axis.name)) {
          chosen[axis.name] = explore.value(axis, own < 0 ? settle(axis) : own);
        }
      }
      const names = table.sides.map((axis) => axis.name);
      const ranked = [...table.sides].sort((a, b) => rank(a) - rank(b)).map((axis) => axis.name);
      if (!names.includes(sides.x)) sides.x = ranked.find((name) => name !== sides.y) || "";
      if (!names.includes(sides.y) || sides.y === sides.x) sides.y = ranked.find((name) => name !== sides.x) || "";
      if (!names.includes(sides.along)) sides.along = sides.x;
    }

    const rank = (axis) => (axis.name === "n" ? 2 : axis.numeric ? 0 : 1);

    function curveOf(other) {
      const at = explore.point(other, chosen);
      const differs = other.swept.filter((axis) => axis.name === "n" || (chosen[axis.name] || {}).shown !== axis.text(at[axis.name]));
      const where = (some) => some.map((axis) => ", " + explore.named(axis, at[axis.name])).join("");
      const called = explore.escaped(other.called);
      const what = other.density || other.variable === table.variable ? "" : ": " + other.symbol;
      return {
        table: other, point: at, key: other.key, label: called + what + where(differs), theory: !other.seeds, color: data.colors[other.method],
        // Along one of them no curve is at a single value.
        across: called + what + where(differs.filter((axis) => axis.name !== sides.along)),
        alone: !table.others.some((key) => byKey[key]),
      };
    }

    // The state of what is chosen, with the slices that its figures draw.
    async function renew() {
      place();
      const others = table.others.map((key) => byKey[key]).filter(Boolean);
      const next = {
        table, point: explore.point(table, chosen), ...sides, across: data.across, curves: [table, ...others].map(curveOf), densities: densities.map(curveOf),
      };
      for (const some of [next.curves, next.densities]) some.filter((one) => one.theory).forEach((one, k) => { one.dash = DASHES[k % DASHES.length]; });
      const wanted = [];
      const want = (owner, name, { table: of, point }, free, runs = false) => {
        const fixed = Object.entries(point).filter(([axis]) => !free.includes(axis));
        wanted.push({ owner, name, table: of, point, sides: free, runs, key: JSON.stringify([of.key, fixed, free, runs]) });
      };
      for (const one of next.curves) {
        want(one, "own", one, one.table.along ? [one.table.along] : []);
        if (one.table.axis(sides.along)) want(one, "cut", one, [sides.along]);
      }
      if (sides.y) want(next, "map", next, [sides.y, sides.x]);
      for (const one of next.densities) want(one, "own", one, [data.played, one.table.along].filter(one.table.axis));
      if (shown("seeds")) want(next, "runs", next, [], true);
      const known = slices;
      const missing = wanted.filter((one) => !known.has(one.key));
      const fresh = missing.length ? await data.slices(missing) : [];
      if (known !== slices) return renew(); // of another snapshot
      missing.forEach((one, k) => slices.set(one.key, { ...fresh[k], sides: one.sides }));
      slices = new Map(wanted.map((one) => [one.key, slices.get(one.key)]));
      for (const one of wanted) one.owner[one.name] = slices.get(one.key);
      state = next;
      section.dataset.method = table.method;
      section.dataset.variable = table.variable;
      section.dataset.point = JSON.stringify(Object.fromEntries(axesShown().map((axis) => [axis.name, explore.same(axis, chosen[axis.name])])));
      say();
      return titles();
    }

    // In words: the point, its value with its error, what theory and other methods have there, and what has no value.
    function say() {
      const at = state.table.axes.filter((axis) => axis.size > 1).map((axis) => explore.tied(axis, state.point[axis.name]));
      const values = state.curves.map((one) => {
        const { mean, error } = explore.chosen(one);
        return { one, text: explore.measured(mean, error), lost: explore.lost(one.own) };
      });
      const [mine, ...others] = values;
      const why = ({ one }) => (one.own.why ? ": " + explore.escaped(one.own.why) : "");
      const strong = make("strong", { id: "explore-value" }, mine.text);
      const from = " (" + table.called + (table.seeds > 1 ? ", mean of " + table.seeds + " runs" : "") + ")";
      const beside = others.map((other) => "; " + other.one.label + ": " + other.text
        + (other.lost.length ? " (" + other.lost.map(([status]) => status).join(", ") + why(other) + ")" : ""));
      const gone = mine.lost.map(([status, many]) => " " + (table.seeds ? many + " of " + table.seeds + (table.seeds === 1 ? " run " : " runs ") : "This point is ")
        + (status === "pending" ? "not computed yet." : status + why(mine) + "."));
      const point = at.join(", ") + (at.length ? ": " : "");
      part("said").replaceChildren(html(point + table.html + " = "), strong, from, html(beside.join("")), ".", html(gone.join("")));
    }

    function titles() {
      const said = (axis) => explore.tied(axis, explore.same(axis, chosen[axis.name]));
      const time = table.along ? [table.axis(table.along)] : [];
      part("map-title").innerHTML = ["Map", ...time.map(said)].join(", ");
      if (time.length) part("course-title").innerHTML = "Along " + time[0].symbol + ", at the chosen point";
      part("seeds-title").innerHTML = ["Single seeds at the chosen point", ...time.map(said)].join(", ");
      if (sides.along) {
        const along = "Along " + table.axis(sides.along).symbol + ", through the chosen point";
        part("cut-title").innerHTML = [along, ...time.map(said)].join(", ");
      }
      for (const one of densities.slice(0, 1)) {
        const own = one.own.filter((axis) => axis.name !== one.along && axis.size > 1);
        part("density-title").innerHTML = ["Densities at the chosen point", ...own.map(said)].join(", ");
      }
    }

    // How many points have no value, and how their cells are filled.
    function key(totals) {
      part("key").replaceChildren(...Object.entries(totals).map(([status, many]) =>
        make("li", {}, make("span", { class: "box", style: "background:" + explore.fills[status] }), status + ": " + many)));
    }

    // Controls

    function select(id, label, options, value, change) {
      const field = make("select", { id: "explore-" + id }, ...options.map(([name, text]) => make("option", { value: name }, text)));
      field.value = value;
      field.addEventListener("change", () => { change(field.value); rebuild(); });
      return make("div", { class: "control" }, make("label", { for: field.id }, label), field);
    }

    function slider(axis, k) {
      const id = "explore-axis-" + k;
      const label = make("label", { for: id });
      label.innerHTML = axis.symbol;
      const input = make("input", { id, type: "range", "data-axis": axis.name, min: 0, max: axis.size - 1, step: 1 });
      input.addEventListener("input", () => { stop(); choose({ [axis.name]: explore.value(axis, input.valueAsNumber) }); });
      return make("div", { class: "control" }, label, make("output", { for: id }), input);
    }

    const options = (names, text) => [...new Set(names)].map((name) => [name, text(name)]);

    function menus() {
      const offered = data.tables.filter((one) => one.offered);
      const own = offered.filter((one) => one.method === table.method);
      const called = (method) => offered.find((one) => one.method === method).called;
      const named = options(table.sides.map((axis) => axis.name), (name) => table.axis(name).plain);
      const swap = (one, other) => (name) => {
        if (sides[other] === name) sides[other] = sides[one];
        sides[one] = name;
      };
      return [
        select("method", "Method", options(offered.map((one) => one.method), called), table.method, (method) => {
          table = byKey[method + "/" + table.variable] || offered.find((one) => one.method === method);
        }),
        select("variable", "Variable", own.map((one) => [one.variable, one.plain]), table.variable, (variable) => {
          table = byKey[table.method + "/" + variable];
        }),
        ...(named.length > 2 ? [select("x", "Map across", named, sides.x, swap("x", "y")), select("y", "Map up", named, sides.y, swap("y", "x"))] : []),
        ...(named.length > 1 ? [select("along", "Cut along", named, sides.along, (name) => { sides.along = name; })] : []),
      ];
    }

    function rebuild() {
      place();
      const focused = document.activeElement && document.activeElement.id;
      const several = axesShown().filter((axis) => axis.size > 1);
      part("controls").replaceChildren(...menus(), ...several.map(slider));
      if (focused && focused.startsWith("explore-")) document.getElementById(focused)?.focus();
      move();
      return draw();
    }

    function move() {
      for (const axis of axesShown()) {
        const input = section.querySelector(`input[data-axis=${CSS.escape(axis.name)}]`);
        if (!input) continue;
        const at = explore.same(axis, chosen[axis.name]);
        input.value = at;
        input.setAttribute("aria-valuetext", axis.text(at));
        input.previousElementSibling.textContent = axis.text(at);
      }
    }

    function choose(values, only) {
      Object.assign(chosen, values);
      place();
      move();
      return draw(only);
    }

    // Figures

    const shown = (name) => ({
      map: Boolean(sides.y), cut: Boolean(sides.along), density: densities.length > 0,
      course: Boolean(table.along) && table.axis(table.along).size > 1,
      seeds: Boolean(data.served) && table.seeds >= SEEDS,
    })[name];

    // Before any is drawn, because figures are as wide as those beside them let them be.
    function arrange() {
      const seen = FIGURES.filter((name) => {
        const figure = part(name).closest("figure");
        figure.hidden = !shown(name);
        figure.classList.remove("wide");
        return shown(name);
      });
      if (seen.length % 2) part(seen.at(-1)).closest("figure").classList.add("wide");
    }

    async function drawn(name) {
      if (!shown(name) || !state) return;
      const place = part(name);
      const figure = place.closest("figure");
      place.setAttribute("role", "img");
      place.setAttribute("aria-label", figure.querySelector("h3").textContent);
      await page.plot(place, "explore-" + name, explore[name](state));
      if (place.dataset.listens) return;
      place.dataset.listens = "yes";
      place.on("plotly_click", (event) => tapped(name, event.points[0]));
    }

    // What was asked for while figures were drawn is drawn after them, once.
    let asked = null;
    let busy = null;

    function draw(only = FIGURES) {
      const ready = () => window.Plotly && page.ready();
      if (page.printing() && ready()) {
        // A browser takes the sheets right after it has said that it will print: nothing may wait.
        arrange();
        return Promise.all(FIGURES.map(drawn));
      }
      asked = new Set([...(asked || []), ...only]);
      busy ??= (async () => {
        while (asked) {
          const names = FIGURES.filter((name) => asked.has(name));
          asked = null;
          try {
            await renew();
            trouble("");
          } catch (error) {
            if (!data.served) throw error;
            if (!await look()) trouble(error.message);
            continue;
          }
          if (!ready()) continue;
          arrange();
          for (const name of names) {
            await drawn(name);
            await page.pause();
          }
        }
        busy = null;
      })();
      return busy;
    }

    function tapped(name, at) {
      stop();
      if (name === "map" && at.data.type === "heatmap") {
        const { every } = state.map;
        const chosenAt = [sides.y, sides.x].map((axis, k) => [axis, explore.value(table.axis(axis), at.pointIndex[k] * every[k])]);
        choose(Object.fromEntries(chosenAt));
      } else if (name === "cut" || name === "course") {
        const one = state.curves.find((curve) => at.data.meta && curve.key === at.data.meta.key);
        const dimension = name === "cut" ? sides.along : table.along;
        const axis = one && one.table.axis(dimension);
        if (axis) choose({ [dimension]: explore.value(axis, at.pointIndex * (name === "cut" ? one.cut.every[0] : 1)) });
      }
    }

    // A click on a map elsewhere in the page chooses the point there.
    function follow(key, cells) {
      const place = document.getElementById("plot-" + key);
      if (!place || !place.on || place.dataset.listens) return;
      place.dataset.listens = "yes";
      place.on("plotly_click", (event) => {
        const heat = place.data.find((trace) => trace.type === "heatmap");
        const near = (values, value) => values.reduce((best, one, k) => (Math.abs(one - value) < Math.abs(values[best] - value) ? k : best), 0);
        go(cells, { x: near(heat.x, event.points[0].x), y: near(heat.y, event.points[0].y) });
      });
    }

    async function go(cells, at) {
      stop();
      const wanted = { ...cells.at, [cells.axes.x]: cells.values.x[at.x], [cells.axes.y]: cells.values.y[at.y] };
      const has = (one) => one.offered && one.axis(cells.axes.x) && one.axis(cells.axes.y);
      if (!has(table)) table = [data.tables[data.first], ...data.tables].find(has) || table;
      for (const [name, value] of Object.entries(wanted)) {
        const axis = table.axis(name);
        if (axis) chosen[name] = explore.value(axis, Math.max(0, explore.closest(axis, { value, shown: String(value) })));
      }
      rebuild();
      section.scrollIntoView({ behavior: still.matches ? "auto" : "smooth" });
      part("said").focus({ preventScroll: true });
    }

    // Densities over time: from the beginning if the last is shown, up to the last.
    const steps = () => {
      const axis = densities.length ? densities[0].axis(data.played) : null;
      return axis && axis.size > 1 ? axis : null;
    };

    function stop() {
      playing++;
      part("play").textContent = "Play";
    }

    async function play() {
      const axis = steps();
      const own = ++playing;
      part("play").textContent = "Pause";
      let at = explore.same(axis, chosen[axis.name]);
      at = at === axis.size - 1 ? -1 : at;
      while (own === playing && ++at < axis.size) {
        await Promise.all([choose({ [axis.name]: explore.value(axis, at) }, ["density"]), page.pause(FRAME)]);
      }
      if (own === playing) stop();
    }

    // What a server says of its results, which a run may be computing; whether there is another snapshot of them.
    async function look() {
      try {
        const news = await data.news();
        report(news);
        if (news.number === data.served.number) return false;
        const before = data;
        adopt(await data.again());
        if (before.shape === data.shape) draw();
        else rebuild();
        return true;
      } catch (error) {
        trouble(error.message);
        return false;
      }
    }

    function report({ computed, share, totals, trouble: wrong }) {
      part("computed").textContent = computed;
      Object.assign(part("progress"), { hidden: share === null, value: share || 0 });
      key(totals);
      trouble(wrong);
    }

    function trouble(text) {
      if (!part("trouble")) return;
      part("trouble").hidden = !text;
      part("trouble").textContent = text;
    }

    adopt(await explore.source(part("data").textContent));
    part("play").hidden = !steps();
    part("play").addEventListener("click", () => (part("play").textContent === "Play" ? play() : stop()));
    if (data.served) {
      report(data.served);
      (async () => { for (;;) { await page.pause(EVERY); await look(); } })();
    } else {
      key(data.totals);
    }
    rebuild();
    return {
      draw: () => {
        for (const [name, figure] of Object.entries(page.figures)) {
          if (figure.layout.meta.cells) follow(name, figure.layout.meta.cells);
        }
        return draw();
      },
    };
  };
})();
