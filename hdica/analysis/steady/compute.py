"""Steady states over one parameter: theory's branches and where simulations end."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from hdica.analysis.describe import described
from hdica.analysis.reading import check_swept, finished, group, over
from hdica.analysis.steady.branches import branches_of, distinct
from hdica.analysis.steady.record import Steady
from hdica.analysis.terms import STATES as NUMBERED
from hdica.errors import HdicaError
from hdica.status import DONE


def _columns(prefix: str, where: str) -> dict[str, str]:
    return {
        f"{prefix}_Q": f"{{v}} {where}",
        f"{prefix}_h": f"h, half the curvature of the effective potential, {where}",
        f"{prefix}_bulk": f"E[x^2] of the bulk {where}",
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

ALLOWANCE = 3.0
"""A simulation may end this much over sqrt(n) away from a stable state: the size of an overlap
with n random numbers, and of one large entry of a condensed estimate."""

ERRORS = 3.0
"""... and so many standard errors."""

STATES = ("stable_state", 8, "state", "state_kind")
RANGES = ("range", 6, "bistable_from", "bistable_to")
"""Lists: dimension, the most that are kept, and their two variables."""

POINT = "branch_point"
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
    theory, ends = _limits(tree, settings.limits, variable)
    parts = [*theory, *ends]
    parts += _branches(tree, settings.branches, variable)
    parts += _transitions(tree, settings.critical, variable)
    out = _merged(parts)
    if simulations:
        groups = [group(tree, name) for name in simulations]
        for data in groups:
            check_swept(data, x, "analysis.steady.x")
        found = [_end(data, variable) for data in groups]
        out = _merged([out, over(found, "simulation", simulations, ["count"])])
    if x in out.dims and out[x].dtype.kind not in "fiu":
        raise HdicaError(f"analysis.steady.x = {x!r} is not allowed (its values must be numbers)")
    out = _merged([out, _states(out, x)])
    if simulations and "state" in out:
        out = _merged([out, _nearest(out)])
    out.attrs = {"variable": variable, "x": x, "series": settings.series or ""}
    if simulations:
        out.attrs["until"] = float(groups[0]["time"].values[-1])
    return described(out, LONG_NAMES, variable)


def _merged(parts: Sequence[xr.Dataset]) -> xr.Dataset:
    return xr.merge([p.reset_coords(drop=True) for p in parts], join="outer")


def _renamed(data: xr.Dataset, prefix: str, variables: Sequence[str]) -> xr.Dataset:
    return xr.Dataset({f"{prefix}_{k}": finished(data, k) for k in variables if k in data})


def _limits(
    tree: xr.DataTree, methods: Sequence[str], variable: str
) -> tuple[list[xr.Dataset], list[xr.Dataset]]:
    """Fixed points of the first method that has them, and the last values of trajectories."""
    groups = {m: group(tree, m) for m in methods}
    fixed = [data for data in groups.values() if "fixed_point" in data.dims]
    moving = [m for m, data in groups.items() if "time" in data.dims]
    pairs = [variable, "h", "bulk", "stable", "kind"]
    points = [_renamed(data, "fixed", pairs) for data in fixed[:1]]
    points = [p.rename({f"fixed_{variable}": "fixed_Q"}) for p in points]
    ends = [xr.Dataset({"limit_end": abs(_last(groups[m], variable))}) for m in moving]
    return points, [over(ends, "limit", moving)] if ends else []


def _branches(tree: xr.DataTree, method: str | None, variable: str) -> list[xr.Dataset]:
    if not method:
        return []
    pairs = ["value", variable, "h", "bulk", "stable", "kind", "branch"]
    found = _renamed(group(tree, method), "branch", pairs)
    return [found.rename({f"branch_{variable}": "branch_Q", "branch_branch": "branch_index"})]


def _transitions(tree: xr.DataTree, method: str | None, variable: str) -> list[xr.Dataset]:
    if not method:
        return []
    data = group(tree, method)
    found = _renamed(data, "transition", ["value", variable, "error", "kind"])
    done = (data["status"] == DONE).astype(float)
    return [found.rename({f"transition_{variable}": "transition_Q"}).assign(transition_done=done)]


def _last(data: xr.Dataset, variable: str) -> xr.DataArray:
    return finished(data, variable).isel(time=-1, drop=True)


def _end(data: xr.Dataset, variable: str) -> xr.Dataset:
    """Where the runs of one method end."""
    size = abs(_last(data, variable))
    count = size.notnull().sum("seed")
    out = {
        "overlap": size.mean("seed"),
        "overlap_se": size.std("seed", ddof=1) / np.sqrt(count),
        "count": count,
    }
    if "largest" in data:
        share = _last(data, "largest")
        out |= {"largest": share.mean("seed")}
        out |= {"largest_se": share.std("seed", ddof=1) / np.sqrt(share.notnull().sum("seed"))}
    return xr.Dataset(out).reset_coords(drop=True)


def _states(out: xr.Dataset, x: str) -> xr.Dataset:
    """Stable states at every swept value of x, and the ranges with several of them."""
    found: dict[str, xr.DataArray] = {}
    if "fixed_Q" in out and x in out["fixed_Q"].dims:
        found |= _fixed_states(out)
    if "branch_Q" in out:
        found |= _branch_ranges(out, x)
        if "state" not in found and x in out.dims:
            found |= _branch_states(out, x)
    return xr.Dataset(found)


def _fixed_states(out: xr.Dataset) -> dict[str, xr.DataArray]:
    """Stable fixed points, by |Q|; Q and -Q are one."""
    kind = out["fixed_kind"] if "fixed_kind" in out else xr.zeros_like(out["fixed_Q"])
    columns = xr.broadcast(abs(out["fixed_Q"]), kind.fillna(0.0), out["fixed_stable"])
    grid = [d for d in columns[0].dims if d != "fixed_point"]
    q, kinds, stable = (c.transpose(*grid, "fixed_point").values for c in columns)
    found = {
        i: distinct([(float(a), float(b)) for a, b, s in zip(q[i], kinds[i], stable[i], strict=True)
                     if s == 1 and np.isfinite(a)])
        for i in np.ndindex(*q.shape[:-1])
    }  # fmt: skip
    return _padded(out, found, grid, STATES)


def _padded(
    out: xr.Dataset,
    found: Mapping[tuple[int, ...], list[tuple[float, float]]],
    grid: Sequence[Hashable],
    lists: tuple[str, int, str, str],
) -> dict[str, xr.DataArray]:
    """Lists of pairs as two arrays, NaN where there are fewer: dimension, most, and their names."""
    dim, most, *names = lists
    values = np.full((2, *(out.sizes[d] for d in grid), most), np.nan)
    for i, pairs in found.items():
        for k, pair in enumerate(pairs[:most]):
            at: Any = (slice(None), *i, k)
            values[at] = pair
    coords = {d: out[d] for d in grid}
    pairs_of = zip(names, values, strict=True)
    return {name: xr.DataArray(v, coords, [*grid, dim]) for name, v in pairs_of}


def _branch_cells(out: xr.Dataset) -> tuple[list[str], dict[tuple[int, ...], Any]]:
    """Dimensions of the branches beside their points, and the branches of each cell."""
    columns = xr.broadcast(*(out[name] for name in BRANCH))
    grid = [str(d) for d in columns[0].dims if d != POINT]
    arrays = [c.transpose(*grid, POINT).values for c in columns]
    shape = arrays[0].shape[:-1]
    return grid, {i: branches_of(*(a[i] for a in arrays)) for i in np.ndindex(*shape)}


def _branch_states(out: xr.Dataset, x: str) -> dict[str, xr.DataArray]:
    grid, cells = _branch_cells(out)
    at = out[x].values.astype(float)
    found = {(*i, k): b.stable_at(v) for i, b in cells.items() for k, v in enumerate(at)}
    return _padded(out, found, [*grid, x], STATES)


def _branch_ranges(out: xr.Dataset, x: str) -> dict[str, xr.DataArray]:
    """Ranges of x with several stable states."""
    grid, cells = _branch_cells(out)
    known, found = out.get("transition_value"), {}
    for i, branches in cells.items():
        here = np.zeros(0)
        if known is not None:
            point = {d: k for d, k in zip(grid, i, strict=True) if d in known.dims}
            here = known.isel(point).values.ravel()
        found[i] = branches.bistable(here[np.isfinite(here)])
    return _padded(out, found, grid, RANGES)


def _nearest(out: xr.Dataset) -> xr.Dataset:
    """The stable state nearest to where each simulation ends, and whether it is there."""
    gap = abs(out["overlap"] - out["state"])
    known = gap.notnull().any("stable_state")
    best = gap.fillna(np.inf).argmin("stable_state")
    allowed = ERRORS * out["overlap_se"].fillna(0.0) + ALLOWANCE / np.sqrt(out["n"])
    found = {
        name: values.broadcast_like(gap).isel(stable_state=best).where(known)
        for name, values in (("nearest", out["state"]), ("nearest_kind", out["state_kind"]))
    }
    found["on_branch"] = (gap.min("stable_state") <= allowed).astype(float).where(known)
    if "limit_end" in out:
        beside = (abs(out["overlap"] - out["limit_end"]) <= allowed).any("limit")
        found["on_limit"] = beside.astype(float).where(known)
    return xr.Dataset(found).drop_vars("stable_state", errors="ignore")


def extra_dims(data: xr.Dataset) -> list[str]:
    """Swept parameters beside x and the series."""
    own = NUMBERED | {*BESIDE, data.attrs["x"]}
    return [str(d) for d in data.dims if d not in own and d != data.attrs["series"]]
