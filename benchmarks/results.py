"""``results.json``, which keeps what was measured, and the README's table, which shows it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks import REGISTRY
from benchmarks.harness import Row
from benchmarks.machine import machine
from benchmarks.table import markdown

OPEN, CLOSE = "<!-- benchmarks -->", "<!-- /benchmarks -->"


def read(path: Path) -> dict[str, Any]:
    """What was measured, by benchmark in the order of the registry."""
    found = json.loads(path.read_text()) if path.exists() else {}
    return {name: found[name] for name in (*REGISTRY, *sorted(found)) if name in found}


def merge(path: Path, benchmark: str, rows: Sequence[Row]) -> None:
    """Put the rows of one benchmark in, with the machine; the others stay as they are."""
    found = read(path) | {benchmark: {"machine": machine(), "rows": [asdict(r) for r in rows]}}
    path.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def with_table(text: str, results: dict[str, Any]) -> str:
    """The text with the table of the results between its markers.

    Raises
    ------
    ValueError
        If the text has not exactly one pair of markers.
    """
    if text.count(OPEN) != 1 or text.count(CLOSE) != 1 or text.index(CLOSE) < text.index(OPEN):
        raise ValueError(f"the text has not exactly one pair {OPEN} ... {CLOSE}")
    before, rest = text.split(OPEN)
    after = rest.split(CLOSE)[1]
    return f"{before}{OPEN}\n{markdown(results)}\n{CLOSE}{after}"


def write_readme(path: Path, results: dict[str, Any]) -> None:
    """Rewrite the README's table."""
    path.write_text(with_table(path.read_text(), results))
