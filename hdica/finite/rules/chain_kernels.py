"""Eight chains of R and P side by side, compiled: the exact reduction of a rule to its products.

With R_km = xi_m.x_k/n and G = P - R R' the products of the parts of the estimates across the
features, a step needs the components v_m of the sample along the features, K normal numbers e
along a basis of those parts, and the squared length X of the rest, chi-square with n - M - K
degrees of freedom. With L L' = G, u = R v + L e and F = F(u, v, ...),

    R <- keep R + F v'/n,   G <- W W' + X F F'/n^2,   W = keep L + F e'/n,

and then the normalisation S of [R W F sqrt(X)/n], S = diag(P)^(-1/2), P^(-1/2) or the inverse of
the Cholesky factor of P. A lane's numbers do not depend on what the other lanes hold.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types

from hdica.finite.jit import call_block
from hdica.finite.projected.chain_kernels import chain_draws
from hdica.finite.random import LANES
from hdica.finite.random.gaussian import draw, normal_pair, read_state, write_state
from hdica.finite.random.lanes import (
    every,
    fma,
    keep_alive,
    load,
    pointer,
    square_root,
    store,
    where,
)

NONE, NORM, SYMMETRIC, GRAM_SCHMIDT = range(4)
_MATRIX, _CUBE = types.float64[:, ::1], types.float64[:, :, ::1]
_MOST = 200
"""Newton steps of an inverse square root, which ends after some five."""
_CLOSE = 4e-16


@numba.njit(inline="always")
def _root(g, root, size):  # type: ignore[no-untyped-def]
    """Cholesky's factor of G, lane by lane; 0 in the directions that G has lost."""
    for k in range(size):
        for j in range(k + 1):
            rest = load(g, (k * size + j) * LANES)
            for i in range(j):
                one, other = load(root, (k * size + i) * LANES), load(root, (j * size + i) * LANES)
                rest = rest - one * other
            positive = every(0.0) < rest
            if j == k:
                value = where(positive, square_root(where(positive, rest, every(1.0))), every(0.0))
            else:
                under = load(root, (j * size + j) * LANES)
                has = every(0.0) < under
                value = where(has, rest / where(has, under, every(1.0)), every(0.0))
            store(root, (k * size + j) * LANES, value)


@numba.njit(inline="always")
def _product(rows, k, j, width):  # type: ignore[no-untyped-def]
    """Inner product of two rows of a matrix of lanes."""
    total = load(rows, k * width * LANES) * load(rows, j * width * LANES)
    for i in range(1, width):
        total = fma(load(rows, (k * width + i) * LANES), load(rows, (j * width + i) * LANES), total)
    return total


@numba.njit(inline="always")
def _scaled(rows, k, width, factor):  # type: ignore[no-untyped-def]
    for i in range(width):
        at = (k * width + i) * LANES
        store(rows, at, load(rows, at) * factor)


@numba.njit(inline="always")
def _without(rows, k, j, width, share):  # type: ignore[no-untyped-def]
    """Row k less a share of row j."""
    for i in range(width):
        at = (k * width + i) * LANES
        store(rows, at, fma(-share, load(rows, (j * width + i) * LANES), load(rows, at)))


@numba.njit
def inverse_root(p, root, room):  # type: ignore[no-untyped-def]
    """P^(-1/2) of one symmetric matrix by Newton's method; NaN where P is not positive.

    Z <- Z (3 - P Z^2)/2 from a multiple of 1 so small that it converges for every P > 0.
    """
    size = p.shape[0]
    bound = 0.0
    for k in range(size):
        total = 0.0
        for j in range(size):
            total += abs(p[k, j])
        bound = max(bound, total)
    for k in range(size):
        for j in range(size):
            root[k, j] = 1.0 / math.sqrt(bound) if k == j else 0.0
    before = math.inf
    for _ in range(_MOST):
        for k in range(size):
            for j in range(size):
                total = 0.0
                for i in range(size):
                    total += root[k, i] * root[i, j]
                room[0, k, j] = total
        for k in range(size):
            for j in range(size):
                total = 3.0 if k == j else 0.0
                for i in range(size):
                    total -= p[k, i] * room[0, i, j]
                room[1, k, j] = 0.5 * total
        change = 0.0
        for k in range(size):
            for j in range(size):
                total = 0.0
                for i in range(size):
                    total += root[k, i] * room[1, i, j]
                change = max(change, abs(total - root[k, j]))
                room[0, k, j] = total
        for k in range(size):
            for j in range(size):
                root[k, j] = 0.5 * (room[0, k, j] + room[0, j, k])
        if change <= _CLOSE or (change < 1e-8 and change >= before):
            return
        before = change
    root[:] = math.nan


