"""Escape times of which some were not waited for: survival curves, means, and tests of a law.

A run that has not escaped when it ends says that its time is longer: it is censored. Leaving such
runs out, or counting their end as an escape, makes every mean too short.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from hdica.analysis.statistics.resample import CONFIDENCE
from hdica.errors import HdicaError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EscapeTimes:
    """Times of runs, each at its escape or at its end.

    Parameters
    ----------
    times
        Shape (runs,), above 0.
    escaped
        Whether the time is that of an escape, shape (runs,).
    """

    times: Array
    escaped: NDArray[np.bool_]

    def __post_init__(self) -> None:
        times, escaped = np.asarray(self.times, dtype=float), np.asarray(self.escaped)
        if times.ndim != 1 or times.shape != escaped.shape or not times.size:
            raise HdicaError(
                f"times: shapes {times.shape} and {escaped.shape} are not allowed "
                "(one time and one escape or end for each of at least one run)"
            )
        bad = ~(np.isfinite(times) & (times > 0))
        if bad.any():
            raise HdicaError(
                f"times: {times[bad][0]} is not allowed (finite and above 0; a run without escape "
                "has the time of its end)"
            )
        object.__setattr__(self, "times", times)
        object.__setattr__(self, "escaped", escaped.astype(bool))

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
    """Kaplan and Meier's estimate; arrays of shape (different times,).

    Parameters
    ----------
    times
        Increasing times of escapes and ends.
    survival
        Share not yet escaped just after them.
    low, high
        Pointwise interval, by the log-log transformation; NaN where survival is 0 or 1.
    """

    times: Array
    survival: Array
    low: Array
    high: Array

    def quantile(self, share: float = 0.5) -> float:
        """Time by which this share has escaped; infinite if fewer have."""
        reached = self.survival <= 1 - share + 1e-12
        return float(self.times[reached][0]) if reached.any() else math.inf


def survival_curve(runs: EscapeTimes, confidence: float = CONFIDENCE) -> SurvivalCurve:
    """Share of runs that have not yet escaped, with its confidence interval.

    Parameters
    ----------
    runs
        The times.
    confidence
        Of the interval at each time, in (0, 1).
    """
    _check_confidence(confidence)
    found = stats.ecdf(runs.data).sf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where survival is 0 or 1: NaN says it
        interval = found.confidence_interval(confidence_level=confidence, method="log-log")
    return SurvivalCurve(
        found.quantiles,
        found.probabilities,
        interval.low.probabilities,
        interval.high.probabilities,
    )


def _check_confidence(confidence: float) -> None:
    if not 0 < confidence < 1:
        raise HdicaError(f"confidence: {confidence} is not allowed (between 0 and 1)")


@dataclass(frozen=True)
class Estimate:
    """A number with its interval.

    Parameters
    ----------
    value, low, high
        Estimate and ends of its interval; infinite where the runs do not bound it.
    error
        Standard error.
    """

    value: float
    low: float
    high: float
    error: float


def exponential_mean(runs: EscapeTimes, confidence: float = CONFIDENCE) -> Estimate:
    """Mean escape time if escapes have a constant rate: observed time over escapes.

    Parameters
    ----------
    runs
        The times; without an escape the mean has a lower bound alone.
    confidence
        Of the interval by chi-square quantiles: exact where every run escapes; where runs end at
        a given time its lower end is conservative (2 d + 2 degrees of freedom for d escapes).
    """
    _check_confidence(confidence)
    d, total, tail = runs.events, runs.exposure, (1 - confidence) / 2
    more = 0 if d == runs.times.size else 2
    low = 2 * total / float(stats.chi2.isf(tail, 2 * d + more))
    if d == 0:
        return Estimate(math.inf, low, math.inf, math.inf)
    high = 2 * total / float(stats.chi2.ppf(tail, 2 * d))
    return Estimate(total / d, low, high, total / d / math.sqrt(d))


def restricted_mean(
    runs: EscapeTimes, horizon: float | None = None, confidence: float = CONFIDENCE
) -> Estimate:
    """Mean of min(time, horizon) without an assumption about the law (Irwin 1949).

    Parameters
    ----------
    runs
        The times.
    horizon
        At most the largest time, which is the default: then, where every run escapes, this is
        the plain mean.
    confidence
        Of the normal interval with Greenwood's variance.
    """
    _check_confidence(confidence)
    end = float(runs.times.max()) if horizon is None else horizon
    if not 0 < end <= runs.times.max():
        raise HdicaError(
            f"horizon: {end} is not allowed (above 0, at most the longest run {runs.times.max()})"
        )
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
    reach = float(stats.norm.isf((1 - confidence) / 2)) * error
    mean = float(areas.sum())
    return Estimate(mean, mean - reach, mean + reach, error)


def exponential_p(runs: EscapeTimes) -> float:
    """P-value of the hypothesis that escapes have one constant rate.

    On the clock that counts the time of all runs still observed, escapes of a constant rate are
    a Poisson process: given their number, uniform (Epstein 1960). Kolmogorov and Smirnov's test
    of that is exact where every run escapes, and good for many escapes otherwise. It sees early
    failure as well as fatigue.
    """
    if runs.events < 5:
        raise HdicaError(f"times: {runs.events} escapes are too few for a test (at least 5)")
    ends = np.sort(runs.times)
    running = np.concatenate([[0.0], np.cumsum(ends)])
    at = np.sort(runs.times[runs.escaped])
    below = np.searchsorted(ends, at, side="left")
    clock = running[below] + (ends.size - below) * at
    if runs.events == runs.times.size:
        return float(stats.kstest(clock[:-1] / clock[-1], "uniform").pvalue)
    return float(stats.kstest(clock / runs.exposure, "uniform").pvalue)


def same_law_p(one: EscapeTimes, other: EscapeTimes) -> float:
    """P-value of the log-rank test that two groups of runs escape at the same rates."""
    if not one.events + other.events:
        raise HdicaError("times: no run of either group escaped, so that nothing can be compared")
    return float(stats.logrank(one.data, other.data).pvalue)


@dataclass(frozen=True)
class OneSample:
    """Escapes counted and expected (one-sample log-rank test).

    Parameters
    ----------
    observed
        Number of escapes.
    expected
        Sum over runs of the cumulative hazard at their times.
    score
        (observed - expected)/sqrt(expected): standard normal if the law holds; above zero if
        runs escape faster.
    p_value
        Two-sided.
    """

    observed: int
    expected: float
    score: float
    p_value: float


def follows(runs: EscapeTimes, survival: Callable[[Array], Array]) -> OneSample:
    """Whether runs follow a known survival function, wherever they end.

    Parameters
    ----------
    runs
        The times.
    survival
        Probability of no escape until a time, vectorised, such as that of a limit or of the
        diffusion at finite n.
    """
    values = np.asarray(survival(runs.times), dtype=float)
    if not np.all((values > 0) & (values <= 1)):
        raise HdicaError("survival: it must be above 0 and at most 1 at the times of all runs")
    expected = float(-np.log(values).sum())
    score = (runs.events - expected) / math.sqrt(expected)
    return OneSample(runs.events, expected, score, 2 * float(stats.norm.sf(abs(score))))
