"""How many samples a random start needs to leave Q = 0 with a probability, and at which step size.

As n -> infinity at nu = n tau it is N_p = c_p (36 P/C^2) n^3 samples at nu = m_p C/(6 P), with
numbers c_p and m_p of no parameter: those of dr = (-r/2 + g r^3) du + dB from a normal r, in time
to infinity. At n it is the quantile of the exact law of the passage, at the best step size. What
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
from hdica.limits.passage.chain import NormalisedChain, PassageLaw, exact_passage

EXACT = 200
"""Dimension up to which passages are followed exactly: beyond it they take minutes."""
NEAR = 100
"""Dimension whose passages, exact and asymptotic, give the term of order 1/n of larger ones."""
_DEPTHS = (0.045, 0.09)
_WIDE, _NARROW = 0.8, 0.2
"""How far the logarithm of nu is looked at, to either side: first, and about what that finds."""
_DEGREE, _AGAIN, _CLOSE = 8, 6, 1e-5
"""Of the polynomial through logarithms of samples, and how closely it has their least value: where
it is farther off, one about what it finds has another degree.
"""


class Fewest(NamedTuple):
    """Fewest samples, the nu that needs them, the relative error, and the law at that nu.

    ``within(samples)`` is the probability to have left by then.
    """

    samples: float
    nu: float
    error: float
    within: Scalar


@dataclass(frozen=True)
class Trapped:
    """A random start near Q = 0: the trap as n -> infinity, and the chain at n, tau and a level."""

    trap: Trap
    chain: Callable[[int, float, float], NormalisedChain]


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


def asymptotic(trap: Trap, n: int, probability: float) -> tuple[float, float]:
    """N_p and nu as n -> infinity, at n."""
    c, m = universal(probability)
    samples = c * 36 * trap.power / trap.pull**2 * float(n) ** 3
    return samples, m * trap.pull / (6 * trap.power)


def _quantile(law: PassageLaw, probability: float) -> float:
    """Steps within which the passage has happened with a probability."""
    low, high = 1e-3 * law.mean, 60 * law.mean
    for _ in range(4):
        steps = np.geomspace(low, high, 65)
        over = int(np.argmax(1 - law.survival(steps) >= probability))
        low, high = float(steps[max(over - 1, 0)]), float(steps[over])
    return math.sqrt(low * high)


def exactly(trapped: Trapped, n: int, probability: float, level: float) -> Fewest:
    """By the exact law of the passage of abs(Q) to a level, at the best step size."""
    _, guess = asymptotic(trapped.trap, n, probability)

    def law_at(nu: float) -> PassageLaw:
        return exact_passage(trapped.chain(n, nu / n, level), "random")

    def log_samples(nu: float) -> float:
        return math.log(_quantile(law_at(nu), probability))

    low, high = math.log(guess) - _WIDE, math.log(guess) + _NARROW
    for degree in (_DEGREE, _AGAIN):
        log, least = _least(log_samples, low, high, degree)
        nu = math.exp(log)
        law = law_at(nu)
        samples = _quantile(law, probability)
        missed = abs(math.log(samples) - least)
        if missed < _CLOSE:
            break
        low, high = log - _NARROW / 2, log + _NARROW / 2
    error = law.error + missed

    def within(steps: float) -> float:
        return float(1 - law.survival(np.array([max(steps, 0.0)]))[0])

    return Fewest(samples, nu, error, within)


def fewest(trapped: Trapped, n: int, probability: float, level: float) -> Fewest:
    """Exactly up to :data:`EXACT`, beyond by the asymptotics with their term of order 1/n."""
    if n <= EXACT:
        return exactly(trapped, n, probability, level)
    near = exactly(trapped, NEAR, probability, level)
    far, nu = asymptotic(trapped.trap, NEAR, probability)
    share = NEAR / n
    more, other = near.samples / far - 1, near.nu / nu - 1
    samples, _ = asymptotic(trapped.trap, n, probability)
    samples *= 1 + more * share

    def within(steps: float) -> float:
        return near.within(steps / samples * near.samples)

    return Fewest(samples, nu * (1 + other * share), near.error + (more * share) ** 2, within)
