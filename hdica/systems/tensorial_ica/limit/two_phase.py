"""Trainings of T samples in two phases of T/2 steps, or in one of them alone, as predicted.

The squared error at the end is about c2 (d - 1) mu6 ln T/(2 beta^2 T), with one logarithm where the
bound of the paper has two.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.sources import Source
from hdica.systems.tensorial_ica.limit.fluctuation import median_factor, stationary
from hdica.systems.tensorial_ica.limit.moments import moments_of
from hdica.systems.tensorial_ica.limit.traverse import WARM, uniform_law

CALM = 0.5
"""Largest eta1 d^2/beta at which phase one surely succeeds with random signs; it fails from 2."""
SURE = 0.99
_PLAIN = 1e6


@dataclass(frozen=True)
class TwoPhase:
    """A prediction of a training from a uniform start, nan for a phase that is not made.

    Medians are as of chi-squared variables, of a second phase alone around what its start leaves.

    Attributes
    ----------
    warm
        Share of uniform starts that are warm at T/2 on the path without noise.
    drag
        eta1 d^2/beta: what the noise of phase one takes from the drift is small where it is.
    half, end
        Mean of tan^2 after each phase; nan where phase one is too noisy to have a level.
    half_median, end_median
        Medians of the same.
    """

    warm: float
    drag: float
    half: float
    end: float
    half_median: float
    end_median: float

    @property
    def succeeds(self) -> bool:
        """Whether phase one has the time for 99 % of the starts, and little enough noise."""
        return self.warm >= SURE and self.drag <= CALM


def two_phase(
    source: Source,
    d: int,
    steps: float,
    first: float | None,
    second: float | None,
    left: float = math.nan,
    level: float = WARM,
) -> TwoPhase:
    """The prediction for phases of ``steps`` = T/2 each.

    Parameters
    ----------
    source, d
        Law of the sources, and their number.
    steps
        Of each phase.
    first, second
        Step sizes eta1 and eta2; None for a phase that is not made.
    left
        tan^2 at the end of a second phase alone without noise: what is left of its start.
    level
        tan^2 of a warm start.

    Raises
    ------
    HdicaError
        If the fluctuations of phase two have no level.
    """
    moments = moments_of(source, order=6)
    half = end = end_median = warm = drag = math.nan
    factor = median_factor(d)
    if first is not None:
        half = _level(source, d, first)
        warm = float(uniform_law(d, level).reached(np.array([moments.beta * first * steps]))[0])
        drag = first * d * d / moments.beta
    if second is not None:
        floor, kept = stationary(source, d, second).S2, math.exp(-2 * moments.beta * second * steps)
        end = floor + (half - floor) * kept
        end_median = end * factor
        if first is None:
            end = floor * (1 - kept) + left
            end_median = _shifted_median(d, floor * (1 - kept), left)
    return TwoPhase(warm, drag, half, end, half * factor, end_median)


def _shifted_median(d: int, noise: float, left: float) -> float:
    """Median of |U|^2 of d - 1 normal entries of E |U - E U|^2 = ``noise``, |E U|^2 = ``left``."""
    from scipy.stats import ncx2

    unit = noise / (d - 1)
    # Where the start outweighs the noise by far, the median is the mean to that order.
    if not left < _PLAIN * unit:
        return noise + left
    return float(unit * ncx2.median(d - 1, left / unit))


def _level(source: Source, d: int, eta: float) -> float:
    """The stationary level of phase one, nan where it is too noisy to have one."""
    try:
        return stationary(source, d, eta).S2
    except HdicaError:
        return math.nan
