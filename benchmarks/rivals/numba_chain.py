"""Overlaps alone in Numba with ``np.random.Generator``: one seed after the other."""

from __future__ import annotations

import math

import numba
import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@numba.njit(fastmath=True, cache=True, error_model="numpy")
def _ica(q, n, steps, tau, rng):  # type: ignore[no-untyped-def]
    half = math.sqrt(3.0)
    shape = (n - 2) / 2
    for seed in range(q.size):
        along = q[seed]
        s = math.sqrt(1 - along * along)
        for _ in range(steps):
            c = rng.uniform(-half, half)
            e = rng.standard_normal()
            rest = 2 * rng.standard_gamma(shape)
            g = tau / n * (along * c + s * e) ** 3
            a = along - g * c
            b = s - g * e
            across = b * b + g * g * rest
            scale = 1 / math.sqrt(a * a + across)
            along = a * scale
            s = math.sqrt(across) * scale
        q[seed] = along


def ica(q: Array, n: int, steps: int, *, tau: float, rng: np.random.Generator) -> Array:
    """As :func:`benchmarks.rivals.numpy_chain.ica`."""
    q = q.copy()
    _ica(q, n, steps, tau, rng)
    return q


@numba.njit(fastmath=True, cache=True, error_model="numpy")
def _committee(r, g, n, steps, tau, rng):  # type: ignore[no-untyped-def]
    root_half, slope, shape = math.sqrt(0.5), math.sqrt(2 / math.pi), (n - 4) / 2
    f, w = np.empty(2), np.empty((2, 2))
    for seed in range(len(r)):
        for _ in range(steps):
            first = math.sqrt(g[seed, 0, 0])
            mixed = g[seed, 1, 0] / first
            second = math.sqrt(g[seed, 1, 1] - mixed * mixed)
            v0, v1 = rng.standard_normal(), rng.standard_normal()
            e0, e1 = rng.standard_normal(), rng.standard_normal()
            rest = 2 * rng.standard_gamma(shape)
            u0 = r[seed, 0, 0] * v0 + r[seed, 0, 1] * v1 + first * e0
            u1 = r[seed, 1, 0] * v0 + r[seed, 1, 1] * v1 + mixed * e0 + second * e1
            gap = math.erf(v0 * root_half) + math.erf(v1 * root_half)
            gap -= math.erf(u0 * root_half) + math.erf(u1 * root_half)
            f[0] = tau / n * gap * slope * math.exp(-u0 * u0 / 2)
            f[1] = tau / n * gap * slope * math.exp(-u1 * u1 / 2)
            for k in range(2):
                r[seed, k, 0] += f[k] * v0
                r[seed, k, 1] += f[k] * v1
            w[0, 0], w[0, 1] = first + f[0] * e0, f[0] * e1
            w[1, 0], w[1, 1] = mixed + f[1] * e0, second + f[1] * e1
            for k in range(2):
                for j in range(2):
                    g[seed, k, j] = w[k, 0] * w[j, 0] + w[k, 1] * w[j, 1] + f[k] * f[j] * rest


def committee(
    r: Array, p: Array, n: int, steps: int, *, tau: float, rng: np.random.Generator
) -> Array:
    """Steps of two units erf(u/sqrt 2) that learn the sum of two such units.

    Parameters
    ----------
    r, p
        Shapes (seeds, 2, 2): overlaps with the teacher's units, and products of the estimates.
    n, steps, tau
        Dimension, number of steps, step size.
    rng
        Generator.

    Returns
    -------
    r
        Overlaps at the end.
    """
    r = r.copy()
    _committee(r, p - r @ r.transpose(0, 2, 1), n, steps, tau, rng)
    return r
