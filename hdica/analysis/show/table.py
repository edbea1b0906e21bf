"""Tables of a report, as rows of text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from hdica.analysis.show.choose import Point, points
from hdica.analysis.show.sentences import near
from hdica.analysis.show.words import number, probability, rounded

MOST_ROWS = 300
"""Longer tables are cut on the page; the data files hold all."""

NEAR = "near the level"
"""Shown in place of "differs" where chance may have done it."""

VERDICT_HEAD = ("verdict", "<i>p</i>", "<i>p</i> of 2 % control", "power", "seeds to decide")


@dataclass(frozen=True)
class Table:
    """A table for the page, its column names in HTML, its cells plain text that the page escapes.

    Numeric columns align to the right; ``total`` counts the rows before cutting.
    """

    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[bool, ...]
    total: int


def of_verdicts(
    data: xr.Dataset,
    dims: Sequence[str],
    head: Sequence[str],
    row: Callable[[Point, xr.Dataset], Iterable[str]],
    numeric: Sequence[bool] = (False,),
) -> Table:
    """A row for each comparison; whatever does not agree comes first.

    The first columns, as many as ``numeric`` has, tell where it is, then comes its verdict; those
    after it are numbers.
    """
    order = {"differs": 0, "undecided": 1, "agrees": 2}
    cells = sorted(
        points(data, dims), key=lambda p: order.get(str(data["verdict"].sel(p).item()), 3)
    )
    rows = tuple(tuple(row(point, data.sel(point))) for point in cells[:MOST_ROWS])
    after = len(head) - len(numeric) - 1
    return Table(tuple(head), rows, (*numeric, False, *(True,) * after), len(cells))


def verdict(here: xr.Dataset) -> tuple[str, ...]:
    """Cells under :data:`VERDICT_HEAD`."""
    needed = float(here["seeds_needed"])
    return (
        NEAR if near(here) else str(here["verdict"].item()),
        probability(float(here["p_value"])),
        probability(float(here["control_p"])),
        number(float(here["power"]), 2),
        rounded(needed) if np.isfinite(needed) else ("∞" if needed > 0 else "–"),
    )


def exponent(here: xr.Dataset, name: str) -> str:
    """An exponent with its interval."""
    value, low, high = (float(here[name + end]) for end in ("", "_low", "_high"))
    if not np.isfinite(value):
        return "not resolved"
    return f"{value:.2f} [{low:.2f}, {high:.2f}]"
