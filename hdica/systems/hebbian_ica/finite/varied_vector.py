"""The rule (13) on all n coordinates with batches, signs that change and sources that move."""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types

from hdica.finite.projected.vector_kernels import value_of
from hdica.finite.random.lanes import CHUNK, pointer
from hdica.systems.hebbian_ica.finite.varied_kernels import LAW, chosen_signs
from hdica.systems.hebbian_ica.finite.vector_kernels import add, fresh, summed

_FLOATS, _MATRIX, _COUNTS = types.float64[::1], types.float64[:, ::1], types.int64[::1]
_ARRAYS = types.Tuple((types.uint64[::1], _MATRIX, _MATRIX, _FLOATS, _COUNTS))


@numba.njit
def _inner(one, other, room):  # type: ignore[no-untyped-def]
    """An inner product, always with the same additions."""
    room[:] = 0.0
    sums = pointer(room)
    add(pointer(one), pointer(other), sums, 0, one.size)
    return summed(sums, 0)


@numba.njit
def _turn(places, w, b, m, n, rho, room):  # type: ignore[no-untyped-def]
    """Turn the sources: the coordinates of W in the frame that has moved."""
    side = math.sqrt(max(0.0, (1.0 - rho) * (1.0 + rho)))
    for j in range(m):
        fresh(places, pointer(b[j]), 0, b.shape[1], m, n)
        for _ in range(2):
            for c in range(j):
                along = _inner(b[j], b[c], room)
                b[j] -= along * b[c]
            b[j] /= math.sqrt(_inner(b[j], b[j], room))
    for i in range(w.shape[0]):
        # The b_j are orthonormal, so that none changes what the next one finds.
        for j in range(m):
            along = _inner(w[i], b[j], room)
            was = w[i, j]
            w[i] -= ((1.0 - rho) * along + side * was) * b[j]
            w[i, j] = rho * was + side * along


@numba.njit
def _gram(w, q, room):  # type: ignore[no-untyped-def]
    """Q = W'W, and its trace."""
    trace = 0.0
    for i in range(w.shape[0]):
        for j in range(i + 1):
            q[i, j] = q[j, i] = _inner(w[i], w[j], room)
        trace += q[i, i]
    return trace


@numba.njit
def _move(w, q, alpha, eta, sign, change):  # type: ignore[no-untyped-def]
    """W <- W + alpha W (I - Q) + eta (change) Sigma."""
    k = w.shape[0]
    old = np.empty(k)
    for at in range(w.shape[1]):
        for i in range(k):
            old[i] = w[i, at]
        for i in range(k):
            moved = eta * sign[i] * change[i, at] + old[i]
            for j in range(k):
                one = 1.0 if i == j else 0.0
                moved += alpha * (one - q[i, j]) * old[j]
            w[i, at] = moved


@numba.njit(
    types.int64(_ARRAYS, types.int64, _MATRIX, _MATRIX, LAW),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def varied_vector_steps(arrays, n, source, path, law):  # type: ignore[no-untyped-def]
    """Steps of one point; returns how many of them succeeded.

    ``arrays``: the generators, W' padded with zeros, Q, the running mean of adaptive signs and the
    steps made. ``source``: those of every sample, a row a step; ``path`` and ``law`` as for
    :func:`hdica.systems.hebbian_ica.finite.varied_kernels.varied_chain_steps`.
    """
    lanes, w, q, mean, count = arrays
    places, k, batch = pointer(lanes), w.shape[0], law[1]
    m, room = source.shape[1] // batch, np.empty(CHUNK)
    y, value, sign = np.zeros((batch, k)), np.zeros((batch, k)), np.zeros(k)
    x, change, b = np.zeros(w.shape[1]), np.zeros_like(w), np.zeros((m, w.shape[1]))
    for step in range(source.shape[0]):
        if path[step, 1] != 1.0:
            _turn(places, w, b, m, n, path[step, 1], room)
            _gram(w, q, room)
        change[:] = 0.0
        for a in range(batch):
            fresh(places, pointer(x), 0, x.size, m, n)
            x[:m] = source[step, a * m : (a + 1) * m]
            for i in range(k):
                y[a, i] = _inner(w[i], x, room)
                value[a, i] = value_of(law[3], law[2], y[a, i])
                change[i] += value[a, i] / batch * x
        chosen_signs(law, path[step, 2:], y, value, mean, count[0], path[step, 0], sign)
        _move(w, q, law[0], path[step, 0], sign, change)
        if not _gram(w, q, room) < math.inf:
            return step
        count[0] += 1
    return source.shape[0]
