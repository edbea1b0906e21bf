"""How high the barrier is that traps, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import Point, points
from hdica.analysis.show.words import number, place
from hdica.analysis.trapping.figure import grid_of, pair_of


def answer(data: xr.Dataset) -> Answer | None:
    """The highest and the lowest barrier of the first overlap."""
    entry = points(data, pair_of(data))[0]
    here = data.sel(entry)
    cells = [c for c in points(here, grid_of(here)) if np.isfinite(float(here["barrier"].sel(c)))]
    if not cells:
        return None
    ordered = sorted(cells, key=lambda c: float(here["barrier"].sel(c)))
    told = _told(here, ordered[-1])
    if len(ordered) > 1:
        told += f" and {_told(here, ordered[0])}"
    lead = "The barrier that holds the rule at its start has the height"
    return Answer(f"{lead} {told}, in units of the diffusion coefficient <i>D</i>.")


def _told(here: xr.Dataset, cell: Point) -> str:
    where = f" at {place(cell).html}" if cell else ""
    return f"{number(float(here['barrier'].sel(cell)), 3)} <i>D</i>{where}"
