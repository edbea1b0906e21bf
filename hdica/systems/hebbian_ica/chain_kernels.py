"""Eight chains of overlaps (R, Q) of Hebbian ICA side by side, compiled: an exact reduction.

With x = (s, g) and W = (R', G), let L L' = C = Q - R R' = G'G. Of the normal part of x a step
needs its K components g along the columns of an orthonormal U with G = U L', and the squared
length X of the rest, chi-square with n - M - K degrees of freedom. With M_t = I + alpha (I - Q)
and p = eta Sigma phi(R s + L g),

    R <- M_t R + p s',   C <- T'T,   T = [L' M_t + g p'; sqrt(X) p'].

L is carried along, by Householder reflections of T, instead of being taken from Q - R R', so that
C keeps its digits near abs(R) = 1 and may be singular. A lane's numbers do not depend on what the
other lanes hold.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types

from hdica.finite.projected.chain_kernels import chain_draws, lane_value
from hdica.finite.random import LANES
from hdica.finite.random.gaussian import draw, normal_pair, read_state, write_state
from hdica.finite.random.lanes import (
    all_true,
    beyond,
    every,
    fma,
    keep_alive,
    load,
    magnitude,
    pointer,
    square_root,
    store,
    where,
    with_sign,
)

_MATRIX = types.float64[:, ::1]
_COUNTS = types.int64[::1]
_SIZES = types.UniTuple(types.int64, 3)
_WATCH = types.Tuple((_MATRIX, types.int64[:, ::1], _MATRIX, _COUNTS))


@numba.njit(forceinline=True)
def _normals(a, b, c, count, k, dof, g):  # type: ignore[no-untyped-def]
    """Write the k components g of a step; return X and the state of the generators."""
    rest, first = every(0.0), 0
    if dof > 0:
        e, rest, a, b, c, count = chain_draws(a, b, c, count, dof + 2, dof / 2 - 1 / 3)
        store(g, 0, e)
        first = 1
    for i in range(first, k, 2):
        one, a, b, c, count = draw(a, b, c, count)
        two, a, b, c, count = draw(a, b, c, count)
        even, odd = normal_pair(one, two)
        store(g, i * LANES, even)
        store(g, (i + 1) * LANES, odd)
    return rest, a, b, c, count


@numba.njit(forceinline=True)
def _push(r, loading, s, g, p, k, m, size, law, terms, f, scratch):  # type: ignore[no-untyped-def]
    """P = eta Sigma phi(R s + L g)."""
    for i in range(k):
        y = every(0.0)
        for j in range(m):
            y = fma(load(r, (i * m + j) * LANES), load(s, j * LANES), y)
        for j in range(i + 1):
            y = fma(load(loading, (i * k + j) * LANES), load(g, j * LANES), y)
        sign = load(law, (1 + i) * LANES)
        value = lane_value(f, beyond(law, (1 + k) * LANES), terms, y, scratch)
        store(p, i * LANES, size * sign * value)


@numba.njit(forceinline=True)
def _shrink(q, keep, k, alpha):  # type: ignore[no-untyped-def]
    """M_t = I + alpha (I - Q)."""
    for i in range(k):
        for j in range(k):
            one = every(1.0) if i == j else every(0.0)
            inside = one - load(q, (i * k + j) * LANES)
            store(keep, (i * k + j) * LANES, fma(alpha, inside, one))


@numba.njit(forceinline=True)
def _move(r, keep, s, p, k, m, column):  # type: ignore[no-untyped-def]
    """R <- M_t R + p s'."""
    for j in range(m):
        along = load(s, j * LANES)
        for i in range(k):
            moved = load(p, i * LANES) * along
            for other in range(k):
                at = load(keep, (i * k + other) * LANES)
                moved = fma(at, load(r, (other * m + j) * LANES), moved)
            store(column, i * LANES, moved)
        for i in range(k):
            store(r, (i * m + j) * LANES, load(column, i * LANES))


@numba.njit(forceinline=True)
def _spread(loading, keep, g, p, rho, k, t):  # type: ignore[no-untyped-def]
    """T = [L' M_t + g p'; rho p'], shape (k + 1, k)."""
    for i in range(k):
        along = load(g, i * LANES)
        for j in range(k):
            moved = along * load(p, j * LANES)
            for other in range(i, k):
                at = load(loading, (other * k + i) * LANES)
                moved = fma(at, load(keep, (other * k + j) * LANES), moved)
            store(t, (i * k + j) * LANES, moved)
    for j in range(k):
        store(t, (k * k + j) * LANES, rho * load(p, j * LANES))


