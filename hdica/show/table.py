"""Tables of a report, as rows of text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from hdica.show.finding import Finding, worst_first
from hdica.show.wording import measured, predicted, where
from hdica.show.words import rounded

MOST_ROWS = 300
"""Longer tables are cut on the page; the data files hold all."""


@dataclass(frozen=True)
class Table:
    """A table for the page, its column names in HTML, its cells HTML or text that the page escapes.

    Numeric columns align to the right; ``total`` counts the rows before cutting. ``keys`` has the
    numbers by which rows are sorted in numeric columns, None for texts and what is missing; a table
    without keys keeps its order.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    total: int
    keys: tuple[tuple[float | None, ...], ...] = ()


def of_findings(findings: Iterable[Finding]) -> Table:
    """A row for each finding; whatever does not agree comes first."""
    ordered = worst_first(list(findings))
    shown = ordered[:MOST_ROWS]
    head = ("quantity", "at", "value", "predicted", "verdict", "evidence")
    numeric = (False, False, True, True, False, False)
    keys = tuple((None, None, _key(one.value), _key(one.predicted), None, None) for one in shown)
    return Table(head, tuple(map(_row, shown)), numeric, len(ordered), keys)


def _row(one: Finding) -> tuple[str, ...]:
    evidence = one.evidence
    if one.seeds > 0:
        needed = f"{rounded(one.seeds)} seeds" if np.isfinite(one.seeds) else "no number of seeds"
        evidence = f"{evidence}; {needed} would decide".removeprefix("; ")
    # Every part that a user wrote went through words() or escape().
    cells = (one.name.html, where(one.place).html, measured(one), predicted(one))
    return (*map(Markup, cells), one.verdict, Markup(evidence))


def _key(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
