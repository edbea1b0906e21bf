"""Full-vector steps in Numba with ``np.random.Generator``, fast-math allowed.

The noise is drawn in a loop of its own, since a loop that calls the generator is not vectorised;
the two that are left are, and the normalisation is deferred into the next update."""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@numba.njit(fastmath=True, cache=True, error_model="numpy")
def _ica(x, xi, z, source, tau, beta, rng):  # type: ignore[no-untyped-def]
    n = x.size
    root = math.sqrt(n)
    scale = 1.0
    for k in range(source.size):
        along = 0.0
        ahead = 0.0
        overlap = 0.0
        for i in range(n):
            z[i] = rng.standard_normal()
        for i in range(n):
            along += xi[i] * z[i]
            ahead += x[i] * z[i]
            overlap += x[i] * xi[i]
        shift = source[k] / root - along / n
        u = scale * (ahead + shift * overlap) / root
        gain = tau / root * u**3
        keep = scale * (1 - tau * beta / n)
        norm = 0.0
        for i in range(n):
            moved = keep * x[i] - gain * (z[i] + shift * xi[i])
            x[i] = moved
            norm += moved * moved
        scale = math.sqrt(n / norm)
    for i in range(n):
        x[i] *= scale


@numba.njit(fastmath=True, cache=True, error_model="numpy")
def _oist(x, xi, z, source, tau, omega, beta, rng):  # type: ignore[no-untyped-def]
    n = x.size
    root = math.sqrt(omega / n)
    cut = beta / n
    scale = 1.0
    for k in range(source.size):
        ahead = 0.0
        overlap = 0.0
        for i in range(n):
            z[i] = rng.standard_normal()
        for i in range(n):
            ahead += x[i] * z[i]
            overlap += x[i] * xi[i]
        shift = root * source[k]
        gain = tau / n * scale * (ahead + shift * overlap)
        norm = 0.0
        for i in range(n):
            moved = scale * x[i] + gain * (z[i] + shift * xi[i])
            moved -= math.copysign(cut, moved)
            x[i] = moved
            norm += moved * moved
        scale = math.sqrt(n / norm)
    for i in range(n):
        x[i] *= scale


def ica(
    x: Array, xi: Array, source: Array, *, tau: float, beta: float, rng: np.random.Generator
) -> Array:
    """Steps of online ICA with f = x**3 and phi = beta x."""
    x = x.copy()
    _ica(x, xi, np.empty_like(x), source, tau, beta, rng)
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
    x = x.copy()
    _oist(x, xi, np.empty_like(x), source, tau, omega, beta, rng)
    return x
