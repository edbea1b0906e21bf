"""When runs first go below values: shares, quantiles and means over seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr
from scipy import stats

from hdica.analysis.reading import Cell, Values, assembled, interval_names
from hdica.verdict.cells import CONFIDENCE, Array
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
