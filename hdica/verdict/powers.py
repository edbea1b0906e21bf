"""Power laws in several parameters, fitted to logarithms with honest intervals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, special, stats

from hdica.verdict.cells import CONFIDENCE

Array = NDArray[np.float64]

MISFIT = 0.05
"""A power law is called inexact, and its intervals are widened, below this p-value."""

QUIET = 1e-3
"""Least variance of a cell, as a share of the median of all."""
NOTHING = 1e-9
"""Variance of weighted residuals that is rounding alone."""
EXACT = 1e-20
"""Variance where no cell has any but rounding: the residuals of the fit alone tell its errors."""


@dataclass(frozen=True)
class PowerLaw:
    """A fitted law log q = constant + sum_i exponent_i log p_i; NaN where cells do not fix it.

    Parameters
    ----------
    constant
        log q at log p = 0.
    exponents, error, low, high
        Exponents with standard errors and 95 % intervals, each of shape (parameters,).
    chi2, dof, p_value
        Lack of fit: weighted sum of squared residuals, its expectation under an exact law (a whole
        number of degrees of freedom where cells are independent) and the chance of more.
    widening
        By how much intervals are wider than the noise of the cells alone would have them.
    levers
        The fit as a linear map from log q to constant and exponents, shape (1 + parameters, cells).
    """

    constant: float
    exponents: Array
    error: Array
    low: Array
    high: Array
    chi2: float
    dof: float
    p_value: float
    widening: float
    levers: Array

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
        return _unknown(cells, many)
    root = np.diag(covariance) ** -0.5
    levers = np.linalg.pinv(design * root[:, None]) * root
    found = levers @ log_q
    residual = (log_q - design @ found) * root
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
    ends = found[1:] - half, found[1:] + half
    return PowerLaw(
        float(found[0]), found[1:], error, *ends, chi2, dof, p_value, widening, levers
    )  # fmt: skip


def _unknown(cells: int, many: int) -> PowerLaw:
    nothing = np.full(many, np.nan)
    levers = np.full((1 + many, cells), np.nan)
    return PowerLaw(
        np.nan, nothing, nothing, nothing, nothing, np.nan, 0.0, np.nan, 1.0, levers
    )  # fmt: skip


def _lack_of_fit(chi2: float, spread: Array, known: float) -> tuple[float, float]:
    """Expectation of the sum of squares under an exact law, and the chance of more.

    ``spread`` is the covariance of the weighted residuals.
    """
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
    found = np.maximum(variance, QUIET * np.median(some))
    half = dof / 2
    e = np.log(found) - special.digamma(half) + np.log(half)
    excess = float(e.var(ddof=1) - special.polygamma(1, half).mean())
    if excess <= special.polygamma(1, 5e5):
        return np.full_like(variance, np.exp(e.mean())), float(dof.sum())
    prior = float(optimize.brentq(lambda v: special.polygamma(1, v) - excess, 1e-6, 1e6))
    center = np.exp(e.mean() + special.digamma(prior) - np.log(prior))
    posterior = (2 * prior * center + dof * found) / (2 * prior + dof)
    return np.asarray(posterior), float(np.median(2 * prior + dof))
