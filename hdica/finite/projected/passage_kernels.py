"""Eight chains of overlaps side by side, compiled, each watched until abs(Q) passes a level.

The step is that of :mod:`hdica.finite.projected.chain_kernels`, with the same numbers.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types

from hdica.finite.projected.chain_kernels import (
    BASE,
    RATE,
    SLOPE,
    chain_draws,
    push_value,
    stepped,
    stop,
)
from hdica.finite.random.gaussian import read_state, write_state
from hdica.finite.random.lanes import (
    LANES,
    all_true,
    fma,
    load,
    magnitude,
    pointer,
    store,
)

_FLOATS = types.float64[::1]
_COUNTS = types.int64[::1]
_MATRIX = types.float64[:, ::1]


@numba.njit
def _look(state, way, level, first, step):  # type: ignore[no-untyped-def]
    """Note the lanes that have passed, and watch them no more."""
    for lane in range(LANES):
        if way[lane] * abs(state[0, lane]) >= level[lane]:
            first[lane], level[lane] = step, math.inf
        elif math.isnan(state[0, lane]):
            level[lane] = math.inf


@numba.njit(
    types.void(
        types.uint64[::1],
        _MATRIX,
        types.int64,
        _MATRIX,
        _MATRIX,
        _MATRIX,
        _MATRIX,
        types.int64,
        _FLOATS,
        _FLOATS,
        _COUNTS,
        _COUNTS,
    ),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def passage_steps(  # type: ignore[no-untyped-def]
    lanes, state, n, source, tau, parameters, coefficients, f, way, level, first, made
):
    """Steps of eight chains that are watched.

    Parameters
    ----------
    lanes, state, n, source, tau, parameters, coefficients, f, made
        As in :func:`hdica.finite.projected.chain_kernels.chain_steps`.
    way
        Shape (LANES,): 1 to reach a level from below, -1 to fall to it from above.
    level
        Shape (LANES,): what abs(Q) times the way is to reach, infinite where nothing is watched,
        and after it was reached; updated.
    first
        Shape (LANES,): steps of this call after which it was reached; others are left alone.
    """
    a, b, c, count = read_state(pointer(lanes))
    places = pointer(state), pointer(parameters), pointer(coefficients)
    sources, sizes, levels = pointer(source), pointer(tau), pointer(level)
    ways = load(pointer(way), 0)
    room = np.empty(2 * LANES)
    scratch = pointer(room)
    steps, terms, d = source.shape[0], coefficients.shape[0], (n - 2) / 2 - 1 / 3
    made[:] = steps
    k = 0
    while k < steps:
        q, s, high = load(places[0], 0), load(places[0], LANES), load(levels, 0)
        rate = load(places[1], RATE * LANES)
        base, slope = load(places[1], BASE * LANES), load(places[1], SLOPE * LANES)
        fine = True
        while fine and k < steps:
            e, rest, a, b, c, count = chain_draws(a, b, c, count, n, d)
            along, size = load(sources, k * LANES), load(sizes, k * LANES)
            value = push_value(f, places[2], terms, fma(q, along, s * e), along, scratch)
            g, keep = rate * size * value, base - slope * size
            q, s, healthy = stepped(fma(g, along, keep * q), fma(g, e, keep * s), g * g, rest)
            fine = all_true(healthy & (ways * magnitude(q) < high))
            k += 1
        store(places[0], 0, q)
        store(places[0], LANES, s)
        if not fine:
            _look(state, way, level, first, k)
            stop(state, parameters, made, k - 1)
    write_state(pointer(lanes), a, b, c, count)
