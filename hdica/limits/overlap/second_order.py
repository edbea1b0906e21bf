"""What n leaves of one overlap at order 1/n: its mean is Q + m/n.

One step of the exact chain moves it by J/n + J2/n^2, with F = tau G the push, y = xi c/sqrt(n) + a
and E1 = 2 F u + F^2, E2 = F^2 (c^2 + e^2 - 2) what the step adds to |x|^2:

    J = F c - Q E1/2,        J2 = -F c E1/2 - Q E2/2 + 3 Q E1^2/8.

With D = <J>, D1 = <J2> and S = n Var(Q) at step k = t n, to leading order,

    m' = D' m + D'' S/2 + D1 - (dD/dt)/2,

the last term because steps have the length 1/n. In m + D/2 no derivative of the step size is left.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.schedules import Schedule
from hdica.limits.averages.products import Products
from hdica.limits.numerics.integrate import integrate
from hdica.limits.overlap.drift import TOLERANCE, Drift

Array = NDArray[np.float64]
_BEND = 1e-4
"""Distance over which the slope of the drift is differentiated; its square is the error."""


def _of_one(p: Products, q: Array, size: float) -> Array:
    """<J2> of a step with one sample."""
    square = -p.ggcu - q * (p.ggcc + p.ggee - 2 * p.gg) / 2 + 1.5 * q * p.gguu
    cube = 1.5 * q * p.gggu - p.gggc / 2
    return np.asarray(size**2 * square + size**3 * cube + size**4 * 0.375 * q * p.gggg)


def _of_pair(p: Products, q: Array, size: float) -> Array:
    """What two different samples of one step add to <J2>."""
    longer = 2 * size * p.u + size**2 * p.gg
    along = size * p.c
    met = along**2 + (size * p.e) ** 2
    return np.asarray(-along * longer / 2 - q * met / 2 + 0.375 * q * longer**2)


def second_order(p: Products, q: Array, tau: float, batch: int = 1) -> Array:
    """D1 = <J2> at overlaps ``q``, of a step with the mean over a batch of samples."""
    size = tau / batch
    return batch * _of_one(p, q, size) + batch * (batch - 1) * _of_pair(p, q, size)


def bias(
    drift: Drift,
    second: Callable[[Array, float], Array],
    schedule: Schedule,
    begin: tuple[float, float, float],
    times: Array,
) -> Array:
    """Bias m at increasing ``times``, shape (T,): n times (mean - limit) as n -> infinity.

    ``second(q, tau)`` is D1; ``begin`` are Q, S and m at t = 0. NaN where S is infinite.
    """
    if drift.noise is None:
        return np.full(times.size, np.nan)
    slopes = drift.learning.deriv(), drift.loss.deriv()

    def slope(q: float, tau: float) -> float:
        inside = np.array(min(1.0, max(-1.0, q)))
        return float(tau * slopes[0](inside) + tau**2 * slopes[1](inside))

    def rate(state: Array, tau: float) -> Array:
        q, spread, shifted = state.tolist()
        at, low, high = np.array(q), max(-1.0, q - _BEND), min(1.0, q + _BEND)
        d, rise = float(drift.at(at, tau)), slope(q, tau)
        bend = (slope(high, tau) - slope(low, tau)) / (high - low)
        moved = rise * (shifted - d / 2) + bend * spread / 2 + float(second(at, tau))
        return np.array([d, 2 * rise * spread + float(drift.variance(at, tau)), moved])

    found, now = np.full(times.size, begin[2]), np.array(begin)
    end = float(times[-1])
    for low, high in pairwise([0.0, *(b for b in schedule.breaks if 0 < b < end), end]):
        if high <= low:
            continue
        # Where the step size jumps m goes on, and D/2 does not.
        clock = _from(schedule, low)
        now[2] += _half(drift, clock, now[0], 0.0)
        inside = (times > low) & (times <= high)
        asked = np.append(times[inside] - low, high - low)
        states = integrate(rate, clock, now, asked, TOLERANCE).states
        less = [_half(drift, clock, q, t) for q, t in zip(states[:, 0], asked, strict=True)]
        states[:, 2] -= np.array(less)
        found[inside], now = states[:-1, 2], states[-1].copy()
    return found


def _from(schedule: Schedule, low: float) -> Schedule:
    """The schedule from a time on, whose first piece it is meant for."""
    later = tuple(b - low for b in schedule.breaks if b > low)
    return Schedule(lambda t: schedule.value(low + np.asarray(t)), schedule.constant, later)


def _half(drift: Drift, clock: Schedule, q: float, t: float) -> float:
    """D/2 at a time of a piece, at its end with the step size of its inside."""
    ends = [b for b in clock.breaks if b >= t]
    margin = 1e-12 * max(1.0, t)
    inside = min(max(t, margin), ends[0] - margin) if ends else max(t, margin)
    tau = clock.constant or float(clock.value(np.array(inside)))
    return float(drift.at(np.array(q), tau)) / 2
