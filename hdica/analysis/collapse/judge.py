"""Whether measured points lie on a predicted curve: a score each, and all of them together."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from hdica.verdict.cells import AGREES, CLEAR, DIFFERS, UNDECIDED

Array = NDArray[np.float64]
EXPECTED = 5.0
"""Successes and failures from which on a share is normal enough for chi-square."""
LEAST_P = 1e-300


class Fit(NamedTuple):
    """All cells together."""

    score: Array
    """Normal score of each cell, NaN where it is not judged."""
    chi2: float
    """Sum of squared scores of the cells that are normal enough, which have ``points``."""
    points: int
    worst: float
    """Least p-value of a cell times the number of cells."""
    p_value: float
    """Of chi-square and of the worst cell, the smaller times two."""


def means(
    measured: Array, se: Array, runs: Array, predicted: Array, cv: Array | None = None
) -> Fit:
    """Of means over seeds, whose scatter is predicted, or estimated from as many runs.

    Times are skewed: where few are long, the mean and the scatter of a sample are small together,
    and Student's statistic is too often far below 0. With a predicted ratio ``cv`` of standard
    deviation and mean, the mean of the runs has the gamma law with both moments.
    """
    if cv is not None:
        shape = runs / cv**2
        part = np.asarray(measured / predicted * shape)
        below, above = stats.gamma.cdf(part, shape), stats.gamma.sf(part, shape)
        p, side = np.minimum(below, above), np.where(above < below, 1.0, -1.0)
        known = np.isfinite(p)
        return _together(np.where(known, _scores(p, side), np.nan), known)
    with np.errstate(divide="ignore", invalid="ignore"):
        student = (measured - predicted) / np.where(se > 0, se, np.nan)
    p = stats.t.sf(np.abs(student), np.maximum(runs - 1, 1))
    return _together(_scores(p, student), np.isfinite(student))


def shares(hits: Array, runs: Array, predicted: Array) -> Fit:
    """Of shares of runs: exactly in each cell, by chi-square where enough is expected."""
    p0 = np.clip(predicted, 0.0, 1.0)
    known = np.isfinite(hits) & np.isfinite(p0) & (runs > 0)
    p = np.full(np.shape(hits), np.nan)
    for k in np.argwhere(known):
        i = tuple(k)
        p[i] = stats.binomtest(int(hits[i]), int(runs[i]), float(p0[i])).pvalue / 2
    expected = runs * np.minimum(p0, 1 - p0)
    with np.errstate(divide="ignore", invalid="ignore"):
        normal = (hits - runs * p0) / np.sqrt(runs * p0 * (1 - p0))
    many = known & (expected >= EXPECTED)
    score = np.where(many, normal, _scores(p, hits - runs * p0))
    return _together(np.where(known, score, np.nan), many, p)


def _scores(p: Array, side: Array) -> Array:
    """Normal scores of one-sided p-values."""
    return np.asarray(np.sign(side) * stats.norm.isf(np.clip(p, LEAST_P, 0.5)))


def _together(score: Array, normal: NDArray[np.bool_], p: Array | None = None) -> Fit:
    known = np.isfinite(score)
    points = int((known & normal).sum())
    chi2 = float(np.sum(score[known & normal] ** 2))
    each = stats.norm.sf(np.abs(score[known])) if p is None else p[known]
    worst = min(1.0, 2 * float(each.min(initial=0.5)) * int(known.sum())) if known.any() else np.nan
    both = [worst, float(stats.chi2.sf(chi2, points))] if points else [worst]
    whole = min(1.0, len(both) * min(both)) if known.any() else np.nan
    return Fit(score, chi2, points, worst, whole)


def verdict(p: float, control: float, level: float) -> str:
    """Agrees only where the control is rejected: else too few runs tell the two apart."""
    if not np.isfinite(p):
        return ""
    if p < level / CLEAR:
        return DIFFERS
    return AGREES if p >= level and control < level / CLEAR else UNDECIDED
