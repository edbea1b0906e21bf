"""The whole ensemble of runs in time, beside theory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from hdica.analysis import reading
from hdica.analysis.ensemble import Ensemble
from hdica.show import words
from hdica.show.choose import Point, cells_of, dims_of, numbers, positions, selected, spread
from hdica.show.finding import Finding
from hdica.status import DIVERGED
from hdica.verdict.cells import CONFIDENCE, CONTROL, UNDECIDED, Array, judged
from hdica.verdict.resample import quantile, share_interval
from hdica.verdict.survival import EscapeTimes, first_below, restricted_mean

LONG_NAMES = {
    "quantile": "quantile of {v} over runs",
    **reading.interval_names("median", "the median of {v}"),
    "median_se": "standard error of the median of {v}",
    "mean": "mean of {v} over runs",
    "mean_se": "standard error of the mean of {v}",
    "count": "runs that are done",
    "diverged": "runs that diverged, which are not counted as runs",
    "run": "{v} of a single run",
    "level_at": "value of a horizontal line",
    "reached": "runs that go below the value",
    "never": "runs that have not gone below the value by the last time",
    "passage": "quantile of the time at which runs first go below the value",
    **reading.interval_names("passage", "the quantile of the time"),
    "passage_se": "standard error of the quantile of the time",
    "passage_mean": "mean time at which runs first go below the value, infinite if one never does",
    "passage_mean_se": "standard error of the mean time",
    "passed_at": "times at which runs first go below the value, in increasing order",
    "passed": "share of runs that have gone below the value",
    **reading.interval_names("passed", "the share that has gone below the value"),
    "predicted": "prediction of {v}",
    "moving": "1 where the prediction depends on time, 0 where it is one level",
    "ratio": "median of {v} at the last time over its prediction",
    "ratio_se": "standard error of the median at the last time over its prediction",
    "predicted_passage": "time at which the prediction first goes below the value",
    "passed_by": "share of runs that are below the value by the predicted time",
    **reading.interval_names("passed_by", "the share by the predicted time"),
    "bounded": "bound of {v}, or a term of one",
    "looseness": "bound at the last time over the median of {v}",
    "stage_time": "predicted time at which runs go below a value",
    "stage_passed_by": "share of runs that are below the value by the time of the stage",
    **reading.interval_names("stage_passed_by", "the share by the time of the stage"),
    "stage_crossing": "the value below which runs go at the predicted time",
}

LONG_TIMES = (
    *("passage", "passage_low", "passage_high", "passage_se", "passage_mean", "passage_mean_se"),
    *("passed_at", "predicted_passage", "stage_time"),
)
"""Those that are times, here and in theory."""

SHARES = (0.05, 0.25, 0.5, 0.75, 0.95)
MOST_TIMES = 500
"""Times that are kept for figures; first passages are found with all of them."""


def ensemble(tree: xr.DataTree, settings: Ensemble) -> xr.Dataset:
    """Quantiles over runs at each time, single runs, first passages, and what theory says of them.

    Of the simulation at its largest n, if it has any, over the swept parameters: ``quantile`` over
    ``share`` and ``time``, the median's interval and error, the mean, single runs over ``seed``;
    with crossings what :func:`passages` gives. With theory, over
    ``limit``, its curves and the ratio of the median to them at the last time; with bounds
    ``term``, with predicted times ``stage``. At most 500 times are kept.
    """
    variable = settings.variable
    data = reading.group(tree, settings.simulation)
    values, n = reading.at_top(reading.finished(data, variable))
    grid, time = reading.swept(values), positions(values, "time")
    rows = finished_runs(values)
    kept = spread(time.size, MOST_TIMES)
    coords: dict[str, reading.Values] = {d: values[d].values for d in grid}
    coords |= {"share": list(SHARES), "time": time[kept]}
    out = reading.assembled([_moments(row[:, kept]) for row in rows], grid, coords)
    out["run"] = values.isel(time=kept, seed=slice(settings.runs))
    lost = (data["status"] == DIVERGED).sum("seed")
    out["diverged"] = lost if n is None else lost.sel(n=n, drop=True)
    if settings.crossings:
        out = out.merge(passages(rows, time, settings.crossings, grid, coords))
    out = out.merge(_predictions(tree, settings, n, kept, out))
    out = out.merge(_terms(tree, settings, n, kept, out)).merge(_stages(tree, settings, n, out))
    if settings.levels:
        lines = xr.Dataset({"level_at": ("level", list(settings.levels.values()))})
        out = out.merge(lines.assign_coords(level=list(settings.levels)))
    out["time"].attrs = dict(values["time"].attrs)
    log = settings.log if isinstance(settings.log, str) else str(settings.log).lower()
    out.attrs = {"variable": variable, "simulation": settings.simulation, "log": log}
    if settings.within:
        out.attrs["within"] = settings.within
    if n is not None:
        out.attrs["n"] = n
    units = dict.fromkeys(LONG_TIMES, str(values["time"].attrs.get("units", "1")))
    return reading.described(out, LONG_NAMES, variable, units)


def _moments(runs: Array) -> reading.Cell:
    """Quantiles and mean over runs, shape (runs, times), at each time."""
    ordered, many = np.sort(runs, axis=0), len(runs)
    nothing = np.full(runs.shape[1:], np.nan)
    quantiles = [quantile(ordered, share) for share in SHARES]
    middle = quantiles[SHARES.index(0.5)]
    spread_out = runs.std(axis=0, ddof=1) if many > 1 else nothing
    return {
        "quantile": (("share", "time"), np.stack([one.value for one in quantiles])),
        "median_low": (("time",), middle.low),
        "median_high": (("time",), middle.high),
        "median_se": (("time",), middle.error),
        "mean": (("time",), runs.mean(axis=0) if many else nothing),
        "mean_se": (("time",), spread_out / np.sqrt(max(many, 1))),
        "count": many,
    }


def finished_runs(values: xr.DataArray) -> list[Array]:
    """Finished runs of every cell, each of shape (runs,) or (runs, times)."""
    grid = dims_of(values, "seed", "time")
    runs = values.transpose(*grid, "seed", ...).values
    cells = [runs[i] for i in np.ndindex(runs.shape[: len(grid)])]
    return [cell[np.isfinite(cell.reshape(len(cell), -1)).all(axis=1)] for cell in cells]


def passages(
    cells: Sequence[Array],
    time: Array,
    levels: Sequence[float],
    grid: Sequence[str],
    coords: Mapping[str, reading.Values],
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
    return reading.assembled(rows, [*grid, "crossing"], known)


def _level(runs: Array, time: Array, level: float, shares: Array, most: int) -> reading.Cell:
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


def _predictions(
    tree: xr.DataTree, settings: Ensemble, n: int | None, kept: Sequence[int], runs: xr.Dataset
) -> xr.Dataset:
    """Predicted curves at the times ``kept``, and the ratio of the runs' median to them."""
    parts = {}
    for method, output in settings.predictions():
        label = method if output == settings.variable else f"{method}, {output}"
        values = _output(tree, method, output, n)
        parts[label] = _prediction(values, settings, kept, runs)
    return reading.over(parts, "limit") if parts else xr.Dataset()


