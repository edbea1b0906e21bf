"""Escape times: estimates with runs that ended too early, against theory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from hdica.analysis import reading
from hdica.analysis.escape import LAWS, MEANS, Escape
from hdica.analysis.settings import Suiting
from hdica.errors import HdicaError
from hdica.show.choose import dims_of, positions
from hdica.show.marks import positive
from hdica.show.terms import entries, matrix_over
from hdica.show.words import SQUARED_STEPS, STEPS, Text
from hdica.status import DIVERGED
from hdica.verdict.cells import Array
from hdica.verdict.survival import (
    EscapeTimes,
    Estimate,
    exponential_mean,
    exponential_p,
    hazard_of,
    judge_escapes,
    restricted_mean,
    survival_curve,
)

LONG_NAMES = {
    "runs": "runs that are done",
    "escapes": "runs that escaped",
    "diverged": "runs that diverged, which are not counted as runs",
    "exposure": "time for which all runs together were observed",
    "mean": "mean escape time: exposure over escapes for the first, of all runs for the last",
    **reading.interval_names("mean", "the mean escape time"),
    "restricted": "mean of the smaller of the escape time and the longest run",
    **reading.interval_names("restricted", "the restricted mean"),
    "longest": "time of the longest run",
    "median": "median escape time (Kaplan-Meier)",
    **reading.interval_names("median", "the median"),
    "exponential_p": "p-value of escapes having a constant rate",
    "survival": "share of runs that have not escaped (Kaplan-Meier)",
    **reading.interval_names("survival", "the share that has not escaped"),
    "theory": "mean escape time in theory",
    "theory_survival": "probability of no escape in theory",
    "at_n": "1 where the theory is for the same n, 0 where it is for n = infinity",
    "kramers": "Kramers' formula for the pair that escapes first",
    "printed": "Kramers' formula with the exponent as printed, for the pair that escapes first",
    "expected": "escapes expected by theory while the runs were observed",
    "p_value": "p-value of the runs following the theory",
    "verdict": "agrees, differs or undecided",
    "why": "reason of the verdict",
    "seeds_needed": "runs that would decide an open comparison",
    "seeds_needed_error": "standard error of the runs that would decide",
}

LONG_TIMES = (
    *("exposure", "longest", "theory", "kramers", "printed"),
    *(f"{k}{end}" for k in ("mean", "restricted", "median") for end in ("", "_low", "_high")),
)

USUAL = "n^3 steps"
UNITS = {USUAL: (3, STEPS), "n^2 steps": (2, SQUARED_STEPS)}
"""Powers of n in the units of escape times, n^2 steps where a trap is left sooner, and texts."""

ABOUT = (0.05, 4.0)
"""Range of times around a mean in which survival falls from 1 to 0."""
TIMES = 81
"""Times at which survival curves are kept, evenly on a logarithmic axis."""

COUNTS = ("runs", "escapes", "diverged")


def escape(tree: xr.DataTree, settings: Escape) -> xr.Dataset:
    """Escape times of simulations and of theory, in their unit, and whether they agree.

    Over ``simulation``, the swept parameters and ``n``: counts, mean, restricted mean, median and,
    over ``elapsed``, survival with its interval; over ``limit``: ``theory`` and its survival, and
    with ``simulation`` too the test of :func:`hdica.verdict.survival.judge_escapes`; ``kramers``
    and ``printed`` over swept parameters. What the runs do not bound is infinite. The mean of the
    first escape supposes a constant rate, which ``exponential_p`` tests; that of the last needs
    every run to escape.
    """
    x, event, level = settings.x, settings.event, settings.level
    runs, limits = (reading.groups(tree, some) for some in (settings.simulation, settings.limits))
    every = [*runs.values(), *limits.values()]
    for data in every[: max(len(runs), 1)]:
        reading.check_numbers(data, x, "analysis.escape.x")
    units = sorted({unit_of(data) for data in every})
    if len(units) > 1:
        raise HdicaError(
            f"simulation, limits: times in {' and in '.join(units)} are not allowed in one "
            "analysis (methods of one unit)"
        )
    ends = [reading.finished(data, event) for data in runs.values()]
    means = [
        reading.finished(data, MEANS[event]) * width for data in limits.values() for width in ABOUT
    ]
    low, high = positive(times.values.ravel() for times in ends or means) or (0.2, 10.0)
    at = np.geomspace(low / 2, max(high, low * 10), TIMES)
    parts = [_theory(limits, event, at)] if limits else []
    tests = 0
    if runs:
        simulated = {name: _simulated(data, event, at) for name, data in runs.items()}
        parts.append(reading.over(simulated, "simulation"))
    if runs and limits:
        tested = {
            name: {limit: paired(data, theory, event) for limit, theory in limits.items()}
            for name, data in runs.items()
        }
        cells_of_all = (cells for row in tested.values() for cells in row.values())
        tests = sum(None not in pair for cells in cells_of_all for pair in cells)
        each = level / max(tests, 1)
        judgements = {}
        for name, row in tested.items():
            judged = {
                limit: gridded(runs[name], [vars(judge_escapes(*one, each)) for one in cells])
                for limit, cells in row.items()
            }
            judgements[name] = reading.over(judged, "limit")
        parts.append(reading.over(judgements, "simulation"))
    out = xr.merge(parts, join="outer")
    for name in COUNTS if runs else ():
        out[name] = out[name].fillna(0).astype(int)
    out.attrs = {"x": x, "event": event, "level": level, "tests": tests}
    if units[0] != USUAL:
        out.attrs["unit"] = units[0]
    return reading.described(out, LONG_NAMES, units=dict.fromkeys(LONG_TIMES, units[0]))


def _simulated(data: xr.Dataset, event: str, at: Array) -> xr.Dataset:
    constant = event == "first"
    cells = [{**_estimates(runs, constant), **_curve(runs, at)} for runs in _cells(data, event)]
    diverged = (data["status"] == DIVERGED).sum("seed")
    return gridded(data, cells, elapsed=at).assign(diverged=diverged)


def gridded(data: xr.Dataset, cells: Sequence[reading.Cell], **coords: Array) -> xr.Dataset:
    """Results of all cells of a method over its grid and n."""
    grid = [*reading.grid_of(data), "n"]
    return reading.assembled(cells, grid, {d: data[d].values for d in grid} | coords)


def _cells(data: xr.Dataset, event: str) -> list[EscapeTimes | None]:
    """Runs of every cell, the last dimension fastest; None where none is done."""
    order = (*reading.grid_of(data), "n", "seed")
    times, seen = (reading.finished(data, k).transpose(*order) for k in (event, f"{event}_seen"))
    step = (positions(data, "n") ** -float(UNITS[unit_of(data)][0]))[:, None]
    ends = np.maximum(times.values, step)  # a run that begins beyond the threshold takes one step
    done = np.isfinite(ends) & np.isfinite(seen.values)
    return [
        EscapeTimes(ends[i][done[i]], seen.values[i][done[i]] > 0.5) if done[i].any() else None
        for i in np.ndindex(done.shape[:-1])
    ]


def _estimates(runs: EscapeTimes | None, constant: bool) -> reading.Cell:
    """Numbers of one cell: the mean by a constant rate, or of all runs if each escaped.

    The last of several escapes has no constant rate, so that runs that end before it bound its
    mean from below only.
    """
    if runs is None:
        values = {"runs": 0, "escapes": 0, "exposure": 0.0}
        values |= dict.fromkeys(("longest", "exponential_p"), np.nan)
        nothing = Estimate(np.nan, np.nan, np.nan)
        estimates = dict.fromkeys(("mean", "restricted", "median"), nothing)
    else:
        values = {"runs": runs.times.size, "escapes": runs.events, "exposure": runs.exposure}
        values |= {"longest": float(runs.times.max()), "exponential_p": exponential_p(runs)}
        mean = exponential_mean(runs) if constant else restricted_mean(runs)
        if not constant and runs.events < runs.times.size:
            mean = Estimate(np.inf, mean.low, np.inf)
        estimates = {"mean": mean, "restricted": restricted_mean(runs), "median": _median(runs)}
    for name, one in estimates.items():
        values |= {name: one.value, f"{name}_low": one.low, f"{name}_high": one.high}
    return values


def _median(runs: EscapeTimes) -> Estimate:
    """Median, with the times at which the ends of the survival's interval pass one half."""
    curve = survival_curve(runs)
    ends = [curve.times[band <= 0.5] for band in (curve.low, curve.high)]  # NaN passes nothing
    low, high = (float(t[0]) if t.size else np.inf for t in ends)
    return Estimate(curve.median, min(low, curve.median), max(high, curve.median))


