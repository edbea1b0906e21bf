"""Every contour of steady states in a landscape, with the transitions along it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hdica.limits.mean_field.steady.states import overlaps
from hdica.limits.mean_field.transitions.conditions import (
    Condition,
    Point,
    crossing,
    fold,
    junction,
    onset,
    solve,
)
from hdica.limits.mean_field.transitions.landscape import Landscape
from hdica.limits.mean_field.transitions.tracing import Spot, contour

Array = NDArray[np.float64]
_COLUMNS = 9
"""Parameter values at which all states are searched, so that every branch is met."""
_AT_ZERO = 65
"""Parameter values at which the states Q = 0 are examined."""
_SAME = 1e-7


@dataclass(frozen=True)
class Curve:
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
    checks: list[tuple[Array, Condition, str]] = [
        (np.array([s.slope[0] for s in states]), crossing, kind),
        (np.array([1 / s.at_end[0] - 1 for s in states]), onset, "junction"),
    ]
    found = []
    for values, condition, name in checks:
        for i in np.flatnonzero(values[:-1] * values[1:] < 0):
            point = _bisected(condition, land, float(grid[i]), float(grid[i + 1]), name)
            found += [point] if point else []
    return found, grid


def _bisected(
    condition: Condition, land: Landscape, low: float, high: float, kind: str
) -> Point | None:
    """A transition of Q = 0 in an interval: bisection to its neighbourhood, then Newton."""
    sign = np.sign(condition(land, 0.0, low)[1])
    for _ in range(12):
        middle = (low + high) / 2
        if np.sign(condition(land, 0.0, middle)[1]) == sign:
            low = middle
        else:
            high = middle
    return solve(condition, land, 0.0, (low + high) / 2, kind)


def _steepness(land: Landscape, q: float, slope: float) -> float:
    """Slope along Q of the function whose contour is followed: where S = 0, of S/Q if it is."""
    return slope / q if land.zero and q != 0.0 else slope


def _events(land: Landscape, spots: list[Spot]) -> list[tuple[int, Point]]:
    """Transitions between neighbouring points, each with the index of the point before it."""
    found: list[tuple[int, Point]] = []
    slopes = [_steepness(land, s.q, s.slope) for s in spots]
    for i, (one, two) in enumerate(pairwise(spots)):
        if one.q == 0.0 or two.q == 0.0:
            continue
        middle = ((one.q + two.q) / 2, (one.u + two.u) / 2)
        if one.condensed != two.condensed:
            # From the condensed side, where the moment at the end of its range is finite.
            side = one if one.condensed else two
            corner = solve(junction, land, side.q, side.u, "junction")
            if corner is None:
                continue
            found.append((i, corner))
            found += _beside(land, corner, i, (one, two), (slopes[i], slopes[i + 1]))
        elif slopes[i] * slopes[i + 1] < 0:
            point = solve(fold, land, *middle, "fold")
            found += [(i, point)] if point else []
    return found


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
    found = [(i, Point(corner.q, corner.u, "fold", corner.error))] if bound * free < 0 else []
    for end, slope in zip(ends, slopes, strict=True):
        if slope * (bound if end.condensed else free) < 0:
            middle = ((corner.q + end.q) / 2, (corner.u + end.u) / 2)
            point = solve(fold, land, *middle, "fold")
            found += [(i, point)] if point else []
    return found


def _seeds(land: Landscape, zero: list[Point]) -> list[tuple[float, float]]:
    """Points on every branch: all states at some parameter values, and beside Q = 0."""
    found = []
    for u in np.linspace(0.0, 1.0, _COLUMNS):
        q = overlaps(land.field(land.parameter(float(u))))
        chosen = q[q > 0] if land.mirrored else q[q != 0] if land.zero else q
        found += [(float(v), float(u)) for v in chosen]
    found += [(1e-3, p.u) for p in zero if p.kind != "junction"]
    return found


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
    found: list[Curve] = []
    for q, u in _seeds(land, zero):
        if any(_passes(c.spots, q, u) for c in found):
            continue
        spots = contour(land, q, u)
        if len(spots) > 1:
            found.append(Curve(spots, _events(land, spots)))
    return found


def distinct(points: list[Point]) -> list[Point]:
    """The transitions without those that were met twice."""
    kept: list[Point] = []
    for p in points:
        if not any(
            p.kind == k.kind and abs(p.u - k.u) < _SAME and abs(p.q - k.q) < 1e-4 for k in kept
        ):
            kept.append(p)
    return kept