def _output(tree: xr.DataTree, method: str, output: str, n: int | None) -> xr.DataArray:
    """An output of theory at the n of the runs; at its largest if these have none."""
    values = reading.finished(reading.group(tree, method), output)
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
    end = values.isel(time=-1, drop=True) if timed else values
    curve = values.isel(time=list(kept)) if timed else values.broadcast_like(runs["time"])
    # One level, which is where runs end, is below a value from the first time on.
    moving = timed and bool(((values != end) & values.notnull()).any())
    end = end.where(end != 0)
    last = runs.isel(time=-1, drop=True)
    out = {"predicted": curve, "moving": xr.DataArray(int(moving))}
    out["ratio"] = last["quantile"].sel(share=0.5, drop=True) / end
    out["ratio_se"] = last["median_se"] / abs(end)
    if moving and settings.crossings:
        at = _passages(values, settings.crossings)
        out |= {"predicted_passage": at, **_passed_by(at, runs, "passed_by")}
    return xr.Dataset(out)


def _passages(values: xr.DataArray, levels: Sequence[float]) -> xr.DataArray:
    """Times at which a predicted curve first goes below each level."""
    time = positions(values, "time")

    def times(curves: Array) -> Array:
        return np.stack([first_below(time, curves, level) for level in levels], axis=-1)

    own: dict[str, Any] = {"input_core_dims": [["time"]], "output_core_dims": [["crossing"]]}
    return xr.apply_ufunc(times, values, **own).assign_coords(crossing=list(levels))


