"""The limit in a phase diagram: steady states, their basins and critical values."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import xarray as xr

from hdica.analysis.reading import (
    finished,
    group,
    method_of,
    overlaps,
    space,
    steady_states,
    system_of,
    transitions_in,
)
from hdica.errors import HdicaError
from hdica.ingredients.save import NOTHING
from hdica.show.terms import entries
from hdica.status import DONE
from hdica.systems.method import Limit, Method, Role, varied
from hdica.systems.outputs import FOLD, ZERO
from hdica.systems.space import Space
from hdica.systems.system import System
from hdica.verdict.trend import falling

MOST = 64
"""Values of x at which steady states are found here."""
SECONDS = 30.0
"""What a method may take by its own model of cost, over all values of x, to be run here."""
AT = "fixed_point"


def with_theory(tree: xr.DataTree, x: str, simulation: str) -> xr.DataTree:
    """The store with transitions along x and steady states over x, computed here if it lacks them.

    They depend on x alone: nothing else that is swept may change them. What cannot be computed
    stays away, and so does what would take more than :data:`SECONDS` or is wanted at more than
    :data:`MOST` values of x: a study that names the method has it at any cost. Nothing is added to
    results that name no study, whose fixed parameters are unknown.
    """
    out, record = tree.copy(), system_of(tree)
    if not tree.attrs.get("study_yaml") or record is None:
        return out
    if x not in [one.name for one in record.controls]:
        return out
    few = tree[simulation].sizes[x] <= MOST
    lacking = [Role.TRANSITIONS] if transitions_in(tree, x) is None else []
    lacking += [Role.STEADY_STATES] if steady_states(tree) is None and few else []
    if not lacking:
        return out
    try:
        points = space(tree, record)
    except HdicaError:  # the diagram is drawn all the same
        return out
    others = {axis.path[0] for axis in points.axes if axis.dim != x}
    for role in lacking:
        along = x if role is Role.STEADY_STATES else ""
        for method in record.with_role(role):
            if (
                method.name not in out
                and (along or varied(method) == x)
                and others <= method.scope.ignores
            ):
                with suppress(HdicaError):  # here, too
                    out[method.name] = xr.DataTree(_computed(record, points, method, along))
                break
    return out


def _computed(record: System, points: Space, method: Method, x: str) -> xr.Dataset:
    """What a method gives at every value of x, or once without x, as a store has it."""
    from hdica.systems.labelled import dataset

    never = np.empty(0)
    axes = [axis for axis in points.axes if axis.dim == x]
    chosen = [{axis.path: value} for axis in axes for value in axis.values] or [{}]
    needed = sum(method.cost.seconds(points.at(one), None, 0.0) for one in chosen)
    if needed > SECONDS:
        raise HdicaError(f"{method.name} would take about {needed:.0f} s (name it in the study)")
    results = [method.run(points.at(one), never, None, None, NOTHING) for one in chosen]
    lead = x if axes else ""
    data = dataset(record, method, never, NOTHING, points.at().dims(), results, lead)
    data = data.assign_coords({axis.dim: list(axis.values) for axis in axes})
    status = np.full([axis.size for axis in axes], DONE, dtype=np.uint8)
    return data.assign(status=([x] * len(axes), status))


def theory(tree: xr.DataTree, variable: str, x: str) -> xr.Dataset:
    """Boundary from the unstable fixed points, and the critical values of ``x``."""
    out: dict[str, xr.DataArray] = {}
    states, transitions = steady_states(tree), transitions_in(tree, x)
    if states is not None and x in tree[states].dims:
        fixed = group(tree, states)
        at = fixed[variable]
        unstable = (fixed["status"] == DONE) & (at > ZERO) & (fixed["stable"] == 0)
        out["boundary"] = at.where(unstable).min("fixed_point")
    if transitions is not None:
        found = group(tree, transitions)
        found = found.where(found["kind"] == FOLD)  # where informative states appear or vanish
        pairs = {"critical_value": "value", "critical_overlap": variable, "critical_error": "error"}
        out |= {name: found[own] for name, own in pairs.items() if own in found}
    return xr.Dataset(out).reset_coords(drop=True)


def states_of(tree: xr.DataTree, variable: str, limit: str | None) -> xr.Dataset | None:
    """Steady states of the limit in a store, None without any of this variable.

    Over ``fixed_point`` and the swept parameters on which they depend: ``at``, the variable there,
    NaN where there are fewer; ``stable``; ``informative``: stable and away from 0; and without
    ``fixed_point`` ``known``: the point is done. The attribute ``divides`` says whether the
    variable alone evolves, so that its unstable states divide the runs.

    The variable evolves alone if the limit that the study names is a closed equation, and without a
    name unless the states differ in more than the variable.
    """
    name = steady_states(tree)
    if name is None:
        return None
    data = group(tree, name)
    if variable not in data or AT not in data[variable].dims:
        return None
    at = finished(data, variable).reset_coords(drop=True)
    stable = data["stable"].where(data["status"] == DONE).reset_coords(drop=True)
    paired = any(d in at.dims for d in entries())
    method = method_of(tree, limit)
    closed = isinstance(method, Limit) and method.closed
    others = [data[k] for k in overlaps(tree) if k in data and k != variable]
    # Where the overlap closes the limit, all states agree in the other parameters.
    spreads = ((other.max(AT) - other.min(AT)).fillna(0.0) for other in others)
    alone = limit is None and all(bool((spread < ZERO).all()) for spread in spreads)
    size = abs(at)
    away = size.max([d for d in size.dims if d in entries()]) > ZERO
    states = {"at": at, "stable": stable, "informative": (stable == 1) & away}
    divides = not paired and (closed or alone)
    return xr.Dataset(states | {"known": stable.notnull().any(AT)}, attrs={"divides": divides})


def fate(values: xr.DataArray, threshold: float, states: xr.Dataset | None) -> xr.Dataset:
    """Where finished runs over ``time``, and ``seed`` if there are several, go.

    A run succeeds if its last value lies in the basin of a stable informative state of the limit:
    on the same side of every unstable state. Where no such state exists nothing succeeds, however
    large a run still is. Where states exist that do not divide the runs, because more than this
    variable evolves, and where no state is known, it succeeds if its size is above the threshold
    and not falling (:func:`hdica.verdict.trend.falling`). A run within a distance of
    order n^-1/2 of an unstable state may still cross it; as many do either way, so that even odds
    stay there.

    ``success``, False where a run is not finished; ``decaying``: it is above the threshold and does
    not succeed; ``separated``: it has come close to the state of its basin, so that its last value
    tells more than its start does; ``left``: the share of the way that remains; and over the cells
    ``by_limit``: 1 where the limit's steady states decide, 0 where the trend does.
    """
    final = values.isel(time=-1, drop=True).reset_coords(drop=True)
    above = abs(final) > threshold
    success = above & ~falling(values, above, threshold)
    by_limit = xr.zeros_like(above.any("seed") if "seed" in above.dims else above, dtype=float)
    if states is not None:
        possible = states["informative"].any(AT)
        reached, decided = success & possible, states["known"] & ~possible
        if states.attrs["divides"]:  # between the same unstable states as a stable informative one
            basin = _same_side(_sizes(final, states), states)
            reached, decided = (basin & states["informative"]).any(AT), states["known"]
        success = xr.where(states["known"], reached, success).transpose(*above.dims)
        by_limit = (by_limit + decided).transpose(*by_limit.dims)
    success = success & final.notnull()
    out = {"success": success, "decaying": above & ~success, "by_limit": by_limit}
    out |= {"separated": xr.ones_like(above), "left": xr.zeros_like(final)}
    if states is not None and not any(d in states["at"].dims for d in entries()):
        out["separated"], out["left"] = _separated(values, final, states, threshold)
    return xr.Dataset(out)


def _separated(
    values: xr.DataArray, final: xr.DataArray, states: xr.Dataset, threshold: float
) -> tuple[xr.DataArray, xr.DataArray]:
    """Which runs are close to the stable state of their basin, and how much of the way is left.

    A run that has not moved lies on one side of an unstable state because it began there, which no
    theory can fail. It counts once it has gone half of the way from its first value to the state,
    or is closer to it than a quarter of the distance to the next state.
    """
    at, begin = states["at"], _sizes(values.isel(time=0, drop=True).reset_coords(drop=True), states)
    final, possible = _sizes(final, states), states["stable"] == 1
    if states.attrs["divides"]:
        possible = possible & _same_side(final, states)
    distance = abs(final - at).where(possible)
    closest = distance.min(AT)
    goal = at.where(distance == closest).max(AT)
    steps = abs(at - goal)
    next_one = steps.where(steps > ZERO).min(AT).fillna(threshold)
    way = abs(begin - goal)
    separated = (closest <= way / 2) | (closest <= next_one / 4)
    left = (closest / way).where(way > 0).where(states["known"])
    separated = xr.where(states["known"], separated, True)
    return separated.transpose(*final.dims), left.transpose(*final.dims)


def _sizes(values: xr.DataArray, states: xr.Dataset) -> xr.DataArray:
    """Values beside the states: sizes where a store has one of each pair of mirror images."""
    return values if bool((states["at"] < 0).any()) else abs(values)


def _same_side(values: xr.DataArray, states: xr.Dataset) -> xr.DataArray:
    """Which states lie above as many unstable ones as values do."""
    edges = states["at"].where(states["stable"] == 0).rename({AT: "edge"})
    return (edges < values).sum("edge") == (edges < states["at"]).sum("edge")
