"""From which n on a band of order n^-1/2 holds: where three of it do not reach an unstable state.

Near an unstable steady state runs part to either side of it, and near a fold they linger: there Q
is not normal at any n of a size that the distance sets. Above a fold, where two states have merged
and gone, they are roots off the real line, which count with their distance in the plane.

Where the step size changes, these states move, and a path may cross one of them without harm: runs
part only as far as the drift D bends for as long as they are there. With S = n Var(Q) and V the
variance of a step times n^2, the third cumulant K of Q times n^2 obeys

    dK/dt = 3 D' K + 3 D'' S^2 + 3 V' S + n^3 kappa_3,

and Q has the skewness (K^2/S^3/n)^1/2. Skewness 1 is what a thousand runs show at a glance. The
last term, the third cumulant kappa_3 of a single step, is of the same order and is left out here:
no polynomial of it is at hand, and where paths part the skewness that it gives stays as it is,
while that of D'' grows. The n is therefore an estimate, without an error of its own.
Only Q = 0 stays at every step size; where it is unstable its distance counts as before.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.polynomial import chebyshev as cheb
from numpy.typing import NDArray

from hdica.ingredients.schedules import Schedule
from hdica.limits.numerics.integrate import integrate
from hdica.limits.numerics.packed import packed
from hdica.limits.numerics.series import trimmed
from hdica.limits.overlap.drift import Drift, followed
from hdica.limits.overlap.fixed_points import find_fixed_points
from hdica.process.machine import one_thread

Array = NDArray[np.float64]
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
        found = np.asarray(cheb.chebroots(series.coef))
    off = (np.abs(found.imag) > _REAL) & (np.abs(found.real) <= 1)
    return np.concatenate([real, found[off]])


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
    return np.asarray(np.maximum.accumulate(least)[np.searchsorted(way, times)])


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

    rise = [packed(part.deriv()) for part in (drift.learning, drift.loss)]
    flow = [packed(part) for part in (drift.learning, drift.loss)]
    noise = [packed(part) for part in drift.noise]

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
