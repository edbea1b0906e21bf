"""The compiled interpolation of densities; imported when one is first evaluated."""

from __future__ import annotations

import numba
import numpy as np

_STENCIL = 6


@numba.njit("void(float64[::1], float64[::1], float64[::1])", cache=True)
def interpolate(values, u, found):  # type: ignore[no-untyped-def]
    """Values at 0, 1, 2, ... at the points ``u``, by polynomials through the nearest six."""
    n = min(_STENCIL, values.size)
    weights = np.ones(n)
    for k in range(n):
        for j in range(n):
            if j != k:
                weights[k] /= k - j
    for p in range(u.size):
        first = min(max(int(np.floor(u[p])) - n // 2 + 1, 0), values.size - n)
        offset = u[p] - first
        total = 0.0
        for k in range(n):
            share = weights[k] * values[first + k]
            for j in range(n):
                if j != k:
                    share *= offset - j
            total += share
        found[p] = total
