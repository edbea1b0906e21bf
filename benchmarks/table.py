"""Rows as a table: in full for the terminal, a line per case for the README."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from benchmarks.harness import Row

FULL = ("benchmark", "case", "contestant", "time", "times hdica's", "error")
SHORT = ("benchmark", "case", "hdica", "time of the others over hdica's")


def number(value: float) -> str:
    """Three significant digits, without an exponent where it can be read without."""
    if value and not 1e-4 <= abs(value) < 1e6:
        return f"{value:.2e}"
    text = f"{value:.3g}"
    return f"{float(text):.0f}" if "e" in text else text


def _spread(middle: float, low: float, high: float) -> str:
    return f"{number(middle)} ({number(low)} – {number(high)})"


def _time(row: Row) -> str:
    return _spread(row.median, row.low, row.high)


def _ratio(row: Row) -> str:
    return _spread(row.ratio, row.ratio_low, row.ratio_high)


def _cases(rows: Iterable[Row]) -> list[list[Row]]:
    """The rows of each case, ours first."""
    return [list(case) for _, case in groupby(rows, key=lambda row: (row.benchmark, row.case))]


def plain(rows: Sequence[Row]) -> str:
    """Every row in aligned text; a benchmark, case and unit is named once."""
    lines, benchmark = [FULL], ""
    for case in _cases(rows):
        for row in case:
            first = row is case[0]
            lines.append(
                (
                    row.benchmark if row.benchmark != benchmark else "",
                    row.case if first else "",
                    f"{row.contestant}: {row.note}" if row.note else row.contestant,
                    f"{_time(row)} {row.unit}" if first else _time(row),
                    "1" if first else _ratio(row),
                    "" if row.error is None else f"{row.error:.0e}",
                )
            )
            benchmark = row.benchmark
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def on(machine: Mapping[str, Any]) -> str:
    """The machine in one line."""
    versions = ", ".join(f"{name} {number}" for name, number in machine["versions"].items())
    cores = machine["cores"]
    return (
        f"{machine['processor']}, {cores} core{'s' if cores != 1 else ''}, {machine['system']}; "
        f"{versions}; {machine['date']}"
    )


def _short(case: Sequence[Row]) -> tuple[str, ...]:
    """One line for a case: our time, the others' ratios, errors where they were compared."""

    def about(text: str, row: Row) -> str:
        error = "" if row.error is None else f"error {row.error:.0e}"
        return ", ".join(part for part in (text, error, row.note) if part)

    ours, *others = case
    ratios = [about(f"{row.contestant} {_ratio(row)}", row) for row in others]
    time = about(f"{_time(ours)} {ours.unit}", ours)
    return ours.benchmark, ours.case, time, "<br>".join(ratios)


def markdown(results: Mapping[str, Any]) -> str:
    """The README's table: all benchmarks of ``results.json``, and where they were measured.

    Parameters
    ----------
    results
        Per benchmark ``{"machine": {...}, "rows": [...]}``.
    """
    lines = [
        _short(case)
        for entry in results.values()
        for case in _cases(Row(**row) for row in entry["rows"])
    ]
    table = [f"| {' | '.join(line)} |" for line in (SHORT, *lines)]
    table.insert(1, "|" + "---|" * len(SHORT))
    measured = sorted((on(entry["machine"]), name) for name, entry in results.items())
    places = [
        f"{', '.join(name for _, name in group)}: {place}."
        for place, group in groupby(measured, key=lambda pair: pair[0])
    ]
    return "\n".join([*table, "", *places])
