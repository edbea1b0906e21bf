"""Times of events of which some were not waited for: survival curves, means, and tests of a law.

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
from scipy.interpolate import PchipInterpolator

from hdica.verdict.cells import (
    AGREES,
    BOTH,
    CLEAR,
    CONFIDENCE,
    DIFFERS,
    NEAR,
    POWER,
    UNDECIDED,
    WRONG,
    Array,
)

Hazard = Callable[[Array], Array]
"""Cumulative hazard at times: -log of the survival."""

CONTROL = 1.5
"""Rates that are wrong by this factor, to either side, have to be rejected: else as many escapes as
expected prove nothing."""
ENOUGH = ((stats.norm.isf(WRONG) + stats.norm.ppf(BOTH)) / math.log(CONTROL)) ** 2
"""So many expected escapes reject both."""
_DEEPEST = 690.0
"""Cumulative hazard of one run beyond which its survival leaves the range of float64."""


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
    curve = stats.ecdf(runs.data).sf
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where survival is 0 or 1: NaN says it
        interval = curve.confidence_interval(confidence_level=CONFIDENCE, method="log-log")
    low, high = interval.low.probabilities, interval.high.probabilities
    return SurvivalCurve(curve.quantiles, curve.probabilities, low, high)


@dataclass(frozen=True)
class Estimate:
    """A number with its 95 % interval; infinite where the runs do not bound it."""

    value: float
    low: float
    high: float


def exponential_mean(runs: EscapeTimes) -> Estimate:
    """Mean escape time if escapes have a constant rate: observed time over escapes.

    The interval by chi-square quantiles is exact where every run escapes; where runs end before,
    its lower end is conservative (2 d + 2 degrees of freedom for d escapes). Without an escape the
    mean has a lower bound alone.
    """
    d, total, tail = runs.events, runs.exposure, (1 - CONFIDENCE) / 2
    more = 0 if d == runs.times.size else 2
    low = 2 * total / float(stats.chi2.isf(tail, 2 * d + more))
    if d == 0:
        return Estimate(math.inf, low, math.inf)
    return Estimate(total / d, low, 2 * total / float(stats.chi2.ppf(tail, 2 * d)))


def restricted_mean(runs: EscapeTimes) -> Estimate:
    """Mean of the time up to the longest run, without an assumption about the law (Irwin 1949).

    Where every run escapes, this is the plain mean. The interval is normal, with Greenwood's
    variance.
    """
    end = float(runs.times.max())
    curve = stats.ecdf(runs.data).sf
    inside = curve.quantiles < end
    at = curve.quantiles[inside]
    areas = np.append(1.0, curve.probabilities[inside]) * np.diff(at, prepend=0.0, append=end)
    later = np.cumsum(areas[::-1])[::-1][1:]
    at_risk = np.array([np.sum(runs.times >= t) for t in at], dtype=float)
    lost = np.array([np.sum((runs.times == t) & runs.escaped) for t in at], dtype=float)
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
    of that is exact where every run escapes, and good for many escapes otherwise.
    """
    if runs.events < 5:
        return math.nan
    ends = np.sort(runs.times)
    running = np.append(0.0, np.cumsum(ends))
    at = np.sort(runs.times[runs.escaped])
    below = np.searchsorted(ends, at, side="left")
    clock = running[below] + (ends.size - below) * at
    whole = runs.events == runs.times.size
    uniform = clock[:-1] / clock[-1] if whole else clock / runs.exposure
    return float(stats.kstest(uniform, "uniform").pvalue)


def hazard_of(age: Array, survival: Array, mean: float) -> Hazard | None:
    """Cumulative hazard, -log of the survival, in the unit of theory; None if it has no result.

    The survival is known at increasing ages above 0, in units of the mean (infinite if nothing
    escapes), both of shape (ages,). The hazard is 0 at time 0, monotone between the ages, and of a
    constant rate beyond the last.
    """
    if np.isnan(mean):
        return None
    if np.isinf(mean):
        return lambda times: np.zeros_like(times)
    with np.errstate(divide="ignore"):
        hazards = -np.log(np.clip(survival, 0.0, 1.0))
    keep = np.isfinite(hazards)
    if keep.sum() < 2:
        return None
    at = np.append(0.0, age[keep])
    known = np.append(0.0, np.maximum.accumulate(hazards[keep]))
    inside = PchipInterpolator(at, known)
    rate = (known[-1] - known[-2]) / (at[-1] - at[-2])

    def hazard(times: Array) -> Array:
        u = np.asarray(times, dtype=float) / mean
        beyond = np.maximum(u - at[-1], 0.0)
        return np.asarray(inside(np.minimum(u, at[-1])) + rate * beyond)

    return hazard


