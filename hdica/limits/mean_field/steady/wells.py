"""Where a density exp(-V) lives if V = a x^2 + k Psi(x) - tilt x may have several wells.

A regularizer that levels off leaves wells far out where x^2 and the tilt balance, whose widths
have nothing to do with their distance. Points at which Psi is resolved find them all, and a bound
on Psi beyond the last of these points says that there are no others.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.limits.mean_field.steady.confinement import Confinement
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
DEPTH = 46.0
"""The density is followed down to exp(-46) = 1e-20 of its maximum."""
_REACHES = (8.0, 2.0**6, 2.0**12, 2.0**24, 2.0**39, 2.0**52)
_HELD, _FARTHEST = _REACHES[-2:]
"""Where the search ends if nothing but Psi confines, and where it ends at all."""
_SPLIT, _SECANTS, _RUNGS = 4, 12, 13
_STEEP = 0.5
"""Rise of V between two points beside a well from which it needs panels of its own."""
_OWN, _LOST = 4.0, 34.0
"""Depth to which a well has its own width, and that of x^2 times the density that is rounding."""
_APART, _SCALES, _HALVINGS = 3.0, 38, 8
"""Distance to the lowest point falls by this factor, so many times; halvings towards an end."""
_AT_ONCE = 4_000_000
"""Values of V that are found between two checks of the deadline."""


@dataclass(frozen=True, eq=False)
class Region:
    """Where densities are larger than 1e-20 of their maximum: from ``low`` to ``high``, each row.

    ``held``: whether it is normalisable with a second moment; ``many``: whether there may be more
    than one well; ``rungs``, shape (rows, points): points that crowd towards narrow wells, ``low``
    where none is needed.
    """

    low: Array
    high: Array
    held: Mask
    rungs: Array
    many: Mask


@lru_cache(maxsize=64)
def _points(shape: Confinement, reach: float) -> tuple[Array, Array, Array]:
    """Points of [-reach, reach] that resolve psi, and Psi and psi there."""
    ends = shape.resolved(reach)
    inner = ends[:-1, None] + np.diff(ends)[:, None] * np.arange(_SPLIT) / _SPLIT
    x = np.append(inner.ravel(), ends[-1])
    return x, shape.potential(x), _finite(shape.psi(x))


def _weight(x: Array) -> Array:
    """What a fourth moment adds to the depth of V far out: mass of 1e-30 at 1e15 is E x^2 = 1."""
    return np.asarray(4 * np.log(np.maximum(np.abs(x) / _REACHES[0], 1.0)))


def _finite(values: Array) -> Array:
    return np.nan_to_num(values, nan=0.0, posinf=1e200, neginf=-1e200)


@lru_cache(maxsize=64)
def _outward(shape: Confinement, reach: float) -> Array:
    """Least psi and least psi/x beyond a reach, on either side, counted outwards; shape (2, 2)."""
    x = np.geomspace(reach, 2 * _FARTHEST, 500)
    found = np.stack([-_finite(shape.psi(-x)), _finite(shape.psi(x))])
    return np.stack([found.min(axis=1), (found / x).min(axis=1)])


def _least_beyond(shape: Confinement, a: Array, k: Array, tilt: Array, reach: float) -> Array:
    """A lower bound of V beyond either end of [-reach, reach], from V there; shape (rows, 2)."""
    force, stiffness = _outward(shape, reach)
    pulled = tilt[:, None] * np.array([-1.0, 1.0])
    bounds = []
    for square, push in (
        (a[:, None] + 0 * pulled, k[:, None] * force - pulled),
        (a[:, None] + k[:, None] * stiffness / 2, -pulled),
    ):
        rise = 2 * square * reach + push
        with np.errstate(all="ignore"):
            turned = np.where(square > 0, -(rise**2) / (4 * square), -np.inf)
            spread = _least_weighed(square, rise, reach)
        level = (rise >= 0) & (square >= 0)
        bounds.append(np.where(level, spread, turned))
    return np.maximum(*bounds)


def _least_weighed(square: Array, rise: Array, reach: float) -> Array:
    """Least of rise d + square d^2 - 3 log(1 + d/reach) over d > 0, for numbers >= 0.

    Where V hardly rises beyond a reach, x^2 times the density there is not what it is at the reach.
    """
    # Where the slope is zero: 2 square d^2 + (rise + 2 square reach) d + rise reach - 3 = 0.
    linear, missing = rise + 2 * square * reach, 3 - rise * reach
    d = 2 * missing / (linear + np.sqrt(linear**2 + 8 * square * missing))
    least = rise * d + square * d**2 - 3 * np.log1p(d / reach)
    return np.where(missing > 0, np.where(linear > 0, least, -np.inf), 0.0)


def region(shape: Confinement, a: Array, k: Array, tilt: Array) -> Region:
    """Where each density, of coefficients of shape (rows,), exceeds 1e-20 of its maximum."""
    low, high = np.empty(a.size), np.empty(a.size)
    held, many = np.zeros((2, a.size), dtype=bool)
    rungs: list[tuple[NDArray[np.int64], Array]] = []
    open_ = np.arange(a.size)
    for reach in _REACHES:
        x, energy, force = _points(shape, reach)
        left, some = [open_[:0]], max(1, _AT_ONCE // x.size)
        for part in (open_[i : i + some] for i in range(0, open_.size, some)):
            check_deadline()
            row = (a[part], k[part], tilt[part])
            square, strength, pull = (v[:, None] for v in row)
            v = square * x * x + strength * energy - pull * x
            ends = v[:, [0, -1]] - 3 * np.log(reach) - v.min(axis=1)[:, None]
            fallen = np.all(ends > DEPTH, axis=1)
            clear = np.all(ends + _least_beyond(shape, *row, reach) > DEPTH, axis=1)
            last = reach >= np.where(row[0] > 0, _FARTHEST, _HELD)
            done = clear | last
            left.append(part[~done])
            if not done.any():
                continue
            here = part[done]
            held[here] = (clear | fallen)[done]
            slope = 2 * square[done] * x + strength[done] * force - pull[done]
            known = x, v[done], slope
            low[here], high[here], many[here], found = _hull(shape, row, done, known)
            rungs.append((here, found))
        open_ = np.concatenate(left)
        if not open_.size:
            break
    return Region(low, high, held, _collected(rungs, low), many)


def _collected(parts: list[tuple[NDArray[np.int64], Array]], low: Array) -> Array:
    width = max((found.shape[1] for _, found in parts), default=0)
    rungs = np.repeat(low[:, None], width, axis=1)
    for rows, found in parts:
        rungs[rows, : found.shape[1]] = np.where(np.isnan(found), low[rows, None], found)
    return rungs


def _hull(
    shape: Confinement, row: tuple[Array, ...], rows: Mask, known: tuple[Array, Array, Array]
) -> tuple[Array, Array, Mask, Array]:
    """Ends of the regions of some rows, which have several wells, and their rungs or NaN."""
    x, v, slope = known
    wells = (slope[:, :-1] < 0) & (slope[:, 1:] >= 0)
    far = _weight(x)
    first, last = _ends(v - v.min(axis=1)[:, None] - far < DEPTH)
    # Between two points V lies above its tangents there, if it is convex around the well.
    gap = np.diff(x)
    floor = np.maximum(v[:, :-1] + slope[:, :-1] * gap, v[:, 1:] - slope[:, 1:] * gap)
    wells &= floor - v.min(axis=1)[:, None] - np.maximum(far[:-1], far[1:]) < DEPTH
    several = wells.sum(axis=1) > 1
    heavy = ~several & _is_heavy(x, v)
    own = [value[rows] for value in row]
    low, high, spread = _on_plateaus(shape, own, (x, v), (first, last), heavy)
    many = np.flatnonzero(several)
    if not many.size:
        return low, high, heavy, spread
    a, k, tilt = (value[rows][many] for value in row)
    at, left = np.nonzero(wells[many])
    bottom = _bottom(shape, a[at], k[at], tilt[at], x[left], x[left + 1])
    depth = a[at] * bottom**2 + k[at] * shape.potential(bottom) - tilt[at] * bottom
    least = np.full(many.size, np.inf)
    np.minimum.at(least, at, depth)
    above = v[many] - least[:, None] - far > DEPTH
    index = np.arange(x.size)
    before = np.maximum.accumulate(np.where(above, index, 0), axis=1)
    behind = np.minimum.accumulate(np.where(above, index, x.size - 1)[:, ::-1], axis=1)[:, ::-1]
    deep = depth - least[at] - _weight(bottom) < DEPTH
    at, left, bottom, depth = at[deep], left[deep], bottom[deep], depth[deep]
    start, end = x[before[at, left]], x[behind[at, left + 1]]
    low[many], high[many] = np.inf, -np.inf
    np.minimum.at(low, many[at], start)
    np.maximum.at(high, many[at], end)
    beside = np.maximum(v[many[at], left], v[many[at], left + 1]) - depth
    narrow = beside > _STEEP
    found = _ladders(many[at][narrow], bottom[narrow], start[narrow], end[narrow], v)
    return low, high, several | heavy, np.concatenate([found, spread], axis=1)


def _is_heavy(x: Array, v: Array) -> Mask:
    """Whether x^2 times the density is not small where the density itself is, shape (rows,).

    A regularizer that levels off leaves a plateau of V that goes on until a x^2 ends it: little
    mass so far out that it has E x^2 = 1.
    """
    lowest = v.argmin(axis=1)
    depth, away = v - v.min(axis=1)[:, None], np.abs(x - x[lowest][:, None])
    rows = np.arange(lowest.size)
    first, last = _ends(depth < _OWN)
    own = np.maximum(away[rows, first], away[rows, last])
    far = 3 * np.log(np.maximum(away / np.maximum(own, _REACHES[0])[:, None], 1.0))
    first, last = _ends(depth < DEPTH)
    outside = (x < x[first][:, None]) | (x > x[last][:, None])
    # Where the density has fallen lies between two points; the nearer one is in doubt.
    nearer = np.minimum(first + 1, x.size - 1), np.maximum(last - 1, 0)
    there = np.maximum(far[rows, nearer[0]], far[rows, nearer[1]])
    beyond = np.any(outside & (depth - far < _LOST), axis=1) | (DEPTH - there < _LOST)
    return np.asarray((lowest > 0) & (lowest < x.size - 1) & beyond)


def _on_plateaus(
    shape: Confinement,
    row: list[Array],
    known: tuple[Array, Array],
    ends: tuple[NDArray[np.int64], NDArray[np.int64]],
    heavy: Mask,
) -> tuple[Array, Array, Array]:
    """Ends of all regions and their rungs, where some are heavy."""
    (x, v), (first, last) = known, ends
    low, high = x[first], x[last]
    if not heavy.any():
        return low, high, np.empty((low.size, 0))
    kept = [value[heavy] for value in row]
    low[heavy], high[heavy] = _narrowed(shape, kept, x, v[heavy], first[heavy], last[heavy])
    rungs = _scales(x, v[heavy], low[heavy], high[heavy])
    spread = np.repeat(low[:, None], rungs.shape[1], axis=1)
    spread[heavy] = rungs
    return low, high, spread


def _narrowed(
    shape: Confinement,
    row: list[Array],
    x: Array,
    v: Array,
    first: NDArray[np.int64],
    last: NDArray[np.int64],
) -> tuple[Array, Array]:
    """Ends of regions of heavy densities, between points that are far apart there."""
    a, k, tilt = row
    least = v.min(axis=1)
    found = []
    for out, towards in ((first, 1), (last, -1)):
        outer, inner = x[out], x[np.clip(out + towards, 0, x.size - 1)]
        for _ in range(_HALVINGS):
            middle = (outer + inner) / 2
            depth = a * middle**2 + k * shape.potential(middle) - tilt * middle - least
            inside = depth - _weight(middle) < DEPTH
            inner, outer = np.where(inside, middle, inner), np.where(inside, outer, middle)
        found.append(outer)
    return found[0], found[1]


def _scales(x: Array, v: Array, low: Array, high: Array) -> Array:
    """Points at every scale around the lowest point of V, for what lives on several at once."""
    bottom = x[v.argmin(axis=1)][:, None]
    shares = _APART ** -np.arange(1, _SCALES)
    sides = [bottom + (end[:, None] - bottom) * shares for end in (low, high)]
    return np.concatenate([sides[0], bottom, sides[1]], axis=1)


def _ends(inside: Mask) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last index inside, and one further out."""
    size = inside.shape[1]
    first = np.maximum(inside.argmax(axis=1) - 1, 0)
    last = np.minimum(size - inside[:, ::-1].argmax(axis=1), size - 1)
    return first, last


