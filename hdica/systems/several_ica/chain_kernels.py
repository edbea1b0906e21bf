"""Eight chains of the overlaps with M features side by side, compiled: an exact reduction.

In the basis (xi_1, ..., xi_M, the part of x orthogonal to them, the rest) a step needs the
components c_j of the sample along the features, one normal number e, and the squared length X of
the rest, chi-square with n - M - 1 degrees of freedom. With s = sqrt(1 - sum_j Q_j^2) and
g = -(tau/n) f(sum_j Q_j c_j + s e),

    Q_j <- (Q_j + g c_j)/N,   s <- sqrt((s + g e)^2 + g^2 X)/N,   N^2 = the sum of their squares.

Carrying s along, instead of taking it from Q, keeps its digits near the features. A lane's numbers
do not depend on what the other lanes hold.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types

# The numbers of a step, and the nonlinearity, are those of the chains of one overlap.
from hdica.finite.projected.chain_kernels import chain_draws, lane_value
from hdica.finite.random.gaussian import read_state, write_state
from hdica.finite.random.lanes import (
    LANES,
    all_true,
    every,
    fma,
    load,
    pointer,
    square_root,
    store,
    where,
)

_MATRIX, _FLOATS = types.float64[:, ::1], types.float64[::1]


@numba.njit
def _stop(state, rate, made, step):  # type: ignore[no-untyped-def]
    """Let the chains that are no longer finite stand still, and note their last step."""
    for lane in range(LANES):
        if math.isnan(state[-1, lane]) and rate[lane] != 0.0:
            state[:, lane] = 0.0
            state[-1, lane], rate[lane], made[lane] = 1.0, 0.0, step


@numba.njit(
    types.void(
        types.uint64[::1],
        _MATRIX,
        types.int64,
        _MATRIX,
        _MATRIX,
        _FLOATS,
        _MATRIX,
        types.int64,
        types.int64[::1],
    ),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def several_chain_steps(lanes, state, n, source, tau, rate, coefficients, f, made):  # type: ignore[no-untyped-def]
    """Steps of eight chains.

    Parameters
    ----------
    lanes
        State of the generators, one a chain; updated.
    state
        Shape (M + 1, LANES): Q_1 ... Q_M and s, updated.
    n
        Dimension, at least M + 2.
    source
        Shape (steps M, LANES): c_1 ... c_M of each step.
    tau
        Shape (steps, LANES): the step size of each step.
    rate
        Shape (LANES,): -1/n, or 0 for a chain that stands still.
    coefficients, f
        The nonlinearity: coefficients of a polynomial, shape (terms, LANES), the highest first, or
        none and the address of a function for all.
    made
        Shape (LANES,): steps completed, overwritten.
    """
    a, b, c, count = read_state(pointer(lanes))
    place, sources, sizes = pointer(state), pointer(source), pointer(tau)
    powers, rates = pointer(coefficients), pointer(rate)
    room = np.empty(LANES)
    scratch = pointer(room)
    m, terms, steps = state.shape[0] - 1, coefficients.shape[0], tau.shape[0]
    # As many degrees of freedom as one feature has in n - M + 1 dimensions.
    like = n - m + 1
    d = (like - 2) / 2 - 1 / 3
    made[:] = steps
    for k in range(steps):
        e, rest, a, b, c, count = chain_draws(a, b, c, count, like, d)
        s, first = load(place, m * LANES), k * m * LANES
        u = s * e
        for j in range(m):
            u = fma(load(place, j * LANES), load(sources, first + j * LANES), u)
        value = lane_value(f, powers, terms, u, scratch)
        g = load(rates, 0) * load(sizes, k * LANES) * value
        across = fma(g, e, s)
        across = fma(g * g, rest, across * across)
        norm = across
        for j in range(m):
            ahead = fma(g, load(sources, first + j * LANES), load(place, j * LANES))
            store(place, j * LANES, ahead)
            norm = fma(ahead, ahead, norm)
        healthy = (every(0.0) < norm) & (norm < every(math.inf))
        scale = where(healthy, every(1.0) / square_root(norm), every(math.nan))
        for j in range(m):
            store(place, j * LANES, load(place, j * LANES) * scale)
        store(place, m * LANES, square_root(across) * scale)
        if not all_true(healthy):
            _stop(state, rate, made, k)
    write_state(pointer(lanes), a, b, c, count)
