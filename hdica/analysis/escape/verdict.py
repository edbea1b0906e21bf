"""Do runs escape as theory says? Survival in theory at any time, and the test of a count."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.interpolate import PchipInterpolator

from hdica.verdict.cells import AGREES, BOTH, CLEAR, DIFFERS, POWER, UNDECIDED, WRONG
from hdica.verdict.survival import EscapeTimes

Array = NDArray[np.float64]
Hazard = Callable[[Array], Array]

CONTROL = 1.5
"""Rates that are wrong by this factor, to either side, have to be rejected: else as many escapes as
expected prove nothing."""
ENOUGH = ((stats.norm.isf(WRONG) + stats.norm.ppf(BOTH)) / math.log(CONTROL)) ** 2
"""So many expected escapes reject both."""

BLIND = f"rates wrong by a factor of {CONTROL} would not have been rejected either"
"""Why nothing is decided with too few escapes."""

_DEEPEST = 690.0
"""Cumulative hazard of one run beyond which its survival leaves the range of float64."""


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
        found = -np.log(np.clip(survival, 0.0, 1.0))
    keep = np.isfinite(found)
    if keep.sum() < 2:
        return None
    at = np.concatenate([[0.0], age[keep]])
    known = np.concatenate([[0.0], np.maximum.accumulate(found[keep])])
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
    what is expected, escapes are a Poisson process of rate 1 (each run brings its hazard until it
    ends). Where every run escapes (``complete``) the tails are exact, because the clock then ends
    with the last escape and its reading is a gamma variable; where runs end early they are close to
    it, and right for few escapes and strict levels too, where a normal score is not.
    """
    if expected == 0:
        return 1.0 if observed == 0 else 0.0
    many = float(stats.poisson.sf(observed - 1, expected))
    few = float(stats.poisson.cdf(observed - 1 if complete else observed, expected))
    return min(1.0, 2 * min(many, few))


@dataclass(frozen=True)
class Judged:
    """Escapes of some runs against a theory; NaN where nothing can be tested.

    ``verdict`` is ``"agrees"``, ``"differs"`` or ``"undecided"``, and ``why`` one sentence.
    ``seeds_needed``, with its standard error, says with how many runs an open comparison would be
    decided: so many that wrong rates are rejected 19 times in 20, or a rate as far from theory's as
    the one measured. NaN where the verdict is not open.
    """

    expected: float
    p_value: float
    verdict: str
    why: str
    seeds_needed: float = math.nan
    seeds_needed_error: float = math.nan


def judged(runs: EscapeTimes | None, hazard: Hazard | None, level: float) -> Judged:
    """One-sample test of runs against a theory's hazard; ``level``: chance of a false "differs"."""
    if runs is None:
        return Judged(math.nan, math.nan, UNDECIDED, "no run is done")
    if hazard is None:
        return Judged(
            math.nan, math.nan, UNDECIDED, "the results have no law of this escape by theory"
        )
    clock = np.minimum(hazard(runs.times), _DEEPEST)
    # Rounded as the survival of each run is.
    expected = float(-np.log(np.exp(-clock)).sum()) if clock.any() else 0.0
    p = count_p(runs.events, expected, runs.events == runs.times.size)
    many = runs.times.size
    if p < level:
        faster = "faster" if runs.events > expected else "more slowly"
        if p < level / CLEAR:
            return Judged(expected, p, DIFFERS, f"runs escape {faster} than in theory")
        why = f"runs escape {faster} than in theory, by so little that it may be chance"
        return Judged(expected, p, DIFFERS, why, *_settling(p, level, many))
    if not _controls_fall(runs.events, expected):
        needed = max(many * ENOUGH / expected, many + 1) if expected > 0 else math.inf
        return Judged(expected, p, UNDECIDED, BLIND, needed)
    return Judged(expected, p, AGREES, "as many runs escape as expected, within the noise")


def _controls_fall(observed: int, expected: float) -> bool:
    """Whether rates that are wrong by the control's factor are rejected, to both sides."""
    faster = float(stats.poisson.cdf(observed, expected * CONTROL))
    slower = float(stats.poisson.sf(observed - 1, expected / CONTROL))
    return max(faster, slower) <= WRONG


def _settling(p: float, level: float, many: int) -> tuple[float, float]:
    """Runs with which a p-value this small is clear or gone, with their standard error.

    The score grows as the root of the number of runs, and is itself known to 1.
    """
    score = float(stats.norm.isf(p / 2))
    clear = float(stats.norm.isf(level / CLEAR / 2) + stats.norm.ppf(POWER))
    needed = many * (clear / score) ** 2
    return needed, needed * 2 / score
