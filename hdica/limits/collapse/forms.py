"""Normal forms of one overlap at its transitions, from its drift D and the variance V of a step.

All of dQ = D dt + (V/n)^(1/2) dW, in time t = k/n, at a constant step size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from hdica.errors import HdicaError
from hdica.limits.overlap.drift import Array, Drift
from hdica.limits.overlap.fixed_points import find_fixed_points, find_folds

Second = Callable[[Array, float], Array]
"""D1(Q, tau): what a step adds to its mean drift at order 1/n^2."""
_STEP = 1e-3
"""Distance of differences of a slope; their error is its fourth power."""
_SMALL = 1e-6
"""Overlaps below are 0."""


def slope(drift: Drift, q: float, tau: float) -> float:
    """D'(Q)."""
    at = np.array(q)
    return float(tau * drift.learning.deriv()(at) + tau**2 * drift.loss.deriv()(at))


def bend(drift: Drift, q: float, tau: float) -> float:
    """D''(Q)."""
    one, two = (
        (slope(drift, q + h, tau) - slope(drift, q - h, tau)) / (2 * h) for h in (_STEP, 2 * _STEP)
    )
    return (4 * one - two) / 3


def third(drift: Drift, tau: float) -> float:
    """D'''(0)."""
    here = slope(drift, 0.0, tau)
    one, two = (
        (slope(drift, h, tau) + slope(drift, -h, tau) - 2 * here) / h**2 for h in (_STEP, 2 * _STEP)
    )
    return (4 * one - two) / 3


def check_noise(drift: Drift) -> None:
    """Refuse a rule whose steps have no finite variance."""
    if drift.noise is None:
        raise HdicaError(
            "the variance of a step is not finite, and without it there is no diffusion near a "
            "transition"
        )


@dataclass(frozen=True)
class Fold:
    """D = -a (tau - tau_c) - b (Q - Q_c)^2 with the variance V, where two states merge."""

    tau: float
    q: float
    a: float
    b: float
    variance: float

    def scaled(self, tau: float, n: int) -> float:
        """Eps = a (tau - tau_c) n^(2/3)/(b^(1/3) V^(2/3)): the window has the width n^(-2/3)."""
        width = self.b ** (1 / 3) * self.variance ** (2 / 3)
        return self.a * (tau - self.tau) * n ** (2 / 3) / width

    def unit(self, n: int) -> float:
        """(n/(b^2 V))^(1/3), the unit of time t."""
        return float((n / (self.b**2 * self.variance)) ** (1 / 3))


def fold_of(drift: Drift, tau: float) -> Fold:
    """The fold with Q > 0 at which informative states are lost, the nearest to a step size."""
    check_noise(drift)
    found = find_folds(drift)
    made = [_fold(drift, t, q) for t, q in zip(found.tau.tolist(), found.q.tolist(), strict=True)]
    lost = [one for one in made if one.q > 0 and one.a > 0 and one.b > 0]
    if not lost:
        raise HdicaError(
            "the drift has no fold with Q > 0 at which states are lost as tau grows (nothing falls)"
        )
    return min(lost, key=lambda one: abs(one.tau - tau))


def _fold(drift: Drift, tau: float, q: float) -> Fold:
    at = np.array(q)
    falls = -float(drift.learning(at) + 2 * tau * drift.loss(at))
    return Fold(tau, q, falls, -bend(drift, q, tau) / 2, float(drift.variance(at, tau)))


@dataclass(frozen=True)
class Separatrix:
    """D = lambda (Q - Q_u) with the variance V at an unstable state, between two stable ones.

    ``shift`` is n times what n moves it by, -D1/lambda.
    """

    q: float
    rate: float
    variance: float
    shift: float
    below: float
    above: float

    def width(self, n: int, spread: float = 0.0) -> float:
        """((V/(2 lambda) + S0)/n)^(1/2), with the spread S0 of a start: the scale of Q0."""
        return math.sqrt((self.variance / (2 * self.rate) + spread) / n)

    def at(self, n: int) -> float:
        """The unstable state of the drift D + D1/n."""
        return self.q + self.shift / n


def separatrix_of(drift: Drift, second: Second, tau: float) -> Separatrix | None:
    """The largest unstable state with Q > 0 that has a stable one above; None if there is none."""
    check_noise(drift)
    states = find_fixed_points(drift, tau)
    order = np.argsort(states.q)
    q, stable = states.q[order], states.stable[order]
    inside = [k for k in range(q.size) if q[k] > _SMALL and not stable[k]]
    known = [k for k in inside if k + 1 < q.size and stable[k + 1]]
    if not known:
        return None
    k = known[-1]
    here, rate = float(q[k]), slope(drift, float(q[k]), tau)
    moved = -float(second(np.array(here), tau)) / rate
    noise = float(drift.variance(np.array(here), tau))
    return Separatrix(here, rate, noise, moved, float(q[k - 1]), float(q[k + 1]))


@dataclass(frozen=True)
class Pitchfork:
    """D = mu Q - B Q^3 with the variance V, where the uninformative state becomes unstable."""

    mu: float
    damping: float
    variance: float

    def size(self, n: int) -> float:
        """K = n B/(2 V): Q^2 is of the order of its -1/2th power."""
        return n * self.damping / (2 * self.variance)

    def scaled(self, n: int) -> float:
        """X = n mu/(V k^(1/2))."""
        return n * self.mu / (self.variance * math.sqrt(self.size(n)))

    def unit(self, n: int) -> float:
        """k^(-1/2), the unit of Q^2."""
        return 1 / math.sqrt(self.size(n))


def pitchfork_of(drift: Drift, tau: float) -> Pitchfork:
    """The normal form at Q = 0, of a drift that is odd and bends back."""
    check_noise(drift)
    at = np.linspace(0.05, 0.95, 10)
    size = float(np.abs(drift.at(at, tau)).max())
    if float(np.abs(drift.at(at, tau) + drift.at(-at, tau)).max()) > 1e-9 * size:
        raise HdicaError("the drift is not odd in Q: Q = 0 gives way to no pitchfork")
    damping = -third(drift, tau) / 6
    if not damping > 1e-9 * size:
        raise HdicaError(
            "the drift bends away from Q = 0 (-D'''(0) = "
            f"{6 * damping:.3g}, which must be above 0): informative states are not born there"
        )
    return Pitchfork(slope(drift, 0.0, tau), damping, float(drift.variance(np.array(0.0), tau)))
