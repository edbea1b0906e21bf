"use strict";
// The explorer of the page: what is chosen, the controls for it, and what is drawn and said of it.
(() => {
  const explore = globalThis.hdicaExplore;
  const FRAME = 150;
  // Values from which on a dimension of a variable is a mesh and does not number entries.
  const MESH = 20;
  const FIGURES = ["map", "course", "cut", "density"];
  const section = document.getElementById("explore");
  const part = (name) => document.getElementById("explore-" + name);
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");

  const make = (name, attributes = {}, ...inside) => {
    const found = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) found.setAttribute(key, value);
    found.append(...inside);
    return found;
  };

  // Starts the explorer; what comes back draws it, as often as the page asks.
  explore.begin = async (page) => {
    const data = await explore.unpack(part("data").textContent);
    const byKey = Object.fromEntries(data.tables.map((table) => [table.key, table]));
    const densities = data.tables.filter((table) => table.density).sort((a, b) => (a.seeds ? 0 : 1) - (b.seeds ? 0 : 1));
    // By the name of each dimension, the value that was chosen last.
    const chosen = {};
    let table = data.tables[data.first];
    let sides = { x: "", y: "", along: "" };
    let state = null;
    let playing = 0;

    // The last time and n, the first entry, and the middle of every other parameter and of a fine mesh, as of
    // angles, until a reader chooses.
    function settle(axis) {
      const last = axis.name === "n" || axis.name === table.along;
      const own = table.own.includes(axis) && !last && axis.shown.length < MESH;
      return last ? axis.shown.length - 1 : own ? 0 : Math.floor((axis.shown.length - 1) / 2);
    }

    function axesShown() {
      const more = densities.slice(0, 1).flatMap((one) => one.own.filter((axis) => axis.name !== one.along));
      return [...table.axes, ...more.filter((axis) => !table.axis(axis.name))];
    }

    // What is not there yet gets a first value; what the table does not have gets its closest.
    function place() {
      for (const axis of axesShown()) {
        const own = axis.values || !chosen[axis.name] ? explore.closest(axis, chosen[axis.name]) : explore.same(axis, chosen[axis.name]);
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

    const rank = (axis) => (axis.name === "n" ? 2 : axis.values ? 0 : 1);

    function curveOf(other) {
      const at = explore.point(other, chosen);
      const differs = other.axes.filter((axis) => other.swept.includes(axis.name)
        && (axis.name === "n" || (chosen[axis.name] || {}).shown !== axis.shown[at[axis.name]]));
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

    function renew() {
      place();
      const others = table.others.map((key) => byKey[key]).filter(Boolean);
      const point = explore.point(table, chosen);
      state = { table, point, ...sides, curves: [table, ...others].map(curveOf), densities: densities.map(curveOf) };
      section.dataset.method = table.method;
      section.dataset.variable = table.variable;
      section.dataset.point = JSON.stringify(Object.fromEntries(axesShown().map((axis) => [axis.name, explore.same(axis, chosen[axis.name])])));
      say();
      titles();
    }

    // In words: the point, its value with its error, what theory and other methods have there, and what has no value.
    function say() {
      const at = table.axes.filter((axis) => axis.shown.length > 1).map((axis) => explore.tied(axis, state.point[axis.name]));
      const values = state.curves.map((one) => {
        const { mean, error } = explore.at(one.table, one.point);
        return { one, text: explore.measured(mean, error) };
      });
      const [mine, ...others] = values;
      const strong = make("strong", { id: "explore-value" }, mine.text);
      const from = " (" + table.called + (table.seeds > 1 ? ", mean of " + table.seeds + " runs" : "") + ")";
      const beside = others.map(({ one, text }) => "; " + one.label + ": " + text);
      const lost = explore.fates(data, table, state.point);
      const gone = lost.map(([status, many]) => " " + (table.seeds ? many + " of " + table.seeds + (table.seeds === 1 ? " run " : " runs ")
        + (status === "pending" ? "not computed yet." : status + ".") : "This point " + (status === "pending" ? "is not computed yet." : status + ".")));
      const html = (text) => { const one = make("span"); one.innerHTML = text; return one; };
      const point = at.join(", ") + (at.length ? ": " : "");
      part("said").replaceChildren(html(point + table.html + " = "), strong, from, html(beside.join("")), ".", ...gone);
    }

    function titles() {
      const said = (axis) => explore.tied(axis, explore.same(axis, chosen[axis.name]));
      const time = table.along ? [table.axis(table.along)] : [];
      part("map-title").innerHTML = ["Map", ...time.map(said)].join(", ");
      if (time.length) part("course-title").innerHTML = "Along " + time[0].symbol + ", at the chosen point";
      if (sides.along) {
        const along = "Along " + table.axis(sides.along).symbol + ", through the chosen point";
        part("cut-title").innerHTML = [along, ...time.map(said)].join(", ");
      }
      for (const one of densities.slice(0, 1)) {
        const own = one.own.filter((axis) => axis.name !== one.along && axis.shown.length > 1);
        part("density-title").innerHTML = ["Densities at the chosen point", ...own.map(said)].join(", ");
      }
    }

    // Controls

    function select(id, label, options, value, change) {
      const field = make("select", { id: "explore-" + id }, ...options.map(([key, text]) => make("option", { value: key }, text)));
      field.value = value;
      field.addEventListener("change", () => { change(field.value); rebuild(); });
      return make("div", { class: "control" }, make("label", { for: field.id }, label), field);
    }

    function slider(axis, k) {
      const id = "explore-axis-" + k;
      const label = make("label", { for: id });
      label.innerHTML = axis.symbol;
      const input = make("input", { id, type: "range", "data-axis": axis.name, min: 0, max: axis.shown.length - 1, step: 1 });
      input.addEventListener("input", () => { stop(); choose({ [axis.name]: explore.value(axis, input.valueAsNumber) }); });
      return make("div", { class: "control" }, label, make("output", { for: id }), input);
    }

    const options = (names, text = (name) => name) => [...new Set(names)].map((name) => [name, text(name)]);

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
      renew();
      const focused = document.activeElement && document.activeElement.id;
      const several = axesShown().filter((axis) => axis.shown.length > 1);
      part("controls").replaceChildren(...menus(), ...several.map(slider));
      if (focused && focused.startsWith("explore-")) document.getElementById(focused)?.focus();
      move();
      draw();
    }

    function move() {
      for (const axis of axesShown()) {
        const input = section.querySelector(`input[data-axis=${CSS.escape(axis.name)}]`);
        if (!input) continue;
        const at = explore.same(axis, chosen[axis.name]);
        input.value = at;
        input.setAttribute("aria-valuetext", axis.shown[at]);
        input.previousElementSibling.textContent = axis.shown[at];
      }
    }

    function choose(values, only) {
      Object.assign(chosen, values);
      renew();
      move();
      return draw(only);
    }

    // Figures

    const shown = (name) => ({
      map: Boolean(sides.y), cut: Boolean(sides.along), density: densities.length > 0,
      course: Boolean(table.along) && table.axis(table.along).shown.length > 1,
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
      if (!shown(name)) return;
      const place = part(name);
      const figure = place.closest("figure");
      place.setAttribute("role", "img");
      place.setAttribute("aria-label", figure.querySelector("h3").textContent);
      await page.plot(place, "explore-" + name, explore[name](data, state));
      if (place.dataset.listens) return;
      place.dataset.listens = "yes";
      place.on("plotly_click", (event) => tapped(name, event.points[0]));
    }

    // What was asked for while figures were drawn is drawn after them, once.
    let asked = null;
    let busy = null;

    function draw(only = FIGURES) {
      if (!window.Plotly || !page.ready()) return Promise.resolve();
      if (page.printing()) {
        // A browser takes the sheets right after it has said that it will print: nothing may wait.
        arrange();
        return Promise.all(FIGURES.map(drawn));
      }
      asked = new Set([...(asked || []), ...only]);
      busy ??= (async () => {
        while (asked) {
          const names = FIGURES.filter((name) => asked.has(name));
          arrange();
          asked = null;
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
        const [row, column] = at.pointIndex;
        const [across, up] = [table.axis(sides.x), table.axis(sides.y)];
        choose({ [across.name]: explore.value(across, column), [up.name]: explore.value(up, row) });
      } else if (name === "cut" || name === "course") {
        const dimension = name === "cut" ? sides.along : table.along;
        const one = state.curves.find((curve) => at.data.meta && curve.key === at.data.meta.key);
        if (one) choose({ [dimension]: explore.value(one.table.axis(dimension), at.pointIndex) });
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
        const at = { x: near(heat.x, event.points[0].x), y: near(heat.y, event.points[0].y) };
        go(cells, at);
      });
    }

    function go(cells, at) {
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
      return axis && axis.shown.length > 1 ? axis : null;
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
      at = at === axis.shown.length - 1 ? -1 : at;
      while (own === playing && ++at < axis.shown.length) {
        await Promise.all([choose({ [axis.name]: explore.value(axis, at) }, ["density"]), page.pause(FRAME)]);
      }
      if (own === playing) stop();
    }

    part("play").hidden = !steps();
    part("play").addEventListener("click", () => (part("play").textContent === "Play" ? play() : stop()));
    rebuild();
    return {
      draw: () => {
        for (const [key, figure] of Object.entries(page.figures)) {
          if (figure.layout.meta.cells) follow(key, figure.layout.meta.cells);
        }
        return draw();
      },
    };
  };
})();