@numba.njit(inline="always")
def _turned_pair(rows, width):  # type: ignore[no-untyped-def]
    """Two rows times P^(-1/2) = [[P_22 + s, -P_12], [-P_12, P_11 + s]]/(s t).

    s^2 is the determinant of P and t^2 its trace plus 2 s.
    """
    first, second = _product(rows, 0, 0, width), _product(rows, 1, 1, width)
    mixed = _product(rows, 0, 1, width)
    s = square_root(fma(first, second, -(mixed * mixed)))
    t = square_root(first + second + s + s)
    over = every(1.0) / (s * t)
    a, b, c = (second + s) * over, -(mixed * over), (first + s) * over
    for i in range(width):
        x, y = load(rows, i * LANES), load(rows, (width + i) * LANES)
        store(rows, i * LANES, fma(a, x, b * y))
        store(rows, (width + i) * LANES, fma(b, x, c * y))


@numba.njit
def _turned(rows, size, width, small, room):  # type: ignore[no-untyped-def]
    """Rows times P^(-1/2), lane by lane."""
    p, root, made = small[0], small[1], small[2]
    for lane in range(LANES):
        for k in range(size):
            for j in range(k + 1):
                total = 0.0
                for i in range(width):
                    total += (
                        rows[(k * width + i) * LANES + lane] * rows[(j * width + i) * LANES + lane]
                    )
                p[k, j] = total
                p[j, k] = total
        inverse_root(p, root, room)
        for i in range(width):
            for k in range(size):
                total = 0.0
                for j in range(size):
                    total += root[k, j] * rows[(j * width + i) * LANES + lane]
                made[k, 0] = total
            for k in range(size):
                rows[(k * width + i) * LANES + lane] = made[k, 0]