def _bottom(shape: Confinement, a: Array, k: Array, tilt: Array, low: Array, high: Array) -> Array:
    """Where V' changes sign between two points, by false position with halved weights."""

    def slope(x: Array) -> Array:
        return 2 * a * x + k * _finite(shape.psi(x)) - tilt

    below, above = slope(low), slope(high)
    middle = low
    for _ in range(_SECANTS):
        with np.errstate(all="ignore"):
            share = np.where(above > below, -below / (above - below), 0.5)
        middle = low + np.clip(share, 0.0, 1.0) * (high - low)
        value = slope(middle)
        rising = value >= 0
        below, above = (
            np.where(rising, below / 2, value),
            np.where(rising, value, above / 2),
        )
        low, high = np.where(rising, low, middle), np.where(rising, middle, high)
    return middle


def _ladders(at: NDArray[np.int64], bottom: Array, start: Array, end: Array, v: Array) -> Array:
    """Points that halve their distance to the bottom of each well, from both ends of its reach."""
    if not at.size:
        return np.empty((v.shape[0], 0))
    shares = 2.0 ** -np.arange(_RUNGS)
    one = np.concatenate(
        [
            bottom[:, None] + (start - bottom)[:, None] * shares,
            bottom[:, None],
            bottom[:, None] + (end - bottom)[:, None] * shares,
        ],
        axis=1,
    )
    place = np.arange(at.size) - np.searchsorted(at, at)
    found = np.full((v.shape[0], int(place.max()) + 1, one.shape[1]), np.nan)
    found[at, place] = one
    return found.reshape(v.shape[0], -1)
