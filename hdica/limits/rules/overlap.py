"""A rule of one estimate and one feature: the averages that its density needs, for every Q.

Given xi an entry of the estimate drifts by b xi + <F_u> x + psi(x), less what keeps the norm, and
diffuses by g = <F^2>/2, with b = <F v> - Q <F_u>: the family of
:mod:`hdica.limits.mean_field.family` with phi = -psi and a step size of 1. For u = Q v +
sqrt(P - Q^2) e Stein's lemma makes <F_u> of <F e> = sqrt(P - Q^2) <F_u>, so that no F is
differentiated and any may jump. Where a rule keeps |x|^2 = n they are functions of Q, else of Q and
P = |x|^2/n, and 2h = -<F_u> is one of them.
"""

from __future__ import annotations

import math
from functools import lru_cache, partial

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.laws import Source
from hdica.ingredients.plain import Array
from hdica.ingredients.update import Update
from hdica.limits.averages.expectations import WORST
from hdica.limits.averages.expectations import Averages as OfOverlap
from hdica.limits.mean_field.family import Planes
from hdica.limits.numerics.series import Halves, Samples, joined, packed_planes
from hdica.limits.rules.averages import FIRST, MOST_POINTS, REPLICATES, Averages, Sample
from hdica.limits.rules.equations import QUANTILE, SAFETY
from hdica.limits.rules.points import LEVELS

_GOAL = 1e-12
"""Relative difference of two levels from which averages are refined no more."""
_PLANE_GOAL, _MOST_PLACES = 1e-9, 20_000
"""Last coefficients of a function of Q and P, and how many values one may take."""


@lru_cache(maxsize=64)
def overlap_averages(
    update: Update,
    numbers: tuple[float, ...],
    source: Source,
    scale: float,
    noise: tuple[Source, ...],
) -> OfOverlap:
    """-b times sqrt(1 - Q^2) over it, and <F^2>, of an update without t for P = 1 and every Q.

    ``numbers`` are those of its constants, which two updates that are equal may have of their own.

    Raises
    ------
    HdicaError
        If their error is larger than a millionth of their size.
    """
    levels = _levels(update, source, scale, noise)

    def at(q: float) -> Samples:
        (across, along, power), (off, shifted, wide), size = _refined(levels, q, 1.0)
        rest = math.sqrt((1 - q) * (1 + q))
        values = np.array([q * across - rest * along, power])
        return values, np.array([abs(q) * off + rest * shifted, wide]), size[1:]

    gain, power = joined(at, None)
    _check(update, max(part.error / part.size for part in (gain, power)))
    function = Halves(gain.function.below, gain.function.above, 1)
    return OfOverlap(function, power.function, gain.error, power.error)


@lru_cache(maxsize=64)
def planes(
    update: Update,
    numbers: tuple[float, ...],
    source: Source,
    scale: float,
    noise: tuple[Source, ...],
    low: float,
    high: float,
) -> Planes:
    """B, g and 2h of an update without t for every Q and P between ``low`` and ``high``.

    ``numbers`` as in :func:`overlap_averages`, as what is raised.
    """
    levels, worst = _levels(update, source, scale, noise), 0.0

    def at(cosine: float, square: float) -> tuple[Array, Array]:
        nonlocal worst
        (across, along, power), errors, size = _refined(levels, cosine, square)
        worst = max(worst, float(np.max(errors / size)))
        rest, root = math.sqrt((1 - cosine) * (1 + cosine)), math.sqrt(square)
        values = np.array([along * rest - cosine * across, power / 2, -across / root])
        return values, np.array([size[1], size[2] / 2, size[0] / root])

    packs, missed = packed_planes(at, (1, 0, 1), low, high, _PLANE_GOAL, _MOST_PLACES)
    _check(update, worst + missed)
    between = partial(planes, update, numbers, source, scale, noise)
    pull, diffusion, curvature = packs
    return Planes(pull, diffusion, curvature, low, high, worst + missed, between)


def _levels(
    update: Update, source: Source, scale: float, noise: tuple[Source, ...]
) -> list[Averages]:
    sample = Sample(update, (source,), np.array([scale]), noise)
    return [Averages(sample, k) for k in range(REPLICATES if sample.is_random else LEVELS)]


def _check(update: Update, error: float) -> None:
    if not error <= WORST:
        raise HdicaError(
            f"the averages of the update {str(update.expressions[0])!r} are known no better than "
            f"to {error:.1e} for every overlap (at least {WORST:.0e} is needed for a density)",
            ["update"],
        )


def _refined(levels: list[Averages], cosine: float, square: float) -> Samples:
    """<F e>, <F v> and <F^2> at a cosine and P, their errors and their sizes."""
    sample = levels[0].sample
    if sample.is_random:
        each = np.array([_means(one, cosine, square) for one in levels])
        values = each.mean(axis=0)
        errors = QUANTILE * each.std(axis=0, ddof=1) / np.sqrt(REPLICATES)
        return values, errors, _sizes(sample, values)
    level, values = FIRST, _means(levels[FIRST], cosine, square)
    errors = 4 * np.finfo(float).eps * _sizes(sample, values)
    while not sample.is_known:
        level += 1
        before, values = values, _means(levels[level], cosine, square)
        errors = SAFETY * np.abs(values - before)
        last = level == LEVELS - 1 or sample.size(level + 1) > MOST_POINTS
        if last or np.all(errors <= _GOAL * _sizes(sample, values)):
            break
    return values, errors, _sizes(sample, values)


def _sizes(sample: Sample, values: Array) -> Array:
    """<F e> and <F v>/scale are at most the root of <F^2>, for e and v/scale of variance 1."""
    root = math.sqrt(max(float(values[2]), 1e-300))
    return np.array([root, float(sample.scales[0]) * root, root * root])


def _means(averages: Averages, cosine: float, square: float) -> Array:
    q, root = cosine * math.sqrt(square), math.sqrt(square)
    means = averages.at(np.array([[q]]), np.array([[square]]), 0.0)
    v, u, power = means.v[0, 0], means.u[0, 0], means.square[0, 0]
    rest = root * math.sqrt((1 - cosine) * (1 + cosine))
    return np.array([(u - q * v) / rest if rest > 0 else 0.0, v, power])
