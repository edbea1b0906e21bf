"""Branches of steady states as a parameter varies, and their transitions as a second one does.

A curve is a contour of steady states in a landscape, with the transitions along it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError, suggestion
from hdica.ingredients.plain import Array, Mask
from hdica.limits.mean_field.family import MeanField
from hdica.limits.mean_field.steady.closure import Closure
from hdica.limits.mean_field.steady.stability import linearise
from hdica.limits.mean_field.steady.states import kinds, overlaps
from hdica.limits.mean_field.transitions import landscape
from hdica.limits.mean_field.transitions.landscape import Landscape, Point, Spot
from hdica.limits.numerics.solvers import bounded

_COLUMNS = 9
"""Parameter values at which all states are searched, so that every branch is met."""
_AT_ZERO = 65
"""Parameter values at which the states Q = 0 are examined."""
_SAME = 1e-7


class Curve(NamedTuple):
    """A contour in order, and its transitions, each with the index of the point before it."""

    spots: list[Spot]
    events: list[tuple[int, Point]]


def at_zero(land: Landscape) -> tuple[list[Point], Array]:
    """Transitions of the states Q = 0, and the grid on which they were looked for."""
    grid = np.linspace(0.0, 1.0, _AT_ZERO)
    if not land.zero:
        return [], grid
    states = [land.state(0.0, float(u)) for u in grid]
    kind = "pitchfork" if land.mirrored else "transcritical"
    checks: list[tuple[Array, landscape.Condition, str]] = [
        (np.array([s.slope[0] for s in states]), landscape.crossing, kind),
        (np.array([1 / s.at_end[0] - 1 for s in states]), landscape.onset, "junction"),
    ]
    points = []
    for values, condition, name in checks:
        for i in np.flatnonzero(values[:-1] * values[1:] < 0):
            # Bisection to its neighbourhood, then Newton.
            low, high = float(grid[i]), float(grid[i + 1])
            sign = np.sign(condition(land, 0.0, low)[1])
            for _ in range(12):
                middle = (low + high) / 2
                below = np.sign(condition(land, 0.0, middle)[1]) == sign
                low, high = (middle, high) if below else (low, middle)
            point = landscape.solve(condition, land, 0.0, (low + high) / 2, name)
            points += [point] if point else []
    return points, grid


def _steepness(land: Landscape, q: float, slope: float) -> float:
    """Slope along Q of the function whose contour is followed: where S = 0, of S/Q if it is."""
    return slope / q if land.zero and q != 0.0 else slope


def _events(land: Landscape, spots: list[Spot]) -> list[tuple[int, Point]]:
    """Transitions between neighbouring points, each with the index of the point before it."""
    events: list[tuple[int, Point]] = []
    slopes = [_steepness(land, s.q, s.slope) for s in spots]
    for i, (left, right) in enumerate(pairwise(spots)):
        if left.q == 0.0 or right.q == 0.0:
            continue
        middle = ((left.q + right.q) / 2, (left.u + right.u) / 2)
        if left.condensed != right.condensed:
            # From the condensed side, where the moment at the end of its range is finite.
            side = left if left.condensed else right
            corner = landscape.solve(landscape.junction, land, side.q, side.u, "junction")
            if corner is None:
                continue
            events.append((i, corner))
            events += _beside(land, corner, i, (left, right), (slopes[i], slopes[i + 1]))
        elif slopes[i] * slopes[i + 1] < 0:
            point = landscape.solve(landscape.fold, land, *middle, "fold")
            events += [(i, point)] if point else []
    return events


def _beside(
    land: Landscape,
    corner: Point,
    i: int,
    ends: tuple[Spot, Spot],
    slopes: tuple[float, float],
) -> list[tuple[int, Point]]:
    """Folds at a junction and between it and its neighbours, from the slopes on its two sides."""
    there = land.state(corner.q, corner.u, condensed=True)
    bound = _steepness(land, corner.q, float(there.slope[0]))
    free = _steepness(land, corner.q, float(there.free_slope[0]))
    folds = [(i, Point(corner.q, corner.u, "fold", corner.error))] if bound * free < 0 else []
    for end, slope in zip(ends, slopes, strict=True):
        if slope * (bound if end.condensed else free) < 0:
            middle = ((corner.q + end.q) / 2, (corner.u + end.u) / 2)
            point = landscape.solve(landscape.fold, land, *middle, "fold")
            folds += [(i, point)] if point else []
    return folds


def _seeds(land: Landscape, zero: list[Point]) -> list[tuple[float, float]]:
    """Points on every branch: all states at some parameter values, and beside Q = 0."""
    seeds = []
    for u in np.linspace(0.0, 1.0, _COLUMNS):
        q = overlaps(land.field(land.parameter(float(u))))
        chosen = q[q > 0] if land.mirrored else q[q != 0] if land.zero else q
        seeds += [(float(v), float(u)) for v in chosen]
    seeds += [(1e-3, p.u) for p in zero if p.kind != "junction"]
    return seeds


def _passes(spots: list[Spot], q: float, u: float) -> bool:
    """Whether a traced contour goes through (q, u), to the accuracy of its chords."""
    z = np.array([[s.q, s.u] for s in spots])
    chord, to = np.diff(z, axis=0), np.array([q, u]) - z[:-1]
    length2 = np.maximum(np.sum(chord**2, axis=1), 1e-300)
    along = np.clip(np.sum(chord * to, axis=1) / length2, 0, 1)
    distance2 = np.sum((to - along[:, None] * chord) ** 2, axis=1)
    # A chord of length l that turns by an angle t leaves the curve by l t/8.
    return bool(np.any(distance2 < 0.05**2 * length2 + 1e-16))


def curves(land: Landscape, zero: list[Point]) -> list[Curve]:
    """All contours, ``zero`` being the transitions of the states Q = 0."""
    traced: list[Curve] = []
    for q, u in _seeds(land, zero):
        if any(_passes(c.spots, q, u) for c in traced):
            continue
        spots = landscape.contour(land, q, u)
        if len(spots) > 1:
            traced.append(Curve(spots, _events(land, spots)))
    return traced


def distinct(points: list[Point]) -> list[Point]:
    """The transitions without those that were met twice."""
    unique: list[Point] = []
    for p in points:
        if not any(
            p.kind == k.kind and abs(p.u - k.u) < _SAME and abs(p.q - k.q) < 1e-4 for k in unique
        ):
            unique.append(p)
    return unique


_SAMPLES = 9
_MARGINAL = 1e-9


@dataclass(frozen=True, eq=False)
class Transitions:
    """Where the number, the stability or the kind of the steady states changes.

    Critical values of the parameter, decreasing, their errors, overlap and multiplier there; shape
    (transitions,). ``kind`` is ``"fold"`` (two states merge), ``"transcritical"`` (a branch crosses
    Q = 0), ``"pitchfork"`` (two mirror images meet at Q = 0) or ``"junction"`` (a state begins to
    condense). Where two states merge at a junction, with a corner, both are reported, in two rows
    with the same value and overlap.
    """

    value: Array
    q: Array
    h: Array
    kind: NDArray[np.str_]
    error: Array


class Branch(NamedTuple):
    """One curve of steady states; arrays of shape (points,), in order along the curve.

    Beside the parameter that varies they are those of
    :class:`~hdica.limits.mean_field.steady.states.SteadyStates`.
    """

    parameter: Array
    q: Array
    r: Array
    h: Array
    bulk: Array
    kind: NDArray[np.str_]
    stable: Mask


@bounded("the transitions")
def transitions(family: landscape.Family, low: float, high: float) -> Transitions:
    """Every transition of the steady states for parameter values in [low, high].

    All states at some parameter values, and the points at which Q = 0 changes stability, are
    followed along their branches (pseudo-arclength continuation of S = 0 in the plane of Q and the
    parameter); sign changes along a branch are refined by Newton's method. Over decades the
    parameter is resolved logarithmically; mirror images are reported once, with Q > 0.
    """
    land = landscape.landscape(family, low, high)
    zero, _ = at_zero(land)
    points = zero + [p for c in curves(land, zero) for _, p in c.events]
    points = sorted(distinct(points), key=lambda p: -p.u)
    return Transitions(
        value=np.array([land.parameter(p.u) for p in points]),
        q=np.array([p.q for p in points]),
        h=np.array([float(land.state(p.q, p.u).h[0]) for p in points]),
        kind=np.array([p.kind for p in points], dtype="<U16"),
        error=np.array([p.error * land.stretch(p.u) for p in points]),
    )


@bounded("the branches")
def branches(family: landscape.Family, low: float, high: float) -> tuple[Branch, ...]:
    """Every branch of steady states for parameter values in [low, high].

    The states Q = 0 first, if they exist; then one curve for each branch, its transitions among its
    points (a fold itself counts as unstable). Of mirror images only Q > 0.
    """
    land = landscape.landscape(family, low, high)
    zero, grid = at_zero(land)
    lines = []
    if land.zero:
        u = np.unique(np.append(grid, [p.u for p in zero]))
        lines.append(_branch(land, np.zeros(u.size), u))
    for curve in curves(land, zero):
        # Transitions in their places along the curve.
        places: list[tuple[float, float]] = []
        for i, spot in enumerate(curve.spots):
            events = [p for j, p in curve.events if j == i]
            events.sort(key=lambda p: (p.q - spot.q) ** 2 + (p.u - spot.u) ** 2)
            places += [(spot.q, spot.u), *((p.q, p.u) for p in events)]
        lines.append(_branch(land, *np.array(places).T.copy()))
    return tuple(lines)


def _branch(land: Landscape, q: Array, u: Array) -> Branch:
    states = [land.state(x, y) for x, y in zip(q.tolist(), u.tolist(), strict=True)]
    parameter = np.array([land.parameter(y) for y in u.tolist()])
    r, h, bulk = np.array([(s.r[0], s.h[0], s.bulk[0]) for s in states]).T
    kind = np.array([kinds(s)[0] for s in states], dtype=np.str_)
    return Branch(parameter, q, r, h, bulk, kind, _stable_along(land, u, states))


def _stable_along(land: Landscape, u: Array, states: list[Closure]) -> Mask:
    """Stability of every state: dS/dQ < 0, and no growing mode at samples of each stretch.

    Real eigenvalues change sign with dS/dQ alone, so that within a stretch of dS/dQ < 0 only a
    pair of complex ones could; where two samples differ, all states between them are examined.
    """

    def settles(i: int) -> bool:
        field = land.field(land.parameter(float(u[i])))
        return linearise(field, states[i], 0).growing() == 0

    stable = np.array([float(s.slope[0]) < -_MARGINAL for s in states])
    edges = np.flatnonzero(np.diff(np.concatenate([[False], stable, [False]]).astype(int)))
    for first, last in zip(edges[::2], edges[1::2] - 1, strict=True):
        samples = np.unique(np.linspace(first, last, _SAMPLES).astype(int))
        steady = [settles(i) for i in samples]
        for (i, left), (j, right) in pairwise(zip(samples, steady, strict=True)):
            stable[i : j + 1] = left if left == right else [settles(k) for k in range(i, j + 1)]
        if samples.size == 1:
            stable[first] = steady[0]
    return stable


Family2 = Callable[[float, float], MeanField]
Search = Callable[[float, Array], tuple[Point, Landscape] | None]
_HALVINGS = 6
_WIDTH = 2.0
_NEAR = 0.1
"""How far Q may move between neighbouring points."""


class TransitionCurve(NamedTuple):
    """A transition along a second parameter; arrays of shape (values,), NaN where it is lost.

    Values of the second parameter, critical value of the first with its error, overlap and
    multiplier.
    """

    second: Array
    value: Array
    q: Array
    h: Array
    error: Array


def _search(family: Family2, kind: str, q: float) -> Search:
    """A search at one second parameter for the transition near a critical value and overlap."""
    conditions: dict[str, landscape.Condition] = {
        "fold": landscape.fold,
        "junction": landscape.onset if q == 0.0 else landscape.junction,
        "transcritical": landscape.crossing,
        "pitchfork": landscape.crossing,
    }
    if kind not in conditions:
        raise HdicaError(f"kind = {kind!r} is not known ({suggestion(kind, conditions)})")

    def search(second: float, near: Array) -> tuple[Point, Landscape] | None:
        value, overlap = near.tolist()
        low, high = (value / _WIDTH, value * _WIDTH) if value > 0 else (value - 1.0, value + 1.0)
        land = Landscape(lambda p: family(p, second), low, high, value > 0, False, False)
        point = landscape.solve(conditions[kind], land, overlap, 0.5, kind)
        if kind == "fold" and (point is None or abs(point.q - overlap) > _NEAR):
            # Two states that merge with a corner: one of them condenses there.
            point = landscape.solve(landscape.junction, land, overlap, 0.5, "fold")
            corner = None if point is None else land.state(point.q, point.u, condensed=True)
            if corner is None or not corner.slope[0] * corner.free_slope[0] < 0:
                return None
        return None if point is None or abs(point.q - overlap) > _NEAR else (point, land)

    return search


def _advanced(search: Search, before: float, at: Array, second: float, depth: int) -> Array | None:
    """The transition at ``second`` from that at ``before``, in halved steps where needed."""
    reached = search(second, at)
    if reached is not None:
        point, land = reached
        return np.array([land.parameter(point.u), point.q])
    if depth == 0:
        return None
    middle = (before + second) / 2
    half = _advanced(search, before, at, middle, depth - 1)
    return None if half is None else _advanced(search, middle, half, second, depth - 1)


@bounded("the critical values")
def transition_curve(
    family: Family2, values: Array, start: tuple[float, float], kind: str = "fold"
) -> TransitionCurve:
    """Follow one transition as a second parameter varies, by Newton's method from point to point.

    ``family(first, second)`` is the limit; the transition is one in the first parameter. ``values``
    of the second come in the order in which they are visited; ``start`` is the critical value of
    the first parameter and the overlap, at ``values[0]`` or near it (as
    :func:`~hdica.limits.mean_field.transitions.continuation.transitions` finds them).
    """
    values = np.asarray(values, dtype=float)
    search = _search(family, kind, start[1])
    rows = np.full((values.size, 4), np.nan)
    at, before = np.array(start, dtype=float), float(values[0])
    for i, second in enumerate(values):
        near = _advanced(search, before, at, float(second), _HALVINGS)
        exact = None if near is None else search(float(second), near)
        if exact is None:
            break
        point, land = exact
        at, before = np.array([land.parameter(point.u), point.q]), float(second)
        h = float(land.state(point.q, point.u).h[0])
        rows[i] = (*at, h, point.error * land.stretch(point.u))
    if np.isnan(rows[0, 0]):
        raise HdicaError(
            f"start = {start!r} is not allowed (no {kind} of the steady states is near it)"
        )
    return TransitionCurve(values, *rows.T)
