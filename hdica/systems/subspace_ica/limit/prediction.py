"""What FastICA ends at on n samples, where it finds the feature."""

from __future__ import annotations

import math
from dataclasses import dataclass

from hdica.ingredients.contrasts import Contrast
from hdica.ingredients.sources import Source
from hdica.systems.subspace_ica.limit.pca import Reduction
from hdica.systems.subspace_ica.limit.variance import SYMMETRIC, remaining, variance


@dataclass(frozen=True)
class Prediction:
    """Final overlaps of FastICA as D -> infinity, and what they are made of.

    Parameters
    ----------
    overlap
        abs(Uhat w . Sv)/abs(Sv), of whitened directions.
    correlation
        Correlation of the filter's output with that of the best projection, in the population.
    found
        Overlap (1 + (d - 1) V/n)^-1/2 with the feature of the reduced model.
    variance, variance_error
        V, infinite if no spike is found, and its error.
    """

    overlap: float
    correlation: float
    found: float
    variance: float
    variance_error: float


def principal(
    contrast: Contrast,
    source: Source,
    reduction: Reduction,
    count: float,
    size: int,
    in_sample: bool = True,
) -> Prediction:
    """FastICA on scores of ``size`` estimated principal components of ``count`` samples.

    Overlap m vt_c . diag(phi) vt, that is m phi for equal spikes, and correlation
    m (gamma_c/gamma)^1/2, with m = (1 + (d - 1) V(gamma_c)/n)^-1/2.

    Parameters
    ----------
    contrast, source
        G, and the law of h.
    reduction
        The reduced model at c = D/n.
    count
        n, ``math.inf`` for infinitely many.
    size
        Dimension d in which FastICA runs.
    in_sample
        Whether the samples whiten themselves.
    """
    gamma = reduction.gamma_c
    if gamma <= 0:
        return Prediction(0.0, 0.0, 0.0, math.inf, math.inf)
    v, error = variance(contrast, source, gamma, in_sample)
    m = remaining(v, count, size)
    return Prediction(m * reduction.turned, m * reduction.matched, m, v, error)


def known_space(
    contrast: Contrast,
    source: Source,
    gamma: float,
    count: float,
    size: int,
    in_sample: bool = True,
) -> Prediction:
    """FastICA in a space that is known, and holds the feature: spikes u^rho, or all dimensions.

    As ``count`` grows at fixed ``size``; parameters as of :func:`principal`. Where the samples
    whiten themselves, the direction of w is seen in coordinates that they have turned and
    stretched, and its overlap has V + 1/4.
    """
    v, error = variance(contrast, source, gamma, in_sample)
    m = remaining(v, count, size)
    seen = remaining(v + SYMMETRIC, count, size) if in_sample else m
    return Prediction(seen, m, m, v, error)
