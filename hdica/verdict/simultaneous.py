"""One p-value for a whole curve of test statistics."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

Array = NDArray[np.float64]

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
