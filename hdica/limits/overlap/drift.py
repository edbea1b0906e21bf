"""Limits closed in the overlap alone: dQ/dt = tau D1(Q) + tau^2 D2(Q), and what n leaves of them.

At order 1/n the mean of the overlap is Q + m/n. One step of the exact chain moves it by
J/n + J2/n^2, with F = tau G the push, y = xi c/sqrt(n) + a and E1 = 2 F u + F^2,
E2 = F^2 (c^2 + e^2 - 2) what the step adds to |x|^2:

    J = F c - Q E1/2,        J2 = -F c E1/2 - Q E2/2 + 3 Q E1^2/8.

With D = <J>, D1 = <J2> and S = n Var(Q) at step k = t n, to leading order,

    m' = D' m + D'' S/2 + D1 - (dD/dt)/2,

the last term because steps have the length 1/n. In m + D/2 no derivative of the step size is left.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Chebyshev

from hdica.ingredients.plain import Array
from hdica.ingredients.schedules import Observed, Schedule
from hdica.limits.averages.expectations import Products
from hdica.limits.numerics.series import Function, packed, scaled
from hdica.limits.numerics.solvers import integrate, stretches

TOLERANCE = 1e-10
REFINED = 1e-12
CONTROL = 1.02
Noise = tuple[Function, Function, Function]
_ERROR_STEPS = 1e-6
_FOLLOWED = 1e-6


@dataclass(frozen=True, eq=False)
class Drift:
    """Drift and fluctuation of one overlap, expanded in the step size.

    ``learning`` and ``loss`` are D1 and D2 of dQ/dt = tau D1(Q) + tau^2 D2(Q), on [-1, 1], the
    errors their largest absolute ones; 0 where they are known to rounding. ``find_noise`` finds V2,
    V3, V4 of the step variance n Var = tau^2 V2 + tau^3 V3 + tau^4 V4 (central limit theorem about
    the limit), or None where it is infinite.
    """

    learning: Function
    loss: Function
    find_noise: Callable[[], Noise | None] = lambda: None
    learning_error: float = 0.0
    loss_error: float = 0.0

    @cached_property
    def noise(self) -> Noise | None:
        """The step variance, which steady states need not wait for."""
        return self.find_noise()

    def at(self, q: Array, tau: float) -> Array:
        """dQ/dt at overlaps ``q`` for a constant step size."""
        return tau * self.learning(q) + tau**2 * self.loss(q)

    def best(self, q: Array) -> Array:
        """The step sizes -D1/(2 D2) of the largest rates at overlaps ``q``."""
        return np.asarray(-self.learning(q) / (2 * self.loss(q)))

    def variance(self, q: Array, tau: float) -> Array:
        """The step variance at overlaps ``q``, where it is finite."""
        assert self.noise is not None
        second, third, fourth = (one(q) for one in self.noise)
        return tau**2 * second + tau**3 * third + tau**4 * fourth

    def of_batch(self, m: int) -> Drift:
        """The same for the mean over m samples at one estimate: D2/m and V_k/m^(k - 1).

        A step is m steps of size tau/m of one sample, to the order that the limit and its central
        limit theorem see: two samples of one step interfere by 1/n only.
        """
        return self if m == 1 else _of_batch(self, m)


@lru_cache(maxsize=64)
def _of_batch(drift: Drift, m: int) -> Drift:
    def noise() -> Noise | None:
        if drift.noise is None:
            return None
        second, third, fourth = drift.noise
        return scaled(second, 1 / m), scaled(third, m**-2), scaled(fourth, m**-3)

    loss, error = scaled(drift.loss, 1 / m), drift.loss_error / m
    return replace(drift, loss=loss, find_noise=noise, loss_error=error)


class OverlapPath(NamedTuple):
    """The limit at the asked times, each array of shape (T,): the overlap ``q`` and more.

    ``error`` is the difference to a run with a hundredfold finer tolerance, plus that tolerance,
    plus what the errors of the drift have become by then; ``control`` the same limit with its drift
    wrong by 2 %: what a comparison must be able to reject; ``spread`` the limit of sqrt(n) times
    the standard deviation of Q, NaN if it is infinite.
    """

    q: Array
    error: Array
    control: Array
    spread: Array


def packed_flow(drift: Drift) -> list[Array]:
    """D1, D2 and their slopes as compiled code takes them."""
    flow = (drift.learning, drift.loss)
    return [packed(series) for series in (*flow, *(part.deriv() for part in flow))]


def _integrate(
    drift: Drift,
    schedule: Schedule,
    q0: float,
    spread0: float,
    times: Array,
    tolerance: float,
    factor: float = 1.0,
) -> tuple[Array, float]:
    """Q and n Var(Q) at ``times``, shape (2, T), and the tolerance that they needed."""
    from hdica.limits.numerics.compiled import overlap_rhs

    zero = Chebyshev([0.0])
    noise = [packed(series) for series in drift.noise or (zero, zero, zero)]
    coefficients, out = [*packed_flow(drift), *noise], np.empty(2)

    def rate(state: Array, tau: float) -> Array:
        overlap_rhs(tau, state, factor, *coefficients, out)
        return out.copy()

    states, needed = integrate(rate, schedule, np.array([q0, spread0]), times, tolerance)
    return states.T, needed


def solve(drift: Drift, schedule: Schedule, q0: float, spread0: float, times: Array) -> OverlapPath:
    """Integrate the limit with error control (Dormand-Prince 8(5,3), dense output).

    From Q and n Var(Q) at t = 0 to increasing times, in samples per dimension; it restarts at jumps
    of the step size.
    """
    solved = partial(_integrate, drift, schedule, q0, spread0, times)
    closes = drift.noise is not None
    return compared(solved, closes, lambda _: _carried(drift, schedule, q0, times))


def follow(drift: Drift, seen: Observed, q0: float, times: Array) -> OverlapPath:
    """The same where the step size follows what is observed: two equations, of Q and s.

    dQ/dt = tau(s) D1(Q) + tau(s)^2 D2(Q), ds/dt = rate (abs(Q)^p - s); the spread is not known.
    """
    from hdica.limits.numerics.compiled import value_at

    parts = [packed(drift.learning), packed(drift.loss)]
    sizes, nowhere = np.array(seen.sizes), Schedule(np.zeros_like, 0.0)
    places = np.linspace(0.0, 1.0, sizes.size)

    def solved(tolerance: float, factor: float = 1.0, wrong: float = 0.0) -> tuple[Array, float]:
        def rate(state: Array, _: float) -> Array:
            q, shown = state.tolist()
            q, square = min(1.0, max(-1.0, q)), max(0.0, shown) ** (2 / seen.power)
            tau = float(np.interp(square, places, sizes))
            learning = value_at(parts[0], q) + wrong * drift.learning_error
            loss = value_at(parts[1], q) + wrong * drift.loss_error
            pull = seen.rate * (abs(q) ** seen.power - shown)
            return np.array([factor * tau * (learning + tau * loss), pull])

        states, needed = integrate(rate, nowhere, np.array([q0, 0.0]), times, tolerance)
        return states.T, needed

    return compared(solved, False, lambda fine: np.abs(solved(REFINED, wrong=1.0)[0][0] - fine[0]))


def compared(
    solved: Callable[..., tuple[Array, float]], closes: bool, carried: Callable[[Array], Array]
) -> OverlapPath:
    """The path of ``solved(tolerance, factor)``: rows Q, n Var(Q) and more, and its tolerance.

    ``closes`` says whether n Var(Q) is known; ``carried`` is what the drift leaves open in Q.
    """
    fine, close = solved(REFINED)
    rough = coarser(close)
    coarse, _ = solved(rough)
    wrong, _ = solved(rough, CONTROL)
    error = np.abs(fine[0] - coarse[0]) + close + carried(fine)
    return OverlapPath(fine[0], error, wrong[0], _deviation(fine[1], closes))


def coarser(close: float) -> float:
    """The tolerance of the run with which one of tolerance ``close`` is compared."""
    return TOLERANCE if close == REFINED else close * TOLERANCE / REFINED


def _deviation(variance: Array, closes: bool) -> Array:
    return np.sqrt(np.maximum(variance, 0.0)) if closes else np.full(variance.size, np.nan)


def followed(
    drift: Drift, schedule: Schedule, q0: float, spread0: float, times: Array
) -> tuple[Array, Array]:
    """Q and the limit of sqrt(n) sd(Q) alone, at a tolerance for drawing and without errors."""
    (q, variance), _ = _integrate(drift, schedule, q0, spread0, times, _FOLLOWED)
    return q, _deviation(variance, drift.noise is not None)


def _carried(drift: Drift, schedule: Schedule, q0: float, times: Array) -> Array:
    """What the errors of the drift make of Q, to first order: a linear equation."""
    from hdica.limits.numerics.compiled import error_rhs

    size = max(drift.learning_error, drift.loss_error)
    if size == 0.0:
        return np.zeros(times.size)
    rows, out = packed_flow(drift), np.empty(2)
    errors = (drift.learning_error / size, drift.loss_error / size)

    def rate(state: Array, tau: float) -> Array:
        error_rhs(tau, state, *rows, *errors, out)
        return out.copy()

    states, _ = integrate(rate, schedule, np.array([q0, 0.0]), times, _ERROR_STEPS)
    return size * np.abs(states[:, 1])


_BEND = 1e-4
"""Distance over which the slope of the drift is differentiated; its square is the error."""


def second_order(p: Products, q: Array, tau: float, batch: int = 1) -> Array:
    """D1 = <J2> at overlaps ``q``, of a step with the mean over a batch of samples."""
    size = tau / batch
    square = -p.ggcu - q * (p.ggcc + p.ggee - 2 * p.gg) / 2 + 1.5 * q * p.gguu
    cube = 1.5 * q * p.gggu - p.gggc / 2
    single = size**2 * square + size**3 * cube + size**4 * 0.375 * q * p.gggg
    # What two different samples of one step add.
    longer = 2 * size * p.u + size**2 * p.gg
    along = size * p.c
    met = along**2 + (size * p.e) ** 2
    pair = -along * longer / 2 - q * met / 2 + 0.375 * q * longer**2
    return batch * single + batch * (batch - 1) * pair


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

    result, now = np.full(times.size, begin[2]), np.array(begin)
    for low, high in stretches(schedule.breaks, times):
        # Where the step size jumps m goes on, and D/2 does not.
        clock = schedule.after(low)
        now[2] += _half(drift, clock, now[0], 0.0)
        inside = (times > low) & (times <= high)
        ends = np.append(times[inside] - low, high - low)
        states = integrate(rate, clock, now, ends, TOLERANCE).states
        less = [_half(drift, clock, q, t) for q, t in zip(states[:, 0], ends, strict=True)]
        states[:, 2] -= np.array(less)
        result[inside], now = states[:-1, 2], states[-1].copy()
    return result


def _half(drift: Drift, clock: Schedule, q: float, t: float) -> float:
    """D/2 at a time of a piece, at its end with the step size of its inside."""
    ends = [b for b in clock.breaks if b >= t]
    margin = 1e-12 * max(1.0, t)
    inside = min(max(t, margin), ends[0] - margin) if ends else max(t, margin)
    return float(drift.at(np.array(q), clock.at(inside))) / 2
