"""What methods without seeds say of an ensemble: curves, bounds and times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from hdica.analysis.ensemble.record import Ensemble
from hdica.analysis.reading import finished, group, over
from hdica.verdict.passage import first_below
from hdica.verdict.quantiles import share_interval

LONG_NAMES = {
    "predicted": "prediction of {v}",
    "moving": "1 where the prediction depends on time, 0 where it is one level",
    "ratio": "median of {v} at the last time over its prediction",
    "ratio_se": "standard error of the median at the last time over its prediction",
    "mean_ratio": "mean of {v} at the last time over its prediction",
    "mean_ratio_se": "standard error of the mean at the last time over its prediction",
    "predicted_passage": "time at which the prediction first goes below the value",
    "passed_by": "share of runs that are below the value by the predicted time",
    "passed_by_low": "lower end of the 95 % interval of the share by the predicted time",
    "passed_by_high": "upper end of the 95 % interval of the share by the predicted time",
    "bounded": "bound of {v}, or a term of one",
    "looseness": "bound at the last time over the median of {v}",
    "stage_time": "predicted time at which runs go below a value",
    "stage_passed_by": "share of runs that are below the value by the time of the stage",
    "stage_passed_by_low": "lower end of the 95 % interval of the share by the time of the stage",
    "stage_passed_by_high": "upper end of the 95 % interval of the share by the time of the stage",
    "stage_crossing": "the value below which runs go at the predicted time",
}


def predictions(
    tree: xr.DataTree, settings: Ensemble, n: int | None, kept: Sequence[int], runs: xr.Dataset
) -> xr.Dataset:
    """Predicted curves over ``limit``, and the ratios of the runs' median and mean to them.

    ``kept`` are the indices of the times that ``runs`` has.
    """
    parts, labels = [], []
    for method, output in settings.predictions():
        values = at_n(finished(group(tree, method), output), n)
        parts.append(_prediction(values, settings, kept, runs))
        labels.append(method if output == settings.variable else f"{method}, {output}")
    return over(parts, "limit", labels).reset_coords(drop=True) if parts else xr.Dataset()


def at_n(values: xr.DataArray, n: int | None) -> xr.DataArray:
    """A prediction at the n of the runs; at its largest if these have none."""
    if "n" not in values.dims:
        return values
    if n is None:
        return values.isel(n=-1, drop=True)
    return values.reindex(n=[n]).isel(n=0, drop=True)


def _prediction(
    values: xr.DataArray, settings: Ensemble, kept: Sequence[int], runs: xr.Dataset
) -> xr.Dataset:
    """One prediction with what is compared with it."""
    timed = "time" in values.dims
    end = values.isel(time=-1) if timed else values
    curve = values.isel(time=list(kept)) if timed else values.broadcast_like(runs["time"])
    # One level, which is where runs end, is below a value from the first time on.
    moving = timed and bool(((values != end) & values.notnull()).any())
    end = end.where(end != 0).reset_coords(drop=True)
    middle = runs["quantile"].sel(share=0.5, drop=True)
    out = {"predicted": curve, "moving": xr.DataArray(int(moving))}
    for name, value, error in (
        ("ratio", middle, runs["median_se"]),
        ("mean_ratio", runs["mean"], runs["mean_se"]),
    ):
        out[name] = value.isel(time=-1, drop=True) / end
        out[f"{name}_se"] = error.isel(time=-1, drop=True) / abs(end)
    if moving and settings.crossings:
        at = _passages(values, settings.crossings)
        out |= {"predicted_passage": at, **_passed_by(at, runs, "passed_by")}
    return xr.Dataset({name: one.reset_coords(drop=True) for name, one in out.items()})


def _passages(values: xr.DataArray, levels: Sequence[float]) -> xr.DataArray:
    """Times at which a predicted curve first goes below each level."""
    dims = [d for d in values.dims if d != "time"]
    curve = values.transpose(*dims, "time")
    time = curve["time"].values.astype(float)
    found = np.stack([first_below(time, curve.values, level) for level in levels], axis=-1)
    coords = {d: curve[d].values for d in dims} | {"crossing": list(levels)}
    return xr.DataArray(found, coords, (*dims, "crossing"))


def _passed_by(at: xr.DataArray, runs: xr.Dataset, name: str) -> dict[str, xr.DataArray]:
    """Share of runs that are below a value by predicted times, with its exact interval.

    One half by a predicted median, whatever the law of the times is.
    """
    count = runs["count"].where(runs["count"] > 0)
    hits = (runs["passed_at"] <= at).sum("order").where(at.notnull() & count.notnull())
    hits, many = xr.broadcast(hits, count)
    low, high = share_interval(hits.values, many.values)
    ends = {f"{name}_low": hits.copy(data=low), f"{name}_high": hits.copy(data=high)}
    return {name: hits / many, **ends}


def terms(
    tree: xr.DataTree, settings: Ensemble, n: int | None, kept: Sequence[int], runs: xr.Dataset
) -> xr.Dataset:
    """Bounds, or terms of one, over ``term``, raised to the power that the settings say.

    With their last values over the median's.
    """
    if settings.bound is None:
        return xr.Dataset()
    data = group(tree, settings.bound)
    parts = []
    for name in settings.terms:
        values = at_n(finished(data, name), n) ** settings.power
        if "time" in values.dims:
            values = values.isel(time=list(kept))
        curve = values.broadcast_like(runs["time"])
        parts.append(xr.Dataset({"bounded": curve.reset_coords(drop=True)}))
    out = over(parts, "term", settings.terms).reset_coords(drop=True)
    middle = runs["quantile"].sel(share=0.5, drop=True).isel(time=-1, drop=True)
    return out.assign(looseness=out["bounded"].isel(time=-1, drop=True) / middle)


def stages(tree: xr.DataTree, settings: Ensemble, n: int | None, runs: xr.Dataset) -> xr.Dataset:
    """Predicted times over ``stage``, each with the value whose passage it predicts."""
    if settings.times is None:
        return xr.Dataset()
    data = group(tree, settings.times)
    parts = [xr.Dataset({"stage_time": at_n(finished(data, one), n)}) for one in settings.stages]
    out = over(parts, "stage", settings.stages).reset_coords(drop=True)
    each = settings.crossings
    values = each if len(each) == len(settings.stages) else each * len(settings.stages)
    which = xr.DataArray(list(values), {"stage": list(settings.stages)}, "stage")
    own = runs[["passed_at", "count"]].sel(crossing=which)
    passed = _passed_by(out["stage_time"], own, "stage_passed_by")
    out = out.assign({name: one.reset_coords(drop=True) for name, one in passed.items()})
    return out.assign(stage_crossing=("stage", list(values)))
