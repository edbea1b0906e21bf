"use strict";
(() => {
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const figures = read("figure-data");
  const tables = read("table-data");
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const font = getComputedStyle(document.body).fontFamily;

  // Theory lines are ink: black on white, light on dark. Over a heat map black is right in both.
  function themed(figure) {
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
      ? { ...trace, line: { ...trace.line, color: ink } } : trace);
    const layout = {
      ...figure.layout,
      paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: font, size: 13, color: ink },
      hoverlabel: { bgcolor: color("--card"), bordercolor: color("--rule"), font: { color: ink, family: font } },
      // Black theory lines over a heat map need a light legend in the dark, too.
      legend: heat
        ? { ...figure.layout.legend, bgcolor: "#f4f4f1", font: { color: "#16181d" } } : figure.layout.legend,
      modebar: { color: color("--soft"), activecolor: color("--accent"), bgcolor: "rgba(0,0,0,0)" },
      ...(space ? { scene: inSpace(figure.layout.scene, axis) } : plane),
    };
    return { data, layout };
  }

  // Three axes in the page's colours; what a reader has turned stays turned when they change.
  function inSpace(scene, axis) {
    const { automargin, ...own } = { ...axis, backgroundcolor: "rgba(0,0,0,0)", showbackground: false };
    const axes = ["xaxis", "yaxis", "zaxis"].map((name) => [name, { ...own, ...scene[name] }]);
    return { ...scene, ...Object.fromEntries(axes), uirevision: "kept" };
  }

  function draw() {
    for (const [key, figure] of Object.entries(figures)) {
      const { data, layout } = themed(figure);
      Plotly.react("plot-" + key, data, layout, {
        responsive: true, displaylogo: false, showSendToCloud: false,
        modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
        toImageButtonOptions: { format: "svg", filename: key },
      });
    }
  }

  function save(text, type, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  const quoted = (v) => v === null ? "" : /[",\n\r]/.test(String(v)) ? '"' + String(v).replaceAll('"', '""') + '"' : String(v);

  function csv(table) {
    const names = Object.keys(table.columns);
    const columns = Object.values(table.columns);
    const count = columns.length ? columns[0].length : 0;
    const rows = Array.from({ length: count }, (_, i) => columns.map((c) => quoted(c[i])).join(","));
    return [names.map(quoted).join(","), ...rows].join("\r\n") + "\r\n";
  }

  document.getElementById("json").addEventListener("click", () => {
    save(JSON.stringify(tables), "application/json", "aggregate.json");
  });
  for (const [name, table] of Object.entries(tables)) {
    const columns = Object.values(table.columns);
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = "CSV";
    button.setAttribute("aria-label", "Download " + name + " as CSV");
    button.addEventListener("click", () => save(csv(table), "text/csv", name.replace(/[^A-Za-z0-9]+/g, "_") + ".csv"));
    const count = columns.length ? columns[0].length : 0;
    item.append(button, name + " (" + count + (count === 1 ? " row, " : " rows, ") + columns.length + " columns)");
    document.getElementById("tables").append(item);
  }

  draw();
  dark.addEventListener("change", draw);
})();
