"""A rule that keeps |x|^2 = n, of one estimate and one feature: its averages for every overlap.

Given xi an entry of the estimate drifts by b xi + <F_u> x + psi(x), less what keeps the norm, and
diffuses by <F^2>/2, with b = <F v> - Q <F_u>: the family of :mod:`hdica.limits.mean_field.family`
with phi = -psi and a step size of 1. For u = Q v + sqrt(1 - Q^2) e Stein's lemma makes <F_u> of
<F e> = sqrt(1 - Q^2) <F_u>, so that no F is differentiated and any may jump.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.laws import Source
from hdica.ingredients.plain import Array
from hdica.ingredients.update import Update
from hdica.limits.averages.expectations import WORST
from hdica.limits.averages.expectations import Averages as OfOverlap
from hdica.limits.numerics.series import Halves, Samples, joined
from hdica.limits.rules.averages import FIRST, MOST_POINTS, REPLICATES, Averages, Sample
from hdica.limits.rules.equations import QUANTILE, SAFETY
from hdica.limits.rules.points import LEVELS

_GOAL = 1e-12
"""Relative difference of two levels from which averages are refined no more."""


@lru_cache(maxsize=64)
def overlap_averages(
    update: Update,
    numbers: tuple[float, ...],
    source: Source,
    scale: float,
    noise: tuple[Source, ...],
) -> OfOverlap:
    """-b times sqrt(1 - Q^2) over it, and <F^2>, of an update without t, for every Q.

    ``numbers`` are those of its constants, which two updates that are equal may have of their own.

    Raises
    ------
    HdicaError
        If their error is larger than a millionth of their size.
    """
    sample = Sample(update, (source,), np.array([scale]), noise)
    levels = [Averages(sample, k) for k in range(REPLICATES if sample.is_random else LEVELS)]
    gain, power = joined(lambda q: _refined(levels, q), None)
    for part in (gain, power):
        if part.error > WORST * part.size:
            raise HdicaError(
                f"the averages of the update {str(update.expressions[0])!r} are known no better "
                f"than to {part.error / part.size:.1e} for every overlap (at least {WORST:.0e} is "
                "needed for a density)",
                ["update"],
            )
    function = Halves(gain.function.below, gain.function.above, 1)
    return OfOverlap(function, power.function, gain.error, power.error)


def _refined(levels: list[Averages], q: float) -> Samples:
    """Q <F e> - sqrt(1 - Q^2) <F v> and <F^2> at an overlap, their errors and their sizes."""
    sample, scale = levels[0].sample, float(levels[0].sample.scales[0])
    if sample.is_random:
        each = np.array([_means(one, q) for one in levels])
        values = each.mean(axis=0)
        errors = QUANTILE * each.std(axis=0, ddof=1) / np.sqrt(REPLICATES)
        return values, errors, _sizes(values, scale)
    level, values = FIRST, _means(levels[FIRST], q)
    errors = 4 * np.finfo(float).eps * _sizes(values, scale)
    while not sample.is_known:
        level += 1
        before, values = values, _means(levels[level], q)
        errors = SAFETY * np.abs(values - before)
        last = level == LEVELS - 1 or sample.size(level + 1) > MOST_POINTS
        if last or np.all(errors <= _GOAL * _sizes(values, scale)):
            break
    return values, errors, _sizes(values, scale)


def _sizes(values: Array, scale: float) -> Array:
    """<F e> and <F v>/scale are at most the root of <F^2>, for e and v/scale of variance 1."""
    return np.array([scale * np.sqrt(values[1]), values[1]])


def _means(averages: Averages, q: float) -> Array:
    means = averages.at(np.array([[q]]), np.eye(1), 0.0)
    v, u, square = means.v[0, 0], means.u[0, 0], means.square[0, 0]
    rest = np.sqrt((1 - q) * (1 + q))
    across = (u - q * v) / rest if rest > 0 else 0.0
    return np.array([q * across - rest * v, square])
