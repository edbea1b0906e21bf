"""Tables on a terminal: what a study asks for, what is there, and answers of queries."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hdica.errors import printable
from hdica.run.plan import Plan, duration, megabytes
from hdica.status import STATUS_NAMES

if TYPE_CHECKING:
    import pandas as pd

    from hdica.store.results import Status

ROWS = 40  # rows of an answer that are printed
LARGE = 1e8  # bytes of memory from which on a plan says what its largest point needs


def plan_table(plan: Plan, workers: int) -> None:
    """Print what a study asks for."""
    names = ("n", "points", "pending", "cost", "a point", "size", "blocks")
    rows = [
        (s.method, s.n, s.points, s.pending, duration(s.seconds), megabytes(s.bytes_per_point),
         megabytes(s.bytes), s.blocks)
        for s in plan.segments
    ]  # fmt: skip
    total = (plan.points, plan.pending, duration(plan.seconds), "", megabytes(plan.bytes))
    title = f"{plan.study}: {plan.points} points"
    console = _print(_by_method(title, names, rows, ("all", "", *total, plan.blocks)))
    if plan.keeps:
        console.print(f"keeps {plan.keeps}", highlight=False)
    for note in plan.notes:
        console.print(f"note: {note}", highlight=False, markup=False)
    seconds, wait = f"about {duration(plan.seconds)} on one core", duration(plan.wait(workers))
    if plan.preparing >= 0.1:
        seconds += f", {duration(plan.preparing)} of it for averages that points share"
    if plan.memory > LARGE:
        wait += f"; the largest point needs {megabytes(plan.memory)} of memory or more"
    console.print(
        f"{plan.pending} points to compute, {seconds}; "
        f"a run with {workers} worker{'s' if workers > 1 else ''} takes about {wait}; "
        f"at most {megabytes(2 * plan.bytes)} on disk (working and published store), "
        f"{plan.files} files of results or more",
        highlight=False,
    )


def status_table(status: Status) -> None:
    """Print what is there."""
    counts = ("points", *STATUS_NAMES)
    rows = [
        (row.method, row.n, *(getattr(row, name) for name in counts), duration(row.cpu_seconds))
        for row in status.rows
    ]
    cpu = duration(sum(row.cpu_seconds for row in status.rows))
    total = ("all", "", *map(status.total, counts), cpu)
    _print(_by_method(f"{status.study}: {status.source}", ("n", *counts, "cpu"), rows, total))


def answer_table(frame: pd.DataFrame, title: str) -> None:
    """Print the first rows of the answer of a query."""
    table = _table(title)
    for column in frame.columns:
        table.add_column(_text(column), justify="right")
    for row in frame.head(ROWS).itertuples(index=False, name=None):
        table.add_row(*map(_text, row))
    console = _print(table)
    if len(frame) > ROWS:
        console.print(f"{len(frame) - ROWS} more rows (--to csv prints all)", highlight=False)


def _by_method(
    title: str, names: Iterable[str], rows: Iterable[Iterable[object]], total: Iterable[object]
) -> Table:
    """A table with a row for each method, and one for all of them."""
    table = _table(title)
    table.add_column("method")
    for name in names:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*map(_text, row))
    table.add_section()
    table.add_row(*map(_text, total))
    return table


def _table(title: str) -> Table:
    return Table(box=box.SIMPLE_HEAD, title=_text(title))


def _text(value: object) -> Text:
    """A cell: no markup, and nothing that a terminal would obey, whatever a store says."""
    if value is None:
        return Text("")
    return Text(f"{value:.6g}" if isinstance(value, float) else printable(str(value)))


def _print(table: Table) -> Console:
    """Print a table on stdout, wide enough for any column where that is no terminal."""
    console = Console() if sys.stdout.isatty() else Console(width=200)
    console.print(table)
    return console
