"""Do measured values agree with predicted ones? A verdict for every cell and one for all of them.

A prediction that is not rejected may be wrong all the same: few seeds reject nothing. So every cell
has a *control*, a prediction that is off by a stated margin to either side, and only where the
values reject both do they agree with the prediction itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import special

Array = NDArray[np.float64]

AGREES, DIFFERS, UNDECIDED = "agrees", "differs", "undecided"

LEVEL = 0.01
"""Chance that right predictions are rejected anywhere among all cells of a comparison."""
CLEAR = 30.0
"""A rejection whose p-value is not so many times below the level is near it: chance alone rejects
right limits in every hundredth study, and everybody who builds that study sees the same accident.
"""
NEAR = "the difference exceeds its error, so little that it may be chance"
"""Why a rejection near the level decides nothing."""
WRONG = 0.05
"""Chance that predictions of which one is off by its margin are judged to agree."""
CONTROL = 0.1
"""Share by which a control is off where a comparison has no other."""
POWER = 0.95
"""So many seeds decide that a difference of the size at hand is rejected with this chance."""
BOTH = (1 + POWER) / 2
"""With this chance each of two differences is, if both are to be with that one."""
ROUNDING = 1e-12
"""A standard error below this share of the margin is rounding."""
CONFIDENCE = 0.95
"""Of intervals."""
MOST = 1e9
"""More seeds than this are none: the difference is rounding."""


@dataclass(frozen=True)
class Judgement:
    """Verdicts on the cells of a comparison, of their shape.

    ``verdict`` is empty where there is no value. ``p_value`` is corrected for all cells (Holm), NaN
    where there is no error. ``deciding(cells)`` are the seeds that decide some undecided cells.
    """

    verdict: NDArray[np.str_]
    p_value: Array
    deciding: Callable[[NDArray[np.bool_]], Array]

    @cached_property
    def seeds(self) -> Array:
        """How many times as many seeds would decide an undecided cell; NaN of the others."""
        times, left = np.full(self.verdict.shape, np.nan), self.verdict == UNDECIDED
        left &= np.isfinite(self.p_value)
        times[left] = self.deciding(left)
        return times

    @property
    def whole(self) -> str:
        """``agrees`` if every cell does, ``differs`` if one does, else ``undecided``; or empty."""
        return together(self.verdict[self.verdict != ""].tolist())


def together(verdicts: list[str]) -> str:
    """One verdict for several: ``agrees`` if all agree, ``differs`` if one differs."""
    if not verdicts:
        return ""
    if DIFFERS in verdicts:
        return DIFFERS
    return AGREES if set(verdicts) == {AGREES} else UNDECIDED


def judged(
    difference: Array,
    error: Array,
    margin: Array | float,
    freedom: Array | float = np.inf,
    tolerance: Array | float = 0.0,
    level: float = LEVEL,
    rivals: int = 1,
) -> Judgement:
    """Judge every cell of a comparison.

    A cell *differs* if its Student statistic is rejected clearly (:data:`CLEAR`) after Holm's
    correction for all cells: among right predictions one is with a chance of at most
    ``level / CLEAR``. A cell *agrees* if it is not rejected and both controls are, by one-sided
    tests. If all cells pass these at :data:`WRONG` each, all agree: a comparison in which any
    prediction is off by its margin passes with at most this chance. If not, the cells that agree
    are chosen by looking at the data, and each has to pass at ``WRONG`` over the number of cells
    (Bonferroni). What neither differs nor agrees is *undecided*.

    Parameters
    ----------
    difference
        Measured less predicted; NaN where either is missing.
    error
        Its standard error, of the same shape; NaN where there is none, as of a single run.
    margin
        By how much the control is off, to either side.
    freedom
        Degrees of freedom of the error, infinite where it is known.
    tolerance
        Bound on the numerical error of the prediction.
    level
        Chance that right predictions are rejected anywhere among all cells.
    rivals
        Of so many predictions this is the nearest, chosen by looking at the data; each has an equal
        part of :data:`WRONG`.
    """
    wrong = WRONG / rivals
    there = np.isfinite(difference)
    known = there & np.isfinite(error)
    freedom = np.broadcast_to(freedom, known.shape)
    most = np.broadcast_to(margin - np.asarray(tolerance), known.shape)
    error = np.maximum(error, ROUNDING * np.asarray(margin))
    p, verdict = np.full(known.shape, np.nan), np.full(known.shape, "", dtype="<U9")
    verdict[there] = UNDECIDED
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.maximum(np.abs(difference) - tolerance, 0.0) / error
        room = (most - np.abs(difference)) / error
    count = int(known.sum())
    p[known] = holm(np.minimum(1.0, 2 * _beyond(off[known], freedom[known])))
    of_control = _beyond(room, freedom)
    within = known & (p >= level) & (of_control <= wrong)
    if not within[there].all():
        within &= of_control <= wrong / max(count, 1)
    verdict[within] = AGREES
    verdict[known & (p < level / CLEAR)] = DIFFERS

    def deciding(left: NDArray[np.bool_]) -> Array:
        # What is within the tolerance is no chance, and stays there with more seeds.
        size = np.abs(difference)
        room, beyond = most - np.minimum(size, tolerance), size - tolerance
        parts = error[left], freedom[left]
        needed = _more(room[left], *parts, wrong / max(count, 1), BOTH)
        # What is near the level is to be rejected clearly, if it is as large as it seems.
        clear = _more(beyond[left], *parts, level / CLEAR / 2 / max(count, 1), POWER)
        return np.where(p[left] < level, np.maximum(needed, clear), needed)

    return Judgement(verdict, p, deciding)


def _beyond(score: Array, freedom: Array) -> Array:
    return np.asarray(special.stdtr(np.minimum(freedom, MOST), -score))


def holm(p: Array) -> Array:
    """Corrected p-values: the chance that the least of all is so small if all hypotheses hold."""
    order = np.argsort(p, kind="stable")
    steps = np.arange(p.size, 0, -1) * p[order]
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return corrected


def _more(room: Array, error: Array, freedom: Array, level: float, chance: float) -> Array:
    """How many times as many seeds reject, with a chance, what is ``room`` away from the truth.

    The score that is needed falls as seeds become more: there is one solution, found by bisection.
    """
    freedom = np.minimum(freedom, MOST)
    low, high = np.log10(2 / (freedom + 1)), np.full(error.shape, np.log10(MOST))  # from two seeds
    for _ in range(40):
        middle = (low + high) / 2
        times = 10**middle
        known = np.clip((freedom + 1) * times - 1, 1.0, MOST)
        needed = -special.stdtrit(known, level) - special.ndtri(1 - chance)
        with np.errstate(divide="ignore", invalid="ignore"):
            enough = (room > 0) & (np.sqrt(times) * room / error >= needed)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.where(high < np.log10(MOST), 10**high, np.inf)
