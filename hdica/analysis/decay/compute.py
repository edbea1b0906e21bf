"""Learning curves: how the distance to a target falls with time."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.decay.record import Decay
from hdica.analysis.describe import described
from hdica.analysis.reading import at_top, finished, group, over
from hdica.analysis.terms import matrix_over
from hdica.verdict.resample import jackknife_error

LONG_NAMES = {
    "gap": "mean of {v} over seeds minus its target",
    "gap_se": "standard error of the mean of {v}",
    "count": "seeds that are done",
    "largest_n": "largest n of the simulation, NaN without",
    "slope": "d log |mean of {v} - target| / d log t over the last decade",
    "slope_se": "standard error of the slope, over seeds",
    "scaled": "t (mean of {v} - target) at the last time",
    "scaled_se": "standard error of t (mean of {v} - target) at the last time",
    "limit_gap": "limit of {v} minus its target",
    "limit_slope": "d log |limit of {v} - target| / d log t over the last decade",
    "limit_scaled": "t (limit of {v} - target) at the last time",
}

Array = NDArray[np.float64]

DECADE = 10.0
"""Slopes are fitted from the last time over this to the last time."""

ABOVE = 3.0
"""... and only where the distance is so many standard errors."""

LEAST_TIMES = 3


def decay(tree: xr.DataTree, settings: Decay) -> xr.Dataset:
    """Distance of means and of limits to a target over time, with slopes and products with t.

    Over ``simulation`` (each at its largest n, if it has any), the swept parameters, columns for a
    matrix, and ``time``: mean minus target with its standard error; over ``limit`` the same of the
    limits; without ``time``: slopes over the last decade of time, with standard errors over seeds,
    and t (mean - target) at the last time. A slope is NaN where fewer than three times are in the
    decade or the distance is not three standard errors at all of them.
    """
    variable, target = settings.variable, settings.target
    groups = {name: group(tree, name) for name in settings.curves}
    finite = [name for name, data in groups.items() if "seed" in data.dims]
    limits = [name for name in groups if name not in finite]
    parts = []
    if finite:
        found = [_simulated(finished(groups[m], variable), target) for m in finite]
        parts.append(over(found, "simulation", finite, ["count"]))
    if limits:
        parts.append(over([_limit(groups[m], variable, target) for m in limits], "limit", limits))
    out = xr.merge([p.reset_coords(drop=True) for p in parts], join="outer")
    if finite:
        out["count"] = out["count"].fillna(0).astype(int)
    out.attrs = {"variable": variable, "target": target}
    return described(out, LONG_NAMES, variable)


def diagonal(values: xr.DataArray) -> xr.DataArray:
    """Entries of equal row and column of a matrix, over its columns; anything else as it is."""
    matrix = matrix_over(values.dims)
    if matrix is None or len(matrix.dims) != 2:
        return values
    row, column = matrix.dims
    both = [i for i in values[column].values if i in values[row].values]
    index = xr.DataArray(both, dims="entry")
    found = values.sel({row: index, column: index}).drop_vars(matrix.dims)
    return found.rename(entry=column).assign_coords({column: both})


def _simulated(values: xr.DataArray, target: float) -> xr.Dataset:
    """Mean over seeds, at the largest n if there is any, with errors."""
    values, n = at_top(values)
    gap = diagonal(values).reset_coords(drop=True) - target
    count = gap.notnull().all("time").sum("seed")
    mean, se = gap.mean("seed"), gap.std("seed", ddof=1) / np.sqrt(count)
    slope = _slope(mean, se)
    # One seed fewer at a time: neighbouring times share seeds, which residuals would not show.
    left = count - gap.notnull()
    without = (gap.sum("seed") - gap.fillna(0.0)) / left.where(left > 0)
    slope_se = jackknife_error(_slope(without, xr.zeros_like(without)), count)
    last = mean["time"].values[-1]
    found = {
        "gap": mean,
        "gap_se": se,
        "count": count,
        "largest_n": xr.DataArray(np.nan if n is None else n),
        "slope": slope,
        "slope_se": slope_se.where(slope.notnull()),
        "scaled": last * mean.isel(time=-1, drop=True),
        "scaled_se": last * se.isel(time=-1, drop=True),
    }
    return xr.Dataset(found).reset_coords(drop=True)


def _limit(data: xr.Dataset, variable: str, target: float) -> xr.Dataset:
    """One limit; a method with n and without seeds is shown at its largest n."""
    values = finished(data, variable)
    if "n" in values.dims:
        values = values.isel(n=-1, drop=True)
    gap = diagonal(values).reset_coords(drop=True) - target
    last = gap["time"].values[-1]
    found = {
        "limit_gap": gap,
        "limit_slope": _slope(gap, xr.zeros_like(gap)),
        "limit_scaled": last * gap.isel(time=-1, drop=True),
    }
    return xr.Dataset(found)


def _slope(gap: xr.DataArray, se: xr.DataArray) -> xr.DataArray:
    """Least-squares slope of log abs(gap) on log t over the last decade of time."""
    time = gap["time"].values.astype(float)
    chosen = np.flatnonzero((time > 0) & (time >= time[-1] / DECADE * (1 - 1e-9)))
    if len(chosen) < LEAST_TIMES:
        return gap.isel(time=-1, drop=True) * np.nan
    gap, se = gap.isel(time=chosen), se.isel(time=chosen)
    log_t = np.log(time[chosen])
    lever = log_t - log_t.mean()
    weights = xr.DataArray(lever / (lever @ lever), dims="time")
    size = abs(gap).drop_vars("time")
    clear = ((size > ABOVE * se.drop_vars("time").fillna(0.0)) & (size > 0)).all("time")
    log_size = xr.apply_ufunc(np.log, size.where(size > 0))
    return (log_size * weights).sum("time", skipna=False).where(clear)
