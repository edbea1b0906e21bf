"""Tables for a person: what a study asks for, what is there."""

from __future__ import annotations

import sys

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hdica.errors import printable
from hdica.status import STATUS_NAMES
from hdica.sweep.outcome.status import Status
from hdica.sweep.run.asked import Plan, duration, megabytes

LARGE = 1e8
"""Bytes of memory from which on a plan says what its largest point needs."""


def console() -> Console:
    """Where tables go; wide enough for any column where stdout is no terminal."""
    return Console() if sys.stdout.isatty() else Console(width=200)


def _n(n: int | None) -> str:
    return "" if n is None else str(n)


def plan_table(plan: Plan, workers: int) -> None:
    """Print what a study asks for."""
    table = Table(box=box.SIMPLE_HEAD, title=f"{plan.study}: {plan.points} points")
    table.add_column("method")
    for name in ("n", "points", "pending", "cost", "a point", "size", "blocks"):
        table.add_column(name, justify="right")
    for s in plan.segments:
        counts = (str(s.points), str(s.pending), duration(s.seconds))
        sizes = (megabytes(s.bytes_per_point), megabytes(s.bytes))
        table.add_row(s.method, _n(s.n), *counts, *sizes, str(s.blocks))
    table.add_section()
    total = (str(plan.points), str(plan.pending), duration(plan.seconds), "", megabytes(plan.bytes))
    table.add_row("all", "", *total, str(plan.blocks))
    shown = console()
    shown.print(table)
    if plan.keeps:
        shown.print(f"keeps {plan.keeps}", highlight=False)
    for note in plan.notes:
        shown.print(f"note: {note}", highlight=False, markup=False)
    large = ""
    if plan.memory > LARGE:
        large = f"; the largest point needs {megabytes(plan.memory)} of memory or more"
    once = f", {duration(plan.compiling)} of it to compile, once" if plan.compiling else ""
    prepared = ""
    if plan.preparing >= 0.1:
        prepared = f", {duration(plan.preparing)} of it for averages that points share"
    shown.print(
        f"{plan.pending} points to compute, about {duration(plan.seconds)} on one core"
        f"{prepared}; a run with {workers} worker{'s' if workers > 1 else ''} takes about "
        f"{duration(plan.wait(workers))}{once}{large}; "
        f"at most {megabytes(2 * plan.bytes)} on disk (working and published store), "
        f"{plan.files} files of results or more",
        highlight=False,
    )


def status_table(status: Status) -> None:
    """Print what is there."""
    # A store may say anything: no markup, and nothing that a terminal would obey.
    title = Text(printable(f"{status.study}: {status.source}"))
    table = Table(box=box.SIMPLE_HEAD, title=title)
    table.add_column("method")
    for name in ("n", "points", *STATUS_NAMES, "cpu"):
        table.add_column(name, justify="right")
    for row in status.rows:
        counts = [str(getattr(row, name)) for name in ("points", *STATUS_NAMES)]
        table.add_row(row.method, _n(row.n), *counts, duration(row.cpu_seconds))
    table.add_section()
    totals = [str(status.total(name)) for name in ("points", *STATUS_NAMES)]
    cpu = sum(row.cpu_seconds for row in status.rows)
    table.add_row("all", "", *totals, duration(cpu))
    console().print(table)
