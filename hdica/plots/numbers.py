"""What is asked of runs: means, distances to the limit, bands, and times of crossings."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import stats

from hdica.analysis.convergence.compute import against_limit, limits_of
from hdica.analysis.describe import assembled
from hdica.analysis.ensemble.passages import passages
from hdica.errors import HdicaError, suggestion
from hdica.plots.source import Source
from hdica.verdict.ladder import moments
from hdica.verdict.resample import quantile
from hdica.verdict.survival import first_below

Array = NDArray[np.float64]

SEEN = "_seen"
"""Ends the name of what says whether a time was waited for."""
KEPT = ("system", "parameters", "method")
OUTCOMES = frozenset({"status", "cpu_seconds"})
"""Variables over seeds that are not averaged."""
MIDDLE = 0.5


def mean(source: Source, variable: str | None = None) -> xr.Dataset:
    """Means over seeds, each with its standard error ``<name>_se`` and deviation ``<name>_sd``."""
    data = source.data
    chosen = _averaged(source) if variable is None else [source.variable(variable)]
    found: dict[str, Any] = {}
    for name in chosen:
        one = _moments(source, name)
        about = {k: v for k, v in data[name].attrs.items() if k == "units"}
        what = data[name].attrs.get("long_name", name)
        for end, part, words in (
            ("", "mean", "mean over seeds"),
            ("_se", "se", "standard error of the mean"),
            ("_sd", "sd", "standard deviation over seeds"),
        ):
            found[f"{name}{end}"] = one[part].assign_attrs(long_name=f"{what}: {words}", **about)
        found[f"{name}_runs"] = one["count"].assign_attrs(long_name=f"runs of {name} that are done")
    if not found:
        raise HdicaError(f"{source.method}: no variable has seeds (a simulation is needed)")
    return xr.Dataset(found, attrs=_kept(source))


def _averaged(source: Source) -> list[str]:
    """Numbers over seeds of which a mean says something."""
    data = source.data
    return [
        str(name)
        for name, values in data.data_vars.items()
        if "seed" in values.dims
        and values.dtype.kind in "fiu"
        and name not in OUTCOMES
        and not str(name).endswith(SEEN)
        and f"{name}{SEEN}" not in data
    ]


def _moments(source: Source, name: str) -> xr.Dataset:
    values = source.values(name)
    if "seed" not in values.dims:
        raise HdicaError(f"variable = {name!r} is not allowed (it has no seeds)")
    if f"{name}{SEEN}" in source.data:
        raise HdicaError(
            f"variable = {name!r} is not allowed (runs that ended before count as shorter in a "
            "mean; plot.escapes shows their survival)"
        )
    return moments(values)


def _kept(source: Source) -> dict[str, Any]:
    return {k: source.data.attrs[k] for k in KEPT if k in source.data.attrs}


def distance(source: Source, limit: Source, variable: str | None = None) -> xr.Dataset:
    """The mean over seeds minus the limit, with errors of both."""
    name = source.variable(variable)
    values = source.data.assign(values=_timed(source, name))["values"]
    limits = limits_of(limit.data, limit.variable(name))
    for dim in set(values.dims) & set(limits["limit"].dims):
        if not values.indexes[dim].isin(limits["limit"].indexes[dim]).all():
            raise HdicaError(f"limit: it is not there at every {dim} of the runs")
    size = "n" in values.coords
    if not values["n"].ndim if size else True:
        values = values.expand_dims(n=[values["n"].item() if size else np.nan])
    found = against_limit(values.reset_coords(drop=True), limits)
    if "n" not in source.data.dims:
        found = found.isel(n=0, drop=not size)
    error = np.sqrt(found["se"] ** 2 + limits["error"].fillna(0.0) ** 2)
    out = found.assign(difference_error=error, limit=limits["limit"])
    names = ("difference", "difference_error", "z", "sup_error", "sup_error_se", "sup_time")
    out = out[[*names, "mean", "se", "limit", "count"]].rename(count="runs")
    for key, text in _DISTANCE.items():
        out[key].attrs = {"long_name": text.format(v=name)}
    return out.assign_attrs(_kept(source), variable=name)


_DISTANCE = {
    "difference": "mean of {v} over seeds minus its limit",
    "difference_error": "standard error of the mean of {v} and the limit's own error together",
    "z": "difference over its error",
    "sup_error": "largest |mean of {v} - limit| over time",
    "sup_error_se": "standard error of the mean where the difference is largest",
    "sup_time": "time of the largest difference",
    "mean": "mean of {v} over seeds",
    "se": "standard error of the mean of {v}",
    "limit": "limit of {v}",
    "runs": "runs that are done",
}


def _timed(source: Source, name: str) -> xr.DataArray:
    """Runs in time."""
    values = source.values(name)
    for dim in ("seed", "time"):
        if dim not in values.dims:
            raise HdicaError(f"variable = {name!r} is not allowed (it has no {dim})")
    return values


def bands(
    source: Source, level: float = 0.9, of: str = "runs", variable: str | None = None
) -> xr.Dataset:
    """Where so many runs lie, or where their mean does."""
    name = source.variable(variable)
    if not (isinstance(level, int | float) and 0 < level < 1):
        raise HdicaError(f"level = {level!r} is not allowed (between 0 and 1)")
    if of not in ("runs", "mean"):
        raise HdicaError(f"of = {of!r} is not allowed ({suggestion(of, ('runs', 'mean'))})")
    values = source.values(name)
    if "seed" not in values.dims:
        raise HdicaError(f"variable = {name!r} is not allowed (it has no seeds)")
    found = _of_runs(values, level) if of == "runs" else _of_mean(values, level)
    about = (
        f"median and the central {level:g} of {name} over runs"
        if of == "runs"
        else f"mean of {name} with its {level:g} interval by Student's t"
    )
    return found.assign_attrs(_kept(source), variable=name, level=level, of=of, long_name=about)


def _of_mean(values: xr.DataArray, level: float) -> xr.Dataset:
    """Mean with its interval by Student's t; its ends are NaN for a single run."""
    found = moments(values)
    runs = found["count"]
    score = stats.t.isf((1 - level) / 2, np.maximum(runs.values - 1, 1))
    half = found["se"] * xr.DataArray(score, runs.coords, runs.dims)
    middle = found["mean"]
    return xr.Dataset({"middle": middle, "low": middle - half, "high": middle + half, "runs": runs})


