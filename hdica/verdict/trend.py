"""Whether runs are still falling at their end, where no theory says where they go.

One run alone hardly shows a slow fall above its noise; all runs of a cell show it together, but
near a boundary some stay and some fall. So a run's fall is estimated by its own and the cell's
mean, weighted by the scatter between runs beyond their noise (James and Stein's shrinkage).
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import stats

from hdica.verdict.cells import Array

LEVEL = 0.01
"""Chance that a run that does not fall is said to, at most: noise that mean-reverts over the output
times, as about a steady state, is taken for a random walk, which strays further."""
LEAST = 2
"""Output times in each of the last two thirds, besides their first: less shows no noise."""


def falling(values: xr.DataArray, above: xr.DataArray, threshold: float) -> xr.DataArray:
    """Which runs above a threshold are on their way below it; False with too few times to tell.

    A run is if its size falls over the last third of the time, significantly, and does not level
    off above the threshold: either its fall does not slow down significantly, or its continuation
    in the same ratio ends below. Values are over ``time``, and ``seed`` if there are several; those
    that do not end ``above`` take no part.
    """
    time = values["time"].values.astype(float)
    part = (time[-1] - time[0]) / 3
    first, second = (int(np.abs(time - (time[-1] - k * part)).argmin()) for k in (2, 1))
    if second - first < LEAST or len(time) - 1 - second < LEAST:
        return xr.zeros_like(above, dtype=bool)
    seeded = values if "seed" in values.dims else values.expand_dims("seed")
    grid = [d for d in seeded.dims if d not in ("seed", "time")]
    size = abs(seeded).transpose(*grid, "seed", "time")
    chosen = (above if "seed" in above.dims else above.expand_dims("seed")).transpose(*grid, "seed")
    fall = np.zeros(chosen.shape, dtype=bool)
    for i in np.ndindex(chosen.shape[:-1]):
        taken = chosen.values[i]
        if taken.any():
            fall[i][taken] = _falls(size.values[i][taken], time, (first, second), threshold)
    out = chosen.copy(data=fall)
    return (out if "seed" in above.dims else out.isel(seed=0, drop=True)).transpose(*above.dims)


def _falls(
    size: Array, time: Array, thirds: tuple[int, int], threshold: float
) -> NDArray[np.bool_]:
    """For runs of one cell, shape (runs, times)."""
    first, second = thirds
    h1, h2 = time[second] - time[first], time[-1] - time[second]
    early, late = (size[:, first] - size[:, second]) / h1, (size[:, second] - size[:, -1]) / h2
    # Variance of a random walk in a unit of time, by differences of its successive slopes, to
    # which a smooth fall adds nothing.
    step = np.diff(time[first:])
    slope = np.diff(size[:, first:], axis=1) / step
    noise = float((np.diff(slope, axis=1) ** 2 / (1 / step[1:] + 1 / step[:-1])).mean())
    needed = float(stats.t.isf(LEVEL, len(size) * (len(step) - 1)))
    fall, fall_error = shrunken(late, noise / h2)
    slowing, slowing_error = shrunken(early - late, noise * (1 / h1 + 1 / h2))
    ratio = np.divide(fall, fall + slowing, out=np.ones_like(fall), where=fall + slowing > 0)
    slows = (slowing > needed * slowing_error) & (ratio < 1)
    ratio = np.where(slows, np.clip(ratio, 0, 1 - 1e-9), 0.0)
    ends = size[:, -1] - fall * h2 * ratio / (1 - ratio)
    return (fall > needed * fall_error) & ~(slows & (ends > threshold))


def shrunken(own: Array, noise: float) -> tuple[Array, float]:
    """Values of single runs and their error, drawn to their mean as far as noise explains scatter.

    ``noise`` is the variance of each.
    """
    many = len(own)
    scatter = float(own.var(ddof=1)) if many > 1 else math.inf
    kept = max(0.0, 1 - noise / scatter) if scatter > 0 else 0.0
    mean = float(own.mean())
    return mean + kept * (own - mean), math.sqrt(noise * (kept + (1 - kept) / many))
