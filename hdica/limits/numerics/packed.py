"""Functions of the overlap as one array of numbers, in the form that compiled code evaluates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray

from hdica.limits.numerics.halves import Halves

Array = NDArray[np.float64]
Function = Chebyshev | Halves
"""A function of Q on [-1, 1]."""


def packed(function: Function) -> Array:
    """A head and the coefficients, as :func:`hdica.limits.numerics.compiled.value_at` reads them.

    The head is 0 for a series in Q; else 1, the power of sqrt(1 - Q^2) by which is divided, the
    order of the zero at Q = 0, and the number of coefficients of the lower half, which come first.
    """
    if isinstance(function, Chebyshev):
        return np.ascontiguousarray(np.concatenate([[0.0], function.coef]), dtype=float)
    head = [1.0, float(function.over), float(function.zero), float(function.below.size)]
    return np.ascontiguousarray(np.concatenate([head, function.below, function.above]))


def scaled(function: Function, factor: float) -> Function:
    """The function times a number."""
    if isinstance(function, Halves):
        return replace(function, below=factor * function.below, above=factor * function.above)
    return factor * function


def times(series: Array, factor: Array | float) -> Array:
    """The function times some factors of shape (rows, 1), or one; the head stays."""
    scaled = np.array(np.asarray(factor) * series)
    first = 1 if series[0] == 0.0 else 4
    scaled[..., :first] = series[:first]
    return np.ascontiguousarray(scaled)
