"""Eight chains of overlaps side by side whose steps take the mean over several samples.

Sample j has the components c_j along xi and e_j along the part of x across xi, and pushes with
f_j = f(Q c_j + s e_j). Given these the rest of the mean of f_j y_j is normal, with variance
sum f_j^2/m^2 a coordinate: with A, B and P the means of f c, of f e and of f^2, and X chi-square
with n - 2 degrees of freedom,

    Q <- a / sqrt(a^2 + b^2 + g^2 P X/m),   a = keep Q + g A,   b = keep s + g B,   g = rate tau,

which is the step of :mod:`hdica.finite.projected.chain_kernels` for m = 1.
"""

from __future__ import annotations

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
    every,
    fma,
    load,
    pointer,
    store,
)

_MATRIX = types.float64[:, ::1]


@numba.njit(inline="always")
def _means(sources, at, count, q, s, coefficients, terms, f, scratch):  # type: ignore[no-untyped-def]
    """Means over the samples of a step of f c and f e, and the mean of f^2 over their number."""
    along, across, power = every(0.0), every(0.0), every(0.0)
    for j in range(count):
        c, e = load(sources, at + j * LANES), load(sources, at + (count + j) * LANES)
        value = push_value(f, coefficients, terms, fma(q, c, s * e), c, scratch)
        along, across = fma(value, c, along), fma(value, e, across)
        power = fma(value, value, power)
    part = every(1.0 / count)
    return along * part, across * part, power * part * part


@numba.njit(
    types.void(
        types.uint64[::1],
        _MATRIX,
        types.int64,
        types.float64[:, :, ::1],
        _MATRIX,
        _MATRIX,
        _MATRIX,
        types.int64,
        types.int64[::1],
    ),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def batch_chain_steps(lanes, state, n, source, tau, parameters, coefficients, f, made):  # type: ignore[no-untyped-def]
    """Steps of eight chains, each of several samples.

    Parameters
    ----------
    source
        Shape (steps, 2 m, LANES): the c of all samples of a step, and then their e.
    lanes, state, n, tau, parameters, coefficients, f, made
        As in :func:`hdica.finite.projected.chain_kernels.chain_steps`.
    """
    a, b, c, count = read_state(pointer(lanes))
    places = pointer(state), pointer(parameters), pointer(coefficients)
    sources, sizes = pointer(source), pointer(tau)
    room = np.empty(2 * LANES)
    scratch = pointer(room)
    steps, width = source.shape[0], source.shape[1]
    terms, d = coefficients.shape[0], (n - 2) / 2 - 1 / 3
    made[:] = steps
    k = 0
    while k < steps:
        q, s = load(places[0], 0), load(places[0], LANES)
        rate = load(places[1], RATE * LANES)
        base, slope = load(places[1], BASE * LANES), load(places[1], SLOPE * LANES)
        fine = True
        while fine and k < steps:
            _, rest, a, b, c, count = chain_draws(a, b, c, count, n, d)
            along, across, power = _means(
                sources, k * width * LANES, width // 2, q, s, places[2], terms, f, scratch
            )
            size = load(sizes, k * LANES)
            g, keep = rate * size, base - slope * size
            ahead, aside = fma(g, along, keep * q), fma(g, across, keep * s)
            q, s, healthy = stepped(ahead, aside, g * g * power, rest)
            fine = all_true(healthy)
            k += 1
        store(places[0], 0, q)
        store(places[0], LANES, s)
        if not fine:
            stop(state, parameters, made, k - 1)
    write_state(pointer(lanes), a, b, c, count)
