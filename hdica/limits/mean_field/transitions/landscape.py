"""Steady states as the zero contour of a function of the overlap and one parameter.

Transitions are solutions of equations in both; the contour is followed by pseudo-arclength
continuation, through folds and corners.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import dot, gauss_legendre
from hdica.limits.mean_field.family import MeanField
from hdica.limits.mean_field.steady import states
from hdica.limits.mean_field.steady.closure import Closure, close

Family = Callable[[float], MeanField]
_SMALL = 1e-3
_STEP = 1e-6
_POINTS, _WEIGHTS = gauss_legendre(4)
_POINTS, _WEIGHTS = (_POINTS + 1) / 2, _WEIGHTS / 2
_PROBES = (0.13, 0.5, 0.87)


class Landscape(NamedTuple):
    """S(Q; p), or S/Q where Q = 0 is always steady, over Q and a position u in [0, 1].

    Dividing by Q removes the states Q = 0, so that the informative branch is a smooth curve through
    the point where it meets them. ``field`` is the limit at a parameter value and remembers the
    last ones; u is linear in p from ``low`` to ``high``, or in log p. ``zero`` says whether Q = 0
    is steady at every parameter value, ``mirrored`` whether Q and -Q are equivalent.
    """

    field: Family
    low: float
    high: float
    logarithmic: bool
    zero: bool
    mirrored: bool

    def parameter(self, u: float) -> float:
        """The parameter value at position ``u``."""
        if u <= 0 or u >= 1:
            return self.low if u <= 0 else self.high
        if self.logarithmic:
            return float(self.low * math.exp(u * math.log(self.high / self.low)))
        return self.low + u * (self.high - self.low)

    def stretch(self, u: float) -> float:
        """dp/du."""
        if self.logarithmic:
            return self.parameter(u) * math.log(self.high / self.low)
        return self.high - self.low

    def state(
        self, q: float, u: float, condensed: bool | None = None, slopes: bool = True
    ) -> Closure:
        """The Boltzmann state at one overlap and position."""
        return close(self.field(self.parameter(u)), np.array([q]), condensed, slopes)

    def value(self, q: float, u: float) -> float:
        """The function whose zeros are the branches."""
        if not self.zero or abs(q) >= _SMALL:
            excess = float(self.state(q, u, slopes=False).excess[0])
            return excess / q if self.zero else excess
        # S/Q is the mean slope between 0 and Q: nothing cancels as Q -> 0.
        return dot(close(self.field(self.parameter(u)), q * _POINTS).slope, _WEIGHTS)

    def gradient(self, q: float, u: float) -> tuple[float, float, float]:
        """Value and derivatives with respect to q and u."""
        if abs(q) >= _SMALL or not self.zero:
            state = self.state(q, u)
            value, along_q = float(state.excess[0]), float(state.slope[0])
            if self.zero:
                value, along_q = value / q, (along_q - value / q) / q
        else:
            value, step = self.value(q, u), 100 * _STEP
            along_q = (self.value(q + step, u) - self.value(q - step, u)) / (2 * step)
        step = _STEP if u < 0.5 else -_STEP
        return value, along_q, (self.value(q, u + step) - value) / step


def landscape(family: Family, low: float, high: float) -> Landscape:
    """The landscape over a range of the parameter; decades are resolved logarithmically."""
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise HdicaError(f"low = {low:g} and high = {high:g} are not allowed (low < high, finite)")
    logarithmic = low > 0 and high / low > 5
    remembered = lru_cache(maxsize=512)(family)
    plain = Landscape(remembered, low, high, logarithmic, True, True)
    probes = [remembered(plain.parameter(u)) for u in _PROBES]
    if any(states.vanishes(field) for field in probes):
        raise HdicaError(
            "the diffusion vanishes at Q = 1 or -1 (the nonlinearity is 0 on all values of the "
            "source), where steady states are no densities and are not followed along a parameter "
            "(hdica.fixed_points lists them at one)"
        )
    zero = all(states.has_zero(field) for field in probes)
    mirrored = zero and all(states.is_mirrored(field) for field in probes)
    return Landscape(remembered, low, high, logarithmic, zero, mirrored)


Condition = Callable[[Landscape, float, float], Array]
_ITERATIONS = 40
_NEAR_ZERO = 0.03
"""Overlap at which it is asked what averages leave out, in place of smaller ones."""


class Point(NamedTuple):
    """A transition: overlap, position of the parameter, kind, and the error of the position."""

    q: float
    u: float
    kind: str
    error: float


def fold(land: Landscape, q: float, u: float) -> Array:
    """S = 0 and dS/dQ = 0: two states merge."""
    state = land.state(q, u)
    return np.array([state.excess[0], state.slope[0]])


def junction(land: Landscape, q: float, u: float) -> Array:
    """S = 0 and E x^2 = 1 at the weakest multiplier: the state begins to condense."""
    state = land.state(q, u, condensed=True, slopes=False)
    # The moment may grow without bound nearby; its inverse does not.
    return np.array([state.excess[0], 1 / state.at_end[0] - 1])


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
        size = np.abs(step).max()
        if size < 1e-11 and size >= best / 2:
            break
        best = min(best, size)
        z = np.clip(z + step * (0.05 / max(size, 0.05)), [-1.0, -0.01], [1.0, 1.01])
        if size < 1e-15:
            break
    if best > 1e-8 or not -1e-12 <= z[1] <= 1 + 1e-12:
        return None
    q, u = float(z[0]), min(max(float(z[1]), 0.0), 1.0)
    field = land.field(land.parameter(u))
    open_ = states.accuracy(field) + float(states.open_to_averages(field, z[:1])[0])
    # At Q = 0 symmetry would hide what averages leave out.
    at = max(abs(q), _NEAR_ZERO) if land.zero else q
    open_ += float(states.open_to_nodes(field, np.array([at]))[0])
    noise = np.abs(values) + open_ * np.array([1.0, 30.0])
    error = dot(np.abs(inverse[1]), noise) + float(np.finfo(float).eps)
    return Point(q, u, kind, error)


LONGEST, SHORTEST = 0.02, 2e-5
_TURN = 0.12
"""Angle between neighbouring tangents, in radians: sets how finely a curve is followed."""
_MOST = 1500


class Spot(NamedTuple):
    """A point of the contour: the unit tangent of the way it is followed, and dS/dQ."""

    q: float
    u: float
    tangent: tuple[float, float]
    condensed: bool
    slope: float


def _corrected(land: Landscape, q: float, u: float) -> tuple[float, float, float, float] | None:
    """The nearest zero by Newton's method along the gradient, and the gradient there."""
    for _ in range(8):
        if abs(q) > 1 or not -0.05 <= u <= 1.05:
            return None
        value, along_q, along_u = land.gradient(q, u)
        norm2 = along_q**2 + along_u**2
        if not math.isfinite(norm2) or norm2 == 0:
            return None
        dq, du = -value * along_q / norm2, -value * along_u / norm2
        q, u = q + dq, u + du
        if math.hypot(dq, du) < 1e-9:
            return q, u, along_q, along_u
    return None


