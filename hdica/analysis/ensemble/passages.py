"""Runs at each time, and when they first cross values: quantiles and means over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from hdica.analysis.reading import Cell, Values, assembled, interval_names
from hdica.errors import HdicaError, suggestion
from hdica.verdict.cells import CONFIDENCE, Array
from hdica.verdict.ladder import moments
from hdica.verdict.resample import quantile, share_interval
from hdica.verdict.survival import EscapeTimes, first_below, restricted_mean

LONG_NAMES = {
    "reached": "runs that go below the value",
    "never": "runs that have not gone below the value by the last time",
    "passage": "quantile of the time at which runs first go below the value",
    **interval_names("passage", "the quantile of the time"),
    "passage_se": "standard error of the quantile of the time",
    "passage_mean": "mean time at which runs first go below the value, infinite if one never does",
    "passage_mean_se": "standard error of the mean time",
    "passed_at": "times at which runs first go below the value, in increasing order",
    "passed": "share of runs that have gone below the value",
    **interval_names("passed", "the share that has gone below the value"),
}
LONG_TIMES = (
    *("passage", "passage_low", "passage_high", "passage_se", "passage_mean", "passage_mean_se"),
    *("passed_at", "predicted_passage", "stage_time"),
)
"""Those that are times, here and in theory."""

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


def finished_runs(values: xr.DataArray) -> list[Array]:
    """Finished runs of every cell, each of shape (runs,) or (runs, times)."""
    grid = [str(d) for d in values.dims if d not in ("seed", "time")]
    runs = values.transpose(*grid, "seed", ...).values
    cells = [runs[i] for i in np.ndindex(runs.shape[: len(grid)])]
    return [cell[np.isfinite(cell.reshape(len(cell), -1)).all(axis=1)] for cell in cells]


def passages(
    cells: Sequence[Array],
    time: Array,
    levels: Sequence[float],
    grid: Sequence[str],
    coords: Mapping[str, Values],
) -> xr.Dataset:
    """First times below each level over ``crossing`` and the grid, of runs of shape (runs, times).

    Counts, quantiles over ``share`` with exact intervals, and the mean; over ``order`` the sorted
    times with the share of runs that have passed by then. Runs end together, so that one that has
    not passed by the last time has a time above all others: quantiles are unbiased, and infinite
    where too few have passed.
    """
    shares, most = np.asarray(coords["share"], dtype=float), max(len(runs) for runs in cells)
    rows = [_level(runs, time, level, shares, most) for runs in cells for level in levels]
    known = {d: coords[d] for d in grid} | {"share": shares, "crossing": list(levels)}
    return assembled(rows, [*grid, "crossing"], known)


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


def _level(runs: Array, time: Array, level: float, shares: Array, most: int) -> Cell:
    """First passages of one cell below one level, padded to ``most`` runs."""
    many, at = len(runs), np.sort(first_below(time, runs, level))
    quantiles = [quantile(at, share) for share in shares]
    reached = int(np.isfinite(at).sum())
    passed = np.arange(1.0, many + 1)[:reached]
    low, high = share_interval(passed, many) if many else (passed, passed)
    curves = {"passed_at": at[:reached], "passed": passed / max(many, 1)}
    curves, rest = curves | {"passed_low": low, "passed_high": high}, (0, most - reached)
    mean, error = _mean(at)
    fields = {"": "value", "_low": "low", "_high": "high", "_se": "error"}
    return {
        "reached": reached,
        "never": many - reached,
        **{
            f"passage{end}": (("share",), np.array([float(getattr(q, one)) for q in quantiles]))
            for end, one in fields.items()
        },
        "passage_mean": mean,
        "passage_mean_se": error,
        **{k: (("order",), np.pad(v, rest, constant_values=np.nan)) for k, v in curves.items()},
    }


def _mean(at: Array) -> tuple[float, float]:
    """Mean of the times, infinite if a run never passes, and its standard error."""
    if not (at.size and np.isfinite(at).all()):
        return np.inf if at.size else np.nan, np.nan
    estimate = restricted_mean(EscapeTimes(at, np.isfinite(at)))
    return estimate.value, (estimate.high - estimate.value) / float(
        stats.norm.isf((1 - CONFIDENCE) / 2)
    )
