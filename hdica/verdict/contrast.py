"""Linear combinations over n of mean trajectories, against a reference curve."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from hdica.verdict.ladder import Ladder
from hdica.verdict.simultaneous import critical_score, exceedance, normal_score

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
