"""``results.json``, which keeps what was measured, and the pages that show it."""

from __future__ import annotations

import ast
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import REGISTRY
from benchmarks.harness import Row
from benchmarks.machine import machine
from benchmarks.ratios import draw
from benchmarks.table import hardest, markdown

FOLDER = Path(__file__).parent


def read(path: Path) -> dict[str, Any]:
    """What was measured, by benchmark in the order of the registry."""
    found = json.loads(path.read_text()) if path.exists() else {}
    return {name: found[name] for name in (*REGISTRY, *sorted(found)) if name in found}


def merge(path: Path, benchmark: str, rows: Sequence[Row]) -> None:
    """Put the rows of one benchmark in, with the machine; the others stay as they are."""
    found = read(path) | {benchmark: {"machine": machine(), "rows": [asdict(r) for r in rows]}}
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def question(name: str) -> str:
    """What a benchmark asks and how, in Markdown: its module's docstring without the command.

    The file is read and not imported, so that no rival has to be installed.
    """
    path = FOLDER / f"{name}.py"
    text = ast.get_docstring(ast.parse(path.read_text())) if path.exists() else None
    paragraphs = (text or "").split("\n\n")
    kept = [part.replace("``", "`") for part in paragraphs if not part.startswith("Run:")]
    return "\n\n".join(kept)


def everything(results: Mapping[str, Any]) -> str:
    """The table of all cases, each benchmark below its question."""
    return markdown(results, {name: question(name) for name in results})


PAGE = "docs/benchmarks.md"
TABLES: dict[str, Callable[[Mapping[str, Any]], str]] = {
    "benchmarks: worst cases": hardest,
    "benchmarks": everything,
}
"""The tables of the page, by the names in their markers."""
PICTURES = ("docs/benchmarks.svg", "docs/benchmarks-dark.svg")


def with_table(text: str, name: str, table: str) -> str:
    """The text with a table between the markers of its name.

    Raises
    ------
    ValueError
        If the text has not exactly one pair of markers.
    """
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if text.count(start) != 1 or text.count(end) != 1 or text.index(end) < text.index(start):
        raise ValueError(f"the text has not exactly one pair {start} ... {end}")
    before, rest = text.split(start)
    return f"{before}{start}\n{table}\n{end}{rest.split(end)[1]}"


def digest(results: Mapping[str, Any]) -> str:
    """By which a picture says what it was drawn of."""
    return hashlib.sha256(json.dumps(results, sort_keys=True).encode()).hexdigest()


def drawn_of(picture: str) -> str | None:
    """The digest that a picture carries; None if it has none."""
    found = re.search(r"results\.json, sha256 ([0-9a-f]{64})", picture)
    return found[1] if found else None


def write_pages(root: Path, results: Mapping[str, Any]) -> None:
    """Rewrite the tables and the picture of what was measured, in light and in dark."""
    text = (root / PAGE).read_text()
    for name, table in TABLES.items():
        text = with_table(text, name, table(results))
    (root / PAGE).write_text(text)
    for picture in PICTURES:
        about = f"Drawn from benchmarks/results.json, sha256 {digest(results)}"
        draw(results, root / picture, dark="dark" in picture, about=about)
