"""The diffusion with the exact mean and variance of one step of the chain of the overlap."""

from __future__ import annotations

import math

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray

from hdica.ingredients.sources import Source
from hdica.limits.diffusion.escape import Begin, Range, begin, summit_of
from hdica.limits.diffusion.first_passage import Diffusion
from hdica.limits.passage.step import Function, Points, step_of

Array = NDArray[np.float64]
_PLACES = 48
"""Overlaps at which the moments are found; even functions of Q between them."""


def step_range(
    f: Function, source: Source, tau: float, n: int, threshold: float, start: Begin
) -> Range:
    """The escape of |Q| to a threshold, in steps, for an f of which Q and -Q are alike."""
    coarse = _diffusion(f, source, tau, n, threshold, Points(), _PLACES)
    fine = _diffusion(f, source, tau, n, threshold, Points().finer(), 2 * _PLACES)
    of_r, root = begin(start, n), math.sqrt(n)
    first = (lambda q: of_r(q * root)) if callable(of_r) else of_r / root
    summit = summit_of(fine, threshold)
    return Range(fine, threshold, first, summit, float(n) ** 3, coarse=coarse)


def _diffusion(
    f: Function, source: Source, tau: float, n: int, threshold: float, points: Points, places: int
) -> Diffusion:
    step = step_of(f, source, tau, n, points)
    # Even numbers of points leave out 0, where the mean over Q is none.
    x = np.cos((np.arange(places) + 0.5) * math.pi / (2 * places))
    means, variances = np.array([step.moments(threshold * float(at)) for at in x]).T
    slope, noise = (
        Chebyshev(_even_series(values)) for values in (means / (threshold * x), variances)
    )

    def drift(q: Array) -> Array:
        return np.asarray(q * slope(_even(q, threshold)))

    def variance(q: Array) -> Array:
        return np.asarray(noise(_even(q, threshold)))

    return Diffusion(drift, variance)


def _even(q: Array, threshold: float) -> Array:
    """The variable 2 (q/threshold)^2 - 1 of even functions."""
    return np.asarray(2 * (q / threshold) ** 2 - 1)


def _even_series(values: Array) -> Array:
    """Chebyshev coefficients in 2 x^2 - 1 of an even function at the points cos((k+1/2) pi/2m)."""
    m = values.size
    angles = np.multiply.outer(np.arange(m), (np.arange(m) + 0.5) * math.pi / m)
    found = 2 / m * np.sum(np.cos(angles) * values, axis=1)
    found[0] /= 2
    return np.asarray(found)
