"""What could be learned at most from the samples so far: the posterior of the feature.

Of the spiked covariance model, samples y = sqrt(omega/n) c xi + a, the overlap of the feature with
its posterior mean is sqrt(q) as n -> infinity at k = t n samples, where (Deshpande and Montanari
2014; Lesieur, Krzakala and Zdeborova 2017)

    q = E xi E(xi | sqrt(g) xi + z),    g = omega t q_v,    q_v = omega q/(1 + omega q).

Where several q solve it the posterior has that of the largest free entropy

    phi(q) = psi(g) + t (omega q - log(1 + omega q))/2 - omega t q q_v/2,

psi(g) being the mean of log p(y)/N(y) at y = sqrt(g) xi + z, and message passing, which begins
with the mean of the prior, reaches the smallest from there on.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hdica.errors import HdicaError
from hdica.finite.random.streams import Stream
from hdica.finite.record import steps_of
from hdica.ingredients.plain import Array
from hdica.ingredients.prior import Prior
from hdica.ingredients.quadrature import dot
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline
from hdica.systems.sparse_pca.baselines import sample_blocks
from hdica.systems.sparse_pca.rule import PCARule

_NEAR = 1e-9
"""Overlap at which message passing begins where the mean of the prior is 0: what n leaves."""
_CLOSE, _PLACES = 1e-12, 240
"""Distance from 1 up to which solutions are looked for, and at how many places."""
_WIDE, _STEP = 12.0, 0.25
"""Standard deviations beyond the outermost atom, and the step of the sums over y, as a share of
the width over which the posterior turns from one atom to another."""
_FAR = 400.0
"""Squared distance of atoms over the variance of the noise from which on they are told apart for
certain: but for a share of exp(-50)."""
_SETTLED, _ROUNDS = 1e-7, 300


class Components(NamedTuple):
    """A prior as atoms and a centred normal part: weights, places and variances, each (K,).

    Places increase.
    """

    weight: Array
    mean: Array
    variance: Array

    @classmethod
    def of(cls, prior: Prior) -> Components:
        """Those of a prior, or a sentence that it has none."""
        if prior.label == "gaussian":
            return cls(np.ones(1), np.zeros(1), np.ones(1))
        if prior.label.startswith("bernoulli_gaussian"):
            rho = float(prior.nodes.weights[prior.nodes.points != 0].sum())
            return cls(np.array([1 - rho, rho]), np.zeros(2), np.array([0.0, 1 / rho]))
        if prior.finer is not None or prior.length is not None:
            raise HdicaError(
                f"the posterior of the feature is not known for the prior {prior.label} (known of "
                "atoms, gaussian and bernoulli_gaussian)"
            )
        values, places = np.unique(prior.nodes.points, return_inverse=True)
        if values.size == 1:
            raise HdicaError(
                f"the prior {prior.label} leaves nothing to learn: the feature is known (a prior "
                "with several values)"
            )
        weights = np.asarray(np.bincount(places, prior.nodes.weights), dtype=float)
        return cls(weights, values, np.zeros(values.size))

    def denoised(self, field: Array, precision: float) -> tuple[Array, Array]:
        """Mean and variance of x under the prior times exp(field x - precision x^2/2)."""
        spread = 1 + precision * self.variance
        mean = (self.mean + self.variance * field[:, None]) / spread
        exponent = (
            self.mean * field[:, None]
            - precision * self.mean**2 / 2
            + self.variance * (field[:, None] - precision * self.mean) ** 2 / (2 * spread)
        )
        log = np.log(self.weight) - np.log(spread) / 2 + exponent
        log -= log.max(axis=1, keepdims=True)
        share = np.exp(log)
        share /= share.sum(axis=1, keepdims=True)
        first = np.sum(share * mean, axis=1)
        second = np.sum(share * (self.variance / spread + mean**2), axis=1)
        return first, second - first**2

    def scalar(self, g: float, step: float = _STEP) -> tuple[float, float]:
        """E xi E(xi | y) and psi at y = sqrt(g) xi + z, by sums over y."""
        gaps = np.diff(self.mean)
        if not self.variance.any() and g * float(gaps.min()) ** 2 > _FAR:
            square = float(dot(self.weight, self.mean**2))
            entropy = -float(dot(self.weight, np.log(self.weight)))
            return square, g * square / 2 - entropy
        root, widths = math.sqrt(g), np.sqrt(1 + g * self.variance)
        low = float(np.min(root * self.mean - _WIDE * widths))
        high = float(np.max(root * self.mean + _WIDE * widths))
        # Normal parts turn into one another, and into atoms, over widths of order 1.
        y = np.arange(low, high, step / (1 + root * float(np.ptp(self.mean))))
        density = np.sum(
            self.weight / widths * np.exp(-(((y[:, None] - root * self.mean) / widths) ** 2) / 2),
            axis=1,
        ) / math.sqrt(2 * math.pi)
        mean, _ = self.denoised(root * y, g)
        weights = density * (y[1] - y[0])
        seen = density > 0
        against = np.log(density[seen]) + y[seen] ** 2 / 2 + math.log(2 * math.pi) / 2
        return float(dot(weights, mean**2)), float(dot(weights[seen], against))


class Known(NamedTuple):
    """What can be known at one time: the overlaps sqrt(q), and the error of both.

    ``best`` is that of the posterior, ``reached`` that of message passing.
    """

    best: float
    reached: float
    error: float


def known(prior: Components, omega: float, t: float) -> Known:
    """The overlaps from t n samples of a signal omega."""
    best, reached = overlaps(prior, omega, t)
    finer = overlaps(prior, omega, t, _STEP / 2)
    return Known(best, reached, max(abs(best - finer[0]), abs(reached - finer[1])))


def overlaps(prior: Components, omega: float, t: float, step: float = _STEP) -> tuple[float, float]:
    """The overlap of the posterior, and that of message passing."""
    from scipy.optimize import brentq

    def seen(q: float) -> float:
        return omega * t * omega * q / (1 + omega * q)

    def moved(q: float) -> float:
        return prior.scalar(seen(q), step)[0] - q

    def entropy(q: float) -> float:
        value = prior.scalar(seen(q), step)[1] - q * seen(q) / 2
        return value + t * (omega * q - math.log1p(omega * q)) / 2

    begin = max(float(dot(prior.weight, prior.mean)) ** 2, _NEAR)
    logits = np.linspace(math.log(begin / (1 - begin)), -math.log(_CLOSE), _PLACES)
    places = [begin, *(1 / (1 + np.exp(-logits[1:]))).tolist(), 1.0]
    rates = [moved(q) for q in places]
    # Where q rises below and falls above, from where message passing begins.
    pairs = zip(pairwise(places), pairwise(rates), strict=True)
    stable = [
        float(brentq(moved, low, high, xtol=1e-15))
        for (low, high), (below, above) in pairs
        if below > 0 >= above
    ]
    if rates[0] <= 0 or not stable:
        stable = [0.0 if begin == _NEAR else begin, *stable]
    best = max(stable, key=entropy)
    return math.sqrt(best), math.sqrt(stable[0])


def run_message_passing(
    rule: PCARule, times: Array, n: int, stream: Stream
) -> tuple[dict[str, Array], str]:
    """Overlap of the posterior mean that message passing finds in the first t n samples.

    It needs t n^2 numbers of memory and some dozen products with all samples an output time; with
    a batch of m they are m t n samples. ``Q`` is NaN before the first sample.
    """
    xi, omega = rule.prior.feature(stream("start"), n), rule.omega.constant
    assert omega is not None
    prior = Components.of(rule.prior)
    counts = rule.batch * steps_of(times, n)
    blocks, taken = sample_blocks(omega, xi, stream), list[Array]()
    while sum(map(len, taken)) < counts[-1]:
        check_deadline()
        taken.append(next(blocks))
    samples = np.concatenate([np.empty((0, n)), *taken])
    guess = stream("estimate").standard_normal(n)
    overlap = np.full(times.size, np.nan)
    with one_thread():
        for index, count in enumerate(counts):
            if count:
                found = _passed(samples[:count], omega, prior, guess)
                length = dot(found, found)
                overlap[index] = abs(dot(xi, found)) / math.sqrt(n * length) if length else 0.0
    return {"Q": overlap}, ""


def _passed(samples: Array, omega: float, prior: Components, guess: Array) -> Array:
    """The posterior mean by approximate message passing with its terms of reaction."""
    n, root = guess.size, math.sqrt(omega / guess.size)
    mean = float(dot(prior.weight, prior.mean))
    estimate = mean + math.sqrt(max(1 - mean**2, 0.0)) * guess * (0.03 if mean else 1.0)
    spread, before = 1.0 - mean**2, np.zeros(len(samples))
    for _ in range(_ROUNDS):
        check_deadline()
        precision = omega * dot(estimate, estimate) / n
        field = root * (samples @ estimate) - omega * spread * before
        signs = field / (1 + precision)
        uncertain = len(samples) / n / (1 + precision)
        precision = omega * dot(signs, signs) / n
        field = root * (samples.T @ signs) - omega * uncertain * estimate
        moved, variances = prior.denoised(field, precision)
        change = dot(moved - estimate, moved - estimate) / max(dot(moved, moved), 1e-300)
        estimate, spread, before = moved, float(np.mean(variances)), signs
        if change < _SETTLED**2:
            break
    return estimate