def count_p(observed: int, expected: float, complete: bool) -> float:
    """Two-sided p-value of a number of escapes, by Poisson's tails.

    On the clock that sums the cumulative hazards of all runs still observed, whose last reading is
    what is expected, escapes are a Poisson process of rate 1. Where every run escapes
    (``complete``) the clock ends with the last escape and its reading is a gamma variable: the
    tails are exact. Where runs end early they are close to it, for few escapes too.
    """
    if expected == 0:
        return 1.0 if observed == 0 else 0.0
    many = float(stats.poisson.sf(observed - 1, expected))
    few = float(stats.poisson.cdf(observed - 1 if complete else observed, expected))
    return min(1.0, 2 * min(many, few))


@dataclass(frozen=True)
class EscapeVerdict:
    """Escapes of some runs against a theory; NaN where nothing can be tested.

    ``verdict`` is ``"agrees"``, ``"differs"`` or ``"undecided"``, and ``why`` one sentence.
    ``seeds_needed``, with its standard error, are the runs that would decide an open comparison:
    they reject wrong rates 19 times in 20, or a rate as far from theory's as the one measured.
    """

    expected: float
    p_value: float
    verdict: str
    why: str
    seeds_needed: float = math.nan
    seeds_needed_error: float = math.nan


def judge_escapes(runs: EscapeTimes | None, hazard: Hazard | None, level: float) -> EscapeVerdict:
    """One-sample test of runs against a theory's hazard; ``level``: chance of a false "differs"."""
    if runs is None or hazard is None:
        no_law = "the results have no law of this escape by theory"
        lacking = "no run is done" if runs is None else no_law
        return EscapeVerdict(math.nan, math.nan, UNDECIDED, lacking)
    clock = np.minimum(hazard(runs.times), _DEEPEST)
    # Rounded as the survival of each run is.
    expected = float(-np.log(np.exp(-clock)).sum()) if clock.any() else 0.0
    p = count_p(runs.events, expected, runs.events == runs.times.size)
    many = runs.times.size
    if p < level:
        if p < level / CLEAR:
            pace = "faster" if runs.events > expected else "more slowly"
            return EscapeVerdict(expected, p, DIFFERS, f"runs escape {pace} than in theory")
        return EscapeVerdict(expected, p, UNDECIDED, NEAR, *_settling(p, level, many))
    faster = float(stats.poisson.cdf(runs.events, expected * CONTROL))
    slower = float(stats.poisson.sf(runs.events - 1, expected / CONTROL))
    if max(faster, slower) > WRONG:  # rates wrong by the factor of the control are not rejected
        needed = max(many * ENOUGH / expected, many + 1) if expected > 0 else math.inf
        why = f"rates wrong by a factor of {CONTROL} would not have been rejected either"
        return EscapeVerdict(expected, p, UNDECIDED, why, needed)
    return EscapeVerdict(expected, p, AGREES, "as many runs escape as expected, within the noise")


def _settling(p: float, level: float, many: int) -> tuple[float, float]:
    """Runs with which a p-value this small is clear or gone, with their standard error.

    The score grows as the root of the number of runs, and is itself known to 1.
    """
    score = float(stats.norm.isf(p / 2))
    clear = float(stats.norm.isf(level / CLEAR / 2) + stats.norm.ppf(POWER))
    needed = many * (clear / score) ** 2
    return needed, needed * 2 / score


def first_below(time: Array, values: Array, level: float) -> Array:
    """First time at which values, shape (..., times), are at or below a level.

    Between two output times the logarithm of the value is taken as linear in time, the value itself
    where it or the level is not above 0. Infinite where it never does, NaN where the curve is not
    known.
    """
    below = values <= level
    after = below.argmax(axis=-1)
    before = np.maximum(after - 1, 0)
    high, low = (np.take_along_axis(values, k[..., None], -1)[..., 0] for k in (before, after))
    with np.errstate(divide="ignore", invalid="ignore"):
        straight = (high - level) / (high - low)
        curved = np.log(high / level) / np.log(high / low) if level > 0 else straight
    part = np.where((low > 0) & (level > 0), curved, straight)
    part = np.where(after > 0, part, 0.0)
    at = time[before] + part * (time[after] - time[before])
    at = np.where(below.any(axis=-1), at, math.inf)
    return np.where(np.isfinite(values).all(axis=-1), at, math.nan)
