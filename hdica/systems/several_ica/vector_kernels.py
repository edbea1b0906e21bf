"""The rule on all n coordinates with general orthonormal features, compiled.

The sample is made as the model says: normal numbers, of which the part along every feature is taken
away and replaced by that feature's source. Sums run in the order of the entries.
"""

from __future__ import annotations

import math

import numba
from numba import types

from hdica.finite.projected.vector_kernels import value_of
from hdica.finite.random.gaussian import fill_normal

_MATRIX, _FLOATS = types.float64[:, ::1], types.float64[::1]


@numba.njit
def _sample(features, y, n, source, step):  # type: ignore[no-untyped-def]
    """Make the sample of normal numbers y: along feature j it is c_j."""
    for j in range(features.shape[0]):
        along = 0.0
        for i in range(n):
            along += features[j, i] * y[i]
        change = source[step, j] - along
        for i in range(n):
            y[i] += change * features[j, i]


@numba.njit(
    types.int64(
        types.uint64[::1], _MATRIX, _FLOATS, _FLOATS, types.int64, _MATRIX, _MATRIX, _FLOATS,
        types.int64,
    ),
    cache=True,
    nogil=True,
    error_model="numpy",
)  # fmt: skip
def several_vector_steps(lanes, features, x, y, n, source, tau, coefficients, f):  # type: ignore[no-untyped-def]
    """Steps of one point; returns how many of them succeeded.

    ``lanes`` are the state of the generators and ``x`` the estimate over sqrt(n), of length 1: both
    are updated. ``features`` are the xi_j/sqrt(n), orthonormal rows (M, n), ``y`` is room for a
    sample, shape (n + -n % CHUNK,), ``source`` are c_1 ... c_M of each step, shape (steps, M), and
    ``tau`` its step size, (steps, 1). The nonlinearity is ``coefficients`` of a polynomial, the
    highest first, or none and the address ``f`` of a function.
    """
    for step in range(tau.shape[0]):
        fill_normal(lanes, y)
        _sample(features, y, n, source, step)
        u = 0.0
        for i in range(n):
            u += x[i] * y[i]
        g = -tau[step, 0] / n * value_of(f, coefficients, u)
        norm = 0.0
        for i in range(n):
            x[i] += g * y[i]
            norm += x[i] * x[i]
        if not 0.0 < norm < math.inf:
            return step
        scale = 1.0 / math.sqrt(norm)
        for i in range(n):
            x[i] *= scale
    return tau.shape[0]
