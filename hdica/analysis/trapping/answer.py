"""How high the barrier is that traps, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import Point, points
from hdica.analysis.show.words import number, place
from hdica.analysis.terms import spoken
from hdica.analysis.trapping.figure import grid_of, pair_of


def answer(data: xr.Dataset) -> Answer | None:
    """The highest and the lowest barrier of the first overlap."""
    entry = points(data, pair_of(data))[0]
    here = data.sel(entry)
    cells = [c for c in points(here, grid_of(here)) if np.isfinite(float(here["barrier"].sel(c)))]
    if not cells:
        return None
    ordered = sorted(cells, key=lambda c: float(here["barrier"].sel(c)))
    ends = [ordered[0], ordered[-1]] if len(ordered) > 1 else ordered
    told = " and ".join(_told(here, cell, k == 0) for k, cell in enumerate(ends))
    who = spoken() or "the rule"
    return Answer(
        f"The barrier that holds {who} at its start is {told}, with <i>D</i> the variance of the "
        "noise in a unit of time."
    )


def _told(here: xr.Dataset, cell: Point, first: bool) -> str:
    where = f" at {place(cell).html}" if cell else ""
    high = " high" if first else ""
    return f"{number(float(here['barrier'].sel(cell)), 3)} <i>D</i>{high}{where}"
