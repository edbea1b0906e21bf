"""One path of online tensorial ICA, compiled: of the data, in the vessel, and in a complement.

All take the samples of a block of steps as an array. :func:`observed_steps` and
:func:`vessel_steps` make every step as it is written in the paper, and normalise at once: they
check the eight lanes of :mod:`.kernels`, and need not be fast. :func:`deflated_steps` is the rule
on the orthogonal complement of given directions: with P the projector onto the complement of the
rows of Q, a step is

    v' = Pi P {v + eta s y^3 Z},   y = v.Z,

Pi making a vector of length one. P is applied to the iterate itself, one row after another, so
that rounding cannot bring it back to those directions. Its sums run in eight lanes, in the order
of the coordinates.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types

from hdica.finite.random import LANES
from hdica.finite.random.lanes import beyond, every, fma, load, pointer, store
from hdica.finite.random.lanes import total as over_lanes

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


_COUNTS = types.int64[::1]


@numba.njit(inline="always")
def _dot(one, other, size):  # type: ignore[no-untyped-def]
    """Inner product."""
    sums = every(0.0)
    for i in range(0, size, LANES):
        sums = fma(load(one, i), load(other, i), sums)
    return over_lanes(sums)


@numba.njit(inline="always")
def _add(x, factor, other, size):  # type: ignore[no-untyped-def]
    """X + factor other, in the place of x."""
    weight = every(factor)
    for i in range(0, size, LANES):
        store(x, i, fma(weight, load(other, i), load(x, i)))


@numba.njit(inline="always")
def _largest(v, size):  # type: ignore[no-untyped-def]
    """Largest square of an entry."""
    best = 0.0
    for i in range(size):
        best = max(best, v[i] * v[i])
    return best


@numba.njit(
    types.int64(_FLOATS, _MATRIX, _FLOATS, _MATRIX, _FLOATS, types.float64, types.float64, _COUNTS),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def deflated_steps(v, basis, learnt, samples, eta, sign, level, reached):  # type: ignore[no-untyped-def]
    """Steps of one path in place; returns how many succeeded.

    ``v`` has shape (m,) and ``basis``, Q, shape (j, m), with m a multiple of LANES and zeros beyond
    d. ``samples``, shape (steps, m), and ``eta``, shape (steps,), are those of the steps. ``sign``
    is s, or 0 for the sign of ``learnt[0]``, the sum of y^4 - 3 over all steps, the present one
    included. ``reached`` holds the steps made, and the first step after which the squared tangent
    to the nearest axis was at most ``level``, -1 before.
    """
    size = v.shape[0]
    x, rows, first = pointer(v), pointer(basis), pointer(samples)
    for step in range(samples.shape[0]):
        z = beyond(first, step * size)
        y = _dot(x, z, size)
        s = sign
        if s == 0.0:
            learnt[0] += y * y * y * y - 3.0
            s = math.copysign(1.0, learnt[0])
        _add(x, eta[step] * s * (y * y * y), z, size)
        for j in range(basis.shape[0]):
            row = beyond(rows, j * size)
            _add(x, -_dot(row, x, size), row, size)
        square = _dot(x, x, size)
        if not 0.0 < square < math.inf:
            return step
        scale = 1.0 / math.sqrt(square)
        for i in range(0, size, LANES):
            store(x, i, every(scale) * load(x, i))
        reached[0] += 1
        if reached[1] < 0 and _largest(v, size) * (1.0 + level) >= 1.0:
            reached[1] = reached[0]
    return samples.shape[0]
