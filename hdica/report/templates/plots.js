"use strict";
// Draws the plots of a page, on screen and on paper, and begins the explorer.
(() => {
  const root = document.documentElement;
  const figures = JSON.parse(document.getElementById("figure-data")?.textContent || "{}");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const paper = window.matchMedia("print");
  const color = (name) => getComputedStyle(root).getPropertyValue(name).trim();
  const font = getComputedStyle(document.body).fontFamily;
  // Pixels: how wide a plot is on paper, and a row of the legend.
  const PAPER = 640;
  const ROW = 19;
  // On a place narrower than this the eye stands so much further from what lies in space, whose labels would be cut.
  const NARROW = 500;
  const FURTHER = 1.6;

  // Theory lines are ink: black on white, light on dark. Over a heat map black is right in both.
  function themed(figure, width) {
    const ink = color("--ink");
    const grid = color("--grid");
    const axis = {
      gridcolor: grid, linecolor: color("--soft"), tickcolor: color("--soft"), ticks: "outside", showline: true,
      automargin: true,
    };
    const { heat, space } = figure.layout.meta;
    const plane = {
      xaxis: { ...axis, ...figure.layout.xaxis, showgrid: !heat },
      yaxis: { ...axis, ...figure.layout.yaxis, showgrid: !heat },
    };
    const data = figure.data.map((trace) => trace.meta && trace.meta.ink
      ? { ...trace, line: { ...trace.line, color: ink }, marker: { ...trace.marker, color: ink } } : trace);
    const layout = {
      ...figure.layout,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: font, size: printing() ? 11 : 13, color: ink },
      hoverlabel: { bgcolor: color("--card"), bordercolor: color("--rule"), font: { color: ink, family: font } },
      // Black theory lines over a heat map need a light legend in the dark, too.
      legend: {
        ...figure.layout.legend, tracegroupgap: 0, maxheight: 0.8, ...(heat ? { bgcolor: "#f4f4f1", font: { color: "#16181d" } } : {}),
      },
      modebar: { color: color("--soft"), activecolor: color("--accent"), bgcolor: "rgba(0,0,0,0)" },
      ...(space ? { scene: inSpace(figure.layout.scene, axis, width) } : plane),
      ...(printing() ? { width: PAPER, height: 250 + ROW * rows(figure, PAPER), autosize: false } : {}),
    };
    return { data, layout };
  }

  // Three axes in the page's colours; what a reader has turned stays turned when they change.
  function inSpace(scene, axis, width) {
    const { automargin, ...own } = { ...axis, backgroundcolor: "rgba(0,0,0,0)", showbackground: false };
    const axes = ["xaxis", "yaxis", "zaxis"].map((name) => [name, { ...own, ...scene[name] }]);
    const further = width < NARROW ? FURTHER : 1;
    const eye = Object.fromEntries(Object.entries(scene.camera.eye).map(([name, at]) => [name, further * at]));
    return { ...scene, ...Object.fromEntries(axes), camera: { ...scene.camera, eye }, uirevision: String(further) };
  }

  // Pixels of what stands beside a name of the legend, and of the name itself, as it is drawn.
  const BESIDE = 60;
  const ruler = document.createElement("canvas").getContext("2d");
  const wideness = (name) => {
    ruler.font = `13px ${font}`;
    return ruler.measureText(name.replace(/<[^>]*>/g, "").replace(/&\w+;/g, "x")).width;
  };

  // A name that is longer than the place is wide takes several lines.
  function folded(name, width) {
    const most = Math.max(80, width - BESIDE - 20);
    if (!name || wideness(name) <= most) return name;
    // Neither within a tag, which may hold spaces, too, nor beside a sign of equality.
    const lines = [""];
    for (const word of name.split(/(?<!=) (?!=)(?![^<]*>)/)) {
      const longer = (lines.at(-1) + " " + word).trim();
      if (lines.at(-1) && wideness(longer) > most) lines.push(word);
      else lines[lines.length - 1] = longer;
    }
    return lines.join("<br>");
  }

  // Rows of the legend: as many names beside each other as the longest one leaves room for.
  function rows(figure, width) {
    const names = figure.data.filter((trace) => trace.name && trace.showlegend !== false).map((trace) => folded(trace.name, width));
    const lines = Math.max(1, ...names.map((name) => name.split("<br>").length));
    const wide = Math.max(...names.flatMap((name) => name.split("<br>").map(wideness)));
    return lines * Math.ceil(names.length / Math.max(1, Math.floor((width - 80) / (BESIDE + wide))));
  }

  async function plot(place, key, figure) {
    const width = printing() ? PAPER : place.clientWidth;
    const { data, layout } = themed(figure, width);
    for (const [k, trace] of data.entries()) {
      if (trace.name) data[k] = { ...trace, name: folded(trace.name, width) };
    }
    // A long legend takes no room from the axes: the figure grows by it.
    const more = printing() ? 0 : rows(figure, width) - 2;
    place.style.height = "";
    if (more > 0) place.style.height = place.clientHeight + ROW * more + "px";
    // What is inside can be operated, which no picture can.
    place.setAttribute("role", "group");
    const done = await Plotly.react(place, data, layout, {
      responsive: true, displaylogo: false, showSendToCloud: false,
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
      toImageButtonOptions: { format: "svg", filename: key },
    });
    if (!place.dataset.zooms) place.on("plotly_relayout", () => zoomed(place));
    place.dataset.zooms = "yes";
    return done;
  }

  // Between the named ticks of a logarithmic axis a reader who has zoomed in has Plotly's own.
  function zoomed(place) {
    const changes = {};
    for (const name of ["xaxis", "yaxis"]) {
      const axis = place.layout[name];
      if (!axis || !axis.tickvals || axis.type !== "log" || !axis.range) continue;
      const seen = axis.tickvals.filter((at) => Math.log10(at) >= axis.range[0] && Math.log10(at) <= axis.range[1]);
      const mode = seen.length < 2 ? "auto" : "array";
      if (axis.tickmode !== mode) changes[name + ".tickmode"] = mode;
    }
    if (Object.keys(changes).length) Plotly.relayout(place, changes);
  }

  const placed = (key) => document.getElementById("plot-" + key);
  const pause = (time = 0) => new Promise((done) => { setTimeout(done, time); });
  let turn = 0;
  // What lets readers look around, if this page has it: drawn after all others.
  let explorer = null;
  let first = true;

  // One after another, so that the page can be read and moved meanwhile.
  async function draw() {
    const own = ++turn;
    const width = window.innerWidth;
    const another = !first && root.dataset.drawn !== String(width);
    for (const [key, figure] of Object.entries(figures)) {
      if (own !== turn) return;
      const place = placed(key);
      await plot(place, key, figure);
      // Plotly's react lays a legend out for the width that was there before.
      if (another && place.offsetParent) await Plotly.Plots.resize(place);
      await pause();
    }
    first = false;
    if (explorer && own === turn) await explorer.draw();
    if (another && explorer) {
      const drawn = new Set(Object.keys(figures).map(placed));
      for (const place of document.querySelectorAll(".js-plotly-plot")) {
        if (place.offsetParent && !drawn.has(place)) await Plotly.Plots.resize(place);
      }
    }
    if (own === turn) root.dataset.drawn = width;
  }

  // Names in a legend are folded to the width: a telephone that is turned has them folded anew.
  let soon = 0;
  function turned() {
    clearTimeout(soon);
    soon = setTimeout(() => { if (!printing() && root.dataset.drawn !== String(window.innerWidth)) draw(); }, 100);
  }

  // On paper: light, as wide as the sheet, and everything that is folded unfolded.
  const printing = () => root.classList.contains("printed");
  let unfolded = [];

  function toPaper() {
    if (printing()) return;
    root.classList.add("printed");
    unfolded = [...document.querySelectorAll("details:not([open]):not(.long)")];
    for (const one of unfolded) one.open = true;
    turn++;
    if (window.Plotly) Object.entries(figures).forEach(([key, figure]) => plot(placed(key), key, figure));
    if (explorer) explorer.draw();
  }

  async function toScreen() {
    if (!printing()) return;
    root.classList.remove("printed");
    for (const one of unfolded) one.open = false;
    if (!window.Plotly) return;
    await draw();
    // Plotly keeps the width of the sheet until it is told to look.
    for (const place of document.querySelectorAll(".js-plotly-plot")) Plotly.Plots.resize(place);
  }

  // The plotting script comes packed, from the file that pages share or from this page. Only the very script
  // that this page was written with may run: its digest is in the policy above.
  async function unpack(packed) {
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const script = document.createElement("script");
    script.textContent = await new Response(stream).text();
    document.head.append(script);
    script.remove();
  }

  const packed = () => {
    const inside = document.getElementById("packed");
    return inside ? inside.textContent : window.hdicaPlotly;
  };

  globalThis.hdicaPacked = packed;

  function lacking() {
    const shared = document.getElementById("shared");
    if (typeof DecompressionStream === "undefined") return "This browser is too old to draw the plots";
    const name = shared ? shared.getAttribute("src") : "the script in this page";
    return "The plots are not drawn: " + name + (packed() ? " is not what it was" : " is not there") + " (hdica report writes it)";
  }

  async function begin() {
    if (globalThis.hdicaExplore) {
      try { explorer = await hdicaExplore.begin({ figures, plot, pause, printing, ready: () => !first }); } catch { /* an old browser, as said below */ }
    }
    if (!Object.keys(figures).length && !explorer) return;
    // Text first: the script keeps the browser busy for a while.
    await Promise.race([new Promise(requestAnimationFrame), pause(200)]);
    await pause();
    // A server sends it as it is, and slices meanwhile.
    const sent = document.getElementById("plotly");
    if (sent && !window.Plotly) await new Promise((done) => { sent.onload = done; sent.onerror = done; });
    if (!window.Plotly) try { await unpack(packed()); } catch { /* said below */ }
    if (!window.Plotly) {
      const note = document.getElementById("no-plots");
      const beside = root.classList.contains("alone") ? "." : "; the same figures lie in the folder figures beside this page.";
      note.textContent = lacking() + beside;
      note.hidden = false;
      return;
    }
    await draw();
    dark.addEventListener("change", draw);
    window.addEventListener("resize", turned);
  }

  window.addEventListener("beforeprint", toPaper);
  window.addEventListener("afterprint", toScreen);
  paper.addEventListener("change", () => (paper.matches ? toPaper() : toScreen()));
  // The shared script is deferred, and so there by then.
  document.addEventListener("DOMContentLoaded", begin);
})();
