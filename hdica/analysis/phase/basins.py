"""Where runs go: by the basins of the limit's steady states, or by the trend where it has none."""

from __future__ import annotations

from dataclasses import dataclass

import xarray as xr

from hdica.analysis.reading import finished, group, method_of, overlaps, steady_states
from hdica.analysis.terms import entries
from hdica.status import DONE
from hdica.systems.kinds import ZERO
from hdica.verdict.trend import falling

AT = "fixed_point"


@dataclass(frozen=True)
class States:
    """Steady states of the limit, over ``fixed_point`` and the swept parameters they depend on.

    ``at`` is the variable there, NaN where there are fewer; ``known`` has no ``fixed_point`` and
    says whether the point is done. ``divides``: the variable alone evolves, so that its unstable
    states divide the runs.
    """

    at: xr.DataArray
    stable: xr.DataArray
    known: xr.DataArray
    divides: bool

    @property
    def informative(self) -> xr.DataArray:
        """Stable states away from 0."""
        size = abs(self.at)
        size = size.max([d for d in size.dims if d in entries()])
        return (self.stable == 1) & (size > ZERO)


def states_of(tree: xr.DataTree, variable: str, limit: str | None) -> States | None:
    """Steady states in a store, None without any of this variable.

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
    closed = method is not None and method.closed
    others = [data[k] for k in overlaps(tree) if k in data and k != variable]
    divides = not paired and (closed or (limit is None and _alone(others)))
    return States(at, stable, stable.notnull().any(AT), divides)


def _alone(others: list[xr.DataArray]) -> bool:
    """Whether the overlap closes the limit: then all states agree in the other parameters."""
    spreads = [other.max(AT) - other.min(AT) for other in others]
    return all(bool((spread.fillna(0.0) < ZERO).all()) for spread in spreads)


@dataclass(frozen=True)
class Fate:
    """What becomes of runs, over the dimensions of their last values.

    ``success``: a run goes to an informative state, False where it is not finished; ``decaying``:
    it does not although it is still above the threshold. ``by_limit``, over the cells, is 1 where
    the limit's steady states decide, 0 where the trend does. ``separated``: it has come close to
    the state of its basin, so that its last value tells more than its start does; ``left`` is the
    share of the way that remains.
    """

    success: xr.DataArray
    decaying: xr.DataArray
    by_limit: xr.DataArray
    separated: xr.DataArray
    left: xr.DataArray


def fate(values: xr.DataArray, threshold: float, states: States | None) -> Fate:
    """Where finished runs over ``time``, and ``seed`` if there are several, go.

    A run succeeds if its last value lies in the basin of a stable informative state of the limit:
    on the same side of every unstable state. Where no such state exists nothing succeeds, however
    large a run still is. Where states exist that do not divide the runs, because more than this
    variable evolves, and where no state is known, it succeeds if its size is above the threshold
    and not falling (:func:`hdica.verdict.trend.falling`). A run within a distance of
    order n^-1/2 of an unstable state may still cross it; as many do either way, so that even odds
    stay there.
    """
    final = values.isel(time=-1, drop=True).reset_coords(drop=True)
    above = abs(final) > threshold
    success = above & ~falling(values, above, threshold)
    by_limit = xr.zeros_like(above.any("seed") if "seed" in above.dims else above, dtype=float)
    if states is not None:
        possible = states.informative.any(AT)
        reached = success & possible
        decided = states.known & ~possible
        if states.divides:
            reached, decided = _in_basin(final, states), states.known
        success = xr.where(states.known, reached, success).transpose(*above.dims)
        by_limit = (by_limit + decided).transpose(*by_limit.dims)
    success = success & final.notnull()
    separated, left = xr.ones_like(above), xr.zeros_like(final)
    if states is not None and not any(d in states.at.dims for d in entries()):
        separated, left = _separated(values, final, states, threshold)
    return Fate(success, above & ~success, by_limit, separated, left)


def _separated(
    values: xr.DataArray, final: xr.DataArray, states: States, threshold: float
) -> tuple[xr.DataArray, xr.DataArray]:
    """Which runs are close to the stable state of their basin, and how much of the way is left.

    A run that has not moved lies on one side of an unstable state because it began there, which no
    theory can fail. It counts once it has gone half of the way from its first value to the state,
    or is closer to it than a quarter of the distance to the next state.
    """
    at, begin = states.at, _sizes(values.isel(time=0, drop=True).reset_coords(drop=True), states)
    final, possible = _sizes(final, states), states.stable == 1
    if states.divides:
        possible = possible & _same_side(final, states)
    distance = abs(final - at).where(possible)
    closest = distance.min(AT)
    goal = at.where(distance == closest).max(AT)
    steps = abs(at - goal)
    next_one = steps.where(steps > ZERO).min(AT).fillna(threshold)
    way = abs(begin - goal)
    separated = (closest <= way / 2) | (closest <= next_one / 4)
    unknown = ~states.known
    left = (closest / way).where(way > 0)
    order = final.dims
    return (
        xr.where(unknown, True, separated).transpose(*order),
        left.where(~unknown).transpose(*order),
    )


def _in_basin(final: xr.DataArray, states: States) -> xr.DataArray:
    """Whether runs lie between the same unstable states as a stable informative one."""
    return (_same_side(_sizes(final, states), states) & states.informative).any(AT)


def _sizes(values: xr.DataArray, states: States) -> xr.DataArray:
    """Values beside the states: sizes where a store has one of each pair of mirror images."""
    return values if bool((states.at < 0).any()) else abs(values)


def _same_side(values: xr.DataArray, states: States) -> xr.DataArray:
    """Which states lie above as many unstable ones as values do."""
    edges = states.at.where(states.stable == 0).rename({AT: "edge"})
    return (edges < values).sum("edge") == (edges < states.at).sum("edge")
