"""Branches of steady states as one parameter varies, and the transitions along them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hdica.limits.mean_field.steady.closure import Closure
from hdica.limits.mean_field.steady.stability import linearise
from hdica.limits.mean_field.steady.states import kinds
from hdica.limits.mean_field.transitions.curves import Curve, at_zero, curves, distinct
from hdica.limits.mean_field.transitions.landscape import Family, Landscape, landscape
from hdica.limits.numerics.work import bounded

Array = NDArray[np.float64]
_SAMPLES = 9
_MARGINAL = 1e-9


@dataclass(frozen=True)
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


@dataclass(frozen=True)
class Branch:
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
    stable: NDArray[np.bool_]


@bounded("the transitions")
def transitions(family: Family, low: float, high: float) -> Transitions:
    """Every transition of the steady states for parameter values in [low, high].

    All states at some parameter values, and the points at which Q = 0 changes stability, are
    followed along their branches (pseudo-arclength continuation of S = 0 in the plane of Q and the
    parameter); sign changes along a branch are refined by Newton's method. Over decades the
    parameter is resolved logarithmically; mirror images are reported once, with Q > 0.
    """
    land = landscape(family, low, high)
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
def branches(family: Family, low: float, high: float) -> tuple[Branch, ...]:
    """Every branch of steady states for parameter values in [low, high].

    The states Q = 0 first, if they exist; then one curve for each branch, its transitions among its
    points (a fold itself counts as unstable). Of mirror images only Q > 0.
    """
    land = landscape(family, low, high)
    zero, grid = at_zero(land)
    found = []
    if land.zero:
        u = np.unique(np.concatenate([grid, [p.u for p in zero]]))
        found.append(_branch(land, np.zeros(u.size), u))
    for curve in curves(land, zero):
        q, u = _with_events(curve)
        found.append(_branch(land, q, u))
    return tuple(found)


def _with_events(curve: Curve) -> tuple[Array, Array]:
    """Overlaps and positions along a curve, its transitions in their places."""
    points: list[tuple[float, float]] = []
    for i, spot in enumerate(curve.spots):
        points.append((spot.q, spot.u))
        here = [p for j, p in curve.events if j == i]
        here.sort(key=lambda p: (p.q - spot.q) ** 2 + (p.u - spot.u) ** 2)
        points += [(p.q, p.u) for p in here]
    return np.array([q for q, _ in points]), np.array([u for _, u in points])


def _branch(land: Landscape, q: Array, u: Array) -> Branch:
    states = [land.state(float(x), float(y)) for x, y in zip(q, u, strict=True)]
    return Branch(
        parameter=np.array([land.parameter(float(y)) for y in u]),
        q=q,
        r=np.array([float(s.r[0]) for s in states]),
        h=np.array([float(s.h[0]) for s in states]),
        bulk=np.array([float(s.bulk[0]) for s in states]),
        kind=np.array([kinds(s)[0] for s in states], dtype=np.str_),
        stable=_stable_along(land, u, states),
    )


def _stable_along(land: Landscape, u: Array, states: list[Closure]) -> NDArray[np.bool_]:
    """Stability of every state: dS/dQ < 0, and no growing mode at samples of each stretch.

    Real eigenvalues change sign with dS/dQ alone, so that within a stretch of dS/dQ < 0 only a
    pair of complex ones could; where two samples differ, all states between them are examined.
    """
    stable = np.array([float(s.slope[0]) < -_MARGINAL for s in states])
    edges = np.flatnonzero(np.diff(np.concatenate([[False], stable, [False]]).astype(int)))
    for first, last in zip(edges[::2], edges[1::2] - 1, strict=True):
        samples = np.unique(np.linspace(first, last, _SAMPLES).astype(int))
        held = [_no_growth(land, u, states, i) for i in samples]
        for (i, one), (j, two) in pairwise(zip(samples, held, strict=True)):
            between = range(i, j + 1)
            stable[i : j + 1] = (
                one if one == two else [_no_growth(land, u, states, k) for k in between]
            )
        if samples.size == 1:
            stable[first] = held[0]
    return stable


def _no_growth(land: Landscape, u: Array, states: list[Closure], i: int) -> bool:
    field = land.field(land.parameter(float(u[i])))
    return linearise(field, states[i], 0).growing() == 0
