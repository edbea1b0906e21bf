"""The whole ensemble of runs in time, beside theory."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.describe import Cell, assembled, described
from hdica.analysis.ensemble.passages import LONG_NAMES as OF_PASSAGES
from hdica.analysis.ensemble.passages import LONG_TIMES, passages
from hdica.analysis.ensemble.record import Ensemble
from hdica.analysis.ensemble.theory import LONG_NAMES as OF_THEORY
from hdica.analysis.ensemble.theory import predictions, stages, terms
from hdica.analysis.reading import at_top, finished, group, swept
from hdica.analysis.show.choose import spread
from hdica.status import DIVERGED
from hdica.verdict.quantiles import quantile

LONG_NAMES = {
    "quantile": "quantile of {v} over runs",
    "median_low": "lower end of the 95 % interval of the median of {v}",
    "median_high": "upper end of the 95 % interval of the median of {v}",
    "median_se": "standard error of the median of {v}",
    "mean": "mean of {v} over runs",
    "mean_se": "standard error of the mean of {v}",
    "count": "runs that are done",
    "diverged": "runs that diverged, which are not counted as runs",
    "run": "{v} of a single run",
    "level_at": "value of a horizontal line",
    **OF_PASSAGES,
    **OF_THEORY,
}

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
MOST_TIMES = 500
"""Times that are kept for figures; first passages are found with all of them."""

Array = NDArray[np.float64]


def ensemble(tree: xr.DataTree, settings: Ensemble) -> xr.Dataset:
    """Quantiles over runs at each time, single runs, first passages, and what theory says of them.

    Of the simulation at its largest n, if it has any, over the swept parameters: ``quantile`` over
    ``share`` and ``time``, the median's interval and error, the mean, single runs over ``seed``;
    with crossings what :func:`hdica.analysis.ensemble.passages.passages` gives. With theory, over
    ``limit``, its curves and the ratios of median and mean to them at the last time; with bounds
    ``term``, with predicted times ``stage``. At most 500 times are kept.
    """
    variable = settings.variable
    data = group(tree, settings.simulation)
    values, n = at_top(finished(data, variable))
    grid, time = swept(values), values["time"].values.astype(float)
    runs = values.transpose(*grid, "seed", "time").values
    rows = [runs[i][np.isfinite(runs[i]).all(axis=-1)] for i in np.ndindex(runs.shape[:-2])]
    kept = spread(time.size, MOST_TIMES)
    coords = {d: values[d].values for d in grid} | {"share": list(SHARES), "time": time[kept]}
    out = assembled([_moments(row[:, kept]) for row in rows], grid, coords)
    out["run"] = _single(values.isel(time=kept), settings.runs)
    out = out.assign(_lost(data, n))
    if settings.crossings:
        out = out.merge(passages(rows, time, settings.crossings, grid, coords))
    out = out.merge(predictions(tree, settings, n, kept, out))
    out = out.merge(terms(tree, settings, n, kept, out)).merge(stages(tree, settings, n, out))
    if settings.levels:
        lines = xr.Dataset({"level_at": ("level", list(settings.levels.values()))})
        out = out.merge(lines.assign_coords(level=list(settings.levels)))
    return _told(out.reset_coords(drop=True), settings, n, values["time"])


def _moments(runs: Array) -> Cell:
    """Quantiles and mean over runs, shape (runs, times), at each time."""
    ordered, many = np.sort(runs, axis=0), len(runs)
    nothing = np.full(runs.shape[1:], np.nan)
    found = [quantile(ordered, share) for share in SHARES]
    middle = found[SHARES.index(0.5)]
    spread_out = runs.std(axis=0, ddof=1) if many > 1 else nothing
    return {
        "quantile": (("share", "time"), np.stack([one.value for one in found])),
        "median_low": (("time",), middle.low),
        "median_high": (("time",), middle.high),
        "median_se": (("time",), middle.error),
        "mean": (("time",), runs.mean(axis=0) if many else nothing),
        "mean_se": (("time",), spread_out / np.sqrt(max(many, 1))),
        "count": ((), many),
    }


def _single(values: xr.DataArray, most: int) -> xr.DataArray:
    """The first runs; NaN where one is not done."""
    return values.isel(seed=slice(most)).reset_coords(drop=True)


def _lost(data: xr.Dataset, n: int | None) -> dict[str, xr.DataArray]:
    """Runs that diverged."""
    lost = (data["status"] == DIVERGED).sum("seed")
    return {"diverged": (lost if n is None else lost.sel(n=n)).reset_coords(drop=True)}


def _told(out: xr.Dataset, settings: Ensemble, n: int | None, time: xr.DataArray) -> xr.Dataset:
    """The dataset with its attributes, its times in the units of the system."""
    out["time"].attrs = dict(time.attrs)
    log = settings.log if isinstance(settings.log, str) else str(settings.log).lower()
    out.attrs = {"variable": settings.variable, "simulation": settings.simulation, "log": log}
    if settings.within:
        out.attrs["within"] = settings.within
    if n is not None:
        out.attrs["n"] = n
    units = dict.fromkeys(LONG_TIMES, str(time.attrs.get("units", "1")))
    return described(out, LONG_NAMES, settings.variable, units)
