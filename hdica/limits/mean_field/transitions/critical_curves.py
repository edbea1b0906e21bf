"""One transition as a second parameter varies: critical lines in a plane of parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError, suggestion
from hdica.limits.mean_field.family import MeanField
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
from hdica.limits.numerics.work import bounded

Array = NDArray[np.float64]
Family2 = Callable[[float, float], MeanField]
Search = Callable[[float, Array], tuple[Point, Landscape] | None]
_HALVINGS = 6
_WIDTH = 2.0
_NEAR = 0.1
"""How far Q may move between neighbouring points."""


@dataclass(frozen=True)
class TransitionCurve:
    """A transition along a second parameter; arrays of shape (values,), NaN where it is lost.

    Values of the second parameter, critical value of the first with its error, overlap and
    multiplier.
    """

    second: Array
    value: Array
    q: Array
    h: Array
    error: Array


def _local(family: Family2, value: float, second: float) -> Landscape:
    """The landscape in a neighbourhood of a critical value, which lies at its middle."""
    if value > 0:
        low, high = value / _WIDTH, value * _WIDTH
    else:
        low, high = value - 1.0, value + 1.0
    return Landscape(lambda p: family(p, second), low, high, value > 0, False, False)


def _condition(kind: str, q: float) -> Condition:
    known = {
        "fold": fold,
        "junction": onset if q == 0.0 else junction,
        "transcritical": crossing,
        "pitchfork": crossing,
    }
    if kind not in known:
        raise HdicaError(f"kind = {kind!r} is not known ({suggestion(kind, known)})")
    return known[kind]


def _fold_at_junction(land: Landscape, q: float) -> Point | None:
    """Two states that merge with a corner: one of them condenses there."""
    point = solve(junction, land, q, 0.5, "fold")
    if point is None:
        return None
    there = land.state(point.q, point.u, condensed=True)
    return point if there.slope[0] * there.free_slope[0] < 0 else None


def _search(family: Family2, kind: str, q: float) -> Search:
    """How the transition near a critical value and overlap is found at one second parameter."""
    condition = _condition(kind, q)

    def found(second: float, near: Array) -> tuple[Point, Landscape] | None:
        land = _local(family, float(near[0]), second)
        point = solve(condition, land, float(near[1]), 0.5, kind)
        if kind == "fold" and (point is None or abs(point.q - near[1]) > _NEAR):
            point = _fold_at_junction(land, float(near[1]))
        if point is None or abs(point.q - near[1]) > _NEAR:
            return None
        return point, land

    return found


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
