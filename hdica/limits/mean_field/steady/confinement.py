"""The potential of a regularizer, how it confines, and where a density exp(-V) of it lives.

With phi(x) = slope * x + psi(x) and Psi' = psi a linear term is inert, because it only shifts the
multiplier h of E[x^2] = 1. Splitting it off measures h from the end of its range, where the density
stops being normalisable, and leaves a Psi without the cancellation of two large quadratic terms.

V = a x^2 + k Psi(x) - tilt x may have several wells: a regularizer that levels off leaves some far
out where x^2 and the tilt balance, whose widths have nothing to do with their distance. Points at
which Psi is resolved find them all, and a bound on Psi beyond the last of these points says that
there are no others.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy
import sympy as sp
from numpy.polynomial import Polynomial
from numpy.polynomial.chebyshev import cheb2poly, chebint, chebval, chebvander

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.plain import Array, Function, Indices, Mask
from hdica.process.progress import check_deadline

_DEGREE = 11
_FINEST = 44
"""Halvings of a panel at most."""
_MOST = 4096
"""Panels at most."""
_OVERFLOW = 1e200


@dataclass(frozen=True, eq=False)
class Confinement:
    """The regularizer as the steady state sees it.

    ``slope`` is what is split off: the smaller limit of phi(x)/x at +-infinity, or 0 where phi
    grows faster than x, on both sides (``superlinear``), so that any multiplier h is admissible.
    psi = l1 * sign(x) has moments in closed form; l1 is None for any other psi, the ``remainder``.
    """

    phi: Formula
    slope: float
    superlinear: bool
    l1: float | None
    remainder: Formula

    def psi(self, x: Array) -> Array:
        """phi(x) without its linear part, any shape."""
        if self.l1 is not None:
            return self.l1 * np.sign(x)
        return self.remainder.value(x)

    def potential(self, x: Array) -> Array:
        """Psi(x), with Psi(0) = 0, any shape."""
        if self.l1 is not None:
            return self.l1 * np.abs(x)
        return _table(self, _reach_of(x))[0](np.asarray(x, dtype=float))

    def resolved(self, reach: float) -> Array:
        """Ends of panels of [-reach, reach], a power of two, on which psi is a short polynomial."""
        return np.append(_table(self, reach)[1], reach)

    def breaks(self, low: float, high: float) -> Array:
        """Points of (low, high) between which phi is smooth on their own scale; increasing."""
        if self.l1 is not None:
            points = np.zeros(1)
        else:
            # Quadrature is exact for twice the degree of the table, and in products with it.
            fine = _table(self, _reach_of(np.array([low, high])))[1]
            points = np.unique(np.concatenate([fine[::3], self.phi.kinks]))
        return points[(points > low) & (points < high)]


@lru_cache(maxsize=256)
def confinement(phi: Formula) -> Confinement:
    """How a regularizer confines the estimate."""
    l1: float | None = None
    superlinear = False
    if phi.elastic_net is not None:
        l1, slope = phi.elastic_net
    else:
        slopes = [_slope_at_infinity(phi, side) for side in (-1.0, 1.0)]
        if min(slopes) == -math.inf:
            raise HdicaError(
                f"regularizer {phi.text!r} has no steady state (it pushes large entries outwards "
                "faster than the normalisation holds them; allowed is phi(x)/x bounded from below)"
            )
        superlinear = min(slopes) == math.inf
        slope = 0.0 if superlinear else min(slopes)
    # As a fraction, so that a linear term of phi cancels exactly also where x is large.
    rest = sp.expand(phi.expression - sp.Rational(repr(slope)) * phi.symbol)
    psi = Formula(f"{phi.text} - {slope:g}*{phi.symbol}", rest, phi.symbol)
    return Confinement(phi, slope, superlinear, l1, psi)


def _slope_at_infinity(phi: Formula, side: float) -> float:
    """Limit of phi(x)/x, from a geometric extrapolation of three far values (Aitken)."""
    x = side * np.array([2.0**20, 2.0**30, 2.0**40])
    ratio = phi.value(x) / x
    if np.any(np.isnan(ratio)):
        raise HdicaError(
            f"regularizer {phi.text!r} has no known growth (its value at x = "
            f"{x[np.isnan(ratio)][0]:.3g} is not a number)"
        )
    if not np.all(np.isfinite(ratio)):
        return math.copysign(math.inf, ratio[-1])
    first, second = np.diff(ratio)
    if abs(second) >= 0.9 * abs(first) and abs(second) > 1e-9 * abs(ratio[-1]):
        return math.copysign(math.inf, second)
    limit = ratio[-1] - (second**2 / (second - first) if second != first else 0.0)
    return 0.0 if abs(limit) < 1e-9 * float(np.abs(ratio).max() + 1) else round(float(limit), 10)


def _reach_of(x: Array) -> float:
    """A power of two that no size of x exceeds."""
    return 2.0 ** math.ceil(math.log2(max(8.0, float(np.max(np.abs(x))))))


@lru_cache(maxsize=64)
def _table(shape: Confinement, reach: float) -> tuple[Function, Array]:
    """Psi on [-reach, reach]: adaptive Chebyshev panels of psi, integrated away from zero."""
    grown = 2.0 ** np.arange(0, math.log2(reach) + 1, 2)
    inner = [k for k in shape.phi.kinks if -reach < k < reach]
    left, right, series = _resolved(shape, np.unique([-reach, reach, 0.0, *grown, *-grown, *inner]))
    half = (right - left) / 2
    rising = np.stack([chebint(c, lbnd=-1) for c in series], axis=-1) * half
    whole = np.asarray(chebval(1.0, rising))
    zero = np.searchsorted(left, 0.0)
    # Summed outwards from 0, where Psi is small and must be exact.
    below, above = np.cumsum(whole[:zero][::-1])[::-1], np.cumsum(whole[zero:])
    # From Chebyshev coefficients in t to those of powers of t + 1.
    size, shift = rising.shape[0], Polynomial([-1.0, 1.0])
    columns = [np.asarray(Polynomial(cheb2poly(row))(shift).coef, float) for row in np.eye(size)]
    to_powers = np.stack([np.pad(c, (0, size - c.size)) for c in columns], axis=-1)
    local = np.einsum("ij,jp->ip", to_powers, rising)
    local[0] = np.concatenate([-below, [0.0], above[:-1]])
    powers = half ** np.arange(local.shape[0])[:, None]
    return scipy.interpolate.PPoly((local / powers)[::-1], np.append(left, reach)), left


def _resolved(shape: Confinement, edges: Array) -> tuple[Array, Array, Array]:
    """Panels on which psi is a short Chebyshev series: left and right ends, coefficients.

    Halved until the last coefficients are rounding errors; a regularizer that never stops
    oscillating is left unresolved far out.
    """
    nodes = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
    transform = np.linalg.inv(chebvander(nodes, _DEGREE)).T
    left, right = edges[:-1], edges[1:]
    done: list[tuple[Array, Array, Array]] = []
    for generation in range(_FINEST):
        half = (right - left) / 2
        values = shape.psi((left + half)[:, None] + half[:, None] * nodes)
        # Where phi overflows the density vanishes, whatever the number.
        finite = np.all(np.isfinite(values), axis=1)
        beyond = np.nan_to_num(np.sign(values[:, _DEGREE // 2])) * _OVERFLOW
        values = np.where(finite[:, None], values, beyond[:, None])
        series = np.einsum("pn,nk->pk", values, transform)
        size = np.abs(series)
        last = size[:, -3:].max(axis=1)
        fits = (last <= 1e-14 * size.max(axis=1)) | (half * last < 1e-16)
        fits &= finite | (generation >= 12)
        if generation == _FINEST - 1 or left.size + sum(d[0].size for d in done) > _MOST:
            fits[:] = True
        done.append((left[fits], right[fits], series[fits]))
        left, right, middle = left[~fits], right[~fits], ((left + right) / 2)[~fits]
        left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
        if left.size == 0:
            break
    left, right, series = map(np.concatenate, zip(*done, strict=True))
    order = np.argsort(left, kind="stable")
    return left[order], right[order], series[order]


Ends = tuple[Indices, Indices]
DEPTH = 46.0
"""The density is followed down to exp(-46) = 1e-20 of its maximum."""
_REACHES = (8.0, 2.0**6, 2.0**12, 2.0**24, 2.0**39, 2.0**52)
_CONFINED, _FARTHEST = _REACHES[-2:]
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


class Region(NamedTuple):
    """Where densities are larger than 1e-20 of their maximum: from ``low`` to ``high``, each row.

    ``confined``: whether it is normalisable with a second moment; ``many``: whether there may be
    more than one well; ``rungs``, shape (rows, points): points that crowd towards narrow wells,
    ``low`` where none is needed.
    """

    low: Array
    high: Array
    confined: Mask
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
    return 4 * np.log(np.maximum(np.abs(x) / _REACHES[0], 1.0))


def _finite(values: Array) -> Array:
    return np.nan_to_num(values, nan=0.0, posinf=1e200, neginf=-1e200)


@lru_cache(maxsize=64)
def _outward(shape: Confinement, reach: float) -> Array:
    """Least psi and least psi/x beyond a reach, on either side, counted outwards; shape (2, 2)."""
    x = np.geomspace(reach, 2 * _FARTHEST, 500)
    outward = np.stack([-_finite(shape.psi(-x)), _finite(shape.psi(x))])
    return np.stack([outward.min(axis=1), (outward / x).min(axis=1)])


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
    confined, many = np.zeros((2, a.size), dtype=bool)
    rungs: list[tuple[Indices, Array]] = []
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
            last = reach >= np.where(row[0] > 0, _FARTHEST, _CONFINED)
            done = clear | last
            left.append(part[~done])
            if not done.any():
                continue
            rows = part[done]
            confined[rows] = (clear | fallen)[done]
            slope = 2 * square[done] * x + strength[done] * force - pull[done]
            points = x, v[done], slope
            low[rows], high[rows], many[rows], rung = _hull(shape, row, done, points)
            rungs.append((rows, rung))
        open_ = np.concatenate(left)
        if not open_.size:
            break
    width = max((crowd.shape[1] for _, crowd in rungs), default=0)
    collected = np.repeat(low[:, None], width, axis=1)
    for rows, crowd in rungs:
        collected[rows, : crowd.shape[1]] = np.where(np.isnan(crowd), low[rows, None], crowd)
    return Region(low, high, confined, collected, many)


def _hull(
    shape: Confinement, row: tuple[Array, ...], rows: Mask, points: tuple[Array, Array, Array]
) -> tuple[Array, Array, Mask, Array]:
    """Ends of the regions of some rows, which have several wells, and their rungs or NaN."""
    x, v, slope = points
    wells = (slope[:, :-1] < 0) & (slope[:, 1:] >= 0)
    far = _weight(x)
    first, last = ends_of(v - v.min(axis=1)[:, None] - far < DEPTH)
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
    rise = np.maximum(v[many[at], left], v[many[at], left + 1]) - depth
    narrow = rise > _STEEP
    ladders = _ladders(many[at][narrow], bottom[narrow], start[narrow], end[narrow], v)
    return low, high, several | heavy, np.concatenate([ladders, spread], axis=1)


def _is_heavy(x: Array, v: Array) -> Mask:
    """Whether x^2 times the density is not small where the density itself is, shape (rows,).

    A regularizer that levels off leaves a plateau of V that goes on until a x^2 ends it: little
    mass so far out that it has E x^2 = 1.
    """
    lowest = v.argmin(axis=1)
    depth, away = v - v.min(axis=1)[:, None], np.abs(x - x[lowest][:, None])
    rows = np.arange(lowest.size)
    first, last = ends_of(depth < _OWN)
    own = np.maximum(away[rows, first], away[rows, last])
    far = 3 * np.log(np.maximum(away / np.maximum(own, _REACHES[0])[:, None], 1.0))
    first, last = ends_of(depth < DEPTH)
    outside = (x < x[first][:, None]) | (x > x[last][:, None])
    # Where the density has fallen lies between two points; the nearer one is in doubt.
    nearer = np.minimum(first + 1, x.size - 1), np.maximum(last - 1, 0)
    there = np.maximum(far[rows, nearer[0]], far[rows, nearer[1]])
    beyond = np.any(outside & (depth - far < _LOST), axis=1) | (DEPTH - there < _LOST)
    return (lowest > 0) & (lowest < x.size - 1) & beyond


def _on_plateaus(
    shape: Confinement, row: list[Array], points: tuple[Array, Array], ends: Ends, heavy: Mask
) -> tuple[Array, Array, Array]:
    """Ends of all regions and their rungs, where some are heavy."""
    (x, v), (first, last) = points, ends
    low, high = x[first], x[last]
    if not heavy.any():
        return low, high, np.empty((low.size, 0))
    own, v = [value[heavy] for value in row], v[heavy]
    sides = _narrowed(shape, own, x, v, first[heavy], last[heavy])
    low[heavy], high[heavy] = sides
    # Points at every scale around the lowest point of V, for what lives on several at once.
    bottom, shares = x[v.argmin(axis=1)][:, None], _APART ** -np.arange(1, _SCALES)
    below, above = (bottom + (side[:, None] - bottom) * shares for side in sides)
    rungs = np.concatenate([below, bottom, above], axis=1)
    spread = np.repeat(low[:, None], rungs.shape[1], axis=1)
    spread[heavy] = rungs
    return low, high, spread


def _narrowed(
    shape: Confinement, row: list[Array], x: Array, v: Array, first: Indices, last: Indices
) -> tuple[Array, Array]:
    """Ends of regions of heavy densities, between points that are far apart there."""
    a, k, tilt = row
    least = v.min(axis=1)
    ends = []
    for out, towards in ((first, 1), (last, -1)):
        outer, inner = x[out], x[np.clip(out + towards, 0, x.size - 1)]
        for _ in range(_HALVINGS):
            middle = (outer + inner) / 2
            depth = a * middle**2 + k * shape.potential(middle) - tilt * middle - least
            inside = depth - _weight(middle) < DEPTH
            inner, outer = np.where(inside, middle, inner), np.where(inside, outer, middle)
        ends.append(outer)
    return ends[0], ends[1]


def ends_of(inside: Mask) -> Ends:
    """First and last index inside, and one further out, of each row."""
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
        below, above = np.where(rising, below / 2, value), np.where(rising, value, above / 2)
        low, high = np.where(rising, low, middle), np.where(rising, middle, high)
    return middle


def _ladders(at: Indices, bottom: Array, start: Array, end: Array, v: Array) -> Array:
    """Points that halve their distance to the bottom of each well, from both ends of its reach."""
    if not at.size:
        return np.empty((v.shape[0], 0))
    middle, shares = bottom[:, None], 2.0 ** -np.arange(_RUNGS)
    below, above = (middle + (side - bottom)[:, None] * shares for side in (start, end))
    ladder = np.concatenate([below, middle, above], axis=1)
    place = np.arange(at.size) - np.searchsorted(at, at)
    rungs = np.full((v.shape[0], int(place.max()) + 1, ladder.shape[1]), np.nan)
    rungs[at, place] = ladder
    return rungs.reshape(v.shape[0], -1)
