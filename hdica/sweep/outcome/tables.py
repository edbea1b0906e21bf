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
from hdica.sweep.run.plan import Plan


def console() -> Console:
    """Where tables go; wide enough for any column where stdout is no terminal."""
    return Console() if sys.stdout.isatty() else Console(width=200)


def duration(seconds: float) -> str:
    """A time for a person: ``0.3 s``, ``12 min``, ``3.2 h``."""
    if seconds < 120:
        return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 48 * 3600 else f"{seconds / 86400:.1f} days"


def megabytes(size: float) -> str:
    """A size for a person: ``0.4 MB``, ``3.1 GB``."""
    if size < 1e5:
        return f"{size / 1e3:.1f} kB"
    return f"{size / 1e6:.1f} MB" if size < 1e9 else f"{size / 1e9:.1f} GB"


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
    shown.print(
        f"{plan.pending} points to compute, about {duration(plan.seconds)} on one core, "
        f"{duration(plan.seconds / workers)} with {workers} worker{'s' if workers > 1 else ''}; "
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