def _curve(runs: EscapeTimes | None, at: Array) -> reading.Cell:
    """Kaplan and Meier's curve at common times; NaN after the last run."""
    if runs is None:
        empty = np.full_like(at, np.nan)
        return {f"survival{end}": (("elapsed",), empty) for end in ("", "_low", "_high")}
    curve = survival_curve(runs)
    before = np.searchsorted(curve.times, at, side="right")
    bands = {"": curve.survival, "_low": curve.low, "_high": curve.high}
    known = (at <= runs.times.max()) | (curve.survival[-1] == 0)
    out: dict[str, tuple[tuple[str, ...], Any]] = {}
    for end, band in bands.items():
        band = np.where(np.isfinite(band), band, curve.survival)  # no interval at 0 and at 1
        steps = np.concatenate([[1.0], band])[before]
        out[f"survival{end}"] = (("elapsed",), np.where(known, steps, np.nan))
    return out


def _theory(limits: Mapping[str, xr.Dataset], event: str, at: Array) -> xr.Dataset:
    """Means and survival of every theory, and Kramers' formula of the first that has it."""
    parts = {}
    for limit, data in limits.items():
        mean = reading.finished(data, MEANS[event])
        parts[limit] = xr.Dataset({"theory": mean, "at_n": int("n" in data.dims)})
        if _law(data, event):
            parts[limit]["theory_survival"] = _survival(hazards(data, event), at)
    out = reading.over(parts, "limit")
    for name in ("kramers", "printed") if event == "first" else ():
        having = [data for data in limits.values() if name in data]
        for data in sorted(having, key=lambda d: "n" in d.dims)[:1]:
            pairs = [d for d in data[name].dims if d in entries()]
            out[name] = reading.finished(data, name).min(pairs)
    return out


