"""Full-vector steps in plain NumPy: preallocated, in place, one Python iteration a step."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def ica(
    x: Array, xi: Array, source: Array, *, tau: float, beta: float, rng: np.random.Generator
) -> Array:
    """Steps of online ICA with f = x**3 and phi = beta x."""
    x, n = x.copy(), x.size
    z, moved, root = np.empty(n), np.empty(n), math.sqrt(n)
    for c in source.tolist():
        rng.standard_normal(out=z)
        np.multiply(xi, c / root - np.dot(xi, z) / n, out=moved)
        z += moved
        z *= tau / root * (np.dot(x, z) / root) ** 3
        if beta:
            x *= 1 - tau * beta / n
        x -= z
        x *= math.sqrt(n / np.dot(x, x))
    return x


def oist(
    x: Array,
    xi: Array,
    source: Array,
    *,
    tau: float,
    omega: float,
    beta: float,
    rng: np.random.Generator,
) -> Array:
    """Steps of online sparse PCA with phi = beta sign(x)."""
    x, n = x.copy(), x.size
    z, moved, root = np.empty(n), np.empty(n), math.sqrt(omega / x.size)
    for c in source.tolist():
        rng.standard_normal(out=z)
        np.multiply(xi, root * c, out=moved)
        z += moved
        z *= tau / n * np.dot(x, z)
        x += z
        np.sign(x, out=moved)
        moved *= beta / n
        x -= moved
        x *= math.sqrt(n / np.dot(x, x))
    return x
