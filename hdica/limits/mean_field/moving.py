"""The overlap as n -> infinity for phi = 0 or beta x, where the signal varies or the feature moves.

With b and 2h = g + b Q of the mean field and mu_k = E[xi^k], an entry that is exchanged at the rate
delta gives

    dQ/dt = b - 2h Q - delta (Q - mu_1 M),            M = E[x],      dM/dt = b mu_1 - 2h M,
    dK/dt = b mu_4 - 2h K - delta (K - mu_3 M),       K = E[xi^3 x],
    dN/dt = 2 b K - 4h N + 2 g - delta (N - 1),       N = E[xi^2 x^2].

Exchanges of pairs at random times add delta (N + 1 + 2 Q^2) to the rate of n Var(Q) where mu_1 = M
= 0: a pair changes Q by -(xi_i - xi_j)(x_i - x_j)/n. A jump that permutes a share s takes Q to
(1 - s) Q + s mu_1 M, and adds s (1 - s) (N - Q^2) + s to n Var(Q) times (1 - s)^2.

A constant step size follows a feature that moves at the rate delta. At phi = 0 or beta x and E[xi]
= 0 the overlap of a feature whose entries are exchanged follows dQ/dt = tau D1(Q) + tau^2 D2(Q) -
delta Q, with D1 learning and D2 < 0 the loss by noise. Of all step sizes tau = D1/(2 |D2|) holds Q
best, against drifts up to

    delta(Q) = D1(Q)^2 / (4 |D2(Q)| |Q|),

so that the largest Q with delta(Q) = delta is the best that a constant step size can do, and no
step size tracks a feature faster than the largest delta(Q). For Oja's method

    Q^2 = 1 + (delta - sqrt(delta^2 + 2 delta (1 + omega)))/omega,
    tau = omega (1 - Q^2)/(1 + omega Q^2),

up to delta = omega^2/2. As delta -> 0, where D1 ~ gamma (1 - Q^2) and D2(1) = -Lambda/2,

    1 - Q^2 = sqrt(2 delta Lambda)/gamma,    tau = sqrt(2 delta/Lambda):

Lambda = 1 + omega and gamma = omega for Oja's method, E[c^6] and 3 - E[c^4] for x^3 of online ICA.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Chebyshev

from hdica.ingredients.plain import Array, Scalar
from hdica.ingredients.priors import Prior
from hdica.ingredients.schedules import Schedule
from hdica.limits.mean_field.family import Coefficient, MeanField
from hdica.limits.numerics.series import fitted
from hdica.limits.numerics.solvers import integrate, stretches
from hdica.limits.overlap.drift import Drift, OverlapPath, compared

_BEND = 1e-5
"""Distance over which slopes of the drift are taken; their error is its square."""
_INSIDE = 1e-13
"""Share of a time by which it is looked at later, so that it lies behind a jump at it."""
_ZERO = 1e-12


class Moving(NamedTuple):
    """A limit closed in the overlap, and what moves in it.

    ``noise(q, size)`` is the variance of a step times n^2 at an overlap and a value of the field's
    schedule, None where it is infinite; ``errors(size)`` that of dQ/dt.
    """

    field: MeanField
    noise: Coefficient | None
    errors: Scalar = lambda size: 0.0

    def learned(self, q: float, size: float) -> tuple[float, float, float]:
        """The drift b - 2h Q of what is learned, b and 2h."""
        b = self.field.pull(q, size)
        h2 = self.field.diffusion(q, size) + b * q
        return b - h2 * q, b, h2

    def slope(self, q: float, size: float) -> float:
        """d/dQ of b - 2h Q."""
        low, high = max(-1.0, q - _BEND), min(1.0, q + _BEND)
        return (self.learned(high, size)[0] - self.learned(low, size)[0]) / (high - low)


def moments(prior: Prior) -> tuple[float, float, float]:
    """E[xi], E[xi^3] and E[xi^4]."""
    xi, mean = prior.nodes.points, prior.nodes.mean
    return float(mean(xi)), float(mean(xi**3)), float(mean(xi**4))


def _begin(field: MeanField) -> Array:
    """Q, n Var(Q), M, K, N and the error of Q at t = 0."""
    law, start = field.prior, field.start
    first = third = fourth = 0.0
    if field.motion.moves:
        # Else Q and n Var(Q) alone matter, and a vector as a start has no law of its entries.
        xi, mean = law.nodes.points, law.nodes.mean
        x, var = start.conditional(xi)
        first, third, fourth = map(float, (mean(x), mean(xi**3 * x), mean(xi**2 * (x**2 + var))))
    return np.array([start.overlap(law), start.spread(law), first, third, fourth, 0.0])


def _rate(moving: Moving, factor: float) -> Callable[[Array, float], Array]:
    """The right-hand sides at a time, with what is learned wrong by a factor."""
    delta, (first, third, fourth) = moving.field.motion.rate, moments(moving.field.prior)
    schedule, noise = moving.field.schedule, moving.noise

    def rate(state: Array, time: float) -> Array:
        _, spread, m, k, n, error = state.tolist()
        q = min(1.0, max(-1.0, float(state[0])))
        size = schedule.at(time + _INSIDE * max(1.0, time))
        learned, b, h2 = moving.learned(q, size)
        slope = factor * moving.slope(q, size) - delta
        drawn = 0.0 if noise is None else noise(q, size)
        g2 = 2 * (h2 - b * q)
        return np.array(
            [
                factor * learned - delta * (q - first * m),
                2 * slope * spread + drawn + delta * (n + 1 + 2 * q * q),
                b * first - h2 * m,
                b * fourth - h2 * k - delta * (k - third * m),
                2 * b * k - 2 * h2 * n + g2 - delta * (n - 1),
                slope * error + moving.errors(size),
            ]
        )

    return rate


def _jumped(moving: Moving, state: Array) -> Array:
    """The state after a jump of the feature."""
    s, (first, third, _) = moving.field.motion.share, moments(moving.field.prior)
    q, spread, m, k, n, error = state.tolist()
    keep = 1 - s
    return np.array(
        [
            keep * q + s * first * m,
            keep**2 * spread + s * keep * (n - q * q) + s,
            m,
            keep * k + s * third * m,
            keep * n + s,
            keep * error,
        ]
    )


def _integrate(
    moving: Moving, times: Array, tolerance: float, factor: float = 1.0
) -> tuple[Array, float]:
    """States at the times, shape (6, T), just before a jump at one of them, and the tolerance."""
    state, used, states = _begin(moving.field), tolerance, np.empty((times.size, 6))
    states[times <= 0.0] = state
    rate = _rate(moving, factor)
    for low, high in stretches(moving.field.motion.jumps, times):
        inside = (times > low) & (times <= high)
        clock = Schedule(np.asarray, None, moving.field.schedule.breaks).after(low)
        wanted = np.append(times[inside] - low, high - low)
        part, needed = integrate(rate, clock, state, wanted, tolerance)
        states[inside], used = part[:-1], max(used, needed)
        state = _jumped(moving, part[-1])
    return states.T, used


def solve(moving: Moving, times: Array) -> OverlapPath:
    """Integrate the limit with error control (Dormand-Prince 8(5,3)).

    At increasing times, in samples per dimension; it restarts at jumps of the step size, of the
    signal and of the feature. A value at a jump is that before it. The control has b - 2h Q wrong
    by 2 %. The spread is NaN where it is not closed: for a moving feature with E[xi] or E[x] != 0.
    """
    solved = partial(_integrate, moving, times)
    return compared(solved, closes(moving), lambda rows: np.abs(rows[5]))


def closes(moving: Moving) -> bool:
    """Whether the spread of Q is known."""
    if moving.noise is None:
        return False
    means = abs(moments(moving.field.prior)[0]), abs(float(_begin(moving.field)[2]))
    return not moving.field.motion.moves or max(means) < _ZERO


def moving_of(field: MeanField, drift: Drift) -> Moving:
    """The limit of a rule whose step size is the value of the field's schedule."""
    return Moving(
        field,
        None if drift.noise is None else lambda q, tau: float(drift.variance(np.array(q), tau)),
        lambda tau: tau * drift.learning_error + tau**2 * drift.loss_error,
    )


