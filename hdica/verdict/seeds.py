"""How many seeds would decide an open comparison."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from hdica.verdict.cells import MOST, POWER
from hdica.verdict.contrast import Contrast
from hdica.verdict.ladder import MIN_SEEDS
from hdica.verdict.simultaneous import critical_score

Array = NDArray[np.float64]

ROUNDS, EAGER = 20, 5
CLOSE = 3e-3
"""Iterations for the number of seeds, those with whole steps, and the step at which they end."""


def more(test: Contrast, times: float, seeds: float) -> Contrast:
    """The same contrast with so many times the seeds that there are at each n."""
    growth = (times * seeds - 1) / (seeds - 1)
    return replace(test, error=test.error / math.sqrt(times), dof=test.dof * growth)


def seeds_that_decide(
    test: Contrast, shift: Array, level: float, seeds: float, chance: float = POWER
) -> tuple[float, float]:
    """Seeds at each n with which a true contrast ``shift`` is rejected with a ``chance``.

    The standard error of the number, given with it, is that of the scatter it is computed from: it
    grows as the variance over seeds, whose relative error is sqrt(2/dof). The number is infinite
    where no number of seeds would do, because the difference is nowhere larger than the reference's
    own error, and NaN where nothing scatters. ``seeds`` are those at each n now, at least six.
    """
    k = test.informative
    if not k.any():
        return math.nan, math.nan
    excess = np.where(k, np.abs(shift) - test.tolerance, -np.inf)
    if not (excess > 0).any():
        return math.inf, math.nan
    found, telling = _factor(test, k, excess, level, seeds, chance)
    if found * seeds > MOST:
        return math.inf, math.nan
    return max(found * seeds, MIN_SEEDS), found * seeds * math.sqrt(2 / float(test.dof[telling]))


def _factor(
    test: Contrast, k: NDArray[np.bool_], excess: Array, level: float, seeds: float, chance: float
) -> tuple[float, int]:
    """Factor on the number of seeds, and the most telling time.

    The score that is needed depends on the number of seeds through the degrees of freedom alone,
    and ever less: iteration finds both, with half steps of the logarithm where whole ones do not.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        seen = np.where(k & (excess > 0), excess / test.error, 0.0)
    factor, telling = 1.0, int(np.argmax(seen))
    for turn in range(ROUNDS):
        then = more(test, max(factor, MIN_SEEDS / seeds), seeds)
        score = critical_score(level, test.correlation, then.dof[k])
        needed = np.full_like(seen, np.inf)
        needed[k] = stats.t.isf(stats.norm.sf(score), then.dof[k]) + stats.norm.ppf(chance)
        with np.errstate(divide="ignore"):
            wanted = (needed / seen) ** 2
        telling = int(np.argmin(wanted))
        step = (float(wanted[telling]) / factor) ** (1.0 if turn < EAGER else 0.5)
        factor *= step
        if abs(step - 1) < CLOSE:
            break
    return factor, telling
