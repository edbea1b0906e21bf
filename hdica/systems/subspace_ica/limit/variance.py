"""How far FastICA on n samples stays from the feature: the asymptotic variance V."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.contrasts import Contrast
from hdica.ingredients.sources import Source
from hdica.systems.subspace_ica.limit.loss import Loss, averages_at

Array = NDArray[np.float64]
SYMMETRIC = 0.25
"""What V has more where the filter is seen in sample-symmetric-whitened coordinates."""


@lru_cache(maxsize=256)
def variance(
    contrast: Contrast, source: Source, gamma: float, in_sample: bool = True
) -> tuple[float, float]:
    """V, with which E(1 - a^2) ~ (d - 1) V/n near the feature in d dimensions, and its error.

    At a = 1, with s = sqrt(gamma) h + sqrt(1 - gamma) N,

        V = (E g^2 - (E s g)^2)/(E s g - E g')^2,

    where the denominator is L'(1)^2. The overlap is that of the filter in coordinates in which the
    population is white; samples that whiten themselves (``in_sample``) take part of the noise away,
    and without that the numerator is E g^2.

    Raises
    ------
    HdicaError
        If an average is infinite, or the contrast does not see the feature (L'(1) = 0).
    """
    g, q = contrast.slope, math.sqrt(gamma)

    def integrand(c: Array, e: Array, u: Array) -> Sequence[Array]:
        value = g(u)
        return value * value, u * value

    found = averages_at(contrast, source, integrand, q)
    at_one = Loss(contrast, source, gamma).at(np.array(1.0))
    slope, slope_error = float(at_one.slope), float(at_one.slope_error)
    if abs(slope) <= 20 * slope_error:
        raise HdicaError(
            f"contrast = {contrast.formula.text!r} is not allowed with the latent variable "
            f"{source.label} (the population loss has no slope at the feature)",
            ["contrast", "latent"],
        )
    square, along = (float(v) for v in found.value)
    square_error, along_error = (float(v) for v in found.error)
    above = square - along * along if in_sample else square
    above_error = square_error + (2 * abs(along) * along_error if in_sample else 0.0)
    value = above / slope**2
    return value, above_error / slope**2 + 2 * abs(value) * slope_error / abs(slope)


def mean_square(contrast: Contrast, source: Source, gamma: float) -> float:
    """E g(s)^2 at the feature, which the noise of one sample has."""

    def integrand(c: Array, e: Array, u: Array) -> Sequence[Array]:
        value = contrast.slope(u)
        return (value * value,)

    return float(averages_at(contrast, source, integrand, math.sqrt(gamma)).value[0])


def remaining(value: float, count: float, size: int) -> float:
    """Overlap (1 + (d - 1) V/n)^-1/2 of the filter; 1 for infinitely many samples."""
    return 1.0 if math.isinf(count) else 1 / math.sqrt(1 + (size - 1) * value / count)


def level(
    contrast: Contrast, source: Source, gamma: float, size: int, eta: float, batch: int
) -> float:
    """E(1 - a^2) at which mini-batch updates (B.5) with a constant step size end.

    (d - 1) eta E g^2/(2 B abs(L'(1))), to first order in eta.
    """
    slope = abs(float(Loss(contrast, source, gamma).at(np.array(1.0)).slope))
    return (size - 1) * eta * mean_square(contrast, source, gamma) / (2 * batch * slope)
