"""Steady states over one parameter: theory's branches and where simulations end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from hdica.analysis import reading
from hdica.analysis.settings import Suiting
from hdica.analysis.steady import Steady
from hdica.analysis.steady.branches import Array, Branches, Pairs, distinct
from hdica.errors import HdicaError
from hdica.show.choose import Point, at_largest_n, cells_of, dims_of, positions
from hdica.show.finding import Finding, named
from hdica.show.terms import STATES as NUMBERED
from hdica.show.words import measurement, number, p_value, size, symbol, words
from hdica.status import DONE
from hdica.systems.method import INFORMATIVE, Role
from hdica.verdict.cells import CONTROL, DIFFERS, LEVEL, UNDECIDED, judged
from hdica.verdict.ladder import moments


def _columns(prefix: str, where: str) -> dict[str, str]:
    return {
        f"{prefix}_Q": f"{{v}} {where}",
        f"{prefix}_stable": f"1 if stable, 0 if unstable, {where}",
        f"{prefix}_kind": f"0 informative, 1 uninformative, 2 condensed, {where}",
    }


LONG_NAMES = {
    **_columns("fixed", "at the fixed point"),
    **_columns("branch", "along the branch"),
    "branch_value": "parameter along the branch",
    "branch_index": "index of the branch",
    "transition_value": "parameter at the transition",
    "transition_Q": "{v} at the transition",
    "transition_error": "error of the transition",
    "transition_done": "1 where all transitions are computed",
    "transition_kind": "0 fold, 1 transcritical, 2 junction",
    "limit_end": "limit of |{v}| at the last time",
    "overlap": "mean of |{v}| over seeds at the last time",
    "overlap_se": "standard error of the mean of |{v}|",
    "count": "seeds that are done",
    "moved": "mean change of |{v}| over the last third of the time",
    "moved_se": "standard error of the change over the last third",
    "largest": "share of |x|^2 on the largest entry at the last time, mean over seeds",
    "largest_se": "standard error of the share on the largest entry",
    "state": "|{v}| of a stable state",
    "state_kind": "kind of a stable state: 0 informative, 1 uninformative, 2 condensed",
    "nearest": "|{v}| of the stable state nearest to the simulation",
    "nearest_kind": "kind of the stable state nearest to the simulation",
    "on_branch": "1 where the simulation is within 3 standard errors and 3/sqrt(n) of it",
    "on_limit": "1 where the simulation is as near to where a limit is at the last time",
    "bistable_from": "lower end of a range with several stable states",
    "bistable_to": "upper end of a range with several stable states",
}

BRANCH = ("branch_value", "branch_Q", "branch_stable", "branch_kind", "branch_index")
"""Columns of a branch; the overlap is Q in what is returned, whatever its system calls it."""
TRANSITIONS = ("fold", "transcritical point", "junction")
"""Meanings of the codes in ``kind``."""
ALLOWANCE, ERRORS = 3.0, 3.0
"""A simulation may end 3/sqrt(n) and 3 standard errors away from a stable state: 1/sqrt(n) is the
size of an overlap with n random numbers, and of one large entry of a condensed estimate."""

ROUNDED = 1e-6
"""A smaller relative error of a critical value is not seen in its digits."""
STATES = ("stable_state", 8, "state", "state_kind")
RANGES = ("range", 6, "bistable_from", "bistable_to")
"""Lists of pairs: dimension, the most that are kept, and their two variables."""
CONDENSED = 2
BESIDE = ("n", "simulation", "limit", "stable_state", "range")
"""Dimensions that are not swept, beside those of steady states."""


def steady(tree: xr.DataTree, settings: Steady) -> xr.Dataset:
    """Bifurcation diagram: |Q| of steady states and of simulations at their last time.

    ``branch_*`` over ``branch_point``, ``fixed_*`` over ``fixed_point``, ``transition_*`` over
    ``transition``, ``limit_end`` over ``limit``, and over ``simulation`` and ``n`` the mean of |Q|
    over seeds with its standard error, the nearest stable state, and whether it is within 3
    standard errors and 3/sqrt(n) of that, and of where the limit itself is at the last time; each
    over the swept parameters that it depends on, and only if a method gives it.
    """
    x, variable, simulations = settings.x, settings.variable, settings.simulation
    groups = reading.groups(tree, simulations)
    parts = _theory(tree, settings)
    for data in groups.values():
        reading.check_swept(data, x, "analysis.steady.x")
    if simulations:
        ends = {name: _end(data, variable) for name, data in groups.items()}
        parts.append(reading.over(ends, "simulation", "count"))
    out = xr.merge(parts, join="outer")
    if x in out.dims and out[x].dtype.kind not in "fiu":
        raise HdicaError(f"analysis.steady.x = {x!r} is not allowed (its values must be numbers)")
    out = xr.merge([out, _states(out, x)], join="outer")
    if simulations and "state" in out:
        out = xr.merge([out, _nearest(out)], join="outer")
    out.attrs = {"variable": variable, "x": x, "series": settings.series or ""}
    if simulations:
        out.attrs["until"] = float(groups[simulations[0]]["time"].values[-1])
    return reading.described(out, LONG_NAMES, variable)


def _theory(tree: xr.DataTree, settings: Steady) -> list[xr.Dataset]:
    """Fixed points of the first limit that has them, ends of the others, branches, transitions."""
    variable = settings.variable
    of_states = [variable, "stable", "kind"]

    def named_by(prefix: str, data: xr.Dataset, names: Sequence[str]) -> xr.Dataset:
        known = {k: reading.finished(data, k) for k in names if k in data}
        own = {variable: f"{prefix}_Q", "branch": f"{prefix}_index"}
        return xr.Dataset({own.get(k, f"{prefix}_{k}"): v for k, v in known.items()})

    groups = reading.groups(tree, settings.limits)
    fixed = [data for data in groups.values() if "fixed_point" in data.dims]
    out = [named_by("fixed", data, of_states) for data in fixed[:1]]
    ends = {
        name: xr.Dataset({"limit_end": abs(reading.at_end(data, variable))})
        for name, data in groups.items()
        if "time" in data.dims
    }
    out += [reading.over(ends, "limit")] if ends else []
    if settings.branches:
        names = ["value", *of_states, "branch"]
        out.append(named_by("branch", reading.group(tree, settings.branches), names))
    if settings.critical:
        data = reading.group(tree, settings.critical)
        part = named_by("transition", data, ["value", variable, "error", "kind"])
        out.append(part.assign(transition_done=(data["status"] == DONE).astype(float)))
    return out


def _end(data: xr.Dataset, variable: str) -> xr.Dataset:
    """Where the runs of one method end, and how far they move over the last third of the time."""
    end = abs(reading.at_end(data, variable))
    result = moments(end)
    out = result[["count"]].assign(overlap=result["mean"], overlap_se=result["se"])
    time = positions(data, "time")
    if len(time) > 1:
        third = int(np.searchsorted(time, time[0] + (time[-1] - time[0]) * 2 / 3))
        before = reading.finished(data, variable).isel(time=min(third, len(time) - 2), drop=True)
        moved = moments(end - abs(before))
        out = out.assign(moved=moved["mean"], moved_se=moved["se"])
    if "largest" in data:
        share = moments(reading.at_end(data, "largest"))
        out = out.assign(largest=share["mean"], largest_se=share["se"])
    return out


def _states(out: xr.Dataset, x: str) -> xr.Dataset:
    """Stable states at every swept value of x, and the ranges with several of them."""
    lists: dict[str, xr.DataArray] = {}
    if "fixed_Q" in out and x in out["fixed_Q"].dims:
        q = abs(out["fixed_Q"])
        kind = out["fixed_kind"].fillna(0.0) if "fixed_kind" in out else xr.zeros_like(q)
        lists |= _listed(STATES, _stable_of, q, kind, out["fixed_stable"])
    if "branch_Q" in out:
        curves = [out[name] for name in BRANCH]
        known = out.get("transition_value", xr.DataArray([np.nan], dims="transition"))
        lists |= _listed(RANGES, lambda *c: Branches(*c[:-1]).bistable(c[-1]), *curves, known)
        if "state" not in lists and x in out.dims:
            columns = *curves, out[x].astype(float)
            lists |= _listed(STATES, lambda *c: Branches(*c[:-1]).stable_at(c[-1]), *columns)
    return xr.Dataset(lists)


def _stable_of(q: Array, kind: Array, stable: Array) -> Pairs:
    """Stable fixed points; Q and -Q are one."""
    keep = (stable == 1) & np.isfinite(q)
    return distinct(list(zip(q[keep].tolist(), kind[keep].tolist(), strict=True)))


def _listed(
    lists: tuple[str, int, str, str], pairs_of: Callable[..., Pairs], *columns: xr.DataArray
) -> dict[str, xr.DataArray]:
    """Pairs of every cell of the columns as two arrays, NaN where there are fewer."""
    dim, most, *names = lists

    def padded(*cell: Any) -> Array:
        out = np.full((most, 2), np.nan)
        pairs = pairs_of(*cell)[:most]
        out[: len(pairs)] = np.reshape(pairs, (-1, 2))
        return out

    own = [[d for d in one.dims if d in NUMBERED] for one in columns]
    kept = [[dim, "pair"]]
    arrays = xr.apply_ufunc(
        padded, *columns, input_core_dims=own, output_core_dims=kept, vectorize=True
    )
    return {name: arrays.isel(pair=k) for k, name in enumerate(names)}


def _nearest(out: xr.Dataset) -> xr.Dataset:
    """The stable state nearest to where each simulation ends, and whether it is there."""
    gap = abs(out["overlap"] - out["state"])
    known = gap.notnull().any("stable_state")
    best = gap.fillna(np.inf).argmin("stable_state")
    allowed = ERRORS * out["overlap_se"].fillna(0.0) + ALLOWANCE / np.sqrt(out["n"])
    states = out[["state", "state_kind"]].broadcast_like(gap).isel(stable_state=best).where(known)
    result = states.rename(state="nearest", state_kind="nearest_kind")
    result["on_branch"] = (gap.min("stable_state") <= allowed).astype(float).where(known)
    if "limit_end" in out:
        beside = (abs(out["overlap"] - out["limit_end"]) <= allowed).any("limit")
        result["on_limit"] = beside.astype(float).where(known)
    return result.drop_vars("stable_state", errors="ignore")


def extra_dims(data: xr.Dataset) -> list[str]:
    """Swept parameters beside x and the series."""
    return dims_of(data, *NUMBERED, *BESIDE, data.attrs["x"], data.attrs["series"])


def findings(data: xr.Dataset) -> list[Finding]:
    """Where steady states change, where simulations end, and where several states are stable."""
    ends = [*_ends(data), *_stateless(data)]
    return [*_critical(data), *ends, *_bistable(data), *_stable(data), *_shares(data)]


def _cells(data: xr.Dataset, name: str, own: str) -> list[Point]:
    """Swept parameters on which a variable depends beside a dimension of its own and x."""
    return cells_of(data[name], own, data.attrs["x"])


def _critical(data: xr.Dataset) -> list[Finding]:
    """Critical values by their kind, folds first, and the overlap at each."""
    if "transition_value" not in data:
        return []
    x, variable, out = symbol(data.attrs["x"]), size(data.attrs["variable"]), []
    cells = [(one, data.sel(one)) for one in _cells(data, "transition_value", "transition")]
    for code, kind in enumerate(TRANSITIONS):
        places = [
            (cell, here.isel(transition=k))
            for cell, here in cells
            for k in np.flatnonzero(here["transition_kind"].values == code)
        ]
        name = "the critical value of " + x + f" ({kind})"
        for place, here in places:
            value, error = (float(here.get(f"transition_{k}", np.nan)) for k in ("value", "error"))
            error = error if error > ROUNDED * abs(value) else np.nan
            out.append(Finding(name, place, value, error, digits=6))
        name = variable + f" at the {kind}"
        out += [Finding(name, p, abs(float(here["transition_Q"]))) for p, here in places]
    return out


def _ended(data: xr.Dataset) -> list[tuple[Point, xr.Dataset]]:
    """Places of simulations at their largest n that have a stable state to compare with."""
    if "nearest" not in data:
        return []
    out = []
    for point in cells_of(data["nearest"], "n"):
        here = data.sel(point)
        here = at_largest_n(here, here["nearest"].notnull())
        place = {**named(data, point), "n": int(here["n"]), "t": data.attrs["until"]}
        out += [(place, here)] if np.isfinite(here["nearest"]) else []
    return out


def _stateless(data: xr.Dataset) -> list[Finding]:
    """How many simulated means have no stable state in theory to be compared with."""
    if "nearest" not in data:
        return []
    compared = data["overlap"].notnull()
    if missing := int((compared & data["nearest"].isnull()).sum()):
        name = f"the number of means, of {int(compared.sum())}, without a stable state in theory"
        return [Finding(words(name), {}, missing, verdict=UNDECIDED)]
    return []


def _moves(here: xr.Dataset, mean: float, predicted: float) -> str:
    """By how much runs still move towards a state over the last third, empty if they do not."""
    moved, error = (float(here.get(name, np.nan)) for name in ("moved", "moved_se"))
    towards = moved * (predicted - mean) > 0
    surely = towards and abs(moved) / error > stats.t.isf(LEVEL, max(float(here["count"]) - 1, 1))
    way = f"the runs still move towards it, by {measurement(abs(moved), error)}"
    return f"{way} over the last third of the time" if surely else ""


def _ends(data: xr.Dataset) -> list[Finding]:
    """Every simulated mean at the last time beside the stable state that is nearest to it.

    Where a limit has not reached a stable state by then, the mean is compared with that limit; no
    state is wrong that runs have not reached yet. The control is off by a tenth of the largest
    state.
    """
    known = _ended(data)
    names = ["overlap", "overlap_se", "count"]
    rows = [[*(float(here[k]) for k in names), *_predicted(here)] for _, here in known]
    mean, error, count, predicted, allowed, moving = np.reshape(rows, (-1, len(names) + 3)).T
    margin = CONTROL * float(data["state"].max()) if known else np.nan
    result = judged(mean - predicted, error, margin, count - 1, allowed)
    seeds, out = np.maximum(np.ceil(result.seeds * count), count + 1), []
    name = "mean " + size(data.attrs["variable"])
    for k, (place, here) in enumerate(known):
        evidence = "one seed has no error"
        if np.isfinite(result.p_value[k]):
            beyond = f"{p_value(result.p_value[k])} beyond an allowance of {number(allowed[k])}"
            evidence = f"{beyond}; control: {number(margin)} to either side"
        theory = words("the limit" if moving[k] else "the nearest stable state")
        one = Finding(name, place, mean[k], error[k], predicted=predicted[k], theory=theory)
        verdict, many = str(result.verdict[k]), float(seeds[k])
        if verdict == DIFFERS and (still := _moves(here, mean[k], predicted[k])):
            verdict, evidence, many = UNDECIDED, still, np.nan
        out.append(replace(one, verdict=verdict, evidence=evidence, seeds=many))
    return sorted(out, key=lambda one: one.theory.plain, reverse=True)


def _predicted(here: xr.Dataset) -> tuple[float, float, bool]:
    """Where theory puts a mean, its allowance at finite n, and whether the limit is on its way.

    Of several limits that is the one nearest to the mean. The allowance of order 1/sqrt(n) is for
    states without overlap, condensed ones and a limit far from every state; that of an informative
    state, and of a limit which nears one, is of order 1/n.
    """
    n, state = float(here["n"]), float(here["nearest"])
    wide, narrow = ALLOWANCE / np.sqrt(n), ALLOWANCE / n
    ends = here["limit_end"].dropna("limit").values if "limit_end" in here else ()
    end = float(min(ends, key=lambda one: abs(one - float(here["overlap"])), default=np.nan))
    if float(abs(here["state"] - end).min()) > wide:
        return end, wide, True
    if here["nearest_kind"] != INFORMATIVE:
        return state, wide, False
    if narrow < abs(end - state) <= wide:
        return end, narrow, True
    return state, narrow, False


def _bistable(data: xr.Dataset) -> list[Finding]:
    """Both ends of the ranges with several stable states: there the start decides."""
    if "bistable_from" not in data:
        return []
    range_ = symbol(data.attrs["x"]) + " with several stable states"
    return [
        Finding(f"the {end} end of the range of " + range_, cell, float(value), digits=6)
        for end, name in (("lower", "bistable_from"), ("upper", "bistable_to"))
        for cell in _cells(data, name, "range")
        for value in data[name].sel(cell).values
        if np.isfinite(value)
    ]


def _stable(data: xr.Dataset) -> list[Finding]:
    """The largest stable state at the first and the last value of x."""
    if "state" not in data:
        return []
    x, out = data.attrs["x"], []
    quantity = size(data.attrs["variable"]) + " of the largest stable state"
    for cell in _cells(data, "state", "stable_state"):
        largest = data["state"].sel(cell).max("stable_state").dropna(x)
        for k in sorted({0, largest.sizes[x] - 1} if largest.size else ()):
            at = {**cell, x: largest[x].values[k].item()}
            out.append(Finding(quantity, at, float(largest[k])))
    return out


def _shares(data: xr.Dataset) -> list[Finding]:
    """How much of |x|^2 is on one entry of condensed estimates."""
    if "largest" not in data:
        return []
    name = "the share of " + symbol("|x|") + "² on the largest entry of a condensed estimate"
    return [
        Finding(name, place, float(here["largest"]), float(here["largest_se"]))
        for place, here in _ended(data)
        if here["nearest_kind"] == CONDENSED and here["on_branch"] == 1
    ]


def suits(tree: xr.DataTree) -> Suiting:
    """Steady states over a control parameter, with what there is of branches and of runs.

    Not over two parameters, where a phase diagram shows it.
    """
    states = reading.offered(tree, Role.STEADY_STATES, "fixed_point")
    branches = reading.offered(tree, Role.BRANCHES, "branch_point")
    x = reading.control(tree, reading.numeric(tree, states or branches)) if states else ""
    simulation = reading.offered(tree, Role.SIMULATION, "time", n=True)
    if not x or (simulation and len(reading.numeric(tree, simulation)) > 1):
        return None
    limits = filter(None, [states, reading.offered(tree, Role.LIMIT, "time")])
    return {"x": x, "limits": list(limits), "branches": branches, "simulation": simulation}
