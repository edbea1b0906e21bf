"""Fixed points of dQ/dt = tau D1(Q) + tau^2 D2(Q), the folds where they are born, and n near them.

From which n on a band of order n^-1/2 holds is where three of it do not reach an unstable state:
near one runs part to either side of it, and near a fold they linger, so that Q is not normal at any
n of a size that the distance sets. Above a fold, where two states have merged and gone, they are
roots off the real line, which count with their distance in the plane.

Where the step size changes, these states move, and a path may cross one of them without harm: runs
part only as far as the drift D bends for as long as they are there. With S = n Var(Q) and V the
variance of a step times n^2, the third cumulant K of Q times n^2 obeys

    dK/dt = 3 D' K + 3 D'' S^2 + 3 V' S + n^3 kappa_3,

and Q has the skewness (K^2/S^3/n)^1/2. Skewness 1 is what a thousand runs show at a glance. The
last term, the third cumulant kappa_3 of a single step, is of the same order and is left out: no
polynomial of it is at hand, and where paths part the skewness that it gives stays as it is, while
that of D'' grows. The n is therefore an estimate, without an error of its own. Only Q = 0 stays at
every step size; where it is unstable its distance counts as before.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.polynomial import chebyshev as cheb
from numpy.typing import NDArray

from hdica.ingredients.plain import Array, Mask
from hdica.ingredients.schedules import Schedule
from hdica.limits.numerics.series import (
    Function,
    Halves,
    coefficients,
    lobatto,
    overlap_of,
    packed,
    real_roots,
    trimmed,
    trimmed_tail,
)
from hdica.limits.numerics.solvers import integrate
from hdica.limits.overlap.drift import Drift, followed, packed_flow
from hdica.process.machine import one_thread

_LONGEST, _MOST = 64, 1024
_SMALL, _SLOPE_NOISE = 1e-13, 1e-10
_NEWTON = 6
_APART = 1e-3
"""How far from an extremum it is looked whether there is one, relative to the ends of a half."""
_NEAR_ZERO = 1e-6
_SAME = 1e-9
"""Roots nearer than this are one."""
_ROUNDING = 4e-15
"""Error of a drift that is known in closed form, relative to its size."""


def _pieces(
    function: Callable[[Array], Array], low: float, high: float, floor: float
) -> list[Array]:
    """Zeros of a function of x in an interval, halved until a short series describes it."""
    middle, half = (low + high) / 2, (high - low) / 2
    series = coefficients(function(middle + half * lobatto(_LONGEST)))
    size = np.abs(series).max()
    if size <= floor:
        return []
    level = max(_SMALL * size, floor)
    if np.abs(series[-6:]).max() > level and half > 1e-4:
        return _pieces(function, low, middle, floor) + _pieces(function, middle, high, floor)
    return [middle + half * real_roots(Chebyshev(trimmed_tail(series, level / 8)))]


def _zeros(function: Callable[[Array], Array], noise: float = 1e-14) -> Array:
    """All zeros, of a function that is known but for a noise relative to its largest value."""
    floor = noise * float(np.abs(function(lobatto(4 * _LONGEST))).max())
    # No halving at a round number, where a root is likely.
    parts = ((-1.0, 0.0137), (0.0137, 1.0))
    roots = [part for low, high in parts for part in _pieces(function, low, high, floor)]
    return np.sort(np.concatenate(roots)) if roots else np.empty(0)


def _divided(function: Function, q: Array, sign: int) -> Array:
    """A function that vanishes at Q = 0, divided by Q, at overlaps of one sign, shape of ``q``."""
    inside = np.maximum(q, 1e-12)
    return function(sign * inside) / (sign * inside)


def _roots_on_halves(learning: Function, loss: Function, tau: float) -> Array:
    """Zeros of D1 + tau D2 other than Q = 0, polished on the drift itself."""
    sides = []
    for sign in (-1, 1):

        def rate(x: Array, sign: int = sign) -> Array:
            q = overlap_of(x)
            return _divided(learning, q, sign) + tau * _divided(loss, q, sign)

        sides.append(sign * overlap_of(_zeros(rate)))
    q = np.concatenate(sides)
    rise, fall = learning.deriv(), loss.deriv()
    for _ in range(_NEWTON):
        with np.errstate(all="ignore"):
            step = (learning(q) + tau * loss(q)) / (rise(q) + tau * fall(q))
        q = np.where(np.abs(step) < 1e-6, np.clip(q - step, -1.0, 1.0), q)
    return q


def _extrema_on_halves(learning: Function, loss: Function) -> tuple[Array, Array]:
    """Extrema of T = -D1/D2 inside (0, 1) and (-1, 0): overlaps and step sizes."""
    places, sizes = [], []
    for sign in (-1, 1):

        def steps(x: Array, sign: int = sign) -> Array:
            q = overlap_of(x)
            return -_divided(learning, q, sign) / _divided(loss, q, sign)

        degree = 64
        while True:
            series = coefficients(steps(lobatto(degree)))
            size, tail = np.abs(series).max(), np.abs(series[-degree // 8 :]).max()
            if tail <= 1e-12 * size or degree >= _MOST:
                break
            degree *= 2
        slope: Array = np.asarray(cheb.chebder(trimmed_tail(series, 1e-13 * size)))

        def rise(x: Array, slope: Array = slope) -> Array:
            return np.asarray(cheb.chebval(x, slope))

        x = _zeros(rise, _SLOPE_NOISE)
        q = sign * overlap_of(x)
        # Where T rises steadily from rounding, as near Q = 0, its slope may vanish by accident.
        near = _APART * (1 - np.abs(x))
        level = steps(x)
        turns = (steps(x + near) - level) * (steps(x - near) - level) > 0
        inside = turns & (np.abs(q) > 1e-6) & (np.abs(q) < 1 - 1e-10)
        places.append(q[inside])
        sizes.append(steps(x[inside]))
    return np.concatenate(places), np.concatenate(sizes)


class FixedPoints(NamedTuple):
    """All fixed points at one step size, by increasing Q; arrays of shape (points,).

    ``stable`` says whether a small departure dies out, ``error`` is that of the overlap.
    """

    q: Array
    stable: Mask
    error: Array


@dataclass(frozen=True)
class Folds:
    """Step sizes at which two fixed points merge, largest first, and overlaps; shape (folds,)."""

    tau: Array
    q: Array


def _distinct(values: Array) -> Array:
    return values[np.append(True, np.diff(values) > _SAME)] if values.size else values


def _ends(drift: Drift, others: Array) -> Array:
    """Those of Q = -1 and 1 that are roots for every step size, and that rounding put outside.

    The learning vanishes there, and so does the loss where f is 0 on all values of the source.
    """
    ends = np.array([-1.0, 1.0])
    near = np.abs(others[:, None] - ends).min(axis=0, initial=np.inf) < _SAME
    parts = ((drift.learning, drift.learning_error), (drift.loss, drift.loss_error))
    zero = [np.abs(part(ends)) <= off + _ROUNDING * _size(part) for part, off in parts]
    return ends[np.all(zero, axis=0) & ~near]


def find_fixed_points(drift: Drift, tau: float) -> FixedPoints:
    """Every root of the drift in [-1, 1], from the eigenvalues of its companion matrix.

    Q = 0 is always among them, because E c = 0 and E c^2 = 1 make D1 vanish as Q^2 and D2 is
    proportional to Q; the other roots are those of the drift divided by Q.
    """
    learning, loss = drift.learning, drift.loss
    rate: Chebyshev | None = None
    if isinstance(learning, Halves) or isinstance(loss, Halves):
        others = _roots_on_halves(learning, loss, tau)
    else:
        rate = learning + tau * loss
        others = real_roots(Chebyshev(cheb.chebdiv(rate.coef, np.array([0.0, 1.0]))[0]))
    q = np.sort(np.concatenate([others[np.abs(others) > 1e-12], _ends(drift, others), [0.0]]))
    q = _distinct(q)
    slope = rate.deriv()(q) if rate is not None else learning.deriv()(q) + tau * loss.deriv()(q)
    return FixedPoints(q, slope < 0, _errors(drift, tau, q, slope))


def _size(function: Function) -> float:
    rows = (function.below, function.above) if isinstance(function, Halves) else (function.coef,)
    return max(float(np.abs(row).sum()) for row in rows)


def _errors(drift: Drift, tau: float, q: Array, slope: Array) -> Array:
    """How far roots move where the drift is off by its error, also where two nearly merge."""
    rounding = _ROUNDING * (_size(drift.learning) + tau * _size(drift.loss))
    off = drift.learning_error + tau * drift.loss_error + rounding
    step = 1e-4
    middle = drift.at(q, tau) / tau
    ahead, behind = (drift.at(np.clip(q + d, -1, 1), tau) / tau - middle for d in (step, -step))
    bend = np.abs(ahead + behind) / step**2
    size = np.abs(slope)
    with np.errstate(divide="ignore", invalid="ignore"):
        # The root of off = slope e - bend e^2/2, or where there is none, of off = bend e^2/2.
        under = np.maximum(size**2 - 2 * bend * off, 0.0)
        moved = np.where(under > 0, 2 * off / (size + np.sqrt(under)), np.sqrt(2 * off / bend))
    return np.where(q == 0.0, 0.0, moved + np.finfo(float).eps)


def find_folds(drift: Drift) -> Folds:
    """All extrema T > 0 away from Q = 0 of the step size along tau = T(Q) = -D1(Q)/D2(Q)."""
    if isinstance(drift.learning, Halves) or isinstance(drift.loss, Halves):
        q, tau = _extrema_on_halves(drift.learning, drift.loss)
    else:
        b, _ = cheb.chebdiv(drift.loss.coef, np.array([0.0, 1.0]))
        # D1 = Q^2 top and D2 = Q b, so T = -Q top/b.
        top, _ = cheb.chebdiv(drift.learning.coef, np.array([0.5, 0.0, 0.5]))
        a = np.asarray(cheb.chebmulx(top), dtype=float)
        rise = cheb.chebsub(cheb.chebmul(cheb.chebder(a), b), cheb.chebmul(a, cheb.chebder(b)))
        q = real_roots(Chebyshev(rise))
        q = _distinct(q[(np.abs(q) > _NEAR_ZERO) & (np.abs(q) < 1 - 1e-12)])
        tau = -cheb.chebval(q, a) / cheb.chebval(q, b)
    errors = [fold_error(drift, t, x) for t, x in zip(tau.tolist(), q.tolist(), strict=True)]
    positive = tau > np.maximum(1e-12, 4 * np.array(errors))
    order = np.argsort(-tau[positive], kind="stable")
    return Folds(tau[positive][order], q[positive][order])


def fold_error(drift: Drift, tau: float, q: float) -> float:
    """Error of the step size T(Q) at a fold, from those of the two orders of the drift.

    T does not change with Q there, so that the error of Q does not matter.
    """
    loss = abs(float(drift.loss(q)))
    size = max(loss, np.finfo(float).tiny)
    return (drift.learning_error + tau * drift.loss_error) / size + 4e-16 * tau


DEVIATIONS = 3.0
"""So many standard deviations must stay clear of an unstable state."""
_BETWEEN = 97
_REAL = 1e-7
_BEND, _FOLLOWED, _NO_SPREAD = 1e-4, 1e-7, 1e-9
"""Distance over which slopes are differentiated, tolerance of the steps, and least n Var(Q)."""


@lru_cache(maxsize=256)
def repelling(drift: Drift, tau: float) -> NDArray[np.complex128]:
    """Roots of the drift that runs do not settle at: unstable states, and those off the line."""
    states = find_fixed_points(drift, tau)
    real = states.q[~states.stable].astype(complex)
    if not (isinstance(drift.learning, Chebyshev) and isinstance(drift.loss, Chebyshev)):
        return real
    series = trimmed(drift.learning + tau * drift.loss)
    if series.coef.size < 2:
        return real
    with one_thread():
        roots = cheb.chebroots(series.coef)
    off = (np.abs(roots.imag) > _REAL) & (np.abs(roots.real) <= 1)
    return np.concatenate([real, roots[off]])


def holds_from(drift: Drift, schedule: Schedule, begin: tuple[float, float], times: Array) -> Array:
    """The n from which the central limit theorem holds up to each of ``times``, shape (T,).

    ``begin`` are Q and n Var(Q) at t = 0. At a constant step size the largest on the way of
    9 n Var(Q) over the squared distance to what repels, else of n times the squared skewness of Q,
    and of the former for Q = 0 where that repels. NaN where the fluctuation is infinite, inf where
    runs start to fluctuate at an unstable state itself.
    """
    way = np.union1d(times, np.linspace(0.0, float(times[-1]), _BETWEEN))
    if schedule.constant is None:
        least = _where_states_move(drift, schedule, begin, way)
    else:
        q, spread = followed(drift, schedule, *begin, way)
        states = repelling(drift, schedule.constant)
        away = np.abs(q[:, None] - states).min(axis=1, initial=np.inf)
        least = _clear(spread, away)
    return np.maximum.accumulate(least)[np.searchsorted(way, times)]


def _clear(spread: Array, away: Array) -> Array:
    """The n at which so many standard deviations are a distance."""
    with np.errstate(divide="ignore", invalid="ignore"):
        least = (DEVIATIONS * spread / away) ** 2
    return np.where((spread == 0) & (away == 0), 0.0, least)


def _where_states_move(
    drift: Drift, schedule: Schedule, begin: tuple[float, float], way: Array
) -> Array:
    """The same of each time on the way, while the step size changes."""
    if drift.noise is None:
        return np.full(way.size, np.nan)
    from hdica.limits.numerics.compiled import value_at

    parts, noise = packed_flow(drift), [packed(part) for part in drift.noise]
    flow, rise = parts[:2], parts[2:]

    def orders(parts: list[Array], q: float, tau: float, first: int) -> float:
        return sum(tau ** (first + k) * value_at(part, q) for k, part in enumerate(parts))

    def rate(state: Array, tau: float) -> Array:
        q, spread, third = state.tolist()
        q = min(1.0, max(-1.0, q))
        low, high = max(-1.0, q - _BEND), min(1.0, q + _BEND)
        slope = orders(rise, q, tau, 1)
        bend, steeper = (
            (orders(parts, high, tau, first) - orders(parts, low, tau, first)) / (high - low)
            for parts, first in ((rise, 1), (noise, 2))
        )
        moved = 3 * (slope * third + bend * spread**2 + steeper * spread)
        drawn = orders(noise, q, tau, 2)
        return np.array([orders(flow, q, tau, 1), 2 * slope * spread + drawn, moved])

    state = np.array([*begin, 0.0])
    q, variance, third = integrate(rate, schedule, state, way, _FOLLOWED).states.T
    variance = np.maximum(variance, 0.0)
    skewed = third**2 / np.where(variance > _NO_SPREAD, variance, np.inf) ** 3
    repels = np.array([orders(rise, 0.0, tau, 1) > 0 for tau in schedule.value(way).tolist()])
    return np.maximum(skewed, np.where(repels, _clear(np.sqrt(variance), np.abs(q)), 0.0))