def _law(data: xr.Dataset, event: str) -> str:
    """The output with a theory's survival of an event, empty if it has none."""
    if LAWS[event] in data:
        return LAWS[event]
    overlap = matrix_over(data.dims)
    alone = overlap is not None and data.sizes[overlap.dims[0]] == 1
    return LAWS["first"] if alone and LAWS["first"] in data else ""


def hazards(data: xr.Dataset, event: str) -> xr.DataArray:
    """Hazards of a theory in every cell; None where it has none."""
    mean, law = reading.finished(data, MEANS[event]), _law(data, event)
    if not law:
        return xr.full_like(mean, None, dtype=object)
    age = positions(data, "age")
    survival = reading.finished(data, law)
    return xr.apply_ufunc(
        lambda mean, survival: hazard_of(age, survival, float(mean)), mean, survival,
        input_core_dims=[[], ["age"]], vectorize=True, output_dtypes=[object],
    )  # fmt: skip


def _survival(laws: xr.DataArray, at: Array) -> xr.DataArray:
    rows = [np.full_like(at, np.nan) if h is None else np.exp(-h(at)) for h in laws.values.flat]
    values = np.reshape(rows, (*laws.shape, at.size))
    return xr.DataArray(values, {**laws.coords, "elapsed": at}, (*laws.dims, "elapsed"))


def paired(data: xr.Dataset, theory: xr.Dataset, event: str) -> list[tuple[Any, Any]]:
    """Runs and hazard of every cell of a simulation, None where there are none."""
    cells = data["status"].isel(seed=0, drop=True).transpose(*reading.grid_of(data), "n")
    theory = theory.reindex(n=cells["n"]) if "n" in theory.dims else theory
    laws = hazards(theory, event).broadcast_like(cells).transpose(*cells.dims)
    return list(zip(_cells(data, event), laws.values.flat, strict=True))


def unit_of(data: xr.Dataset) -> str:
    """The unit of the times of a method."""
    known = (data[name].attrs.get("units") for name in ("first", "mean") if name in data)
    return next((unit for unit in known if unit in UNITS), USUAL)


def suits(tree: xr.DataTree) -> Suiting:
    """Times of the first escape, measured and predicted, over the first swept parameter."""
    runs, theory = reading.keeping(tree, "first")[0], reading.keeping(tree, "mean")[1]
    units = {m: unit_of(reading.group(tree, m)) for m in (*runs, *theory)}
    unit = next(iter(units.values()), "")
    runs, theory = ([m for m in some if units[m] == unit] for some in (runs, theory))
    swept = [reading.numeric(tree, name) for name in (*runs, *theory)]
    if not swept or not all(swept):
        return None
    return {"x": swept[0][0], "simulation": runs, "limits": theory}


def steps(data: xr.Dataset) -> Text:
    """How the unit of an analysis is written."""
    return UNITS[str(data.attrs.get("unit", USUAL))][1]


def others(data: xr.Dataset) -> list[str]:
    """Swept parameters beside x."""
    own = {"limit", "simulation", "elapsed", "n", data.attrs["x"]}
    return dims_of(data, *own)


def sizes(data: xr.Dataset) -> list[int]:
    """Dimensions n of the runs, or of theory where there are none."""
    if "n" not in data.dims:
        return []
    if "runs" not in data:
        return [int(n) for n in data["n"].values]
    some = (data["runs"] > 0).any([d for d in data["runs"].dims if d != "n"])
    return [int(n) for n in data["n"].values[some.values]]


def theories(data: xr.Dataset) -> list[tuple[str, bool]]:
    """Names of the theories, and whether they are for one n."""
    if "theory" not in data:
        return []
    return [(str(m), bool(data["at_n"].sel(limit=m) > 0)) for m in data["limit"].values]


def methods(data: xr.Dataset) -> list[str]:
    """Names of the simulations."""
    return [str(m) for m in data["simulation"].values] if "runs" in data else []