_DEGREE = 64
_OVERLAPS = np.concatenate(
    [
        np.geomspace(1e-8, 1e-4, 50, endpoint=False),
        np.linspace(1e-4, 0.999, 4000, endpoint=False),
        1 - np.geomspace(1e-3, 1e-9, 400),
    ]
)


class Tracking(NamedTuple):
    """The best constant step size for a drift; numbers are NaN where no step size tracks it.

    ``tau`` and ``q``: the step size and the overlap that it holds; ``low`` and ``high``: step sizes
    between which a feature is tracked at all, and ``q_low`` and ``q_high`` the overlaps at both;
    ``fastest``: the largest delta that any tracks.
    """

    tau: float
    q: float
    low: float
    high: float
    q_low: float
    q_high: float
    fastest: float


def moved_drift(drift: Drift, delta: float, tau: float) -> Drift:
    """The drift at one step size with -delta Q in it, as part of what is learned."""
    if delta == 0:
        return drift
    share = delta / tau
    learning = drift.learning
    if isinstance(learning, Chebyshev):
        return replace(drift, learning=learning - Chebyshev([0.0, share]))
    degree = max(learning.above.size, learning.below.size, _DEGREE)
    return replace(drift, learning=fitted(lambda q: learning(q) - share * q, degree, zero=1))


