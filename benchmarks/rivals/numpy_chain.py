"""The overlap alone in plain NumPy: all seeds at once, random numbers drawn in blocks of steps."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
BLOCK = 1024


def ica(q: Array, n: int, steps: int, *, tau: float, rng: np.random.Generator) -> Array:
    """Steps of online ICA with f = x**3, uniform source and phi = 0.

    Parameters
    ----------
    q
        Shape (seeds,): overlaps at the start.
    n, steps, tau
        Dimension, number of steps, step size.
    rng
        Generator.
    """
    s, half = np.sqrt(1 - q * q), math.sqrt(3)
    for first in range(0, steps, BLOCK):
        shape = (min(BLOCK, steps - first), q.size)
        source, noise = rng.uniform(-half, half, shape), rng.standard_normal(shape)
        rest = 2 * rng.standard_gamma((n - 2) / 2, shape)
        for c, e, across in zip(source, noise, rest, strict=True):
            g = tau / n * (q * c + s * e) ** 3
            a, b = q - g * c, s - g * e
            orthogonal = b * b + g * g * across
            scale = 1 / np.sqrt(a * a + orthogonal)
            q, s = a * scale, np.sqrt(orthogonal) * scale
    return q
