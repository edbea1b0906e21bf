"""Single runs of a simulation, thinned for a figure."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.describe import described
from hdica.analysis.paths.record import Paths
from hdica.analysis.reading import at_top, finished, grid_of, group
from hdica.analysis.show.choose import MOST, spread

LONG_NAMES = {"path": "{v} of a single run"}

MOST_TIMES = 1000


def paths(tree: xr.DataTree, settings: Paths) -> xr.Dataset:
    """The first runs of some grid points, as in Figure 3 of Rattray (2002).

    They are at the largest n, if there is any: ``path`` over at most six grid points, ``seed``, at
    most 1000 times, and the dimensions of the variable; NaN where a run is not done. The
    attribute ``cells`` tells how many grid points there are.
    """
    variable, name = settings.variable, settings.simulation
    data = group(tree, name)
    values, n = at_top(finished(data, variable))
    grid = grid_of(data)
    cells = int(np.prod([values.sizes[d] for d in grid], dtype=int))
    values = values.isel(seed=slice(settings.runs))
    kept = {d: spread(values.sizes[d], most) for d, most in _most(values, grid).items()}
    kept["time"] = spread(values.sizes["time"], MOST_TIMES)
    out = xr.Dataset({"path": values.isel(kept)}).reset_coords(drop=True)
    out.attrs = {"variable": variable, "simulation": name, "cells": cells}
    if n is not None:
        out.attrs["n"] = n
    if settings.threshold is not None:
        out.attrs["threshold"] = settings.threshold
    return described(out, LONG_NAMES, variable)


def _most(values: xr.DataArray, grid: list[str]) -> dict[str, int]:
    """How many values of each swept parameter are kept, so that at most six points are."""
    if len(grid) == 1:
        return {grid[0]: MOST}
    left, out = MOST, {}
    for k, d in enumerate(reversed(grid)):
        out[d] = max(1, min(left, values.sizes[d], 3 if k == 0 else left))
        left //= out[d]
    return out
