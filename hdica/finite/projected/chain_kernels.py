"""Eight chains of overlaps side by side, compiled: the exact reduction of a rule to Q.

In the basis (xi, the part of x orthogonal to xi, the rest) a step needs the component c of the
sample along xi, one normal number e, and the squared length X of the rest, chi-square with n - 2
degrees of freedom. With s = sqrt(1 - Q^2) and g = rate tau f(Q c + s e),

    Q <- A / sqrt(A^2 + B^2 + g^2 X),   A = keep Q + g c,   B = keep s + g e.

Carrying s along, instead of taking it from Q, keeps its digits near abs(Q) = 1. A lane's numbers do
not depend on what the other lanes hold.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types

from hdica.finite.jit import call_pair, call_scalar
from hdica.finite.random.gaussian import (
    draw,
    minus_log2,
    normal_pair,
    read_state,
    uniform,
    write_state,
)
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

_FLOATS = types.float64[::1]
_MATRIX = types.float64[:, ::1]
RATE, BASE, SLOPE = 0, 1, 2


@numba.njit(inline="always")
def _proposal(a, b, c, count):  # type: ignore[no-untyped-def]
    """Two normal numbers and a uniform one a lane, and the state after them."""
    first, a, b, c, count = draw(a, b, c, count)
    second, a, b, c, count = draw(a, b, c, count)
    third, a, b, c, count = draw(a, b, c, count)
    e, x = normal_pair(first, second)
    return e, x, uniform(third), a, b, c, count


@numba.njit(inline="always")
def _accepted(x, u, cubed, root, d):  # type: ignore[no-untyped-def]
    """Whether d (1 + x/sqrt(9 d))^3 is taken for a gamma number of shape d + 1/3, d >= 2/3.

    Marsaglia and Tsang (2000): log u < x^2/2 + d (1 - v + log v) with v the cube, if it is
    positive; mostly already because u < 1 - 0.0331 x^4. Of y = x/sqrt(9 d) the right-hand side is
    -3 d (y^4/4 - y^5/5 + ...) >= -1.5 d y^4 = -x^4/(54 d) where abs(y) <= 1/2, as always for
    d >= 33: then nearly every number is taken at a glance.
    """
    square = x * x
    positive = every(0.0) < root
    steepness = 1.0 / (54.0 * d) if d >= 33.0 else 0.0331
    quick = positive & (u < fma(every(-steepness) * square, square, every(1.0)))
    if all_true(quick):
        return quick
    safe = where(positive, root, every(1.0))
    bound = fma(every(-3.0 * d), minus_log2(safe), minus_log2(u)) * every(2 * math.log(2.0))
    bound = bound + fma(every(2.0 * d), every(1.0) - cubed, square)
    return quick | (positive & (every(0.0) < bound))


@numba.njit(forceinline=True, error_model="numpy")
def chain_draws(a, b, c, count, n, d):  # type: ignore[no-untyped-def]
    """The e and X of one step, and the state; a lane that rejects draws on, the others wait."""
    e, x, u, a, b, c, count = _proposal(a, b, c, count)
    if n == 3:
        return e, x * x, a, b, c, count
    width = every(1.0 / math.sqrt(9.0 * d))
    root = fma(width, x, every(1.0))
    cubed = root * root * root
    taken = _accepted(x, u, cubed, root, d)
    while not all_true(taken):
        _, x, u, a2, b2, c2, count2 = _proposal(a, b, c, count)
        a, b = where(taken, a, a2), where(taken, b, b2)
        c, count = where(taken, c, c2), where(taken, count, count2)
        root = fma(width, x, every(1.0))
        other = root * root * root
        also = _accepted(x, u, other, root, d)
        cubed = where(taken, cubed, other)
        taken = taken | also
    return e, every(2.0 * d) * cubed, a, b, c, count


@numba.njit(inline="always")
def lane_polynomial(coefficients, terms, u):  # type: ignore[no-untyped-def]
    """A polynomial, the highest power first."""
    value = load(coefficients, 0)
    for k in range(1, terms):
        value = fma(value, u, load(coefficients, k * LANES))
    return value


@numba.njit(inline="always")
def lane_value(f, coefficients, terms, u, scratch):  # type: ignore[no-untyped-def]
    """A polynomial, the highest power first, or a function of one number lane by lane."""
    if terms == 0:
        store(scratch, 0, u)
        for k in range(LANES):
            scratch[k] = call_scalar(f, scratch[k])
        return load(scratch, 0)
    return lane_polynomial(coefficients, terms, u)


@numba.njit(inline="always")
def pair_value(f, u, c, scratch):  # type: ignore[no-untyped-def]
    """A function of u and of the sample's component along xi, lane by lane."""
    store(scratch, 0, u)
    store(scratch, LANES, c)
    for k in range(LANES):
        scratch[k] = call_pair(f, scratch[k], scratch[LANES + k])
    return load(scratch, 0)


