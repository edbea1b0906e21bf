"use strict";
// What a page offers besides its plots: itself as one file, its numbers, and tables that are sorted and copied.
(() => {
  const root = document.documentElement;
  // Before anything is drawn: what is saved as one file.
  const whole = root.outerHTML;
  const tables = JSON.parse(document.getElementById("table-data").textContent);
  const packed = globalThis.hdicaPacked;

  function save(text, type, name) {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }

  // This page as it came, with the shared script in it.
  function alone() {
    const page = new DOMParser().parseFromString("<!DOCTYPE html>\n" + whole, "text/html");
    const inside = page.createElement("script");
    inside.type = "text/plain";
    inside.id = "packed";
    inside.textContent = packed();
    page.getElementById("shared").remove();
    page.body.lastElementChild.before(inside);
    page.documentElement.classList.add("alone");
    return "<!DOCTYPE html>\n" + page.documentElement.outerHTML + "\n";
  }

  const quoted = (v) => v === null ? "" : /[",\n\r]/.test(String(v)) ? '"' + String(v).replaceAll('"', '""') + '"' : String(v);

  function csv(table) {
    const names = Object.keys(table.columns);
    const columns = Object.values(table.columns);
    const count = columns.length ? columns[0].length : 0;
    const rows = Array.from({ length: count }, (_, i) => columns.map((c) => quoted(c[i])).join(","));
    return [names.map(quoted).join(","), ...rows].join("\r\n") + "\r\n";
  }

  // A click on a heading sorts the rows, the next one the other way round.
  function sorted(table, column, down) {
    const body = table.tBodies[0];
    const cell = (row) => row.cells[column];
    const compared = (a, b) => {
      const [one, other] = [a, b].map((row) => cell(row).dataset.key);
      if (one !== undefined && other !== undefined) return one - other;
      return (one === undefined) - (other === undefined) || cell(a).textContent.localeCompare(cell(b).textContent);
    };
    const rows = [...body.rows].sort(compared);
    body.append(...(down ? rows.reverse() : rows));
    [...table.tHead.rows[0].cells].forEach((head, k) => {
      if (k === column) head.setAttribute("aria-sort", down ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      button.addEventListener("click", () => sorted(table, column, head.getAttribute("aria-sort") === "ascending"));
      head.append(button);
    });
  }

  async function copied() {
    const table = document.getElementById("finding-table");
    const lines = [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent.trim()).join("\t"));
    const note = document.getElementById("copied");
    try {
      await navigator.clipboard.writeText(lines.join("\n") + "\n");
      note.textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(table);
      note.textContent = "This browser does not copy by itself: the table is selected.";
    }
  }
  if (document.getElementById("copy")) document.getElementById("copy").addEventListener("click", copied);

  document.getElementById("json").addEventListener("click", () => {
    save(JSON.stringify(tables), "application/json", "aggregate.json");
  });
  document.getElementById("alone").addEventListener("click", () => {
    const study = document.querySelector('meta[name="study"]').content;
    if (packed()) save(alone(), "text/html", study + ".html");
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
    const called = document.createElement("span");
    called.append(document.createElement("code"), " (" + count + (count === 1 ? " row, " : " rows, ") + columns.length + " columns)");
    called.firstChild.textContent = name;
    item.append(button, called);
    document.getElementById("tables").append(item);
  }
})();