def _of_runs(values: xr.DataArray, level: float) -> xr.Dataset:
    """Median and quantiles over the finished runs."""
    grid = [str(d) for d in values.dims if d not in ("seed", "time")]
    timed = [d for d in ("time",) if d in values.dims]
    runs = values.transpose(*grid, "seed", *timed).values
    shares = {"low": (1 - level) / 2, "middle": MIDDLE, "high": (1 + level) / 2}
    cells = []
    for i in np.ndindex(runs.shape[: len(grid)]):
        done = np.sort(_done(runs[i]), axis=0)
        ends = {k: (tuple(timed), quantile(done, share).value) for k, share in shares.items()}
        cells.append({**ends, "runs": ((), len(done))})
    return assembled(cells, grid, {d: values[d].values for d in (*grid, *timed)})


def _done(runs: Array) -> Array:
    """Finished runs of one cell, shape (runs, ...)."""
    return runs[np.isfinite(runs.reshape(len(runs), -1)).all(axis=1)]


def crossings(
    source: Source, variable: str | None, level: float, rising: bool | None = None
) -> xr.Dataset:
    """When each run, and their median and mean, first crosses a level."""
    name = source.variable(variable)
    values = source.values(name)
    if "time" not in values.dims:
        raise HdicaError(f"variable = {name!r} is not allowed (it has no time)")
    level = float(level)
    if rising is None:
        rising = _starts_below(values, level)
    sign = -1.0 if rising else 1.0
    time = values["time"].values.astype(float)
    at = xr.apply_ufunc(
        lambda y: first_below(time, sign * y, sign * level), values, input_core_dims=[["time"]]
    )
    units = {"units": str(values["time"].attrs.get("units", "1"))}
    did = "rises to" if rising else "falls to"
    text = f"time at which {name} first {did} {level:g}, infinite if it never does"
    out = xr.Dataset({"passage": at.assign_attrs(long_name=text, **units)})
    if "seed" in values.dims:
        out = out.merge(_over_seeds(sign * values, time, sign * level, units))
    about = {"variable": name, "level": level, "rising": int(rising)}
    return out.assign_attrs(_kept(source), **about)


def _starts_below(values: xr.DataArray, level: float) -> bool:
    """Whether most curves begin below a level."""
    first = values.isel(time=0).values
    known = first[np.isfinite(first)]
    return bool(known.size and np.median(known) < level)


_PASSAGES = {
    "passage": ("median", "median over runs, infinite where fewer than half cross"),
    "passage_low": ("median_low", "lower end of the 95 % interval of the median"),
    "passage_high": ("median_high", "upper end of the 95 % interval of the median"),
    "passage_se": ("median_se", "standard error of the median"),
    "passage_mean": ("mean", "mean over runs, infinite if one never crosses"),
    "passage_mean_se": ("mean_se", "standard error of the mean"),
    "reached": ("reached", "runs that cross"),
    "never": ("never", "runs that have not crossed by the last time"),
}


def _over_seeds(
    values: xr.DataArray, time: Array, level: float, units: dict[str, str]
) -> xr.Dataset:
    """Median and mean of the times, runs that never cross included."""
    grid = [str(d) for d in values.dims if d not in ("seed", "time")]
    runs = values.transpose(*grid, "seed", "time").values
    cells = [_done(runs[i]) for i in np.ndindex(runs.shape[: len(grid)])]
    coords: dict[str, Any] = {d: values[d].values for d in grid} | {"share": [MIDDLE]}
    found = passages(cells, time, [level], grid, coords)[list(_PASSAGES)]
    found = found.isel(crossing=0, share=0, drop=True)
    out = found.rename({own: name for own, (name, _) in _PASSAGES.items()})
    for name, text in _PASSAGES.values():
        timed = {} if name in ("reached", "never") else units
        out[name].attrs = {"long_name": text, **timed}
    return out
