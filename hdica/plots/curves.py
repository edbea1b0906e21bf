"""Curves of results: bands over seeds, the distance to a limit, and when they cross a level."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from hdica.analysis.convergence.compute import LONG_NAMES, against_limit
from hdica.analysis.ensemble.passages import finished_runs, passages
from hdica.analysis.reading import Cell, assembled
from hdica.errors import HdicaError, suggestion
from hdica.verdict.ladder import moments
from hdica.verdict.resample import quantile
from hdica.verdict.survival import first_below

DISTANCE = {
    "difference": "mean of {v} over seeds minus its limit",
    "difference_error": "standard error of the mean of {v} and the limit's own error together",
    "z": "difference over its error",
    **{k: LONG_NAMES[k] for k in ("sup_error", "sup_error_se", "sup_time", "mean", "se", "limit")},
    "runs": "runs that are done",
}

CROSSINGS = {
    "passage": ("median", "median over runs, infinite where fewer than half cross"),
    "passage_low": ("median_low", "lower end of the 95 % interval of the median"),
    "passage_high": ("median_high", "upper end of the 95 % interval of the median"),
    "passage_se": ("median_se", "standard error of the median"),
    "passage_mean": ("mean", "mean over runs, infinite if one never crosses"),
    "passage_mean_se": ("mean_se", "standard error of the mean"),
    "reached": ("reached", "runs that cross"),
    "never": ("never", "runs that have not crossed by the last time"),
}
"""Names of crossings, and what they are, by those of first passages below a level."""


def bands(values: xr.DataArray, level: float, of: str) -> xr.Dataset:
    """``low``, ``middle`` and ``high`` over seeds, and the number of ``runs``.

    Of the runs, the median and the quantiles between which this share of them lies; of their mean,
    the mean and its interval of this level by Student's t, whose ends are NaN for a single run.
    """
    if not (isinstance(level, int | float) and 0 < level < 1):
        raise HdicaError(f"level = {level!r} is not allowed (between 0 and 1)")
    if of not in ("runs", "mean"):
        raise HdicaError(f"of = {of!r} is not allowed ({suggestion(of, ('runs', 'mean'))})")
    if of == "mean":
        result = moments(values)
        middle, runs = result["mean"], result["count"]
        score = stats.t.isf((1 - level) / 2, np.maximum(runs.values - 1, 1))
        half = result["se"] * xr.DataArray(score, runs.coords, runs.dims)
        interval = {"low": middle - half, "high": middle + half}
        return xr.Dataset({"middle": middle, **interval, "runs": runs})
    grid = [str(d) for d in values.dims if d not in ("seed", "time")]
    timed = tuple(d for d in ("time",) if d in values.dims)
    shares = {"low": (1 - level) / 2, "middle": 0.5, "high": (1 + level) / 2}
    cells: list[Cell] = []
    for cell in finished_runs(values):
        ordered = np.sort(cell, axis=0)
        ends = {k: (timed, quantile(ordered, share).value) for k, share in shares.items()}
        cells.append({**ends, "runs": len(cell)})
    return assembled(cells, grid, {d: values[d].values for d in (*grid, *timed)})


def distance(values: xr.DataArray, limits: xr.Dataset) -> xr.Dataset:
    """The mean over seeds minus the limit, with the errors of both; runs may have one n or none."""
    for dim in set(values.dims) & set(limits["limit"].dims):
        if not values.indexes[dim].isin(limits["limit"].indexes[dim]).all():
            raise HdicaError(f"limit: it is not there at every {dim} of the runs")
    single = "n" not in values.dims
    if single:
        values = values.expand_dims(n=[values["n"].item() if "n" in values.coords else np.nan])
    out = against_limit(values.reset_coords(drop=True), limits)
    if single:
        out = out.isel(n=0, drop=bool(np.isnan(out["n"].values[0])))
    error = np.sqrt(out["se"] ** 2 + limits["error"].fillna(0.0) ** 2)
    out = out.assign(difference_error=error, limit=limits["limit"]).rename(count="runs")
    return out[list(DISTANCE)]


def crossings(values: xr.DataArray, level: float, rising: bool | None) -> xr.Dataset:
    """When curves first cross a level, and with seeds the median and the mean of these times.

    ``passage`` over all but ``time``; the attribute ``rising`` says whether curves rise to it: if
    that is not asked for, they do where most begin below.
    """
    first = values.isel(time=0).values
    first = first[np.isfinite(first)]
    if rising is None:
        rising = bool(first.size and np.median(first) < level)
    sign, time = -1.0 if rising else 1.0, values["time"].values.astype(float)
    units = {"units": str(values["time"].attrs.get("units", "1"))}
    at = xr.apply_ufunc(
        lambda y: first_below(time, sign * y, sign * level), values, input_core_dims=[["time"]]
    )
    text = f"first {'rises' if rising else 'falls'} to {level:g}, infinite if it never does"
    out = xr.Dataset({"passage": at.assign_attrs(long_name=text, **units)})
    if "seed" in values.dims:
        grid = [str(d) for d in values.dims if d not in ("seed", "time")]
        coords: dict[str, Any] = {d: values[d].values for d in grid} | {"share": [0.5]}
        cells = finished_runs(sign * values)
        times = passages(cells, time, [sign * level], grid, coords)[list(CROSSINGS)]
        times = times.isel(crossing=0, share=0, drop=True)
        for own, (name, text) in CROSSINGS.items():
            timed = {} if name in ("reached", "never") else units
            out[name] = times[own].assign_attrs(long_name=text, **timed)
    return out.assign_attrs(level=level, rising=int(rising))