@numba.njit(forceinline=True)
def _reflect(t, loading, k):  # type: ignore[no-untyped-def]
    """L, with a diagonal >= 0, of L L' = T'T: Householder reflections; t is overwritten."""
    for i in range(k):
        head = load(t, (i * k + i) * LANES)
        square = head * head
        for row in range(i + 1, k + 1):
            below = load(t, (row * k + i) * LANES)
            square = fma(below, below, square)
        norm = square_root(square)
        size = norm + magnitude(head)
        pivot, sign = with_sign(size, head), with_sign(every(1.0), head)
        scale = where(every(0.0) < norm, norm * size, every(1.0))
        store(loading, (i * k + i) * LANES, norm)
        for j in range(i + 1, k):
            along = pivot * load(t, (i * k + j) * LANES)
            for row in range(i + 1, k + 1):
                below = load(t, (row * k + i) * LANES)
                along = fma(below, load(t, (row * k + j) * LANES), along)
            weight = along / scale
            for row in range(i + 1, k + 1):
                below = load(t, (row * k + i) * LANES)
                place = (row * k + j) * LANES
                store(t, place, fma(-weight, below, load(t, place)))
            left = fma(-weight, pivot, load(t, (i * k + j) * LANES))
            store(loading, (j * k + i) * LANES, -sign * left)


@numba.njit(forceinline=True)
def _overlaps(r, loading, q, k, m):  # type: ignore[no-untyped-def]
    """Q = R R' + L L', and its trace."""
    trace = every(0.0)
    for i in range(k):
        for j in range(i + 1):
            entry = every(0.0)
            for other in range(m):
                one = load(r, (i * m + other) * LANES)
                entry = fma(one, load(r, (j * m + other) * LANES), entry)
            for other in range(j + 1):
                one = load(loading, (i * k + other) * LANES)
                entry = fma(one, load(loading, (j * k + other) * LANES), entry)
            store(q, (i * k + j) * LANES, entry)
            store(q, (j * k + i) * LANES, entry)
            if i == j:
                trace = trace + entry
    return trace


@numba.njit(inline="always")
def _shorter(k, m):  # type: ignore[no-untyped-def]
    """Length and stride of the shorter side of R, then of the other: projections if K = M."""
    if k <= m:
        return k, m, m, 1
    return m, 1, k, m


@numba.njit(forceinline=True)
def _nearest(r, k, m):  # type: ignore[no-untyped-def]
    """Largest abs(R_ij), and the smallest over the shorter side of the largest over the other."""
    top, low = every(0.0), every(math.inf)
    outer, far, inner, near = _shorter(k, m)
    for i in range(outer):
        best = every(0.0)
        for j in range(inner):
            size = magnitude(load(r, (i * far + j * near) * LANES))
            best = where(best < size, size, best)
        top, low = where(top < best, best, top), where(best < low, best, low)
    return top, low


@numba.njit
def _still(state, law, k, m, lane):  # type: ignore[no-untyped-def]
    """Let a lane stand still: R = 0, L = Q = I and no sign."""
    for place in range(state.shape[0]):
        state[place, lane] = 0.0
    for i in range(k):
        state[k * m + i * k + i, lane] = 1.0
        state[k * m + k * k + i * k + i, lane] = 1.0
        law[1 + i, lane] = 0.0


@numba.njit
def _look(state, law, watch, k, m, step, made):  # type: ignore[no-untyped-def]
    """Note which lanes are no longer finite, or have passed; whether any is left to watch."""
    levels, first, reached, begun = watch
    outer, far, inner, near = _shorter(k, m)
    for lane in range(LANES):
        trace, low, top = 0.0, math.inf, 0.0
        for i in range(k):
            trace += state[k * m + k * k + i * k + i, lane]
        for i in range(outer):
            best = 0.0
            for j in range(inner):
                best = max(best, abs(state[i * far + j * near, lane]))
            top, low = max(top, best), min(low, best)
        if not trace < math.inf:
            made[lane] = step - 1
            levels[:, lane] = math.inf
            _still(state, law, k, m, lane)
            continue
        if top >= levels[0, lane]:
            first[0, lane], levels[0, lane] = begun[lane] + step, math.inf
        if low >= levels[1, lane]:
            first[1, lane], levels[1, lane] = begun[lane] + step, math.inf
            for place in range(k * m):
                reached[place, lane] = state[place, lane]