@numba.njit(
    types.void(
        types.uint64[::1], _MATRIX, _MATRIX, types.int64, types.int64, types.int64, _CUBE, _MATRIX,
        _MATRIX, _MATRIX, types.int64, types.int64, types.boolean, types.int64[::1],
    ),
    cache=True,
    nogil=True,
    error_model="numpy",
)  # fmt: skip
def rule_chain_steps(  # type: ignore[no-untyped-def]
    lanes, r, g, n, estimates, features, source, clock, constants, shrinks, f, mode, norms, made
):
    """Steps of eight chains.

    Parameters
    ----------
    lanes
        State of the generators, one a chain; updated.
    r, g
        R, shape (K M, LANES), and G, shape (K K, LANES), both of its triangles; updated.
    n
        Dimension, at least M + K + 1.
    estimates, features
        K and M.
    source
        v_1 ... v_M and the noise of each step, shape (steps, M + J, LANES).
    clock
        The time of each step, shape (steps, LANES).
    constants
        Of the update, shape (constants, LANES).
    shrinks
        lambda/n of every estimate, shape (K, LANES).
    f
        Address of the update as C code.
    mode
        Place of the normalisation in :data:`hdica.ingredients.update.NORMALISATIONS`.
    norms
        Whether the update uses the norms.
    made
        Shape (LANES,): steps completed, overwritten. The state of a chain that was not finite is
        not a number from then on.
    """
    a, b, c, count = read_state(pointer(lanes))
    steps, drawn = source.shape[0], source.shape[1]
    size = estimates + drawn
    width = features + estimates + 1
    arguments = np.zeros((size + estimates + 1 + constants.shape[0], LANES))
    values, roots = np.zeros((estimates, LANES)), np.zeros((estimates * estimates, LANES))
    normals, whole = np.zeros((estimates + 1, LANES)), np.zeros((estimates * width, LANES))
    small, room = np.zeros((3, estimates, estimates)), np.zeros((2, estimates, estimates))
    flat = whole.reshape(-1)
    arguments[size + estimates + 1 :] = constants
    x, out, root, e, rows = (
        pointer(arguments), pointer(values), pointer(roots), pointer(normals), pointer(whole),
    )  # fmt: skip
    along, across, sources, times = pointer(r), pointer(g), pointer(source), pointer(clock)
    shrink = pointer(shrinks)
    like = n - features - estimates + 2
    d = (like - 2) / 2 - 1 / 3
    part = every(1.0 / n)
    made[:] = steps
    for step in range(steps):
        first, rest, a, b, c, count = chain_draws(a, b, c, count, like, d)
        store(e, 0, first)
        for k in range(1, estimates, 2):
            one, a, b, c, count = draw(a, b, c, count)
            other, a, b, c, count = draw(a, b, c, count)
            even, odd = normal_pair(one, other)
            store(e, k * LANES, even)
            store(e, (k + 1) * LANES, odd)
        _root(across, root, estimates)
        for j in range(drawn):
            value = load(sources, (step * drawn + j) * LANES)
            store(x, (estimates + j) * LANES, value)
        for k in range(estimates):
            u = every(0.0)
            for m in range(features):
                v = load(x, (estimates + m) * LANES)
                u = fma(load(along, (k * features + m) * LANES), v, u)
            for j in range(k + 1):
                u = fma(load(root, (k * estimates + j) * LANES), load(e, j * LANES), u)
            store(x, k * LANES, u)
            if norms:
                square = load(across, (k * estimates + k) * LANES)
                for m in range(features):
                    one = load(along, (k * features + m) * LANES)
                    square = fma(one, one, square)
                store(x, (size + k) * LANES, square_root(square))
        store(x, (size + estimates) * LANES, load(times, step * LANES))
        call_block(f, x, out, LANES)
        length = square_root(rest)
        for k in range(estimates):
            move = load(out, k * LANES) * part
            keep = every(1.0) - load(shrink, k * LANES)
            for m in range(features):
                before = keep * load(along, (k * features + m) * LANES)
                v = load(x, (estimates + m) * LANES)
                store(rows, (k * width + m) * LANES, fma(move, v, before))
            for j in range(estimates):
                before = every(0.0)
                if j <= k:
                    before = keep * load(root, (k * estimates + j) * LANES)
                place = (k * width + features + j) * LANES
                store(rows, place, fma(move, load(e, j * LANES), before))
            store(rows, (k * width + width - 1) * LANES, move * length)
        if mode == SYMMETRIC and estimates == 2:
            _turned_pair(rows, width)
        elif mode == SYMMETRIC:
            _turned(flat, estimates, width, small, room)
        else:
            for k in range(estimates):
                if mode == GRAM_SCHMIDT:
                    for j in range(k):
                        _without(rows, k, j, width, _product(rows, k, j, width))
                if mode != NONE:
                    _scaled(rows, k, width, every(1.0) / square_root(_product(rows, k, k, width)))
        for k in range(estimates):
            for m in range(features):
                store(along, (k * features + m) * LANES, load(rows, (k * width + m) * LANES))
            for j in range(k + 1):
                total = every(0.0)
                for i in range(features, width):
                    one, other = (
                        load(rows, (k * width + i) * LANES),
                        load(rows, (j * width + i) * LANES),
                    )
                    total = fma(one, other, total)
                store(across, (k * estimates + j) * LANES, total)
                store(across, (j * estimates + k) * LANES, total)
        for lane in range(LANES):
            if made[lane] == steps:
                for k in range(estimates):
                    if not math.isfinite(g[k * estimates + k, lane]):
                        made[lane] = min(made[lane], step)
    write_state(pointer(lanes), a, b, c, count)
    keep_alive(arguments)
    keep_alive(values)
    keep_alive(roots)
    keep_alive(normals)
    keep_alive(whole)
