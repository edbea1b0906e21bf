"""The rule (13) of Rattray 2002, compiled: on all n coordinates, and the chain of batches.

A pass over the entries ends one step and begins the next, block by block: it moves the rows of W',
w_i <- sum_j M_ij w_j + p_i x with M = I + alpha (I - Q), draws the normal part of the next sample
into the place of x, and sums what the next step needs, W'x and Q = W'W. Sums run in sixteen lanes,
each in the order of the entries, and end pairwise: always the same additions.

With batches, signs that change and sources that move it is plain loops of one point, by the chain
of R and Q or on all coordinates, where a turn of the sources is drawn in full. What a step of the
chain draws is given, so that NumPy can replay it. A batch of m samples moves W by the mean of
eta x phi(y)' Sigma over it, all y at the same W. Of the normal part the chain keeps L with
L L' = G'G, G = U L': sample a has K components g_a along U, and what is left of all samples,
E = (e_1 ... e_m) with independent normal entries in d = n - M - K dimensions, moves G by E P with
the rows p_a of P. With P = Q B, B of r = min(m, K) rows, E Q is normal again, and

    L L' <- T'T,  T = [L' M_t + sum_a g_a p_a'; A' B],

where A A' is a Wishart matrix of r normal vectors in d dimensions (Bartlett 1933).
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types

from hdica.finite.projected.passes import BLOCK
from hdica.finite.projected.vector_kernels import value_of
from hdica.finite.random import LANES
from hdica.finite.random.gaussian import normal_block
from hdica.finite.random.lanes import (
    CHUNK,
    beyond,
    every,
    fma,
    load,
    pointer,
    store,
    total,
)

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
    normal_block(lanes, beyond(x, low), high - low)
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
def chosen_signs(law, steps, y, value, mean, count, eta, sign):  # type: ignore[no-untyped-def]
    """Signs of a step: given, or of a running mean of y phi(y) - phi'(y) over the samples."""
    m, k = y.shape
    for i in range(k):
        sign[i] = steps[i]
        if steps[i] == 0.0:
            gain = 0.0
            for a in range(m):
                gain += y[a, i] * value[a, i] - value_of(law[5], law[4], y[a, i])
            rate = min(1.0, max(1.0 / (count + 1.0), eta))
            mean[i] += rate * (gain / m - mean[i])
            sign[i] = math.copysign(1.0, mean[i])


