"""Transitions of steady states, each as the solution of equations in Q and a parameter."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.limits.mean_field.steady.states import accuracy, open_to_averages, open_to_nodes
from hdica.limits.mean_field.transitions.landscape import Landscape

Array = NDArray[np.float64]
Condition = Callable[[Landscape, float, float], Array]
_STEP = 1e-6
_ITERATIONS = 40
_NEAR_ZERO = 0.03
"""Overlap at which it is asked what averages leave out, in place of smaller ones."""


@dataclass(frozen=True)
class Point:
    """A transition: overlap, position of the parameter, kind, and the error of the position."""

    q: float
    u: float
    kind: str
    error: float


def fold(land: Landscape, q: float, u: float) -> Array:
    """S = 0 and dS/dQ = 0: two states merge."""
    found = land.state(q, u)
    return np.array([found.excess[0], found.slope[0]])


def junction(land: Landscape, q: float, u: float) -> Array:
    """S = 0 and E x^2 = 1 at the weakest multiplier: the state begins to condense."""
    found = land.state(q, u, condensed=True, slopes=False)
    # The moment may grow without bound nearby; its inverse does not.
    return np.array([found.excess[0], 1 / found.at_end[0] - 1])


def crossing(land: Landscape, q: float, u: float) -> Array:
    """Q = 0 and dS/dQ = 0: a branch meets the states Q = 0."""
    return np.array([q, land.state(0.0, u).slope[0]])


def onset(land: Landscape, q: float, u: float) -> Array:
    """Q = 0 and E x^2 = 1 at the weakest multiplier."""
    return np.array([q, 1 / land.state(0.0, u, condensed=True, slopes=False).at_end[0] - 1])


def _jacobian(condition: Condition, land: Landscape, q: float, u: float) -> Array:
    dq, du = min(_STEP, (1 - abs(q)) / 2) or _STEP, _STEP
    up, down = min(u + du, 1.0), max(u - du, 0.0)
    if condition in (crossing, onset):
        along_q = np.array([1.0, 0.0])
    else:
        along_q = (condition(land, q + dq, u) - condition(land, q - dq, u)) / (2 * dq)
    along_u = (condition(land, q, up) - condition(land, q, down)) / (up - down)
    return np.stack([along_q, along_u], axis=1)


def solve(condition: Condition, land: Landscape, q: float, u: float, kind: str) -> Point | None:
    """Newton's method for a transition, called ``kind``, near (q, u); None if there is none."""
    z, best = np.array([q, u]), np.inf
    for _ in range(_ITERATIONS):
        # Away from condensation moments at the end of the range are infinite.
        with np.errstate(invalid="ignore"):
            values = condition(land, z[0], z[1])
            jacobian = _jacobian(condition, land, z[0], z[1])
        if not np.all(np.isfinite(jacobian)) or np.linalg.det(jacobian) == 0:
            return None
        inverse = np.linalg.inv(jacobian)
        step = -np.sum(inverse * values, axis=1)
        size = float(np.abs(step).max())
        if size < 1e-11 and size >= best / 2:
            break
        best = min(best, size)
        z = np.clip(z + step * (0.05 / max(size, 0.05)), [-1.0, -0.01], [1.0, 1.01])
        if size < 1e-15:
            break
    if best > 1e-8 or not -1e-12 <= z[1] <= 1 + 1e-12:
        return None
    field = land.field(land.parameter(float(np.clip(z[1], 0.0, 1.0))))
    open_ = accuracy(field) + float(open_to_averages(field, z[:1])[0])
    # At Q = 0 symmetry would hide what averages leave out.
    at = max(abs(float(z[0])), _NEAR_ZERO) if land.zero else float(z[0])
    open_ += float(open_to_nodes(field, np.array([at]))[0])
    noise = np.abs(values) + open_ * np.array([1.0, 30.0])
    error = float(np.sum(np.abs(inverse[1]) * noise)) + float(np.finfo(float).eps)
    return Point(float(z[0]), float(np.clip(z[1], 0.0, 1.0)), kind, error)
