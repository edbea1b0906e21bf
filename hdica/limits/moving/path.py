"""The overlap as n -> infinity for phi = 0 or beta x, where the signal varies or the feature moves.

With b and 2h = g + b Q of the mean field and mu_k = E[xi^k], an entry that is exchanged at the rate
delta gives

    dQ/dt = b - 2h Q - delta (Q - mu_1 M),            M = E[x],      dM/dt = b mu_1 - 2h M,
    dK/dt = b mu_4 - 2h K - delta (K - mu_3 M),       K = E[xi^3 x],
    dN/dt = 2 b K - 4h N + 2 g - delta (N - 1),       N = E[xi^2 x^2].

Exchanges of pairs at random times add delta (N + 1 + 2 Q^2) to the rate of n Var(Q) where mu_1 = M
= 0: a pair changes Q by -(xi_i - xi_j)(x_i - x_j)/n. A jump that permutes a share s takes Q to
(1 - s) Q + s mu_1 M, and adds s (1 - s) (N - Q^2) + s to n Var(Q) times (1 - s)^2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.priors import Prior
from hdica.ingredients.schedules import Motion, Schedule
from hdica.limits.mean_field.family import MeanField
from hdica.limits.numerics.solvers import integrate
from hdica.limits.overlap.drift import CONTROL, REFINED, Drift, OverlapPath, coarser

Array = NDArray[np.float64]
Noise = Callable[[float, float], float]
_BEND = 1e-5
"""Distance over which slopes of the drift are taken; their error is its square."""
_INSIDE = 1e-13
"""Share of a time by which it is looked at later, so that it lies behind a jump at it."""
_ZERO = 1e-12


@dataclass(frozen=True, eq=False)
class Moving:
    """A limit closed in the overlap, and what moves in it.

    ``noise(q, size)`` is the variance of a step times n^2 at an overlap and a value of the field's
    schedule, None where it is infinite; ``errors(size)`` that of dQ/dt.
    """

    field: MeanField
    noise: Noise | None
    errors: Callable[[float], float] = lambda size: 0.0

    @property
    def motion(self) -> Motion:
        """How the feature moves."""
        return self.field.motion

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
    if not field.motion.moves:
        # Q and n Var(Q) alone matter, and a start that is a vector has no law of its entries.
        return np.array([start.overlap(law), start.spread(law), 0.0, 0.0, 0.0, 0.0])
    xi, mean = law.nodes.points, law.nodes.mean
    x, var = start.conditional(xi)
    square = x**2 + var
    return np.array(
        [
            start.overlap(law),
            start.spread(law),
            float(mean(x)),
            float(mean(xi**3 * x)),
            float(mean(xi**2 * square)),
            0.0,
        ]
    )


def _rate(moving: Moving, factor: float) -> Callable[[Array, float], Array]:
    """The right-hand sides at a time, with what is learned wrong by a factor."""
    delta, (first, third, fourth) = moving.motion.rate, moments(moving.field.prior)
    schedule, noise = moving.field.schedule, moving.noise

    def rate(state: Array, time: float) -> Array:
        _, spread, m, k, n, error = state.tolist()
        q = min(1.0, max(-1.0, float(state[0])))
        size = float(schedule.value(np.array(time + _INSIDE * max(1.0, time))))
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
    s, (first, third, _) = moving.motion.share, moments(moving.field.prior)
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
    """States at the times, shape (T, 6), just before a jump at one of them, and the tolerance."""
    state, used, found = _begin(moving.field), tolerance, np.empty((times.size, 6))
    found[times <= 0.0] = state
    end, rate = float(times[-1]), _rate(moving, factor)
    jumps = [t for t in moving.motion.jumps if t < end]
    for low, high in pairwise([0.0, *jumps, end]):
        if high <= low:
            continue
        inside = (times > low) & (times <= high)
        later = tuple(b - low for b in moving.field.schedule.breaks if b > low)
        clock = Schedule(lambda t, low=low: low + np.asarray(t), None, later)  # type: ignore[misc]
        asked = np.append(times[inside] - low, high - low)
        part = integrate(rate, clock, state, asked, tolerance)
        found[inside], used = part.states[:-1], max(used, part.tolerance)
        state = _jumped(moving, part.states[-1])
    return found, used


def solve(moving: Moving, times: Array) -> OverlapPath:
    """Integrate the limit with error control (Dormand-Prince 8(5,3)).

    At increasing times, in samples per dimension; it restarts at jumps of the step size, of the
    signal and of the feature. A value at a jump is that before it. The control has b - 2h Q wrong
    by 2 %. The spread is NaN where it is not closed: for a moving feature with E[xi] or E[x] != 0.
    """
    fine, close = _integrate(moving, times, REFINED)
    rough = coarser(close)
    coarse, _ = _integrate(moving, times, rough)
    wrong, _ = _integrate(moving, times, rough, CONTROL)
    spread = np.sqrt(np.maximum(fine[:, 1], 0.0))
    if not closes(moving):
        spread = np.full(times.size, np.nan)
    error = np.abs(fine[:, 0] - coarse[:, 0]) + close + np.abs(fine[:, 5])
    return OverlapPath(fine[:, 0], error, wrong[:, 0], spread)


def closes(moving: Moving) -> bool:
    """Whether the spread of Q is known."""
    if moving.noise is None:
        return False
    means = abs(moments(moving.field.prior)[0]), abs(float(_begin(moving.field)[2]))
    return not moving.motion.moves or max(means) < _ZERO


def moving_of(field: MeanField, drift: Drift) -> Moving:
    """The limit of a rule whose step size is the value of the field's schedule."""

    def spread(q: float, tau: float) -> float:
        return float(drift.variance(np.array(q), tau))

    return Moving(
        field,
        None if drift.noise is None else spread,
        lambda tau: tau * drift.learning_error + tau**2 * drift.loss_error,
    )
