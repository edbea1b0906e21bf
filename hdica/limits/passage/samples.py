"""How many samples a random start needs to leave Q = 0 with a probability, and at which step size.

At n it is the quantile of the exact law of the passage, at the best constant step size. As n ->
infinity a trap is left at nu = n tau after N_p = c_p (36 P/C^2) n^3 samples at nu = m_p C/(6 P),
with numbers c_p and m_p of no parameter: those of dr = (-r/2 + g r^3) du + dB from a normal r, in
time to infinity. Where the limit leads away from 0 it takes a number of the order of n log n. What
n adds is of relative order 1/n.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from hdica.ingredients.plain import Scalar
from hdica.limits.escape import Range, Trap, begin, escape_law, in_logarithm, scaled
from hdica.limits.numerics.series import real_roots
from hdica.limits.overlap.drift import Drift
from hdica.limits.passage.chain import NormalisedChain, PassageLaw, exact_passage

EXACT = 200
"""Dimension up to which passages from a trap are followed exactly: beyond it they take minutes."""
NEAR = 100
"""Dimension whose passages, exact and asymptotic, give the term of order 1/n of larger ones."""
_DEPTHS = (0.045, 0.09)
_WIDE, _NARROW = 0.8, 0.2
"""How far the logarithm of tau is looked at, to either side: first, and about what that finds."""
_TINY = 1e-6
"""Overlap at which it grows as near 0."""
_DEGREE, _AGAIN, _CLOSE = 8, 6, 1e-5
"""Of the polynomial through logarithms of samples, and how closely it has their least value: where
it is farther off, one about what it finds has another degree.
"""


class Fewest(NamedTuple):
    """Fewest samples, the step size that needs them, the relative error, and the law at it.

    ``within(samples)`` is the probability to have left by then.
    """

    samples: float
    tau: float
    error: float
    within: Scalar


Chains = Callable[[int, float, float], NormalisedChain]
"""The chain at n, tau and a level."""


@dataclass(frozen=True)
class Trapped:
    """A random start near Q = 0, which holds it: the trap as n -> infinity, and the chain."""

    trap: Trap
    chain: Chains

    @property
    def most(self) -> int:
        """The largest n that is followed exactly."""
        return EXACT

    def far(self, n: int, probability: float, level: float) -> tuple[float, float]:
        """N_p and tau as n -> infinity, at n."""
        c, m = universal(probability)
        samples = c * 36 * self.trap.power / self.trap.pull**2 * float(n) ** 3
        return samples, m * self.trap.pull / (6 * self.trap.power) / n

    def like(self, steps: float, samples: float, near: float, share: float) -> float:
        """Steps of another n that are as likely to have left as these: the law is stretched."""
        return steps / samples * near


@dataclass(frozen=True, eq=False)
class Unstable:
    """A random start near Q = 0, from which the limit leads away: its drift, and the chain.

    To leading order in 1/n runs follow the limit from sqrt(S/n) Z, with Z normal and S the variance
    of the start, 1, and of what noise adds while Q is small, V(0)/(2 a), a the rate of growth.
    """

    drift: Drift
    chain: Chains

    @property
    def most(self) -> int:
        """The largest n that is followed exactly: of short passages rounding is a larger part."""
        return NEAR

    def far(self, n: int, probability: float, level: float) -> tuple[float, float]:
        """N_p and tau as n -> infinity, at n."""
        from scipy.integrate import quad
        from scipy.optimize import minimize_scalar
        from scipy.stats import norm

        z, end, drift = float(norm.isf(probability / 2)), math.log(level), self.drift
        # The largest step size falls with the overlap that is to be reached.
        top = math.log(2 * float(drift.best(np.array(level))))

        def time(log: float) -> float:
            tau = math.exp(log)

            def inverse(x: float) -> float:
                q = np.array(math.exp(x))
                return float(q / drift.at(q, tau))

            grows = 1 / inverse(math.log(_TINY))
            spread = 1 + float(drift.variance(np.zeros(1), tau)[0]) / (2 * grows)
            begin = min(math.log(z) + math.log(spread / n) / 2, end)
            return float(quad(inverse, begin, end, epsrel=1e-10, limit=200)[0])

        best = minimize_scalar(time, bounds=(top - 6, top - 1e-6), method="bounded")
        return n * float(best.fun), math.exp(float(best.x))

    def like(self, steps: float, samples: float, near: float, share: float) -> float:
        """Steps of another n that are as likely to have left as these: the law is shifted."""
        return near + (steps - samples) * share


Leaving = Trapped | Unstable


@lru_cache(maxsize=64)
def universal(probability: float) -> tuple[float, float]:
    """The numbers c_p and m_p of a probability."""

    def log_samples(depth: float) -> float:
        """Of g^2 u_p(g), the time in units of 36 P/C^2."""
        setting = Range(scaled(depth), math.inf, begin("random"), 1 / math.sqrt(2 * depth), 1.0)
        return math.log(depth**2 * escape_law(setting).quantile(probability))

    log, least = _least(log_samples, math.log(_DEPTHS[0]), math.log(_DEPTHS[1]), 12)
    return math.exp(least), math.exp(-log)


def _least(value: Scalar, low: float, high: float, degree: int) -> tuple[float, float]:
    """Where a function of the exponential of a logarithm is least between two, and its value."""
    series, place = in_logarithm(lambda log: value(math.exp(log)), low, high, degree)
    places = [*real_roots(series.deriv()).tolist(), -1.0, 1.0]
    best = min(places, key=lambda x: float(series(x)))
    return place(best), float(series(best))


def _quantile(law: PassageLaw, probability: float) -> float:
    """Steps within which the passage has happened with a probability."""
    low, high = 1e-3 * law.mean, 60 * law.mean
    for _ in range(4):
        steps = np.geomspace(low, high, 65)
        # The last place: after few steps the law is known to rounding alone.
        (below,) = np.nonzero(1 - law.survival(steps) < probability)
        under = int(below[-1]) if below.size else 0
        low, high = float(steps[under]), float(steps[min(under + 1, steps.size - 1)])
    return math.sqrt(low * high)


def exactly(leaving: Leaving, n: int, probability: float, level: float) -> Fewest:
    """By the exact law of the passage of abs(Q) to a level, at the best step size."""
    _, guess = leaving.far(n, probability, level)

    def law_at(tau: float) -> PassageLaw:
        return exact_passage(leaving.chain(n, tau, level), "random")

    def log_samples(tau: float) -> float:
        return math.log(_quantile(law_at(tau), probability))

    low, high = math.log(guess) - _WIDE, math.log(guess) + _NARROW
    for degree in (_DEGREE, _AGAIN):
        log, least = _least(log_samples, low, high, degree)
        tau = math.exp(log)
        law = law_at(tau)
        samples = _quantile(law, probability)
        missed = abs(math.log(samples) - least)
        if missed < _CLOSE:
            break
        low, high = log - _NARROW / 2, log + _NARROW / 2
    error = law.error + missed

    def within(steps: float) -> float:
        return float(1 - law.survival(np.array([max(steps, 0.0)]))[0])

    return Fewest(samples, tau, error, within)


def fewest(leaving: Leaving, n: int, probability: float, level: float) -> Fewest:
    """Exactly as far as that goes, beyond by the asymptotics with their term of order 1/n."""
    if n <= leaving.most:
        return exactly(leaving, n, probability, level)
    near, share = exactly(leaving, NEAR, probability, level), NEAR / n
    (few, size), (many, tau) = (leaving.far(one, probability, level) for one in (NEAR, n))
    more, other = near.samples / few - 1, near.tau / size - 1
    samples = many * (1 + more * share)

    def within(steps: float) -> float:
        return near.within(leaving.like(steps, samples, near.samples, share))

    return Fewest(samples, tau * (1 + other * share), near.error + (more * share) ** 2, within)
