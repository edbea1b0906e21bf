"""The rule of Li and Jordan (2021) on the orthogonal complement of given directions, compiled.

With P the projector onto the complement of the rows of Q, a step is

    v' = Pi P {v + eta s y^3 Z},   y = v.Z,

Pi making a vector of length one. P is applied to the iterate itself, one row after another, so
that rounding cannot bring it back to what was found. Sums run in eight lanes, in the order of the
coordinates.
"""

from __future__ import annotations

import math

import numba
from numba import types

from hdica.finite.random.lanes import LANES, beyond, every, fma, load, pointer, store
from hdica.finite.random.lanes import total as over_lanes

_FLOATS, _MATRIX, _COUNTS = types.float64[::1], types.float64[:, ::1], types.int64[::1]


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
def deflated_steps(v, found, learnt, samples, eta, sign, level, reached):  # type: ignore[no-untyped-def]
    """Steps of one path in place; returns how many succeeded.

    ``v`` has shape (m,) and ``found``, Q, shape (j, m), with m a multiple of LANES and zeros beyond
    d. ``samples``, shape (steps, m), and ``eta``, shape (steps,), are those of the steps. ``sign``
    is s, or 0 for the sign of ``learnt[0]``, the sum of y^4 - 3 over all steps, the present one
    included. ``reached`` holds the steps made, and the first step after which the squared tangent
    to the nearest axis was at most ``level``, -1 before.
    """
    size = v.shape[0]
    x, rows, first = pointer(v), pointer(found), pointer(samples)
    for step in range(samples.shape[0]):
        z = beyond(first, step * size)
        y = _dot(x, z, size)
        s = sign
        if s == 0.0:
            learnt[0] += y * y * y * y - 3.0
            s = math.copysign(1.0, learnt[0])
        _add(x, eta[step] * s * (y * y * y), z, size)
        for j in range(found.shape[0]):
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