@numba.njit(inline="always")
def push_value(f, coefficients, terms, u, c, scratch):  # type: ignore[no-untyped-def]
    """The nonlinearity of a step: a polynomial in u, or a function of u and c lane by lane."""
    if terms == 0:
        return pair_value(f, u, c, scratch)
    return lane_polynomial(coefficients, terms, u)


@numba.njit(inline="always")
def stepped(ahead, across, weight, rest):  # type: ignore[no-untyped-def]
    """Q and s back on the sphere, and which lanes are finite: there Q is a number.

    ``ahead`` and ``across`` are the components along xi and along the part of x across it, and the
    rest of the step has the squared length ``weight * rest``.
    """
    square = fma(weight, rest, across * across)
    norm = fma(ahead, ahead, square)
    healthy = (every(0.0) < norm) & (norm < every(math.inf))
    scale = every(1.0) / square_root(norm)
    return where(healthy, ahead * scale, every(math.nan)), square_root(square) * scale, healthy


@numba.njit
def stop(state, parameters, made, step):  # type: ignore[no-untyped-def]
    """Let the chains that are no longer finite stand still, and note their last step."""
    for lane in range(LANES):
        if math.isnan(state[0, lane]):
            state[0, lane], state[1, lane] = 1.0, 0.0
            parameters[RATE, lane], parameters[BASE, lane], parameters[SLOPE, lane] = 0.0, 1.0, 0.0
            made[lane] = step


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
        types.int64[::1],
    ),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def chain_steps(lanes, state, n, source, tau, parameters, coefficients, f, made):  # type: ignore[no-untyped-def]
    """Steps of eight chains.

    Parameters
    ----------
    lanes
        State of the generators, one a chain; updated.
    state
        Shape (2, LANES): Q and s, updated.
    n
        Dimension, at least 3.
    source, tau
        Shape (steps, LANES): c and the step size of each step.
    parameters
        Shape (3, LANES): rate, and keep = base - slope tau; a chain that stops gets those of one
        that stays where it is.
    coefficients, f
        The nonlinearity: coefficients of a polynomial in u, shape (terms, LANES), the highest
        first, or none and the address of a function of u and c for all.
    made
        Shape (LANES,): steps completed, overwritten.
    """
    a, b, c, count = read_state(pointer(lanes))
    places = pointer(state), pointer(parameters), pointer(coefficients)
    sources, sizes = pointer(source), pointer(tau)
    room = np.empty(2 * LANES)
    scratch = pointer(room)
    steps, terms, d = source.shape[0], coefficients.shape[0], (n - 2) / 2 - 1 / 3
    made[:] = steps
    k = 0
    while k < steps:
        q, s = load(places[0], 0), load(places[0], LANES)
        rate = load(places[1], RATE * LANES)
        base, slope = load(places[1], BASE * LANES), load(places[1], SLOPE * LANES)
        fine = True
        while fine and k < steps:
            e, rest, a, b, c, count = chain_draws(a, b, c, count, n, d)
            along, size = load(sources, k * LANES), load(sizes, k * LANES)
            value = push_value(f, places[2], terms, fma(q, along, s * e), along, scratch)
            g, keep = rate * size * value, base - slope * size
            q, s, healthy = stepped(fma(g, along, keep * q), fma(g, e, keep * s), g * g, rest)
            fine = all_true(healthy)
            k += 1
        store(places[0], 0, q)
        store(places[0], LANES, s)
        if not fine:
            stop(state, parameters, made, k - 1)
    write_state(pointer(lanes), a, b, c, count)
