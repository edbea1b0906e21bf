"""Quantiles of independent runs with intervals that suppose nothing about their law.

A run that never does what it is timed for has an infinite time. All runs end together, so that such
a run is larger than every other: order statistics need no correction for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from hdica.verdict.resample import CONFIDENCE

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Quantile:
    """A quantile with its 95 % interval and standard error, each of the same shape.

    Ends that the runs do not bound are infinite, and their error is NaN.
    """

    value: Array
    low: Array
    high: Array
    error: Array


def quantile(ordered: Array, share: float) -> Quantile:
    """Quantile of values that increase along the first axis, infinite values included.

    The interval is between two order statistics, whose ranks are binomial quantiles: it covers with
    at least 95 % whatever the (continuous) law (Thompson 1936). The standard error is the width of
    the interval over twice the normal quantile of the chance with which it does cover.
    """
    many = len(ordered)
    if many == 0:
        nothing = np.full(ordered.shape[1:], math.nan)
        return Quantile(nothing, nothing, nothing, nothing)
    below, above, reach = _ranks(many, share)
    whole = round(many * share, 9)
    first = max(math.ceil(whole) - 1, 0)
    second = min(first + (whole == math.floor(whole)), many - 1)
    value = (ordered[first] + ordered[second]) / 2
    low = ordered[below] if below >= 0 else np.full_like(value, -math.inf)
    high = ordered[above] if above < many else np.full_like(value, math.inf)
    with np.errstate(invalid="ignore"):
        width = high - low  # NaN where both ends are infinite or nothing is covered
        error = np.where(np.isfinite(width), width / (2 * reach), math.nan)
    return Quantile(value, low, high, error)


@cache
def _ranks(many: int, share: float) -> tuple[int, int, float]:
    """Indices of the ends (-1 and ``many`` for none) and the normal quantile of their coverage."""
    tail, law = (1 - CONFIDENCE) / 2, stats.binom(many, share)
    lower, upper = int(law.ppf(tail)), int(law.ppf(1 - tail)) + 1
    covered = float(law.cdf(upper - 1) - (law.cdf(lower - 1) if lower > 0 else 0.0))
    return lower - 1, upper - 1, float(stats.norm.isf((1 - covered) / 2))


def share_interval(hits: Array, many: Array | int) -> tuple[Array, Array]:
    """Ends of the exact 95 % interval of a chance, by Clopper and Pearson (1934).

    ``hits`` of ``many`` runs, any shape; NaN where either is.
    """
    tail = (1 - CONFIDENCE) / 2
    low = stats.beta.ppf(tail, np.maximum(hits, 1), many - hits + 1)
    high = stats.beta.isf(tail, hits + 1, np.maximum(many - hits, 1))
    return np.where(hits == 0, 0.0, low), np.where(hits == many, 1.0, high)
