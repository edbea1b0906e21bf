"""Single runs of a simulation, thinned for a figure."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.describe import described
from hdica.analysis.paths.record import Paths
from hdica.analysis.reading import at_top, finished, grid_of, group
from hdica.analysis.show.choose import MOST, spread
from hdica.errors import HdicaError

LONG_NAMES = {
    "path": "{v} of a single run",
    "reached": "first output time at which abs({v}) of a single run is at the threshold",
    "level": "size of {v} at the top of the barrier",
}

MOST_TIMES = 1000


def paths(tree: xr.DataTree, settings: Paths) -> xr.Dataset:
    """The first runs of some grid points, as in Figure 3 of Rattray (2002).

    They are at the largest n, if there is any: ``path`` over at most six grid points, ``seed``, at
    most 1000 times, and the dimensions of the variable; NaN where a run is not done. With a
    ``threshold``: ``reached``, without ``time``, NaN where a run does not reach it. With a
    ``barrier``: ``level``, its ``summit`` over sqrt(n), over the grid points and entries that it
    has. The attribute ``cells`` tells how many grid points there are.
    """
    variable, name = settings.variable, settings.simulation
    data = group(tree, name)
    values, n = at_top(finished(data, variable))
    grid = grid_of(data)
    cells = int(np.prod([values.sizes[d] for d in grid], dtype=int))
    values = _shown(values, settings).isel(seed=slice(settings.runs))
    kept = {d: spread(values.sizes[d], most) for d, most in _most(values, grid).items()}
    values = values.isel(kept)
    thin = values.isel(time=spread(values.sizes["time"], MOST_TIMES))
    out = xr.Dataset({"path": thin}).reset_coords(drop=True)
    out.attrs = {"variable": variable, "simulation": name, "cells": cells}
    if n is not None:
        out.attrs["n"] = n
    if settings.threshold is not None:
        out.attrs["threshold"] = settings.threshold
        out["reached"] = _reached(values, settings.threshold).reset_coords(drop=True)
    if settings.barrier:
        summit = finished(group(tree, settings.barrier), "summit")
        out.attrs["level_at_n"] = int("n" in summit.dims)
        out["level"] = _level(summit, thin, n).reset_coords(drop=True)
    return described(out, LONG_NAMES, variable)


def _shown(values: xr.DataArray, settings: Paths) -> xr.DataArray:
    """Values up to the last time that is asked for."""
    if settings.until is None:
        return values
    inside = values.sel(time=slice(None, settings.until))
    if inside.sizes["time"] < 2:
        raise HdicaError(
            f"analysis.paths.until = {settings.until:g} is not allowed (at least two output "
            f"times: the second is {float(values['time'][min(1, values.sizes['time'] - 1)]):g})"
        )
    return inside


def _reached(values: xr.DataArray, threshold: float) -> xr.DataArray:
    """First output time at which the size of every run and entry is at the threshold."""
    there = np.abs(values) >= threshold
    return values["time"].where(there).min("time")


def _level(summit: xr.DataArray, values: xr.DataArray, n: int | None) -> xr.DataArray:
    """Size of the variable at the barrier, at the grid points and entries of some runs."""
    if n is None:
        raise HdicaError("analysis.paths.barrier is not allowed (runs without n have no √n R)")
    if "n" in summit.dims:
        summit = summit.sel(n=n)
    shared = [d for d in summit.dims if d in values.dims]
    return summit.sel({d: values[d].values for d in shared}) / np.sqrt(n)


def _most(values: xr.DataArray, grid: list[str]) -> dict[str, int]:
    """How many values of each swept parameter are kept, so that at most six points are."""
    if len(grid) == 1:
        return {grid[0]: MOST}
    left, out = MOST, {}
    for k, d in enumerate(reversed(grid)):
        out[d] = max(1, min(left, values.sizes[d], 3 if k == 0 else left))
        left //= out[d]
    return out
