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
  function sort(head) {
    const body = head.closest("table").tBodies[0];
    const cell = (row) => row.cells[head.cellIndex];
    const down = head.getAttribute("aria-sort") === "ascending";
    const compared = (a, b) => {
      const [one, other] = [a, b].map((row) => cell(row).dataset.key);
      if (one !== undefined && other !== undefined) return one - other;
      return (one === undefined) - (other === undefined) || cell(a).textContent.localeCompare(cell(b).textContent);
    };
    const rows = [...body.rows].sort(compared);
    body.append(...(down ? rows.reverse() : rows));
    for (const one of head.parentElement.cells) one.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
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

  const onClick = (selector, act) => document.querySelectorAll(selector).forEach((one) => one.addEventListener("click", () => act(one)));
  onClick("#copy", copied);
  onClick("#json", () => save(JSON.stringify(tables), "application/json", "aggregate.json"));
  onClick("#alone", () => packed() && save(alone(), "text/html", document.querySelector('meta[name="study"]').content + ".html"));
  onClick("#tables button", ({ value }) => save(csv(tables[value]), "text/csv", value.replace(/[^A-Za-z0-9]+/g, "_") + ".csv"));
  onClick("table.sortable th button", (button) => sort(button.parentElement));
})();