def _spot(land: Landscape, q: float, u: float, before: tuple[float, float]) -> Spot | None:
    root = _corrected(land, q, u)
    if root is None or abs(root[0]) > 1:
        return None
    q, u, along_q, along_u = root
    norm = math.hypot(along_q, along_u)
    tangent = (-along_u / norm, along_q / norm)
    if tangent[0] * before[0] + tangent[1] * before[1] < 0:
        tangent = (-tangent[0], -tangent[1])
    return _there(land, q, u, tangent)


def _there(land: Landscape, q: float, u: float, tangent: tuple[float, float]) -> Spot:
    state = land.state(q, u)
    return Spot(q, u, tangent, bool(state.condensed[0]), float(state.slope[0]))


def _next(land: Landscape, at: Spot, step: float) -> tuple[Spot | None, float]:
    """The following point, and the step that led there."""
    while True:
        guess = (at.q + step * at.tangent[0], at.u + step * at.tangent[1])
        new = _spot(land, *guess, at.tangent)
        if new is not None:
            cosine = new.tangent[0] * at.tangent[0] + new.tangent[1] * at.tangent[1]
            off = math.hypot(new.q - guess[0], new.u - guess[1])
            # At a junction the contour has a corner: no step makes that angle small.
            corner = new.condensed != at.condensed and step < 30 * SHORTEST
            if (cosine > math.cos(_TURN) or corner or step <= SHORTEST) and off < step / 2:
                return new, step
        if step <= SHORTEST:
            return None, step
        step = max(step / 2, SHORTEST)