def _passed_by(at: xr.DataArray, runs: xr.Dataset, name: str) -> dict[str, xr.DataArray]:
    """Share of runs that are below a value by predicted times, with its exact interval."""
    count = runs["count"].where(runs["count"] > 0)
    hits = (runs["passed_at"] <= at).sum("order").where(at.notnull() & count.notnull())
    hits, many = xr.broadcast(hits, count)
    low, high = share_interval(hits.values, many.values)
    ends = {f"{name}_low": hits.copy(data=low), f"{name}_high": hits.copy(data=high)}
    return {name: hits / many, **ends}


def _terms(
    tree: xr.DataTree, settings: Ensemble, n: int | None, kept: Sequence[int], runs: xr.Dataset
) -> xr.Dataset:
    """Bounds, or terms of one, over ``term``, and their last values over the median's."""
    if settings.bound is None:
        return xr.Dataset()
    parts = {}
    for name in settings.terms:
        values = _output(tree, settings.bound, name, n) ** settings.power
        curve = values.isel(time=list(kept), missing_dims="ignore").broadcast_like(runs["time"])
        parts[name] = xr.Dataset({"bounded": curve})
    out = reading.over(parts, "term")
    middle = runs["quantile"].sel(share=0.5, drop=True).isel(time=-1, drop=True)
    return out.assign(looseness=out["bounded"].isel(time=-1, drop=True) / middle)


def _stages(tree: xr.DataTree, settings: Ensemble, n: int | None, runs: xr.Dataset) -> xr.Dataset:
    """Predicted times over ``stage``, each with the value whose passage it predicts."""
    if settings.times is None:
        return xr.Dataset()
    parts = {  # several may have one output
        str(k): xr.Dataset({"stage_time": _output(tree, settings.times, name, n)})
        for k, name in enumerate(settings.stages)
    }
    out = reading.over(parts, "stage").assign_coords(stage=list(settings.stages))
    values = xr.DataArray(list(settings.crossings), {"stage": list(settings.stages)}, "stage")
    own = runs[["passed_at", "count"]].sel(crossing=values).drop_vars("crossing")
    passed = _passed_by(out["stage_time"], own, "stage_passed_by")
    return out.assign({**passed, "stage_crossing": values})


def theory_name(name: object) -> words.Text:
    """A prediction as its system calls it: a method, or the output that is taken of one."""
    return words.method_name(str(name).rpartition(", ")[2])


def crossed(data: xr.Dataset, level: float) -> words.Text:
    """What a run has done that is below a value: "tan² ≤ 0.333"."""
    return words.symbol(data.attrs["variable"]) + f" ≤ {words.simple(level)}"


def findings(data: xr.Dataset) -> list[Finding]:
    """When the median run gets there and where it ends, with what theory has for both."""
    cells = [p for p in cells_of(data["count"]) if int(data["count"].sel(p)) > 0]
    bounds = _bounds(data, cells)
    compared = [*_arrivals(data, cells), *_ends(data, cells)]
    several = data.sizes.get("term", 0) > 1 and "passage" not in data
    return [
        *([*bounds, *compared] if several else [*compared, *bounds]),
        *_other_theories(data, cells),
        *_stragglers(data, cells),
    ]


def _place(data: xr.Dataset, cell: Point, at_end: bool = True) -> Point:
    n = {"n": int(data.attrs["n"])} if "n" in data.attrs else {}
    return {**cell, **n, **({"t": float(data["time"][-1])} if at_end else {})}


def _median(data: xr.Dataset) -> words.Text:
    return "the median of " + words.symbol(data.attrs["variable"])


def _judged(data: xr.Dataset, unjudged: Sequence[Finding]) -> list[Finding]:
    """Findings with verdicts on measured over predicted, which may miss 1 by what a study allows.

    The control misses it by twice as much, or by a tenth where nothing is allowed.
    """
    value, error, predicted = (
        np.array([getattr(one, name) for one in unjudged])
        for name in ("value", "error", "predicted")
    )
    usable = np.where(predicted != 0, predicted, np.nan)
    allowed = float(data.attrs.get("within", 0.0))
    runs = np.array([float(selected(data["count"], dict(one.place))) for one in unjudged])
    margin = 2 * allowed or CONTROL
    off, noise = value / usable - 1, error / abs(usable)
    each = judged(off, noise, margin, np.maximum(runs - 1, 1.0), allowed)
    control = f"control: a prediction wrong by {words.number(100 * margin)} %"
    if allowed:
        control += f"; up to {words.number(100 * allowed)} % off counts as agreement"
    evidence = np.where(np.isfinite(noise), control, "too few runs for an error")
    return [
        replace(one, verdict=str(verdict), evidence=str(why) if verdict else "", seeds=float(more))
        for one, verdict, why, more in zip(
            unjudged, each.verdict, evidence, each.seeds * runs, strict=True
        )
    ]


