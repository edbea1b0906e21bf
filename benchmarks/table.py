"""Rows as tables: in full for the terminal, and for the pages a line per case."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from benchmarks.harness import Row

FULL = ("benchmark", "case", "contestant", "time", "times hdica's", "error")
SHORT = ("case", "hdica", "time of the others over hdica's")
HARDEST = ("benchmark", "case", "hdica", "fastest other program", "its time over hdica's")


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


def cases(rows: Iterable[Row]) -> list[list[Row]]:
    """The rows of each case, ours first."""
    return [list(case) for _, case in groupby(rows, key=lambda row: (row.benchmark, row.case))]


def foreign(row: Row) -> bool:
    """Whether a row is of another program, and not hdica by another of its methods."""
    return not row.contestant.startswith("hdica")


def rows_of(entry: Mapping[str, Any]) -> list[Row]:
    """The rows of one benchmark of ``results.json``."""
    return [Row(**row) for row in entry["rows"]]


def plain(rows: Sequence[Row]) -> str:
    """Every row in aligned text; a benchmark, case and unit is named once."""
    lines, benchmark = [FULL], ""
    for case in cases(rows):
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


def _about(text: str, row: Row) -> str:
    error = "" if row.error is None else f"error {row.error:.0e}"
    return ", ".join(part for part in (text, error, row.note) if part)


def _short(case: Sequence[Row]) -> tuple[str, ...]:
    """One line for a case: our time, the others' ratios, errors where they were compared."""
    ours, *others = case
    ratios = [_about(f"{row.contestant} {_ratio(row)}", row) for row in others]
    return ours.case, _about(f"{_time(ours)} {ours.unit}", ours), "<br>".join(ratios)


def _table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    table = [f"| {' | '.join(line)} |" for line in (head, *lines)]
    table.insert(1, "|" + "---|" * len(head))
    return "\n".join(table)


def markdown(results: Mapping[str, Any], questions: Mapping[str, str]) -> str:
    """All benchmarks of ``results.json``, a section each, and where they were measured.

    Parameters
    ----------
    results
        Per benchmark ``{"machine": {...}, "rows": [...]}``.
    questions
        What stands above the table of a benchmark, by its name.
    """
    parts = []
    for name, entry in results.items():
        table = _table(SHORT, map(_short, cases(rows_of(entry))))
        parts += [part for part in (f"### {name}", questions.get(name, ""), table) if part]
    measured = sorted((on(entry["machine"]), name) for name, entry in results.items())
    places = [
        f"{', '.join(name for _, name in group)}: {place}."
        for place, group in groupby(measured, key=lambda pair: pair[0])
    ]
    return "\n\n".join([*parts, "### Where it was measured", "\n\n".join(places)])


def hardest(results: Mapping[str, Any], count: int = 6) -> str:
    """The worst case of each benchmark with most rivals: that with the least of their ratios.

    Parameters
    ----------
    results
        Per benchmark ``{"machine": {...}, "rows": [...]}``.
    count
        How many benchmarks: those with most comparisons against other programs, and among equals
        the first.
    """
    others = {name: [*filter(foreign, rows_of(entry))] for name, entry in results.items()}
    most = sorted(others, key=lambda name: -len(others[name]))[:count]
    lines = []
    for name in (name for name in results if name in most and others[name]):
        rival = min(others[name], key=lambda row: row.ratio)
        ours = next(row for row in rows_of(results[name]) if row.case == rival.case)
        times, ratio = _about(f"{_time(ours)} {ours.unit}", ours), _about(_ratio(rival), rival)
        lines.append((name, rival.case, times, rival.contestant, ratio))
    return _table(HARDEST, lines)
