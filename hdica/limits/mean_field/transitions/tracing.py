"""Pseudo-arclength continuation of one zero contour of a landscape, through folds and corners."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from hdica.limits.mean_field.transitions.conditions import junction, solve
from hdica.limits.mean_field.transitions.landscape import Landscape

Array = NDArray[np.float64]
LONGEST, SHORTEST = 0.02, 2e-5
_TURN = 0.12
"""Angle between neighbouring tangents, in radians: sets how finely a curve is followed."""
_MOST = 1500


@dataclass(frozen=True)
class Spot:
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
    found = _corrected(land, q, u)
    if found is None or abs(found[0]) > 1:
        return None
    q, u, along_q, along_u = found
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


def _on_edge(land: Landscape, at: Spot, beyond: Spot) -> Spot | None:
    """The end of a contour that leaves the range of the parameter, or meets Q = 0 there."""
    if land.mirrored and beyond.q < 0:
        share = at.q / (at.q - beyond.q)
        u = at.u + share * (beyond.u - at.u)
        for _ in range(20):
            value, _, along_u = land.gradient(0.0, u)
            move = -value / along_u
            if not math.isfinite(move) or abs(move) > 0.1:
                return None
            u += move
            if abs(move) < 1e-14:
                break
        return Spot(0.0, u, beyond.tangent, beyond.condensed, math.nan)
    u = 0.0 if beyond.u < 0 else 1.0
    share = (u - at.u) / (beyond.u - at.u)
    q = at.q + share * (beyond.q - at.q)
    for _ in range(20):
        value, along_q, _ = land.gradient(q, u)
        move = -value / along_q
        if not math.isfinite(move) or abs(move) > 0.1:
            return None
        q += move
        if abs(move) < 1e-13:
            break
    return _there(land, q, u, beyond.tangent)


def _beyond_corner(land: Landscape, at: Spot) -> list[Spot]:
    """A junction close ahead and a point behind it, where the contour turns too sharply.

    On a small circle about the corner the function changes sign where the contour leaves it.
    """
    corner = solve(junction, land, at.q, at.u, "junction")
    if corner is None or math.hypot(corner.q - at.q, corner.u - at.u) > 200 * SHORTEST:
        return []
    slope = float(land.state(corner.q, corner.u).slope[0])
    middle = Spot(corner.q, corner.u, at.tangent, at.condensed, slope)
    angles = math.atan2(at.u - corner.u, at.q - corner.q) + np.linspace(0, 2 * np.pi, 65)
    radius = 4 * SHORTEST

    def around(angle: float) -> float:
        return land.value(corner.q + radius * math.cos(angle), corner.u + radius * math.sin(angle))

    values = np.array([around(float(a)) for a in angles[4:-4]])
    signs = np.flatnonzero(values[:-1] * values[1:] < 0)
    for i in signs:
        angle = float(scipy.optimize.brentq(around, angles[4 + i], angles[5 + i]))
        way = (math.cos(angle), math.sin(angle))
        q, u = corner.q + radius * way[0], corner.u + radius * way[1]
        other = _spot(land, q, u, way)
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