def _arrivals(data: xr.Dataset, cells: Sequence[Point]) -> list[Finding]:
    """When the median run goes below each value, against the predicted time."""
    if "passage" not in data:
        return []
    known = str(data["time"].attrs.get("units", ""))
    unit = words.EMPTY if known.startswith(words.SCALED) else words.words(known)
    out = []
    for level in map(float, data["crossing"].values):
        here = data.sel(crossing=level)
        middle, error = (here[name].sel(share=0.5) for name in ("passage", "passage_se"))
        name = "the time after which the median run reaches " + crossed(data, level)
        for cell in cells:
            value, se = (float(selected(one, cell)) for one in (middle, error))
            if np.isfinite(value):
                at, theory = _place(data, cell, False), _predicted_time(data, level, cell)
                out.append(Finding(name, at, value, se, predicted=theory, unit=unit))
    return _judged(data, out)


def _predicted_time(data: xr.Dataset, level: float, cell: Point) -> float:
    """Of the stage that ends at a value, or of the first prediction that moves."""
    if "stage_time" in data:
        own = int(np.flatnonzero(data["stage_crossing"].values == level)[0])
        return float(selected(data["stage_time"].isel(stage=own), cell))
    if "predicted_passage" in data:
        moving = int(np.flatnonzero(data["moving"].values > 0)[0])
        at = data["predicted_passage"].sel(crossing=level).isel(limit=moving)
        return float(selected(at, cell))
    return float("nan")


def _ends(data: xr.Dataset, cells: Sequence[Point]) -> list[Finding]:
    """The median at the last time, against the first prediction of it that there is."""
    last = data.isel(time=-1)
    middle = last["quantile"].sel(share=0.5)
    known = _predicting(data)
    predicted = last["predicted"].isel(limit=known[0]) if known else xr.full_like(middle, np.nan)
    ends, name = [], _median(data)
    for cell in cells:
        columns = (middle, last["median_se"], predicted)
        value, error, theory = (float(selected(one, cell)) for one in columns)
        place = _place(data, cell)
        ends.append(Finding(name, place, value, error, predicted=theory))
    return _judged(data, ends)


def _predicting(data: xr.Dataset) -> list[int]:
    """Which predictions have a value at the last time."""
    if "ratio" not in data:
        return []
    return [k for k in range(data.sizes["limit"]) if data["ratio"].isel(limit=k).notnull().any()]


def _other_theories(data: xr.Dataset, cells: Sequence[Point]) -> list[Finding]:
    """The median at the last time over further predictions."""
    out = []
    for k in _predicting(data)[1:]:
        here = data.isel(limit=k)
        name = "the ratio of " + _median(data) + " to the prediction ("
        name += theory_name(here["limit"].item()) + ")"
        for cell in cells:
            value, error = numbers(here, cell, "ratio", "ratio_se")
            out.append(Finding(name, _place(data, cell), value, error))
    return out


def _bounds(data: xr.Dataset, cells: Sequence[Point]) -> list[Finding]:
    """How far each bound is above the median at the last time."""
    out = []
    for term in data["term"].values if "looseness" in data else ():
        lead = "the ratio of the bound (" + words.symbol(str(term))
        name, values = lead + ") to " + _median(data), data["looseness"].sel(term=term)
        out += [
            Finding(name, _place(data, cell), float(selected(values, cell)), digits=3)
            for cell in cells
        ]
    return out


def _stragglers(data: xr.Dataset, cells: Sequence[Point]) -> list[Finding]:
    """The share of runs that get there at all; where it is too few, a predicted time is open."""
    if "passage" not in data:
        return []
    end, out = float(data["time"][-1]), []
    for level in map(float, data["crossing"].values):
        name = "the share of runs that reach " + crossed(data, level)
        for cell in cells:
            here = data.sel({**cell, "crossing": level})
            if not int(here["never"]):
                continue
            low, high = share_interval(*(here[k].values for k in ("reached", "count")))
            share = float(here["reached"] / here["count"])
            at = _predicted_time(data, level, cell)
            late = at <= end and not np.isfinite(here["passage"].sel(share=0.5))
            half = f"by theory half of them do after {words.measurement(at, 0.0)}"
            open_: dict[str, Any] = {"verdict": UNDECIDED, "evidence": half} if late else {}
            place = _place(data, cell)
            out.append(Finding(name, place, share, low=float(low), high=float(high), **open_))
    return out
