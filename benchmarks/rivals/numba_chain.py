"""The overlap alone in Numba with ``np.random.Generator``: one seed after the other."""

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
