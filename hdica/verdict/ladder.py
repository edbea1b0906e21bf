"""Finished runs of one grid point at several n: moments, pooled means, and contrasts of means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import optimize, special, stats

from hdica.verdict.cells import CONFIDENCE, Array

MIN_SEEDS = 6
"""An n with fewer finished seeds takes no part in any inference: with five the estimated variances
are so uncertain that false alarms at a level of 1e-4 become several times too frequent."""
RELATIVE_ZERO = 1e-12
"""A standard error below this is rounding: that time is deterministic and says nothing."""
LARGEST_SCORE = 37.0
"""Normal scores stop here: the tail probability leaves the range of float64 just above."""


@dataclass(frozen=True)
class Ladder:
    """Finished runs of one grid point: (seeds, times) for each of N increasing dimensions n.

    Seeds may differ in number between n.
    """

    n: Array
    runs: tuple[Array, ...]

    @property
    def counts(self) -> Array:
        """Number of seeds, shape (N,)."""
        return np.array([len(r) for r in self.runs], dtype=float)

    @property
    def means(self) -> Array:
        """Mean over seeds, shape (N, times)."""
        return np.array([r.mean(axis=0) for r in self.runs])

    @property
    def variances(self) -> Array:
        """Unbiased variance over seeds, shape (N, times)."""
        return np.array([r.var(axis=0, ddof=1) for r in self.runs])

    @property
    def weights(self) -> Array:
        """Number of seeds times n, shape (N,): the inverse variance of a mean up to a factor.

        The central limit theorem fixes their ratio beforehand: a combination with weights from
        estimated variances is neither unbiased nor Student distributed.
        """
        return self.counts * self.n

    def __len__(self) -> int:
        return len(self.n)

    def above(self, index: int) -> Ladder:
        """The ladder without its first ``index`` dimensions."""
        return Ladder(self.n[index:], self.runs[index:])


def ladder(values: Array, n: Array) -> Ladder:
    """The usable runs of values (N, seeds, times), NaN where a point is not done, at each n."""
    runs = [v[np.isfinite(v).all(axis=1)] for v in values]
    usable = sorted((float(k), r) for k, r in zip(n, runs, strict=True) if len(r) >= MIN_SEEDS)
    return Ladder(np.array([k for k, _ in usable]), tuple(r for _, r in usable))


def moments(values: xr.DataArray, along: str = "time") -> xr.Dataset:
    """Mean over seeds with its standard error, standard deviation, and how many runs there are.

    ``mean``, ``sd``, ``se`` = sd/sqrt(count), each without ``seed``, and ``count``, without the
    dimension ``along`` runs too, of values that are NaN where a run is not finished; ``sd`` and
    ``se`` are NaN for a single run.
    """
    known = values.notnull()
    count = (known.all(along) if along in values.dims else known).sum("seed")
    sd = values.std("seed", ddof=1)
    se = sd / np.sqrt(count)
    return xr.Dataset({"mean": values.mean("seed"), "sd": sd, "se": se, "count": count})


def student(values: xr.DataArray) -> xr.Dataset:
    """The moments of values without ``time``, and the 95 % interval of the mean by Student's t.

    ``mean``, ``se``, ``low``, ``high``, ``sd`` and the number of ``seeds``.
    """
    out = moments(values).rename(count="seeds")
    half = out["se"] * stats.t.ppf(0.5 + CONFIDENCE / 2, np.maximum(out["seeds"].values - 1, 1))
    return out.assign(low=out["mean"] - half, high=out["mean"] + half)


def pooled(values: Array, errors: Array, shared: bool = False) -> tuple[float, float]:
    """Mean of measurements by their errors, with its standard error; both of shape (measurements,).

    Where they scatter more than their errors say, the error is widened by the square root of
    chi-square over its degrees of freedom. If they share their noise, it is at least what it is
    where all rise and fall together. NaN without any measurement that has an error.
    """
    known = np.isfinite(values) & np.isfinite(errors) & (errors > 0)
    if not known.any():
        return float("nan"), float("nan")
    value, weight = values[known], errors[known] ** -2
    mean = float(weight @ value / weight.sum())
    chi2 = float(weight @ (value - mean) ** 2)
    dof = len(value) - 1
    widening = max(np.sqrt(chi2 / dof), 1.0) if dof else 1.0
    alike = float(weight @ errors[known] / weight.sum()) if shared else 0.0
    return mean, max(float(widening * weight.sum() ** -0.5), alike)


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

    def distance(self, shift: Array) -> Array:
        """A shift beyond the tolerance, in standard errors, at the informative times."""
        k = self.informative
        return np.maximum(np.abs(shift[k]) - self.tolerance[k], 0.0) / self.error[k]

    @property
    def score(self) -> float:
        """Largest normal score over the informative times; 0 without any."""
        scores = normal_score(self.distance(self.estimate), self.dof[self.informative])
        return float(scores.max(initial=0.0))

    @property
    def p_value(self) -> float:
        """Chance of a score this large at any time if the contrast is zero."""
        return exceedance(self.score, self.correlation, self.dof[self.informative])

    def critical(self, level: float, growth: float = 1.0) -> Array:
        """Student statistics rejected at the informative times, of ``growth`` times the freedom."""
        dof = self.dof[self.informative] * growth
        score = critical_score(level, self.correlation, dof)
        return np.asarray(stats.t.isf(stats.norm.sf(score), dof))

    def power(self, shift: Array, level: float) -> float:
        """Chance, at the most telling time, that a true contrast ``shift`` is rejected."""
        beyond = self.distance(shift) - self.critical(level)
        return float(stats.norm.cdf(beyond).max(initial=0.0))


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


def normal_score(t: Array, dof: Array) -> Array:
    """Absolute Student statistics as the normal scores of the same tail probability.

    Each time's statistic becomes standard normal under the hypothesis before the maximum over times
    is taken; with ten seeds a Student statistic has much heavier tails.
    """
    tail = stats.t.sf(np.abs(t), dof)
    return np.minimum(stats.norm.isf(tail), LARGEST_SCORE)


def exceedance(level: float, correlation: Array, dof: Array) -> float:
    """Bound on the probability that the largest of a chain of normal scores exceeds ``level`` >= 0.

    Hunter's and Worsley's bound for the tree that links consecutive times,

        P(max |z_i| > c) <= P(|z_1| > c) + sum_i P(|z_i+1| > c, |z_i| <= c),

    with the bivariate probabilities from Owen's T function. It is close for trajectories, whose
    neighbouring times are strongly correlated, and needs neighbouring correlations only, shape
    (scores - 1,): the covariance of all times is singular with fewer seeds than times. Scores made
    from Student statistics cross a level more often than normal ones, because their estimated
    variances fluctuate too; each term of the sum is multiplied by the ratio of the crossing rates,
    (1 + t^2/dof)^(-(dof-1)/2) / exp(-c^2/2) (Worsley, Adv. Appl. Prob. 26, 13, 1994).
    """
    one = 2.0 * float(stats.norm.sf(level))
    rho = np.clip(correlation, -1.0, 1.0)
    with np.errstate(divide="ignore"):
        a = np.sqrt((1.0 - rho) / (1.0 + rho))
        inverse = 1.0 / a
    # P(second exceeds, first does not) = P(|z|>c) - P(both); zero when neighbours are identical.
    extra = 4.0 * (special.owens_t(level, a) + special.owens_t(level, inverse)) - one
    nu = (dof[1:] + dof[:-1]) / 2
    t = stats.t.isf(stats.norm.sf(level), nu)
    crossing = np.exp(level**2 / 2 - (nu - 1) / 2 * np.log1p(t**2 / nu))
    return float(min(1.0, one + np.minimum(np.maximum(extra, 0.0) * crossing, one).sum()))


def critical_score(probability: float, correlation: Array, dof: Array) -> float:
    """The threshold that :func:`exceedance` gives exactly this probability."""
    if exceedance(LARGEST_SCORE, correlation, dof) > probability:
        return LARGEST_SCORE

    def excess(level: float) -> float:
        return exceedance(level, correlation, dof) - probability

    return float(optimize.brentq(excess, 1e-6, LARGEST_SCORE))
