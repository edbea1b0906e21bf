// What may be wrong with a page as it stands: every check gives sentences, none if all is well.
(() => {
  const SLACK = 1.5; // Pixels: what rounding may do.
  const named = (node) => {
    const place = node.closest("[id]");
    const text = (node.textContent || "").trim().replace(/\s+/g, " ").slice(0, 40);
    return node.tagName.toLowerCase() + (place ? " in #" + place.id : "") + (text ? " '" + text + "'" : "");
  };
  const seen = (node) => node.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const plots = () => [...document.querySelectorAll(".plot")].filter(seen);

  function drawn() {
    return [...document.querySelectorAll(".plot")]
      .filter((one) => !one.closest("[hidden]"))
      .filter((one) => !one.classList.contains("js-plotly-plot") || !one.querySelector(".main-svg"))
      .map((one) => named(one) + " is not drawn");
  }

  // Nothing but what scrolls by itself may be wider than the page.
  function overflow() {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width + SLACK) return [];
    const wide = [...document.body.querySelectorAll("*")]
      .filter((one) => seen(one) && one.getBoundingClientRect().right > width + SLACK && !scrolls(one.parentElement));
    return ["the page is " + document.documentElement.scrollWidth + " px wide in " + width + ": "
      + wide.slice(0, 3).map(named).join(", ")];
  }

  const scrolls = (node) => {
    for (let one = node; one && one !== document.body; one = one.parentElement) {
      if (["auto", "scroll"].includes(getComputedStyle(one).overflowX)) return one;
    }
    return null;
  };

  function tables() {
    const width = document.documentElement.clientWidth;
    return [...document.querySelectorAll("table")].filter(seen).flatMap((table) => {
      const place = scrolls(table);
      if (place) return place.getBoundingClientRect().right > width + SLACK ? [named(table) + " is cut"] : [];
      const right = Math.max(...[...table.querySelectorAll("th, td")].map((cell) => {
        const range = document.createRange();
        range.selectNodeContents(cell);
        return Math.max(cell.getBoundingClientRect().right, range.getBoundingClientRect().right);
      }));
      return right > width + SLACK ? [named(table) + " ends at " + Math.round(right) + " px of " + width] : [];
    });
  }

  const turned = (node) => /rotate\((-?[\d.]+)/.test(node.getAttribute("transform") || "")
    ? Math.abs(Number(RegExp.$1)) * Math.PI / 180 : 0;

  // Two labels of an axis lie over each other. Turned ones do if their lines of text do.
  function over(one, other) {
    const a = one.getBoundingClientRect();
    const b = other.getBoundingClientRect();
    const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    const angle = turned(one);
    if (angle && angle === turned(other)) {
      const between = Math.abs((a.left + a.right - b.left - b.right) / 2) * Math.sin(angle)
        + Math.abs((a.top + a.bottom - b.top - b.bottom) / 2) * Math.cos(angle);
      return between < 0.7 * one.getBBox().height;
    }
    return width > SLACK && height > SLACK;
  }

  const labels = (plot) => {
    const axes = {};
    for (const text of plot.querySelectorAll('g[class$="tick"] > text')) {
      if (!seen(text) || !text.textContent.trim()) continue;
      const axis = text.closest(".subplot, .main-svg > g") && text.parentElement.getAttribute("class");
      (axes[axis] = axes[axis] || []).push(text);
    }
    return Object.values(axes);
  };

  // Plotly leaves out the label of a tick that ends beyond the figure: it may be the one with the power of ten.
  const left = () => plots().flatMap((plot) => [...plot.querySelectorAll(TICK)]
    .filter((text) => text.textContent.trim() && !seen(text))
    .map((text) => "#" + plot.id + ": label " + text.textContent + " is left out"));

  function ticks() {
    return [...left(), ...overlapping()];
  }

  function overlapping() {
    return plots().flatMap((plot) => labels(plot).flatMap((axis) => {
      const pairs = axis.flatMap((one, i) => axis.slice(i + 1).map((other) => [one, other]));
      const bad = pairs.filter(([one, other]) => over(one, other));
      return bad.length ? ["#" + plot.id + ": labels " + bad[0].map((t) => t.textContent).join(" and ") + " overlap"
        + " (" + bad.length + " pairs of " + bad[0][0].parentElement.getAttribute("class") + ")"] : [];
    }));
  }

  // The words around a drawing: names of axes, legend, notes, labels of ticks.
  const TICK = 'g[class$="tick"] > text';
  const WORDS = ".xtitle, .ytitle, .legend .legendtext, .annotation-text, .infolayer [class*=title] text, " + TICK;
  const words = (plot) => [...plot.querySelectorAll(WORDS)].filter((text) => seen(text) && text.textContent.trim());
  const begin = (text) => "'" + text.textContent.slice(0, 40) + "'";

  function clipped() {
    return plots().flatMap((plot) => {
      const box = plot.getBoundingClientRect();
      return words(plot).flatMap((text) => {
        const own = text.getBoundingClientRect();
        const out = Math.max(box.left - own.left, own.right - box.right, box.top - own.top, own.bottom - box.bottom);
        return own.width && out > SLACK ? ["#" + plot.id + ": " + begin(text) + " is " + Math.round(out) + " px outside"] : [];
      });
    });
  }

  // Words that lie over others. Boxes of letters have air above and below.
  function crowded() {
    const AIR = 3;
    return plots().flatMap((plot) => {
      const found = words(plot).map((text) => [text, text.getBoundingClientRect()]);
      const pairs = found.flatMap(([one, a], i) => found.slice(i + 1)
        .filter(([other, b]) => !(one.matches(TICK) && other.matches(TICK))
          && Math.min(a.right, b.right) - Math.max(a.left, b.left) > AIR
          && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > AIR)
        .map(([other]) => [one, other]));
      return pairs.slice(0, 1).map(([one, other]) => "#" + plot.id + ": " + begin(one) + " and " + begin(other) + " overlap");
    });
  }

  // What is folded is not on paper.
  function folded() {
    return [...document.querySelectorAll("details:not([open]):not(.long)")].map((one) => named(one) + " is folded on paper");
  }

  return { drawn, overflow, tables, ticks, clipped, crowded, folded };
})()