def _parts(drift: Drift, q: Array, side: float) -> tuple[Array, Array]:
    """D1 towards larger Q, and |D2|, on one side."""
    return side * drift.learning(side * q), np.abs(drift.loss(side * q))


def tracked(drift: Drift, q: Array, side: float = 1.0) -> Array:
    """delta(Q), the fastest drift against which some step size holds Q > 0; 0 where none does."""
    gain, loss = _parts(drift, q, side)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(gain > 0, gain**2 / (4 * loss * q), 0.0)


def best(drift: Drift, delta: float, side: float = 1.0) -> Tracking:
    """The best constant step size for delta > 0, on the side of the sign ``side`` of Q."""
    from scipy.optimize import brentq

    def limit(q: float) -> float:
        return float(tracked(drift, np.array([q]), side)[0])

    fast = tracked(drift, _OVERLAPS, side)
    top = _peak(limit, fast)
    fastest = max(float(fast.max()), limit(top))
    if not delta <= fastest:
        return Tracking(*(np.nan,) * 6, fastest=fastest)
    inside = np.flatnonzero(fast >= delta)
    low = max(float(_OVERLAPS[inside[-1]]), top) if inside.size else top
    high = min(_OVERLAPS[low < _OVERLAPS].tolist(), default=1.0)
    q = low
    if limit(low) > delta and low < high:
        q = float(brentq(lambda q: limit(q) - delta, low, high, xtol=1e-14))
    gain, loss = _parts(drift, np.array([q]), side)
    ends = _step_sizes(drift, delta, side)
    return Tracking(float(gain[0] / (2 * loss[0])), q, *ends, fastest)


def _peak(function: Scalar, values: Array) -> float:
    """Where a function that has these values at the overlaps is largest."""
    from scipy.optimize import minimize_scalar

    k = int(np.argmax(values))
    low, high = _OVERLAPS[max(k - 1, 0)], _OVERLAPS[min(k + 1, values.size - 1)]
    peak = minimize_scalar(
        lambda q: -function(q), bounds=(low, high), method="bounded", options={"xatol": 1e-12}
    )
    return float(peak.x) if -peak.fun >= values[k] else float(_OVERLAPS[k])


def _step_sizes(drift: Drift, delta: float, side: float) -> tuple[float, float, float, float]:
    """The smallest and the largest step size with a steady state Q > 0, and both states."""

    def at(q: Array, sign: float) -> Array:
        gain, loss = _parts(drift, q, side)
        under = gain**2 - 4 * loss * delta * q
        with np.errstate(invalid="ignore"):
            root = np.sqrt(np.where((under >= 0) & (gain > 0), under, np.nan))
        # The smaller root without cancellation.
        large = (gain + root) / (2 * loss)
        return large if sign > 0 else 2 * delta * q / (gain + root)

    def extreme(sign: float) -> tuple[float, float]:
        values = np.nan_to_num(sign * at(_OVERLAPS, sign), nan=-np.inf)
        if not np.isfinite(values.max()):
            return np.nan, np.nan

        def one(q: float) -> float:
            return float(np.nan_to_num(sign * at(np.array([q]), sign)[0], nan=-1e300))

        place = _peak(one, values)
        return sign * one(place), place

    (low, q_low), (high, q_high) = extreme(-1.0), extreme(1.0)
    return low, high, q_low, q_high
