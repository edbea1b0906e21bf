"""Eight chains of overlaps side by side, compiled: the exact reduction of a rule to its overlaps.

In the basis (xi_1, ..., xi_M, the part of x orthogonal to them, the rest) a step needs the
components c_j of the sample along the features, one normal number e, and the squared length X of
the rest, chi-square with n - M - 1 degrees of freedom. With s = sqrt(1 - sum_j Q_j^2) and
g = rate tau f(sum_j Q_j c_j + s e),

    Q_j <- (keep Q_j + g c_j)/N,   s <- sqrt((keep s + g e)^2 + g^2 X)/N,

N^2 the sum of their squares. Carrying s along, instead of taking it from Q, keeps its digits near
the features. A lane's numbers do not depend on what the other lanes hold.

A step may take a batch of m samples, each with c_j, e_j and f_j = f(Q c_j + s e_j). Given these
the rest of the mean of f_j y_j is normal, with variance sum f_j^2/m^2 a coordinate: the means of
f c, of f e and of f^2/m stand for f c, f e and f^2, which is the step above for m = 1.

One function makes all kinds of steps. What they take says which: numba compiles it anew for the
types of its arguments, and leaves out the branches that these types exclude, so that chains of one
feature keep their state in registers and nothing is asked within a run of steps.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types

from hdica.finite.jit import call_pair, call_scalar
from hdica.finite.projected.observed import observed
from hdica.finite.random import LANES
from hdica.finite.random.gaussian import (
    draw,
    minus_log2,
    normal_pair,
    read_state,
    uniform,
    write_state,
)
from hdica.finite.random.lanes import (
    all_true,
    every,
    fma,
    keep_alive,
    load,
    magnitude,
    pointer,
    square_root,
    store,
    where,
)

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
    accepted = _accepted(x, u, cubed, root, d)
    while not all_true(accepted):
        _, x, u, a2, b2, c2, count2 = _proposal(a, b, c, count)
        a, b = where(accepted, a, a2), where(accepted, b, b2)
        c, count = where(accepted, c, c2), where(accepted, count, count2)
        root = fma(width, x, every(1.0))
        other = root * root * root
        also = _accepted(x, u, other, root, d)
        cubed = where(accepted, cubed, other)
        accepted = accepted | also
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
def push_value(f, coefficients, terms, u, c, scratch):  # type: ignore[no-untyped-def]
    """The nonlinearity of a step: a polynomial in u, or a function of u and c lane by lane."""
    if terms == 0:
        store(scratch, 0, u)
        store(scratch, LANES, c)
        for k in range(LANES):
            scratch[k] = call_pair(f, scratch[k], scratch[LANES + k])
        return load(scratch, 0)
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


@numba.njit(forceinline=True)
def _moved(place, sources, at, m, e, pace, coefficients, terms, f, rest, scratch):  # type: ignore[no-untyped-def]
    """One step of the overlaps with m features, in memory; which lanes are finite."""
    s = load(place, m * LANES)
    u = s * e
    for j in range(m):
        u = fma(load(place, j * LANES), load(sources, at + j * LANES), u)
    g = pace * lane_value(f, coefficients, terms, u, scratch)
    across = fma(g, e, s)
    square = fma(g * g, rest, across * across)
    norm = square
    for j in range(m):
        ahead = fma(g, load(sources, at + j * LANES), load(place, j * LANES))
        store(place, j * LANES, ahead)
        norm = fma(ahead, ahead, norm)
    healthy = (every(0.0) < norm) & (norm < every(math.inf))
    scale = where(healthy, every(1.0) / square_root(norm), every(math.nan))
    for j in range(m):
        store(place, j * LANES, load(place, j * LANES) * scale)
    store(place, m * LANES, square_root(square) * scale)
    return healthy


@numba.njit
def _stop(state, parameters, made, step):  # type: ignore[no-untyped-def]
    """Let the chains that are no longer finite stand still, and note their last step."""
    for lane in range(LANES):
        if math.isnan(state[0, lane]):
            state[:, lane] = 0.0
            state[-1, lane] = 1.0
            parameters[RATE, lane], parameters[BASE, lane], parameters[SLOPE, lane] = 0.0, 1.0, 0.0
            made[lane] = step


@numba.njit
def _look(state, watch, step):  # type: ignore[no-untyped-def]
    """Note the lanes that have passed, and watch them no more."""
    way, level, first, begun, reached = watch
    for lane in range(LANES):
        if way[lane] * abs(state[0, lane]) >= level[lane]:
            first[lane], level[lane] = begun[lane] + step, math.inf
            reached[lane] = state[0, lane]
        elif math.isnan(state[0, lane]):
            level[lane] = math.inf


@numba.njit
def _observed(rows, u, scratch):  # type: ignore[no-untyped-def]
    """Step sizes of lanes that follow what is observed, which take in the projections u."""
    store(scratch, 0, u)
    for lane in range(LANES):
        scratch[lane] = observed(rows[lane], scratch[lane])
    return load(scratch, 0)


@numba.njit(cache=True, nogil=True, error_model="numpy")
def chain_steps(  # type: ignore[no-untyped-def]
    lanes, state, n, source, tau, parameters, coefficients, f, features, watch, rows, made
):
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
        What each step takes of its samples: c, shape (steps, LANES); of a batch of m samples all c
        and then all e, shape (steps, 2 m, LANES); with several features c_1 ... c_M, in rows of
        shape (steps M, LANES).
    tau
        Shape (steps, LANES): the step size of each step.
    parameters
        Shape (3, LANES): rate, and keep = base - slope tau, which is 1 with several features; a
        chain that stops gets those of one that stays where it is.
    coefficients, f
        The nonlinearity: coefficients of a polynomial in u, shape (terms, LANES), the highest
        first, or none and the address of a function for all: of u and c, and with several features
        of u alone.
    features
        None for one feature, else M.
    watch
        None, or for one feature what a first passage is: shape (LANES,) each, the way, 1 to reach a
        level from below and -1 to fall to it from above; the level that abs(Q) times the way is to
        reach, infinite where nothing is watched, and after it was reached; the steps at which it
        was; the steps made before this call; and Q when it was. All but the way and the steps
        before are updated.
    rows
        None, or for one feature and one sample a step what replaces ``tau``, a row a lane, updated:
        :mod:`hdica.finite.projected.observed`.
    made
        Shape (LANES,): steps completed, overwritten.
    """
    a, b, c, count = read_state(pointer(lanes))
    places = pointer(state), pointer(parameters), pointer(coefficients)
    sources, sizes = pointer(source), pointer(tau)
    room = np.empty(2 * LANES)
    scratch = pointer(room)
    steps, terms = tau.shape[0], coefficients.shape[0]
    # As many degrees of freedom as one feature has in n - M + 1 dimensions.
    like = n if features is None else n - features + 1
    d = (like - 2) / 2 - 1 / 3
    if watch is not None:
        ways, levels = load(pointer(watch[0]), 0), pointer(watch[1])
    made[:] = steps
    k = 0
    if features is not None:
        while k < steps:
            e, rest, a, b, c, count = chain_draws(a, b, c, count, like, d)
            pace = load(places[1], RATE * LANES) * load(sizes, k * LANES)
            healthy = _moved(
                places[0], sources, k * features * LANES, features, e, pace,
                places[2], terms, f, rest, scratch,
            )  # fmt: skip
            if not all_true(healthy):
                _stop(state, parameters, made, k)
            k += 1
    while k < steps:
        q, s = load(places[0], 0), load(places[0], LANES)
        rate = load(places[1], RATE * LANES)
        base, slope = load(places[1], BASE * LANES), load(places[1], SLOPE * LANES)
        if watch is not None:
            level = load(levels, 0)
        fine = True
        while fine and k < steps:
            e, rest, a, b, c, count = chain_draws(a, b, c, count, like, d)
            size = load(sizes, k * LANES)
            if source.ndim == 3:
                width = source.shape[1]
                along, across, power = _means(
                    sources, k * width * LANES, width // 2, q, s, places[2], terms, f, scratch
                )
                g, keep = rate * size, base - slope * size
                ahead, aside = fma(g, along, keep * q), fma(g, across, keep * s)
                q, s, healthy = stepped(ahead, aside, g * g * power, rest)
            else:
                along = load(sources, k * LANES)
                u = fma(q, along, s * e)
                value = push_value(f, places[2], terms, u, along, scratch)
                if rows is not None:
                    size = _observed(rows, u, scratch)
                g, keep = rate * size * value, base - slope * size
                q, s, healthy = stepped(fma(g, along, keep * q), fma(g, e, keep * s), g * g, rest)
            if watch is None:
                fine = all_true(healthy)
            else:
                fine = all_true(healthy & (ways * magnitude(q) < level))
            k += 1
        store(places[0], 0, q)
        store(places[0], LANES, s)
        if not fine:
            if watch is not None:
                _look(state, watch, k)
            _stop(state, parameters, made, k - 1)
    write_state(pointer(lanes), a, b, c, count)
    keep_alive(room)


# Compiled where a worker begins, before its first point; other kinds at their first call.
chain_steps.compile(
    (
        types.uint64[::1], _MATRIX, types.int64, _MATRIX, _MATRIX, _MATRIX, _MATRIX, types.int64,
        types.none, types.none, types.none, types.int64[::1],
    )
)  # fmt: skip
