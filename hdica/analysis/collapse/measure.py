"""What runs give at a transition: times of falls, shares that go up, steady squares."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy import stats

from hdica.analysis.collapse.record import Collapse
from hdica.analysis.reading import finished
from hdica.errors import HdicaError
from hdica.verdict.odds import wilson
from hdica.verdict.resample import CONFIDENCE

LEAST = 8
"""Runs from which on a mean is judged by its scatter."""


def measured(data: xr.Dataset, theory: xr.Dataset, settings: Collapse) -> xr.Dataset:
    """In each cell ``measured`` with ``se``, ``low`` and ``high``, ``runs``, ``open`` and ``hits``.

    ``open`` are runs that ended before what they were to show: a mean of the others would be too
    small, so such a cell has none. ``hits`` are successes where shares are counted, else NaN.
    """
    if settings.kind == "separatrix":
        return _shares(data, theory, settings)
    if settings.kind == "pitchfork":
        square = _settled(finished(data, settings.variable), settings.since) ** 2
        return _means(square.mean("time"), xr.zeros_like(square.isel(time=0), dtype=bool))
    times = finished(data, "first")
    ended = (finished(data, "first_seen") == 0) & times.notnull()
    return _means(times, ended)


def _settled(values: xr.DataArray, since: float | None) -> xr.DataArray:
    """The times at which runs are steady."""
    time = values["time"].values.astype(float)
    begin = time[-1] / 2 if since is None else since
    if not (time >= begin).any():
        raise HdicaError(
            f"analysis.collapse.since = {begin:g} is not allowed (the last time is {time[-1]:g})"
        )
    return values.isel(time=time >= begin)


def _means(values: xr.DataArray, ended: xr.DataArray) -> xr.Dataset:
    """Means over seeds with their Student intervals."""
    runs, still = values.notnull().sum("seed"), (ended & values.notnull()).sum("seed")
    known = (still == 0) & (runs >= LEAST)
    mean = values.mean("seed").where(known)
    se = (values.std("seed", ddof=1) / np.sqrt(runs.where(runs > 0))).where(known)
    score = stats.t.ppf(0.5 + CONFIDENCE / 2, np.maximum(runs.values - 1, 1))
    half = se * xr.DataArray(score, runs.coords, runs.dims)
    return xr.Dataset(
        {
            "measured": mean,
            "se": se,
            "low": mean - half,
            "high": mean + half,
            "runs": runs,
            "open": still,
            "hits": xr.full_like(mean, np.nan),
        }
    ).reset_coords(drop=True)


def _shares(data: xr.Dataset, theory: xr.Dataset, settings: Collapse) -> xr.Dataset:
    """Shares of runs that end above the unstable state, with their Wilson intervals."""
    values = finished(data, settings.variable).isel(time=-1, drop=True)
    _, edge = xr.align(values, finished(theory, "edge").reset_coords(drop=True), join="left")
    hits = ((values > edge) & values.notnull()).sum("seed")
    runs = values.notnull().sum("seed")
    hits = hits.transpose(*runs.dims)
    low, high = xr.apply_ufunc(wilson, hits, runs, output_core_dims=[[], []], vectorize=True)
    share = (hits / runs).where(runs > 0)
    return xr.Dataset(
        {
            "measured": share,
            "se": np.sqrt(share * (1 - share) / runs),
            "low": low,
            "high": high,
            "runs": runs,
            "open": xr.zeros_like(runs),
            "hits": hits.astype(float),
        }
    ).reset_coords(drop=True)
