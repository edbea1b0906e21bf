"""Differences from a limit without their term of order 1/n, judged at all times together."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from hdica.verdict.ladder import Ladder

Array = NDArray[np.float64]

RELATIVE_ZERO = 1e-12
"""A standard error below this is rounding: that time is deterministic and says nothing."""


@dataclass(frozen=True)
class Contrast:
    """``sum_n a_n mean_n(t) - reference(t)`` and its distribution when it is zero in truth.

    Arrays are over times: value, standard error, Welch's degrees of freedom, and whether a time is
    informative, because it has a standard error. The correlation is that between consecutive
    informative times. The tolerance, a known bound of the reference's own error, is not random: it
    is taken off the estimate rather than added to the variance.
    """

    estimate: Array
    error: Array
    dof: Array
    informative: NDArray[np.bool_]
    correlation: Array
    tolerance: Array

    @property
    def score(self) -> float:
        """Largest normal score over the informative times; 0 without any."""
        if not self.informative.any():
            return 0.0
        k = self.informative
        excess = np.maximum(np.abs(self.estimate[k]) - self.tolerance[k], 0.0)
        return float(normal_score(excess / self.error[k], self.dof[k]).max())

    @property
    def p_value(self) -> float:
        """Chance of a score this large at any time if the contrast is zero."""
        if not self.informative.any():
            return 1.0
        return exceedance(self.score, self.correlation, self.dof[self.informative])

    def power(self, shift: Array, level: float) -> float:
        """Chance, at the most telling time, that a true contrast ``shift`` is rejected."""
        k = self.informative
        if not k.any():
            return 0.0
        score = critical_score(level, self.correlation, self.dof[k])
        needed = stats.t.isf(stats.norm.sf(score), self.dof[k])
        seen = np.maximum(np.abs(shift[k]) - self.tolerance[k], 0.0) / self.error[k]
        return float(stats.norm.cdf(seen - needed).max())


def contrast(runs: Ladder, a: Array, reference: Array, tolerance: Array) -> Contrast:
    """The contrast of N dimensions with coefficients a, shape (N,), from a reference over times."""
    share = (a**2 / runs.counts)[:, None]
    parts = share * runs.variances
    variance = parts.sum(axis=0)
    scale = np.abs(runs.means).max(axis=0, initial=1.0)
    informative = variance > (RELATIVE_ZERO * scale) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        dof = variance**2 / (parts**2 / (runs.counts - 1.0)[:, None]).sum(axis=0)
    return Contrast(
        estimate=a @ runs.means - reference,
        error=np.sqrt(variance),
        dof=dof,
        informative=informative,
        correlation=_neighbours(runs, share, informative),
        tolerance=np.nan_to_num(tolerance),
    )


def _neighbours(runs: Ladder, share: Array, informative: NDArray[np.bool_]) -> Array:
    """Correlation of the contrast at consecutive informative times."""
    if informative.sum() < 2:
        return np.zeros(0)
    covariance = np.zeros(int(informative.sum()) - 1)
    variance = np.zeros(int(informative.sum()))
    for weight, values in zip(share[:, 0], runs.runs, strict=True):
        d = values[:, informative] - values[:, informative].mean(axis=0)
        covariance += weight * (d[:, 1:] * d[:, :-1]).sum(axis=0) / (len(d) - 1)
        variance += weight * (d**2).sum(axis=0) / (len(d) - 1)
    return covariance / np.sqrt(variance[1:] * variance[:-1])


def fit_matrix(runs: Ladder, basis: Array) -> Array:
    """Weighted least squares as a matrix (k, N): coefficients = matrix @ means.

    The basis, (N, k) with k <= N, has full rank.
    """
    root = np.sqrt(runs.weights / runs.weights.max())[:, None]
    return np.linalg.pinv(root * basis) * root.T


def misfit(runs: Ladder, basis: Array) -> float:
    """p-value of the hypothesis that the means lie in the span of ``basis`` over n.

    The residual of every n is itself a contrast; the smallest of their p-values is multiplied
    by the number of them.
    """
    residual = np.eye(len(runs)) - basis @ fit_matrix(runs, basis)
    zero = np.zeros(runs.means.shape[1])
    p = [contrast(runs, row, zero, zero).p_value for row in residual]
    return float(min(1.0, len(p) * min(p)))


LARGEST_SCORE = 37.0
"""Normal scores stop here: the tail probability leaves the range of float64 just above."""


def normal_score(t: Array, dof: Array) -> Array:
    """Absolute Student statistics as the normal scores of the same tail probability.

    With ten seeds a Student statistic has much heavier tails than a normal one; this transform
    makes each time's statistic exactly standard normal under the hypothesis before the maximum
    over times is taken.
    """
    tail = stats.t.sf(np.abs(t), dof)
    return np.minimum(stats.norm.isf(tail), LARGEST_SCORE)


def exceedance(level: float, correlation: Array, dof: Array) -> float:
    """Bound on the probability that the largest of a chain of normal scores exceeds ``level`` > 0.

    Hunter's and Worsley's bound for the tree that links consecutive times,

        P(max |z_i| > c) <= P(|z_1| > c) + sum_i P(|z_i+1| > c, |z_i| <= c),

    with the bivariate probabilities from Owen's T function. It is close to the probability for
    trajectories, whose neighbouring times are strongly correlated, and needs neighbouring
    correlations only, shape (scores - 1,): the full covariance of times, singular when there are
    fewer seeds than times, is never inverted. Scores made from Student statistics cross a level
    more often than normal ones of the same correlation, because their estimated variances fluctuate
    too; each term of the sum is multiplied by the ratio of the crossing rates, (1 +
    t^2/dof)^(-(dof-1)/2) / exp(-c^2/2) (Worsley, Adv. Appl. Prob. 26, 13, 1994).
    """
    one = 2.0 * float(stats.norm.sf(level))
    rho = np.clip(correlation, -1.0, 1.0)
    with np.errstate(divide="ignore"):
        a = np.sqrt((1.0 - rho) / (1.0 + rho))
        inverse = 1.0 / a
    # P(second exceeds, first does not) = P(|z|>c) - P(both); zero when neighbours are identical.
    extra = 4.0 * (special.owens_t(level, a) + special.owens_t(level, inverse)) - one
    extra = np.maximum(extra, 0.0) * _crossing_ratio(level, dof)
    return float(min(1.0, one + np.minimum(extra, one).sum()))


def _crossing_ratio(level: float, dof: Array) -> Array:
    """How much more often Student-made scores cross, shape (scores - 1,)."""
    nu = (dof[1:] + dof[:-1]) / 2
    t = stats.t.isf(stats.norm.sf(level), nu)
    return np.exp(level**2 / 2 - (nu - 1) / 2 * np.log1p(t**2 / nu))


def critical_score(probability: float, correlation: Array, dof: Array) -> float:
    """The threshold that :func:`exceedance` gives exactly this probability."""
    if exceedance(LARGEST_SCORE, correlation, dof) > probability:
        return LARGEST_SCORE

    def excess(level: float) -> float:
        return exceedance(level, correlation, dof) - probability

    return float(optimize.brentq(excess, 1e-6, LARGEST_SCORE))
