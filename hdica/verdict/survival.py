"""Escape times of which some were not waited for: survival curves, means, and tests of a law.

A run that has not escaped when it ends says that its time is longer: it is censored. Leaving such
runs out, or counting their end as an escape, makes every mean too short.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from hdica.verdict.resample import CONFIDENCE

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EscapeTimes:
    """Times of runs, above 0, each at its escape or at its end; shape (runs,)."""

    times: Array
    escaped: NDArray[np.bool_]

    @property
    def events(self) -> int:
        """Number of escapes."""
        return int(self.escaped.sum())

    @property
    def exposure(self) -> float:
        """Total time for which runs were observed."""
        return float(self.times.sum())

    @property
    def data(self) -> stats.CensoredData:
        """The same for the functions of scipy.stats."""
        return stats.CensoredData.right_censored(self.times, ~self.escaped)


@dataclass(frozen=True, eq=False)
class SurvivalCurve:
    """Kaplan and Meier's estimate just after increasing times of escapes and ends; shape (times,).

    The pointwise interval is by the log-log transformation; NaN where survival is 0 or 1.
    """

    times: Array
    survival: Array
    low: Array
    high: Array

    @property
    def median(self) -> float:
        """Time by which half of the runs have escaped; infinite if fewer have."""
        reached = self.survival <= 0.5 + 1e-12
        return float(self.times[reached][0]) if reached.any() else math.inf


def survival_curve(runs: EscapeTimes) -> SurvivalCurve:
    """Share of runs that have not yet escaped, with its 95 % interval at each time."""
    found = stats.ecdf(runs.data).sf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where survival is 0 or 1: NaN says it
        interval = found.confidence_interval(confidence_level=CONFIDENCE, method="log-log")
    low, high = interval.low.probabilities, interval.high.probabilities
    return SurvivalCurve(found.quantiles, found.probabilities, low, high)


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval; infinite where the runs do not bound it."""

    value: float
    low: float
    high: float


def exponential_mean(runs: EscapeTimes) -> Estimate:
    """Mean escape time if escapes have a constant rate: observed time over escapes.

    The interval by chi-square quantiles is exact where every run escapes; where runs end at a
    given time its lower end is conservative (2 d + 2 degrees of freedom for d escapes). Without
    an escape the mean has a lower bound alone.
    """
    d, total, tail = runs.events, runs.exposure, (1 - CONFIDENCE) / 2
    more = 0 if d == runs.times.size else 2
    low = 2 * total / float(stats.chi2.isf(tail, 2 * d + more))
    if d == 0:
        return Estimate(math.inf, low, math.inf)
    high = 2 * total / float(stats.chi2.ppf(tail, 2 * d))
    return Estimate(total / d, low, high)


def restricted_mean(runs: EscapeTimes) -> Estimate:
    """Mean of the time up to the longest run, without an assumption about the law (Irwin 1949).

    Where every run escapes, this is the plain mean. The interval is normal, with Greenwood's
    variance.
    """
    end = float(runs.times.max())
    curve = stats.ecdf(runs.data).sf
    inside = curve.quantiles < end
    edges = np.concatenate([[0.0], curve.quantiles[inside], [end]])
    heights = np.concatenate([[1.0], curve.probabilities[inside]])
    areas = heights * np.diff(edges)
    later = np.cumsum(areas[::-1])[::-1][1:]
    at_risk = np.array([np.sum(runs.times >= t) for t in edges[1:-1]], dtype=float)
    lost = np.array([np.sum((runs.times == t) & runs.escaped) for t in edges[1:-1]], dtype=float)
    left = at_risk - lost
    terms = np.divide(lost, at_risk * left, out=np.zeros_like(lost), where=left > 0)
    error = math.sqrt(float(np.sum(later**2 * terms)))
    reach = float(stats.norm.isf((1 - CONFIDENCE) / 2)) * error
    mean = float(areas.sum())
    return Estimate(mean, mean - reach, mean + reach)


def exponential_p(runs: EscapeTimes) -> float:
    """P-value of the hypothesis that escapes have one constant rate; NaN with less than five.

    On the clock that counts the time of all runs still observed, escapes of a constant rate are
    a Poisson process: given their number, uniform (Epstein 1960). Kolmogorov and Smirnov's test
    of that is exact where every run escapes, and good for many escapes otherwise. It sees early
    failure as well as fatigue.
    """
    if runs.events < 5:
        return math.nan
    ends = np.sort(runs.times)
    running = np.concatenate([[0.0], np.cumsum(ends)])
    at = np.sort(runs.times[runs.escaped])
    below = np.searchsorted(ends, at, side="left")
    clock = running[below] + (ends.size - below) * at
    if runs.events == runs.times.size:
        return float(stats.kstest(clock[:-1] / clock[-1], "uniform").pvalue)
    return float(stats.kstest(clock / runs.exposure, "uniform").pvalue)