@numba.njit(inline="always")
def _weights(w, x, y, q, mean, count, source, step, eta, law, keep, p, room):  # type: ignore[no-untyped-def]
    """M_t and p = eta Sigma phi(y) of a step, whose sources take their place in x."""
    k, m = w.shape[0], source.shape[1]
    whole, value, sign = room
    for i in range(k):
        whole[0, i] = y[i]
        for j in range(m):
            whole[0, i] += w[i, j] * source[step, j]
        value[0, i] = value_of(law[3], law[2], whole[0, i])
        for j in range(k):
            one = 1.0 if i == j else 0.0
            keep[i * k + j] = one + law[0] * (one - q[i, j])
    chosen_signs(law, law[1], whole, value, mean, count, eta, sign)
    for i in range(k):
        p[i] = eta * sign[i] * value[0, i]
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

    ``arrays`` are those of a ``VectorState``; what lies
    beyond n is zero. ``source`` and ``eta`` have shape (steps, M), the step size in the first
    column. ``law``: alpha; the signs, 0 for adaptive ones; phi, as coefficients of a polynomial,
    the highest first, or none and the address of a function; and its derivative likewise.
    """
    lanes, w, x, y, q, mean, count = arrays
    k, m, places = w.shape[0], source.shape[1], pointer(lanes)
    keep, p = np.empty(k * k), np.empty(k)
    room = np.empty((2 * k + k * k) * CHUNK)
    ys = np.empty((1, k)), np.empty((1, k)), np.empty(k)
    if count[0] < 0:
        _pass(places, w, x, keep, p, y, q, m, n, False, room)
        count[0] = 0
    for step in range(source.shape[0]):
        _weights(w, x, y, q, mean, count[0], source, step, eta[step, 0], law, keep, p, ys)
        _pass(places, w, x, keep, p, y, q, m, n, True, room)
        trace = 0.0
        for i in range(k):
            trace += q[i, i]
        if not trace < math.inf:
            return step
        count[0] += 1
    return source.shape[0]


_BATCH_LAW = types.Tuple((types.float64, types.int64, _FLOATS, types.int64, _FLOATS, types.int64))
_STATE = types.Tuple((_MATRIX, _MATRIX, _FLOATS, _COUNTS))


@numba.njit
def triangle(t, rows, k, lower):  # type: ignore[no-untyped-def]
    """L, with a diagonal >= 0, of L L' = T'T, T of ``rows`` >= k rows, which is overwritten."""
    for i in range(k):
        square = 0.0
        for row in range(i, rows):
            square += t[row, i] * t[row, i]
        norm = math.sqrt(square)
        head = t[i, i]
        pivot = head + math.copysign(norm, head)
        if norm > 0.0:
            for j in range(i + 1, k):
                along = pivot * t[i, j]
                for row in range(i + 1, rows):
                    along += t[row, i] * t[row, j]
                weight = along / (norm * abs(pivot))
                t[i, j] -= weight * pivot
                for row in range(i + 1, rows):
                    t[row, j] -= weight * t[row, i]
        lower[i, i] = norm
        for j in range(i + 1, k):
            lower[j, i] = -math.copysign(1.0, head) * t[i, j]
            lower[i, j] = 0.0


@numba.njit
def bartlett(row, at, size, a):  # type: ignore[no-untyped-def]
    """A, lower triangular, from chi-square numbers and then normal ones; the place behind them."""
    for i in range(size):
        a[i, i] = math.sqrt(row[at + i])
        for j in range(i + 1, size):
            a[i, j] = 0.0
    at += size
    for i in range(size):
        for j in range(i):
            # A column without degrees of freedom is one that is not there.
            a[i, j] = row[at] if a[j, j] > 0.0 else 0.0
            at += 1
    return at


@numba.njit
def _turn(r, lower, numbers, at, rho, room):  # type: ignore[no-untyped-def]
    """Turn the sources: of the new directions b the chain needs U'b = B and the factor of the rest.

    b = Z A'^-1 with normal Z and Z'Z = A A'; K rows of Z are drawn, and of the others only their
    Wishart matrix. Then R <- rho R + s L B, and the normal part loses b D with
    D = (1 - rho) (L B)' + s R'.
    """
    k, m = r.shape
    t, a, change = room
    side = math.sqrt(max(0.0, (1.0 - rho) * (1.0 + rho)))
    frame, wishart = np.zeros((k + m, m)), np.zeros((m, m))
    for i in range(k):
        for j in range(m):
            frame[i, j] = numbers[at + i * m + j]
    bartlett(numbers, at + k * m, m, wishart)
    for i in range(m):
        for j in range(m):
            frame[k + i, j] = wishart[j, i]
    triangle(frame.copy(), k + m, m, a)
    for row in range(k + m):
        for j in range(m):
            for c in range(j):
                frame[row, j] -= frame[row, c] * a[j, c]
            frame[row, j] /= a[j, j]
    for i in range(k):
        for j in range(m):
            along = 0.0
            for c in range(i + 1):
                along += lower[i, c] * frame[c, j]
            change[j, i] = (1.0 - rho) * along + side * r[i, j]
            r[i, j] = rho * r[i, j] + side * along
    for row in range(k + m):
        for i in range(k):
            t[row, i] = lower[i, row] if row <= i else 0.0
            for j in range(m):
                t[row, i] -= frame[row, j] * change[j, i]
    triangle(t, k + m, k, lower)


@numba.njit
def _step(r, lower, row, p, keep, room):  # type: ignore[no-untyped-def]
    """R and L after a step with the rows p_a of ``p``, which hold eta Sigma phi(y_a)/m."""
    k, m = r.shape
    batch, normals = p.shape[0], p.shape[0] * m
    t, old = room
    rank = min(batch, k)
    for i in range(k):
        for j in range(k):
            t[i, j] = 0.0
            for c in range(i, k):
                t[i, j] += lower[c, i] * keep[c, j]
            for a in range(batch):
                t[i, j] += row[normals + a * k + i] * p[a, j]
    wishart, b = np.zeros((rank, rank)), np.zeros((k, k))
    bartlett(row, normals + batch * k, rank, wishart)
    if batch > k:
        triangle(p.copy(), batch, k, b)
    for i in range(rank):
        for j in range(k):
            total = 0.0
            for c in range(i, rank):
                total += wishart[c, i] * (b[j, c] if batch > k else p[c, j])
            t[k + i, j] = total
    for j in range(m):
        for i in range(k):
            old[i] = 0.0
            for c in range(k):
                old[i] += keep[i, c] * r[c, j]
            for a in range(batch):
                old[i] += p[a, i] * row[a * m + j]
        for i in range(k):
            r[i, j] = old[i]
    triangle(t, k + rank, k, lower)


@numba.njit
def _values(r, lower, row, law, y, value):  # type: ignore[no-untyped-def]
    """y_a = R s_a + L g_a and phi(y_a)."""
    k, m = r.shape
    batch = y.shape[0]
    for a in range(batch):
        for i in range(k):
            along = 0.0
            for j in range(m):
                along += r[i, j] * row[a * m + j]
            for c in range(i + 1):
                along += lower[i, c] * row[batch * m + a * k + c]
            y[a, i] = along
            value[a, i] = value_of(law[3], law[2], along)


@numba.njit
def _shrink(r, lower, alpha, keep):  # type: ignore[no-untyped-def]
    """M_t = I + alpha (I - Q) with Q = R R' + L L'; the trace of Q."""
    k, m = r.shape
    trace = 0.0
    for i in range(k):
        for j in range(k):
            q = 0.0
            for c in range(m):
                q += r[i, c] * r[j, c]
            for c in range(min(i, j) + 1):
                q += lower[i, c] * lower[j, c]
            one = 1.0 if i == j else 0.0
            trace += q * one
            keep[i, j] = one + alpha * (one - q)
    return trace


@numba.njit(
    types.int64(_STATE, _MATRIX, _MATRIX, _BATCH_LAW), cache=True, nogil=True, error_model="numpy"
)
def varied_chain_steps(state, numbers, path, law):  # type: ignore[no-untyped-def]
    """Steps of one chain; returns how many of them succeeded.

    ``state``: R, L, the running mean of adaptive signs, and the steps made. ``numbers``, a row a
    step: the sources and the normal components of every sample, the numbers of
    :func:`bartlett` for the rest, and, where the sources move, those of a turn. ``path``: step
    size, rho of a turn and signs, 0 for adaptive ones. ``law``: alpha; the batch; phi, as
    coefficients of a polynomial, the highest first, or none and the address of a function; and
    its derivative likewise.
    """
    r, lower, mean, count = state
    k, m = r.shape
    alpha, batch = law[0], law[1]
    rank = min(batch, k)
    moves = batch * (m + k) + rank + rank * (rank - 1) // 2
    y, value, sign = np.zeros((batch, k)), np.zeros((batch, k)), np.zeros(k)
    keep, t, old = np.zeros((k, k)), np.zeros((2 * k + m, k)), np.zeros(k)
    a, change = np.zeros((m, m)), np.zeros((m, k))
    for step in range(numbers.shape[0]):
        row, rho = numbers[step], path[step, 1]
        if rho != 1.0:
            _turn(r, lower, row, moves, rho, (t, a, change))
        _values(r, lower, row, law, y, value)
        chosen_signs(law, path[step, 2:], y, value, mean, count[0], path[step, 0], sign)
        for one in range(batch):
            for i in range(k):
                value[one, i] *= path[step, 0] * sign[i] / batch
        _shrink(r, lower, alpha, keep)
        _step(r, lower, row, value, keep, (t, old))
        if not _shrink(r, lower, alpha, keep) < math.inf:
            return step
        count[0] += 1
    return numbers.shape[0]


_ENTRIES = types.Tuple((types.uint64[::1], _MATRIX, _MATRIX, _FLOATS, _COUNTS))


@numba.njit
def _inner(one, other, room):  # type: ignore[no-untyped-def]
    """An inner product, always with the same additions."""
    room[:] = 0.0
    sums = pointer(room)
    add(pointer(one), pointer(other), sums, 0, one.size)
    return summed(sums, 0)


@numba.njit
def _turn_frame(places, w, b, m, n, rho, room):  # type: ignore[no-untyped-def]
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
def _move_all(w, q, alpha, eta, sign, change):  # type: ignore[no-untyped-def]
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
    types.int64(_ENTRIES, types.int64, _MATRIX, _MATRIX, _BATCH_LAW),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def varied_vector_steps(arrays, n, source, path, law):  # type: ignore[no-untyped-def]
    """Steps of one point; returns how many of them succeeded.

    ``arrays``: the generators, W' padded with zeros, Q, the running mean of adaptive signs and the
    steps made. ``source``: those of every sample, a row a step; ``path`` and ``law`` as for
    :func:`varied_chain_steps`.
    """
    lanes, w, q, mean, count = arrays
    places, k, batch = pointer(lanes), w.shape[0], law[1]
    m, room = source.shape[1] // batch, np.empty(CHUNK)
    y, value, sign = np.zeros((batch, k)), np.zeros((batch, k)), np.zeros(k)
    x, change, b = np.zeros(w.shape[1]), np.zeros_like(w), np.zeros((m, w.shape[1]))
    for step in range(source.shape[0]):
        if path[step, 1] != 1.0:
            _turn_frame(places, w, b, m, n, path[step, 1], room)
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
        _move_all(w, q, law[0], path[step, 0], sign, change)
        if not _gram(w, q, room) < math.inf:
            return step
        count[0] += 1
    return source.shape[0]
