"""Numba types and the gamma number that the kernels share."""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types

SCALAR = types.FunctionType(types.float64(types.float64))
RNG = numba.typeof(np.random.Generator(np.random.SFC64(0)))
VECTOR = types.float64[::1]


@numba.njit(types.float64(types.float64, types.float64, RNG), cache=True, inline="always")
def standard_gamma(b, c, rng):  # type: ignore[no-untyped-def]
    """Standard gamma number of shape b + 1/3 > 1, with c = 1/sqrt(9 b) (Marsaglia and Tsang 2000).

    The same bits as NumPy's ``standard_gamma``, which computes b and c anew at every call.
    """
    while True:
        x = rng.standard_normal()
        v = 1.0 + c * x
        if v <= 0.0:
            continue
        v = v * v * v
        u = rng.random()
        if u < 1.0 - 0.0331 * (x * x) * (x * x):
            return b * v
        if math.log(u) < 0.5 * x * x + b * (1.0 - v + math.log(v)):
            return b * v
