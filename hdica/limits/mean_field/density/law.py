"""Coefficients of a mean field as compiled code takes them: functions of Q, row by row."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.limits.mean_field.family import MeanField, Scaled
from hdica.limits.numerics.packed import packed, times
from hdica.limits.numerics.series import adaptive

Array = NDArray[np.float64]
Law = tuple[Array, Array, Array]
Coefficient = Callable[[float, float], float]


@lru_cache(maxsize=32)
def _interpolation(points: int) -> tuple[tuple[float, ...], Array]:
    """Chebyshev points, and the matrix that takes values there to coefficients."""
    angle = np.pi * (np.arange(points) + 0.5) / points
    matrix = np.cos(np.arange(points)[:, None] * angle) * (2 / points)
    matrix[0] /= 2
    return tuple(np.cos(angle).tolist()), matrix


def _rows(coefficient: Coefficient, taus: Array) -> Array:
    """B or g at each step size as compiled code takes it, shape (step sizes, numbers)."""
    if isinstance(coefficient, Scaled):
        return times(packed(coefficient.function), taus[:, None] ** coefficient.power)
    first, _ = adaptive(lambda q: float(coefficient(q, float(taus[0]))))
    points, matrix = _interpolation(max(8, 2 * first.coef.size))
    values = [[float(coefficient(q, tau)) for q in points] for tau in taus.tolist()]
    # Sums and no product of matrices, whose rounding may follow the number of BLAS threads.
    series = [np.sum(matrix * np.array(row), axis=1) for row in values]
    return np.array([np.concatenate([[0.0], one]) for one in series])


def tabulated(field: MeanField, taus: Array) -> Law:
    """The law at S step sizes: b and g as packed functions of Q, a row each, and B, shape (S,)."""
    strength = np.array([float(field.strength(tau)) for tau in taus.tolist()])
    return _rows(field.pull, taus), _rows(field.diffusion, taus), strength
