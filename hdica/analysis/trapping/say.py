"""What the trapping potential says."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.show.choose import Point, evenly, points
from hdica.analysis.show.sentences import listed
from hdica.analysis.show.words import number, place, symbol
from hdica.analysis.terms import matrix_over
from hdica.analysis.trapping.figure import grid_of, pair_of

CELLS = 4


def trapping(data: xr.Dataset) -> list[str]:
    """Height and place of the barrier of every entry, at a few grid points."""
    entries, overlap = points(data, pair_of(data)), _overlap(data)
    out = []
    for entry in entries:
        here = data.sel(entry)
        every = [
            c for c in points(here, grid_of(here)) if np.isfinite(float(here["barrier"].sel(c)))
        ]
        parts = [_said(here, c) for c in evenly(every, CELLS)]
        lead = f"For {place(entry).html} the" if len(entries) > 1 else "The"
        if parts:
            out.append(
                f"{lead} potential that holds {overlap} near 0 has a barrier {listed(parts)}."
            )
        elif bool(here["U"].notnull().any()):
            out.append(f"{lead} potential confines {overlap}: there is no escape from near 0.")
    return out


def _overlap(data: xr.Dataset) -> str:
    """The overlap that the potential holds."""
    found = matrix_over(data.dims)
    return "the overlap" if found is None else symbol(found.name).html


def _said(here: xr.Dataset, cell: Point) -> str:
    height, top = float(here["barrier"].sel(cell)), float(here["summit"].sel(cell))
    where = f" at {place(cell).html}" if cell else ""
    name = symbol("r").html.split(" = ")[0]
    return f"{number(height, 4)} <i>D</i> high at {name} = {number(top, 4)}{where}"
