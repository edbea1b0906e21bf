"""Tables of a report, as rows of text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from hdica.report.choose import points
from hdica.report.figures.convergence import grid_of
from hdica.report.words import count, number, probability, symbol, value_of

MOST_ROWS = 300
"""Longer tables are cut on the page; the data files hold all."""


@dataclass(frozen=True)
class Table:
    """A table for the page.

    Parameters
    ----------
    head
        Column names, HTML.
    rows
        Cells, plain text; escaped by the page.
    numeric
        Which columns are numbers and align to the right.
    total
        Rows before cutting.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    total: int


def runs(data: xr.Dataset) -> Table:
    """What was run."""
    counts = ("points", "done", "diverged", "failed", "pending")
    head = ("method", "accuracy", *counts, "CPU seconds", symbol("n").html, "seeds")
    rows = []
    for method in data["method"].values:
        here = data.sel({"method": method})
        rows.append(
            (
                str(method),
                here["accuracy"].item(),
                *(count(int(here[c])) for c in counts),
                number(float(here["cpu_seconds"])),
                here["n"].item() or "∞",
                str(int(here["seeds"])) if int(here["seeds"]) else "–",
            )
        )
    numeric = (False, False, *(True for _ in counts), True, False, True)
    return Table(head, tuple(rows), numeric, len(rows))


def verdicts(data: xr.Dataset) -> Table:
    """One row for each grid point and simulation; whatever does not agree comes first."""
    dims = ["simulation", *grid_of(data)]
    head = (
        *("method" if d == "simulation" else symbol(d).html for d in dims),
        "verdict",
        "<i>p</i>",
        "<i>p</i> of 2 % control",
        "power",
        "<i>n</i> used from",
        "<i>a</i> (fluctuation)",
        "<i>b</i> (bias)",
        "sup error, largest <i>n</i>",
    )
    order = {"differs": 0, "undecided": 1, "agrees": 2}
    cells = points(data, dims)
    cells.sort(key=lambda p: order.get(str(data["verdict"].sel(p).item()), 3))
    rows = []
    for point in cells[:MOST_ROWS]:
        here = data.sel(point)
        rows.append(
            (
                *(value_of(point[d]) for d in dims),
                str(here["verdict"].item()),
                probability(float(here["p_value"])),
                probability(float(here["control_p"])),
                number(float(here["power"]), 2),
                count(float(here["n_from"])) if np.isfinite(here["n_from"]) else "–",
                _exponent(here, "fluctuation_exponent"),
                _exponent(here, "bias_exponent"),
                _error(here),
            )
        )
    text = tuple(data[d].dtype.kind not in "fiu" for d in dims)
    numeric = (*(not t for t in text), False, *(True,) * 7)
    return Table(head, tuple(rows), numeric, len(cells))


def _exponent(here: xr.Dataset, name: str) -> str:
    value, low, high = (float(here[name + end]) for end in ("", "_low", "_high"))
    if not np.isfinite(value):
        return "not resolved"
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"


def _error(here: xr.Dataset) -> str:
    known = np.flatnonzero(np.isfinite(here["sup_error"].values))
    if not len(known):
        return "–"
    last = here.isel(n=int(known[-1]))
    return f"{number(float(last['sup_error']), 2)} ± {number(float(last['sup_error_se']), 1)}"
