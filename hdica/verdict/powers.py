"""Power laws with honest intervals: of n, for fluctuation and bias, and of several parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import optimize, special, stats

from hdica.verdict.cells import CONFIDENCE, Array
from hdica.verdict.ladder import Ladder, contrast, fit_matrix

BENT = 0.05
"""Smaller n are dropped while a power law is bent at this level."""
BIAS_LEVEL = 0.001
"""A bias has an exponent only if it stands above its noise at this level."""
TRIED = np.linspace(-1.0, 4.0, 101)
"""Exponents among which the bias fit looks; an interval that reaches an end is no result."""
MISFIT = 0.05
"""A power law is called inexact, and its intervals are widened, below this p-value."""
QUIET = 1e-3
"""Least variance of a cell, as a share of the median of all."""
NOTHING = 1e-9
"""Variance of weighted residuals that is rounding alone."""
EXACT = 1e-20
"""Variance where no cell has any but rounding: the residuals of the fit alone tell its errors."""


@dataclass(frozen=True)
class Exponent:
    """A fitted power n^-value with its 95 % interval; NaN when the data do not determine it.

    ``n_from`` is the smallest n in the fit: smaller ones were dropped because they bend the power
    law. ``error`` is the standard error, NaN where the interval does not come of one.
    """

    value: float = np.nan
    low: float = np.nan
    high: float = np.nan
    n_from: float = np.nan
    resolved: bool = False
    error: float = np.nan


def fluctuation_exponent(runs: Ladder) -> Exponent:
    """Exponent a of sd ~ n^-a, expected 1/2.

    The variance over seeds, averaged over the times that fluctuate at all, is one number per n.
    The error of its logarithm comes from leaving out one seed at a time, pooled over n: for a given
    number of seeds it does not depend on n to leading order, and weights from separate noisy errors
    would bias the line. A weighted straight line in the logarithms then gives -2a; if the points
    scatter about it by more than their errors, the interval is widened by that ratio.
    """
    moving = (runs.variances > 0).all(axis=0) if len(runs) else np.zeros(0, dtype=bool)
    if len(runs) < 2 or not moving.any():
        return Exponent()
    size = np.log(runs.variances[:, moving].mean(axis=1))
    relative = np.mean([(len(r) - 1) * _log_variance_error(r[:, moving]) ** 2 for r in runs.runs])
    if not relative > 0:  # seeds that differ by rounding alone
        return Exponent()
    weight = (runs.counts - 1) / relative
    return _power(runs.n, size, weight, runs.counts - 1, 0.5)


def _log_variance_error(values: Array) -> float:
    """Jackknife error of the logarithm of the time-averaged variance of (seeds, times)."""
    count = len(values)
    deviation = values - values.mean(axis=0)
    total = (deviation**2).sum(axis=0)
    # Leaving seed i out lowers the sum of squares by d_i^2 count / (count - 1).
    left = (total - deviation**2 * count / (count - 1)) / (count - 2)
    logs = np.log(np.maximum(left.mean(axis=1), np.finfo(float).tiny))
    return float(np.sqrt((count - 1) / count * ((logs - logs.mean()) ** 2).sum()))


def decay_exponent(n: Array, mean: Array, error: Array, dof: float) -> Exponent:
    """Exponent a of a positive mean ~ n^-a, of means with standard errors over increasing n.

    A weighted straight line in the logarithms; smaller n are dropped while they bend it, and the
    interval is widened where the points scatter by more than their errors, which have ``dof``
    degrees of freedom. An n without a finite error takes no part.
    """
    use = (mean > 0) & (error > 0)
    if use.sum() < 2:
        return Exponent()
    weight = (mean[use] / error[use]) ** 2
    return _power(n[use], np.log(mean[use]), weight, np.full(use.sum(), dof), 1.0)


def _power(n: Array, y: Array, weight: Array, dof: Array, share: float) -> Exponent:
    """A share of the exponent in exp(y) ~ n^-a, without smaller n as long as the line is bent."""
    x = np.log(n)
    while len(x) > 2 and _bent(x, y, weight):
        x, y, weight = x[1:], y[1:], weight[1:]
    slope, error = _line(x, y, weight)
    value, half = -slope * share, stats.t.ppf(0.5 + CONFIDENCE / 2, dof[-len(x) :].sum())
    error *= share
    half *= error
    return Exponent(value, value - half, value + half, float(np.exp(x[0])), True, error)


def _bent(x: Array, y: Array, weight: Array) -> bool:
    """Whether a parabola through the points has a significant curvature."""
    powers = (x - x.mean())[:, None] ** np.arange(3)
    covariance = np.linalg.inv(powers.T @ (weight[:, None] * powers))
    curvature = (covariance @ powers.T @ (weight * y))[2]
    return bool(abs(curvature) > stats.norm.isf(BENT / 2) * np.sqrt(covariance[2, 2]))


def _line(x: Array, y: Array, weight: Array) -> tuple[float, float]:
    """Slope of a weighted line and its error, widened by excess scatter."""
    x = x - (weight * x).sum() / weight.sum()
    spread = (weight * x**2).sum()
    slope = (weight * x * y).sum() / spread
    residual = y - (weight * y).sum() / weight.sum() - slope * x
    scatter = (weight * residual**2).sum() / max(len(x) - 2, 1)
    return float(slope), float(np.sqrt(max(1.0, scatter) / spread))


def bias_p_values(runs: Ladder, limit: Array, tolerance: Array) -> Array:
    """For each n the p-value, over all times, of the hypothesis mean = limit; shape (N,)."""
    each = np.eye(len(runs))
    return np.array([contrast(runs, row, limit, tolerance).p_value for row in each])


def bias_exponent(runs: Ladder, limit: Array, tolerance: Array) -> Exponent:
    """Exponent b of mean - limit ~ C(t) n^-b, expected 1.

    The interval holds every b that the data do not reject. For a given b the profile C(t) comes
    from weighted least squares (weights n x seeds); projected on it, each seed is one number, and
    the combination over n that would show another exponent, log(n) n^-b made orthogonal to n^-b, is
    a Student statistic: it is independent of the estimated profile, so no covariance of times is
    needed. The estimate is where the statistic vanishes, the interval where it stays within its 95
    % bounds. A bias that cannot be told from noise rejects nothing: then the interval is unbounded
    and everything NaN; so it is when the bias, summed over n with the weights of a term C/n, does
    not stand above its noise at the level 0.001 in the first place. Smaller n are dropped while the
    bias bends away from n^-b. ``tolerance`` is the bound of the limit's own error over times.
    """
    if len(runs) < 2:
        return Exponent()
    whole = contrast(runs, runs.counts / runs.counts.sum(), limit, tolerance)
    if whole.p_value > BIAS_LEVEL:
        return Exponent()
    fit = _not_rejected(runs, limit)
    while len(runs) > 2 and fit.resolved:
        bend, bound = _student(runs, limit, fit.value, 2)
        if abs(bend) <= bound:
            break
        runs = runs.above(1)
        fit = _not_rejected(runs, limit)
    return fit


def _not_rejected(runs: Ladder, limit: Array) -> Exponent:
    """The exponents around the best one that are not rejected."""
    tested = np.array([_student(runs, limit, b, 1) for b in TRIED])
    value, bound = tested[:, 0], tested[:, 1]
    rises = np.flatnonzero((value[:-1] < 0) & (value[1:] >= 0))
    if len(rises) == 0:
        return Exponent()
    k = int(max(rises, key=lambda i: _explained(runs, limit, float(TRIED[i]))))
    below = np.flatnonzero(value[: k + 1] < -bound[: k + 1])
    above = np.flatnonzero(value[k + 1 :] > bound[k + 1 :]) + k + 1
    if len(below) == 0 or len(above) == 0:
        return Exponent()
    return Exponent(
        value=_crossing(value, k),
        low=_crossing(value + bound, int(below[-1])),
        high=_crossing(value - bound, int(above[0]) - 1),
        n_from=float(runs.n[0]),
        resolved=True,
    )


def _crossing(curve: Array, k: int) -> float:
    """Where a curve over TRIED vanishes between its places k and k + 1, by a straight line."""
    return float(np.interp(0.0, curve[k : k + 2], TRIED[k : k + 2]))


def _explained(runs: Ladder, limit: Array, b: float) -> float:
    """Sum of squares that C(t) n^-b explains; the largest is the best fit."""
    powers = (runs.n / runs.n[0]) ** -b
    bias = (runs.weights * powers) @ (runs.means - limit)
    variance = (runs.weights[:, None] * runs.variances).sum(axis=0)
    use = variance > 0
    return float((bias[use] ** 2 / variance[use]).sum() / (runs.weights * powers**2).sum())


def _student(runs: Ladder, limit: Array, b: float, order: int) -> tuple[float, float]:
    """Statistic of the term log(n)^order n^-b beyond lower orders, and its 95 % bound."""
    log_n = np.log(runs.n / runs.n[0])[:, None]
    powers = (runs.n / runs.n[0])[:, None] ** -b
    profile = (fit_matrix(runs, powers) @ (runs.means - limit))[0]
    variance = (runs.weights[:, None] * runs.variances).sum(axis=0)
    u = np.divide(profile, variance, out=np.zeros_like(profile), where=variance > 0)
    basis = np.exp(-b * log_n) * log_n ** np.arange(order + 1)
    h = fit_matrix(runs, basis)[order]
    numbers = [values @ u for values in runs.runs]
    part = h**2 * np.array([y.var(ddof=1) / len(y) for y in numbers])
    if part.sum() == 0:  # n^-b is beyond rounding: nothing can be said about this b
        return 0.0, np.inf
    value = h @ np.array([y.mean() for y in numbers]) - h.sum() * (limit @ u)
    dof = part.sum() ** 2 / (part**2 / (runs.counts - 1)).sum()
    return float(value / np.sqrt(part.sum())), float(stats.t.ppf(0.5 + CONFIDENCE / 2, dof))


@dataclass(frozen=True)
class PowerLaw:
    """A fitted law log q = constant + sum_i exponent_i log p_i; NaN where cells do not fix it.

    Exponents have standard errors and 95 % intervals, each of shape (parameters,); ``levers`` is
    the linear map from log q to constant and exponents, shape (1 + parameters, cells). The p-value
    is that of an exact law, with ``chi2`` and its expectation ``dof``; ``widening`` is by how much
    its failure widens errors and intervals, and ``freedom`` are the degrees of freedom of these.
    """

    constant: float
    exponents: Array
    error: Array
    low: Array
    high: Array
    levers: Array
    chi2: float = np.nan
    dof: float = 0.0
    p_value: float = np.nan
    widening: float = 1.0
    freedom: float = np.inf

    def of(self, log_q: Array) -> Array:
        """Exponents of other values in the same cells, by the same weights."""
        return np.asarray(self.levers[1:] @ log_q + 0.0 * self.exponents)  # NaN if there are none


def power_law(log_p: Array, log_q: Array, covariance: Array, known: float = np.inf) -> PowerLaw:
    """Weighted least squares in logarithms.

    Weights are the inverse variances of the cells. Errors and the expected lack of fit follow from
    the whole covariance, so that cells may share their noise; the lack of fit is compared with a
    multiple of a chi-square of the same mean and variance (Satterthwaite), which for independent
    cells is chi-square itself, and over what variances of few seeds add: an F statistic. Where its
    p-value is below 0.05 no power law is exact: residuals then tell the scatter, by Student's t.

    ``log_p`` has shape (cells, parameters), ``log_q`` (cells,), its ``covariance`` (cells, cells),
    the diagonal positive and of ``known`` degrees of freedom.
    """
    cells, many = log_p.shape
    design = np.column_stack([np.ones(cells), log_p])
    if cells <= many or np.linalg.matrix_rank(design - [0, *log_p.mean(0)]) <= many:
        none = np.full(many, np.nan)
        return PowerLaw(np.nan, none, none, none, none, np.full((1 + many, cells), np.nan))
    root = np.diag(covariance) ** -0.5
    levers = np.linalg.pinv(design * root[:, None]) * root
    fitted = levers @ log_q
    residual = (log_q - design @ fitted) * root
    chi2, dof = float(residual @ residual), 0.0
    p_value, widening, free = np.nan, 1.0, known
    if cells > many + 1:
        misfit = (np.eye(cells) - design @ levers) * root[:, None]
        dof, p_value = _lack_of_fit(chi2, misfit @ covariance @ misfit.T, known)
        if p_value < MISFIT:
            widening, free = float(np.sqrt(chi2 / dof)), min(known, cells - many - 1)
    variance = np.diag(levers @ covariance @ levers.T)[1:]
    error = widening * np.sqrt(np.maximum(variance, 0.0))  # rounding, where noise is common
    half = stats.t.ppf(0.5 + CONFIDENCE / 2, free) * error
    value = fitted[1:]
    of_fit = chi2, dof, p_value, widening, free
    return PowerLaw(float(fitted[0]), value, error, value - half, value + half, levers, *of_fit)


def _lack_of_fit(chi2: float, spread: Array, known: float) -> tuple[float, float]:
    """Expectation of the sum of squares of residuals of covariance ``spread``, chance of more."""
    mean, square = float(np.trace(spread)), float((spread**2).sum())
    if mean < NOTHING * len(spread):  # cells that rise and fall together, and nothing else
        return 0.0, np.nan
    dof = mean**2 / square
    # SciPy's F has no infinite degrees of freedom.
    return mean, float(stats.f.sf(chi2 / mean, dof, min(known, 1e9)))


def moderated(variance: Array, dof: Array) -> tuple[Array, float]:
    """Variances of cells, drawn towards one another as far as noise may be why they differ.

    Variances of few runs are noisy, and a cell whose variance came out small by chance would rule
    the fit. A scaled inverse chi-square law of the true variances is fitted to the logarithms of
    those found, and gives each its posterior (Smyth 2004, eq. 3-4 and section 6.2). Where the
    cells are all alike they get one common value, where they differ much each keeps its own.

    Parameters
    ----------
    variance
        Of one run, shape (cells,), not negative.
    dof
        Its degrees of freedom, shape (cells,).

    Returns
    -------
    tuple
        Variances, shape (cells,), and the median of their degrees of freedom.
    """
    some = variance[variance > EXACT]
    if some.size < 2:
        only = np.full_like(variance, some[0] if some.size else EXACT)
        return only, float(np.median(dof))
    floored = np.maximum(variance, QUIET * np.median(some))
    half = dof / 2
    e = np.log(floored) - special.digamma(half) + np.log(half)
    excess = float(e.var(ddof=1) - special.polygamma(1, half).mean())
    if excess <= special.polygamma(1, 5e5):
        return np.full_like(variance, np.exp(e.mean())), float(dof.sum())
    prior = float(optimize.brentq(lambda v: special.polygamma(1, v) - excess, 1e-6, 1e6))
    center = np.exp(e.mean() + special.digamma(prior) - np.log(prior))
    posterior = (2 * prior * center + dof * floored) / (2 * prior + dof)
    return np.asarray(posterior), float(np.median(2 * prior + dof))