def _settled(
    function: Callable[[float], tuple[float, float]], at: float, close: float
) -> float | None:
    """A zero by Newton's method from values and slopes; None if it does not lie nearby."""
    for _ in range(20):
        value, slope = function(at)
        move = -value / slope
        if not math.isfinite(move) or abs(move) > 0.1:
            return None
        at += move
        if abs(move) < close:
            break
    return at


def _on_edge(land: Landscape, at: Spot, beyond: Spot) -> Spot | None:
    """The end of a contour that leaves the range of the parameter, or meets Q = 0 there."""
    if land.mirrored and beyond.q < 0:
        u = at.u + at.q / (at.q - beyond.q) * (beyond.u - at.u)
        end = _settled(lambda v: land.gradient(0.0, v)[::2], u, 1e-14)
        if end is None:
            return None
        return Spot(0.0, end, beyond.tangent, beyond.condensed, math.nan)
    u = 0.0 if beyond.u < 0 else 1.0
    q = at.q + (u - at.u) / (beyond.u - at.u) * (beyond.q - at.q)
    end = _settled(lambda v: land.gradient(v, u)[:2], q, 1e-13)
    return None if end is None else _there(land, end, u, beyond.tangent)


def _beyond_corner(land: Landscape, at: Spot) -> list[Spot]:
    """A junction close ahead and a point behind it, where the contour turns too sharply.

    On a small circle about the corner the function changes sign where the contour leaves it.
    """
    corner = solve(junction, land, at.q, at.u, "junction")
    if corner is None or math.hypot(corner.q - at.q, corner.u - at.u) > 200 * SHORTEST:
        return []
    slope = float(land.state(corner.q, corner.u).slope[0])
    middle = Spot(corner.q, corner.u, at.tangent, at.condensed, slope)
    first = math.atan2(at.u - corner.u, at.q - corner.q)
    angles, radius = (first + np.linspace(0, 2 * np.pi, 65))[4:-4], 4 * SHORTEST

    def on_circle(angle: float) -> tuple[float, float]:
        return corner.q + radius * math.cos(angle), corner.u + radius * math.sin(angle)

    values = np.array([land.value(*on_circle(angle)) for angle in angles.tolist()])
    for i in np.flatnonzero(values[:-1] * values[1:] < 0):
        ends = angles[i], angles[i + 1]
        angle = float(scipy.optimize.brentq(lambda angle: land.value(*on_circle(angle)), *ends))
        other = _spot(land, *on_circle(angle), (math.cos(angle), math.sin(angle)))
        if other is not None and other.condensed != at.condensed:
            return [middle, other]
    return []


def follow(land: Landscape, q: float, u: float, way: float) -> list[Spot]:
    """Points of the contour through (q, u), first in the direction ``way`` (+1 or -1) of Q.

    It ends at the edge of the parameter range, where it meets Q = 0 in a mirrored family, at |Q| =
    1 or where it closes.
    """
    first = _spot(land, q, u, (way, 1e-12))
    if first is None:
        return []
    spots, step = [first], LONGEST / 4
    while len(spots) < _MOST:
        new, used = _next(land, spots[-1], step)
        if new is None:
            turned = _beyond_corner(land, spots[-1])
            if not turned:
                break
            spots += turned
            continue
        if not 0 <= new.u <= 1 or (land.mirrored and new.q < 0):
            edge = _on_edge(land, spots[-1], new)
            return spots if edge is None else [*spots, edge]
        spots.append(new)
        if len(spots) > 8 and math.hypot(new.q - first.q, new.u - first.u) < used:
            return [*spots, first]
        step = min(1.5 * used, LONGEST)
    return spots


def contour(land: Landscape, q: float, u: float) -> list[Spot]:
    """The whole contour through (q, u)."""
    onwards = follow(land, q, u, 1.0)
    closed = len(onwards) > 8 and onwards[-1] is onwards[0]
    if closed or not onwards:
        return onwards
    return [*follow(land, q, u, -1.0)[:0:-1], *onwards]