@numba.njit
def _one(lanes, state, dof, sources, sizes, stride, law, terms, f, scratch, levels, k, steps):  # type: ignore[no-untyped-def]
    """Steps k, k + 1, ... of K = M = 1, in registers, up to an event; the steps then made."""
    a, b, c, count = read_state(lanes)
    r, loading, q = load(state, 0), load(state, LANES), load(state, 2 * LANES)
    alpha, sign, level = load(law, 0), load(law, LANES), load(levels, LANES)
    coefficients = beyond(law, 2 * LANES)
    d = dof / 2 - 1 / 3
    fine = True
    while fine and k < steps:
        g, rest, a, b, c, count = chain_draws(a, b, c, count, dof + 2, d)
        s, size = load(sources, k * stride), load(sizes, k * stride)
        keep = fma(alpha, every(1.0) - q, every(1.0))
        value = lane_value(f, coefficients, terms, fma(loading, g, r * s), scratch)
        p = size * sign * value
        r, across = fma(keep, r, p * s), fma(loading, keep, g * p)
        square = fma(p * p, rest, across * across)
        loading = square_root(square)
        q = fma(r, r, square)
        fine = all_true((magnitude(r) < level) & (q < every(math.inf)))
        k += 1
    store(state, 0, r)
    store(state, LANES, loading)
    store(state, 2 * LANES, q)
    write_state(lanes, a, b, c, count)
    return k


@numba.njit
def _any(lanes, state, k, m, dof, sources, sizes, law, terms, f, scratch, levels, step, steps):  # type: ignore[no-untyped-def]
    """Steps of any K and M up to an event; the steps then made."""
    a, b, c, count = read_state(lanes)
    r, loading, q = state, beyond(state, k * m * LANES), beyond(state, (k * m + k * k) * LANES)
    g, p = beyond(scratch, LANES), beyond(scratch, (k + 3) * LANES)
    column, keep = beyond(p, k * LANES), beyond(p, 2 * k * LANES)
    t, alpha = beyond(keep, k * k * LANES), load(law, 0)
    fine = True
    while fine and step < steps:
        rest, a, b, c, count = _normals(a, b, c, count, k, dof, g)
        s, size = beyond(sources, step * m * LANES), load(sizes, step * m * LANES)
        _push(r, loading, s, g, p, k, m, size, law, terms, f, scratch)
        _shrink(q, keep, k, alpha)
        _spread(loading, keep, g, p, square_root(rest), k, t)
        _move(r, keep, s, p, k, m, column)
        _reflect(t, loading, k)
        trace = _overlaps(r, loading, q, k, m)
        top, low = _nearest(r, k, m)
        passed = (top < load(levels, 0)) & (low < load(levels, LANES))
        fine = all_true(passed & (trace < every(math.inf)))
        step += 1
    write_state(lanes, a, b, c, count)
    return step


@numba.njit(
    types.void(
        types.uint64[::1], _MATRIX, _SIZES, _MATRIX, _MATRIX, _MATRIX, types.int64, _WATCH, _COUNTS
    ),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def hebbian_chain_steps(lanes, state, sizes, source, eta, law, f, watch, made):  # type: ignore[no-untyped-def]
    """Steps of eight chains, on the arrays of a ``ChainState`` and the states of their generators.

    ``sizes`` are K, M and n - M - K >= 0; ``source`` and ``eta`` have shape (steps, M LANES), the
    step sizes in the first LANES columns; ``f`` is the address of phi, if it is no polynomial. A
    chain that stops gets no signs, so that it stays; ``made`` are the steps that it completed.

    ``watch``: levels of shape (2, LANES), which max abs(R_ij), and then the least of the largest
    abs(R_ij) of every projection, or of every source if they are fewer, are to reach, infinite
    where nothing is watched; the steps at which they did, shape (2, LANES); R when the second was
    reached, shape (K M, LANES); and steps made before the first one of this call, shape (LANES,).
    All but the last are updated.
    """
    k, m, dof = sizes
    steps, terms, stride = source.shape[0], law.shape[0] - 1 - k, m * LANES
    room = np.empty((2 * k * k + 4 * k + 4) * LANES)
    places = pointer(lanes), pointer(state)
    sources, rates, scratch = pointer(source), pointer(eta), pointer(room)
    rows, levels = pointer(law), pointer(watch[0])
    made[:] = steps
    step = 0
    while step < steps:
        if k == 1 and m == 1 and dof > 0:
            step = _one(
                *places, dof, sources, rates, stride, rows, terms, f, scratch, levels, step, steps
            )
        else:
            step = _any(
                *places, k, m, dof, sources, rates, rows, terms, f, scratch, levels, step, steps
            )
        _look(state, law, watch, k, m, step, made)
    keep_alive(room)
