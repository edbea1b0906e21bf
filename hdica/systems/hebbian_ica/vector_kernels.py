"""The rule (13) of Rattray 2002 on all n coordinates, compiled.

A pass over the entries ends one step and begins the next, block by block: it moves the rows of W',
w_i <- sum_j M_ij w_j + p_i x with M = I + alpha (I - Q), draws the normal part of the next sample
into the place of x, and sums what the next step needs, W'x and Q = W'W. Sums run in sixteen lanes,
each in the order of the entries, and end pairwise: always the same additions.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types

from hdica.finite.projected.passes import BLOCK
from hdica.finite.projected.vector_kernels import value_of
from hdica.finite.random import LANES
from hdica.finite.random.gaussian import draw, normal_pair, read_state, write_state
from hdica.finite.random.lanes import CHUNK, beyond, every, fma, load, pointer, store, total

_FLOATS, _MATRIX, _COUNTS = types.float64[::1], types.float64[:, ::1], types.int64[::1]
_ARRAYS = types.Tuple((types.uint64[::1], _MATRIX, _FLOATS, _FLOATS, _MATRIX, _FLOATS, _COUNTS))
_LAW = types.Tuple((types.float64, _FLOATS, _FLOATS, types.int64, _FLOATS, types.int64))


@numba.njit
def _move(w, x, keep, p, old, k, m, low, high):  # type: ignore[no-untyped-def]
    """A block of w_i <- sum_j keep_ij w_j + p_i x; ``old`` has room for k CHUNK numbers."""
    for at in range(low, high, LANES):
        sample = load(x, at)
        for j in range(k):
            store(old, j * LANES, load(w, j * m + at))
        for i in range(k):
            moved = every(p[i]) * sample
            for j in range(k):
                moved = fma(every(keep[i * k + j]), load(old, j * LANES), moved)
            store(w, i * m + at, moved)


@numba.njit
def fresh(lanes, x, low, high, first, n):  # type: ignore[no-untyped-def]
    """Draw a block of normal numbers, with zeros below ``first`` and from n on."""
    a, b, c, count = read_state(lanes)
    for at in range(low, high, CHUNK):
        one, a, b, c, count = draw(a, b, c, count)
        two, a, b, c, count = draw(a, b, c, count)
        even, odd = normal_pair(one, two)
        store(x, at, even)
        store(x, at + LANES, odd)
    write_state(lanes, a, b, c, count)
    for at in range(low, min(first, high)):
        x[at] = 0.0
    for at in range(max(n, low), high):
        x[at] = 0.0


@numba.njit
def add(one, other, sums, low, high):  # type: ignore[no-untyped-def]
    """Continue an inner product in sixteen lanes over a block."""
    even, odd = load(sums, 0), load(sums, LANES)
    for at in range(low, high, CHUNK):
        even = fma(load(one, at), load(other, at), even)
        odd = fma(load(one, at + LANES), load(other, at + LANES), odd)
    store(sums, 0, even)
    store(sums, LANES, odd)


@numba.njit
def _pass(lanes, w, x, keep, p, y, q, first, n, moves, room):  # type: ignore[no-untyped-def]
    """One pass: move, unless it is the first, draw, and sum y and Q."""
    k, m = w.shape
    room[:] = 0.0
    rows, sample, sums = pointer(w), pointer(x), pointer(room)
    old = beyond(sums, (k + k * k) * CHUNK)
    factors, push = pointer(keep), pointer(p)
    for low in range(0, m, BLOCK):
        high = min(low + BLOCK, m)
        if moves:
            _move(rows, sample, factors, push, old, k, m, low, high)
        fresh(lanes, sample, low, high, first, n)
        for i in range(k):
            row = beyond(rows, i * m)
            add(row, sample, beyond(sums, i * CHUNK), low, high)
            for j in range(i + 1):
                add(row, beyond(rows, j * m), beyond(sums, (k + i * k + j) * CHUNK), low, high)
    for i in range(k):
        y[i] = summed(sums, i)
        for j in range(i + 1):
            q[i, j] = q[j, i] = summed(sums, k + i * k + j)


@numba.njit
def summed(sums, place):  # type: ignore[no-untyped-def]
    """What the sixteen lanes of a sum come to."""
    return total(load(sums, place * CHUNK) + load(sums, place * CHUNK + LANES))


@numba.njit
def _sign(law, i, y, value, mean, count, eta):  # type: ignore[no-untyped-def]
    """Sign of a projection: given, or of a running mean of y phi(y) - phi'(y)."""
    _, signs, _, _, slope, derivative = law
    if signs[i] != 0.0:
        return signs[i]
    rate = min(1.0, max(1.0 / (count + 1.0), eta))
    mean[i] += rate * (y * value - value_of(derivative, slope, y) - mean[i])
    return math.copysign(1.0, mean[i])


@numba.njit(inline="always")
def _weights(w, x, y, q, mean, count, source, step, eta, law, keep, p):  # type: ignore[no-untyped-def]
    """M_t and p = eta Sigma phi(y) of a step, whose sources take their place in x."""
    k, m = w.shape[0], source.shape[1]
    for i in range(k):
        along = y[i]
        for j in range(m):
            along += w[i, j] * source[step, j]
        value = value_of(law[3], law[2], along)
        p[i] = eta * _sign(law, i, along, value, mean, count, eta) * value
        for j in range(k):
            one = 1.0 if i == j else 0.0
            keep[i * k + j] = one + law[0] * (one - q[i, j])
    for j in range(m):
        x[j] = source[step, j]


@numba.njit(
    types.int64(_ARRAYS, types.int64, _MATRIX, _MATRIX, _LAW),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def hebbian_vector_steps(arrays, n, source, eta, law):  # type: ignore[no-untyped-def]
    """Steps of one point; returns how many of them succeeded.

    ``arrays`` are those of :class:`hdica.systems.hebbian_ica.rule.VectorState`; what lies
    beyond n is zero. ``source`` and ``eta`` have shape (steps, M), the step size in the first
    column. ``law``: alpha; the signs, 0 for adaptive ones; phi, as coefficients of a polynomial,
    the highest first, or none and the address of a function; and its derivative likewise.
    """
    lanes, w, x, y, q, mean, count = arrays
    k, m, places = w.shape[0], source.shape[1], pointer(lanes)
    keep, p = np.empty(k * k), np.empty(k)
    room = np.empty((2 * k + k * k) * CHUNK)
    if count[0] < 0:
        _pass(places, w, x, keep, p, y, q, m, n, False, room)
        count[0] = 0
    for step in range(source.shape[0]):
        _weights(w, x, y, q, mean, count[0], source, step, eta[step, 0], law, keep, p)
        _pass(places, w, x, keep, p, y, q, m, n, True, room)
        trace = 0.0
        for i in range(k):
            trace += q[i, i]
        if not trace < math.inf:
            return step
        count[0] += 1
    return source.shape[0]
