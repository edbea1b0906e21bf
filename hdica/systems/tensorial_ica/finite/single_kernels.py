"""One path of online tensorial ICA, compiled: in the coordinates of the data, and in the vessel.

Both take the samples of a block of steps as an array, make every step as it is written in the
paper, and normalise at once: they check the eight lanes of :mod:`.kernels`, and need not be fast.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types

_MATRIX, _FLOATS = types.float64[:, ::1], types.float64[::1]
_TOTAL, _SIGN, _LEARNS = range(3)
"""Numbers of a law: the sum of y^4 - 3; the sign; 1.0 if the sign follows that sum."""


@numba.njit(inline="always")
def _push(v, sample, eta, law):  # type: ignore[no-untyped-def]
    """Move to v + eta s y^3 X, of length one; whether that is finite, and v is NaN if not."""
    y = 0.0
    for k in range(v.size):
        y += v[k] * sample[k]
    if law[_LEARNS] > 0.0:
        law[_TOTAL] += y * y * y * y - 3.0
        law[_SIGN] = math.copysign(1.0, law[_TOTAL])
    h, square = eta * law[_SIGN] * y * y * y, 0.0
    for k in range(v.size):
        v[k] += h * sample[k]
        square += v[k] * v[k]
    if not 0.0 < square < math.inf:
        v[:] = math.nan
        return False
    for k in range(v.size):
        v[k] /= math.sqrt(square)
    return True


@numba.njit(
    types.int64(_FLOATS, _MATRIX, _MATRIX, _FLOATS, _FLOATS),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def observed_steps(u, transposed, samples, eta, law):  # type: ignore[no-untyped-def]
    """Steps of u with data X = A Z, one a row of ``samples``; returns how many were finite.

    ``transposed`` is A', shape (d, d), or of no size for A = I.
    """
    d = u.size
    x = np.empty(d)
    for step in range(samples.shape[0]):
        if transposed.size == 0:
            x[:] = samples[step]
        else:
            x[:] = 0.0
            for k in range(d):
                for i in range(d):
                    x[i] += samples[step, k] * transposed[k, i]
        if not _push(u, x, eta[step], law):
            return step
    return samples.shape[0]


@numba.njit(
    types.int64(_FLOATS, types.int64, _FLOATS, _FLOATS, _MATRIX, _FLOATS, types.float64, _FLOATS),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def vessel_steps(v, m, expected, most, samples, eta, beta, law):  # type: ignore[no-untyped-def]
    """Steps of v in the vessel of axis m; returns how many were finite and stayed inside.

    ``expected`` holds U_k(0) prod_s (1 - eta beta (v_m^2 - v_k^2)) and ``most`` the largest
    abs(U_k - expected_k) so far, for U_k = v_k/v_m; both have shape (d,). A step that leaves
    abs(tan) <= 1/sqrt 2 changes ``v`` alone.
    """
    d = v.size
    factor = np.empty(d)
    for step in range(samples.shape[0]):
        for k in range(d):
            factor[k] = 1.0 - eta[step] * beta * (v[m] * v[m] - v[k] * v[k])
        fine = _push(v, samples[step], eta[step], law)
        others = 0.0
        for k in range(d):
            if k != m:
                others += v[k] * v[k]
        if not (fine and others <= 0.5 * v[m] * v[m]):
            return step
        for k in range(d):
            if k != m:
                expected[k] *= factor[k]
                most[k] = max(most[k], abs(v[k] / v[m] - expected[k]))
    return samples.shape[0]
