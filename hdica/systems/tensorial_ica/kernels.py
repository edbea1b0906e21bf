"""Eight paths of online tensorial ICA side by side, compiled: one lane a seed.

The rule of Li and Jordan (2021), in the coordinates v = A'u of the components,

    v' = v + eta s y^3 Z, made of length one,   y = v.Z,   s = sign(E Z^4 - 3),

needs no root and no division of coordinates. Kept are x = sqrt(N) v and N: with p = x.Z,

    x' = x + g Z,   g = eta s p^3/N,   N' = N + g (2 p + g |Z|^2),

and x is made of length one where N leaves a range around 1, and every :data:`RENEW` steps, counted
from t = 0, so that N does not drift away from abs(x)^2 by rounding. A pass over the coordinates
ends one step, x + g Z, and begins the next: it draws the new Z and sums p and |Z|^2, of signs in
two accumulators, for the coordinates with even and odd places. A lane's numbers do not depend on
what the other lanes hold, nor on where a call ends.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types

from hdica.finite.random import LANES
from hdica.finite.random.gaussian import WORD, minus_log2, read_state, write_state
from hdica.finite.random.lanes import (
    all_true,
    as_floats,
    as_words,
    beyond,
    every,
    fma,
    highest_bit,
    load,
    pointer,
    square_root,
    store,
    where,
    with_sign,
)
from hdica.finite.random.lanes import total as over_lanes

FROM_ARRAY, RADEMACHER, UNIFORM, LAPLACE = range(4)
"""Where the samples come from: an array, or words of the generator of each lane."""
RENEW = 1024  # steps after which x is made of length one
NORM, TOTAL, SIGN, ADAPTIVE = range(4)
"""Rows of the state of the lanes: N; the sum of y^4 - 3; s; whether s follows that sum."""
BITS = 64  # coordinates that a word of signs serves, from its highest bit to its lowest
_MOST, _LEAST = 16.0, 1.0 / 16.0
_TOP = WORD(1 << 63)
_ONE, _FRACTION = WORD(0x3FF0000000000000), WORD(0x000FFFFFFFFFFFFF)
_WIDTH = 2.0 * math.sqrt(3.0)
# A word gives f = 1 + k 2^-52; the middle of its cell, f + 2^-53, lies evenly around 3/2.
_SHIFT = -math.sqrt(3.0) * (3.0 - 2.0**-52)
_DOUBLING = math.log(2.0) * math.sqrt(0.5)
_MATRIX, _FLOATS = types.float64[:, ::1], types.float64[::1]
_WORDS, _COUNTS = types.uint64[::1], types.int64[::1]
_SPAN = types.UniTuple(types.int64, 2)


@numba.njit(inline="always")
def _signed(x, word):  # type: ignore[no-untyped-def]
    """X times the sign that is the highest bit of a word."""
    return as_floats(as_words(x) ^ (word & every(_TOP)))


@numba.njit(inline="always")
def uniform_number(word):  # type: ignore[no-untyped-def]
    """Numbers between -sqrt 3 and sqrt 3 from the lower 52 bits."""
    return fma(as_floats((word & every(_FRACTION)) | every(_ONE)), every(_WIDTH), every(_SHIFT))


@numba.njit(inline="always")
def laplace_number(word):  # type: ignore[no-untyped-def]
    """Exponential numbers -log(u)/sqrt 2 from the lower 52 bits, with the highest bit as a sign."""
    u = as_floats((word & every(_FRACTION)) | every(_ONE)) - every(1.0 - 2.0**-53)
    return _signed(every(_DOUBLING) * minus_log2(u), word)


@numba.njit(inline="always")
def _size(eta, step, form):  # type: ignore[no-untyped-def]
    """The step size of every lane: one for all steps, or one a step; one for all lanes, or each."""
    moves, wide = form
    if wide:
        return load(eta, step * moves * LANES)
    return every(eta[step * moves])


@numba.njit(inline="always")
def _settle(p, q, norm, inverse, total, size, law, learns):  # type: ignore[no-untyped-def]
    """The weight g of a sample; N, 1/N and the sum of y^4 - 3 after it; p = x.Z and q = Z.Z."""
    square, sign = p * p, load(law, SIGN * LANES)
    if learns:
        y_square = square * inverse
        total = total + fma(y_square, y_square, every(-3.0))
        follows = every(0.0) < load(law, ADAPTIVE * LANES)
        sign = where(follows, with_sign(every(1.0), total), sign)
    # Of these factors only p is new when a pass ends; 1/N is divided out while the next one runs.
    g = (size * sign * inverse * p) * square
    norm = fma(g, fma(g, q, p + p), norm)
    return g, norm, every(1.0) / norm, total


@numba.njit(inline="always")
def _near_one(norm):  # type: ignore[no-untyped-def]
    """Whether all N are in the range in which nothing has to be done."""
    return all_true((norm < every(_MOST)) & (every(_LEAST) < norm))


@numba.njit(inline="always")
def _draw(a, b, c, count):  # type: ignore[no-untyped-def]
    """As :func:`..random.gaussian.draw`, with one counter for all lanes: a register less."""
    word = a + b + every(count)
    return word, b ^ (b >> 11), c + (c << 3), ((c << 24) | (c >> 40)) + word, count + WORD(1)


@numba.njit(inline="always")
def _numbers(kind, lanes, given, x, z, size, eta, form, law, learns, step, steps):  # type: ignore[no-untyped-def]
    """Steps with a word for each number, or with samples from an array of shape (steps, d, LANES).

    Up to one that asks to be looked at; the steps then made. The kind is a constant wherever this
    is compiled into.
    """
    a, b, c, _ = read_state(lanes)
    norm, total, g = load(law, NORM * LANES), load(law, TOTAL * LANES), every(0.0)
    inverse, count, fine = every(1.0) / norm, lanes[3 * LANES], True
    while fine and step < steps:
        p, q = every(0.0), every(0.0)
        # As many numbers as there are registers, sixteen: more accumulators would be slower.
        for i in range(0, size, LANES):
            if kind == FROM_ARRAY:
                sample = load(given, step * size + i)
            else:
                word, a, b, c, count = _draw(a, b, c, count)
                sample = laplace_number(word) if kind == LAPLACE else uniform_number(word)
            moved = fma(g, load(z, i), load(x, i))
            store(z, i, sample)
            store(x, i, moved)
            p, q = fma(moved, sample, p), fma(sample, sample, q)
        now = _size(eta, step, form)
        g, norm, inverse, total = _settle(p, q, norm, inverse, total, now, law, learns)
        fine = _near_one(norm)
        step += 1
    for i in range(0, size, LANES):
        store(x, i, fma(g, load(z, i), load(x, i)))
    store(law, NORM * LANES, norm)
    store(law, TOTAL * LANES, total)
    write_state(lanes, a, b, c, every(count))
    return step


@numba.njit
def _uniforms(lanes, x, z, size, eta, form, law, learns, step, steps):  # type: ignore[no-untyped-def]
    return _numbers(UNIFORM, lanes, z, x, z, size, eta, form, law, learns, step, steps)


@numba.njit
def _laplaces(lanes, x, z, size, eta, form, law, learns, step, steps):  # type: ignore[no-untyped-def]
    return _numbers(LAPLACE, lanes, z, x, z, size, eta, form, law, learns, step, steps)


@numba.njit
def _samples(lanes, x, z, size, eta, form, law, learns, step, steps):  # type: ignore[no-untyped-def]
    many = beyond(z, size)
    return _numbers(FROM_ARRAY, lanes, many, x, z, size, eta, form, law, learns, step, steps)


@numba.njit
def _signs(lanes, x, words, size, eta, form, law, learns, step, steps):  # type: ignore[no-untyped-def]
    """As :func:`_numbers`, with signs for samples: kept are their words, and |Z|^2 = d."""
    a, b, c, _ = read_state(lanes)
    norm, total, g = load(law, NORM * LANES), load(law, TOTAL * LANES), every(0.0)
    inverse, count, fine = every(1.0) / norm, lanes[3 * LANES], True
    q = every(float(size // LANES))
    while fine and step < steps:
        p, p_odd, at, less = every(0.0), every(0.0), 0, -g
        for low in range(0, size, BITS * LANES):
            old = load(words, at)
            fresh, a, b, c, count = _draw(a, b, c, count)
            store(words, at, fresh)
            at += LANES
            high = min(low + BITS * LANES, size)
            pairs = high - (high - low) % (2 * LANES)
            # To choose between g and -g is one operation; to give a sign to x is two.
            for i in range(low, pairs, 2 * LANES):
                moved = load(x, i) + where(highest_bit(old), less, g)
                store(x, i, moved)
                p = p + _signed(moved, fresh)
                moved = load(x, i + LANES) + where(highest_bit(old << 1), less, g)
                store(x, i + LANES, moved)
                p_odd = p_odd + _signed(moved, fresh << 1)
                old, fresh = old << 2, fresh << 2
            if pairs < high:
                moved = load(x, pairs) + where(highest_bit(old), less, g)
                store(x, pairs, moved)
                p = p + _signed(moved, fresh)
        now = _size(eta, step, form)
        g, norm, inverse, total = _settle(p + p_odd, q, norm, inverse, total, now, law, learns)
        fine = _near_one(norm)
        step += 1
    for low in range(0, size, BITS * LANES):
        old = load(words, low // BITS)
        for i in range(low, min(low + BITS * LANES, size), LANES):
            store(x, i, load(x, i) + _signed(g, old))
            old = old << 1
    store(law, NORM * LANES, norm)
    store(law, TOTAL * LANES, total)
    write_state(lanes, a, b, c, every(count))
    return step


@numba.njit
def _renew(x, law, size, all_lanes):  # type: ignore[no-untyped-def]
    """Make x of length one, in lanes that ask for it or in all, where that is possible."""
    square, one = every(0.0), every(1.0)
    for i in range(0, size, LANES):
        square = fma(load(x, i), load(x, i), square)
    norm = load(law, NORM * LANES)
    able = (norm < every(math.inf)) & (square < every(math.inf)) & (every(0.0) < square)
    if not all_lanes:
        able = able & ~((norm < every(_MOST)) & (every(_LEAST) < norm))
    scale = where(able, one / square_root(square), one)
    for i in range(0, size, LANES):
        store(x, i, load(x, i) * scale)
    store(law, NORM * LANES, where(able, one, norm))


@numba.njit
def _stop(x, law, step, made):  # type: ignore[no-untyped-def]
    """Lanes that could not be made of length one stand still: no sign, so no weight."""
    for lane in range(LANES):
        if not _LEAST < law[NORM, lane] < _MOST:
            # An infinite step size stops a lane again and again.
            made[lane] = min(made[lane], step - 1)
            x[:, lane] = 0.0
            x[0, lane] = 1.0
            law[NORM, lane] = 1.0
            law[TOTAL, lane] = law[SIGN, lane] = law[ADAPTIVE, lane] = 0.0


@numba.njit(
    types.void(types.int64, _WORDS, _MATRIX, _FLOATS, _WORDS, _MATRIX, _MATRIX, _SPAN, _COUNTS),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def tensorial_steps(kind, lanes, x, z, words, law, eta, span, made):  # type: ignore[no-untyped-def]
    """Steps of eight paths, in place; ``span`` is the number of the first and how many they are.

    ``x`` has shape (d, LANES), ``law`` the rows :data:`NORM` to :data:`ADAPTIVE`, ``eta`` one row
    a step or one for all, of one number or one a lane. ``z`` is room for a sample, of shape (d
    LANES,), and ``words`` for its signs; for the kind :data:`FROM_ARRAY`, z has the samples of all
    steps behind that room. All generators have drawn equally often. ``made`` are the steps that
    each lane completed: fewer than all if one was not finite, and the lane stands still from then
    on.
    """
    size, (first, steps) = x.size, span
    form = (1 if eta.shape[0] > 1 else 0, eta.shape[1] > 1)
    room, generators, sample = pointer(x), pointer(lanes), pointer(z)
    sizes, signs, rows = pointer(eta), pointer(words), pointer(law)
    made[:] = steps
    step = 0
    while step < steps:
        learns = np.any(law[ADAPTIVE] > 0.0)
        stop = min(steps, step + RENEW - (first + step) % RENEW)
        if kind == RADEMACHER:
            step = _signs(generators, room, signs, size, sizes, form, rows, learns, step, stop)
        elif kind == UNIFORM:
            step = _uniforms(generators, room, sample, size, sizes, form, rows, learns, step, stop)
        elif kind == LAPLACE:
            step = _laplaces(generators, room, sample, size, sizes, form, rows, learns, step, stop)
        else:
            step = _samples(generators, room, sample, size, sizes, form, rows, learns, step, stop)
        _renew(room, rows, size, (first + step) % RENEW == 0)
        _stop(x, law, step, made)


@numba.njit(types.void(types.int64, _WORDS, _FLOATS), cache=True, nogil=True)
def numbers_of(kind, words, numbers):  # type: ignore[no-untyped-def]
    """Samples of the laws that need one word each; as many as a multiple of LANES."""
    given, out = pointer(words), pointer(numbers)
    for i in range(0, numbers.size, LANES):
        word = load(given, i)
        store(out, i, uniform_number(word) if kind == UNIFORM else laplace_number(word))


@numba.njit(types.void(_MATRIX, _FLOATS, _FLOATS), cache=True, nogil=True, error_model="numpy")
def nearest(x, tangent, component):  # type: ignore[no-untyped-def]
    """Square of the tangent to the nearest axis, and its index, of every lane of (d, LANES)."""
    for lane in range(x.shape[1]):
        best = 0
        for k in range(x.shape[0]):
            if abs(x[k, lane]) > abs(x[best, lane]):
                best = k
        others = 0.0
        for k in range(x.shape[0]):
            if k != best:
                others += x[k, lane] * x[k, lane]
        tangent[lane] = others / (x[best, lane] * x[best, lane])
        component[lane] = best


_SUM, _RULE_SIGN, _LEARNS = range(3)
"""Numbers of a law: the sum of y^4 - 3; the sign; 1.0 if the sign follows that sum."""


@numba.njit(inline="always")
def _push(v, sample, eta, law):  # type: ignore[no-untyped-def]
    """Move to v + eta s y^3 X, of length one; whether that is finite, and v is NaN if not."""
    y = 0.0
    for k in range(v.size):
        y += v[k] * sample[k]
    if law[_LEARNS] > 0.0:
        law[_SUM] += y * y * y * y - 3.0
        law[_RULE_SIGN] = math.copysign(1.0, law[_SUM])
    h, square = eta * law[_RULE_SIGN] * y * y * y, 0.0
    for k in range(v.size):
        v[k] += h * sample[k]
        square += v[k] * v[k]
    if not 0.0 < square < math.inf:
        v[:] = math.nan
        return False
    for k in range(v.size):
        v[k] /= math.sqrt(square)
    return True


@numba.njit(
    types.int64(_FLOATS, _MATRIX, _MATRIX, _FLOATS, _FLOATS),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def observed_steps(u, transposed, samples, eta, law):  # type: ignore[no-untyped-def]
    """Steps on X = A Z, a row a step, A' of no size for A = I; returns how many were finite."""
    d = u.size
    x = np.empty(d)
    for step in range(samples.shape[0]):
        if transposed.size == 0:
            x[:] = samples[step]
        else:
            x[:] = 0.0
            for k in range(d):
                for i in range(d):
                    x[i] += samples[step, k] * transposed[k, i]
        if not _push(u, x, eta[step], law):
            return step
    return samples.shape[0]


@numba.njit(
    types.int64(_FLOATS, types.int64, _FLOATS, _FLOATS, _MATRIX, _FLOATS, types.float64, _FLOATS),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def vessel_steps(v, m, expected, most, samples, eta, beta, law):  # type: ignore[no-untyped-def]
    """Steps of v in the vessel of axis m; returns how many were finite and stayed inside.

    ``expected`` holds U_k(0) prod_s (1 - eta beta (v_m^2 - v_k^2)) and ``most`` the largest
    abs(U_k - expected_k) so far, for U_k = v_k/v_m; both have shape (d,). A step that leaves
    abs(tan) <= 1/sqrt 2 changes ``v`` alone.
    """
    d = v.size
    factor = np.empty(d)
    for step in range(samples.shape[0]):
        for k in range(d):
            factor[k] = 1.0 - eta[step] * beta * (v[m] * v[m] - v[k] * v[k])
        fine = _push(v, samples[step], eta[step], law)
        others = 0.0
        for k in range(d):
            if k != m:
                others += v[k] * v[k]
        if not (fine and others <= 0.5 * v[m] * v[m]):
            return step
        for k in range(d):
            if k != m:
                expected[k] *= factor[k]
                most[k] = max(most[k], abs(v[k] / v[m] - expected[k]))
    return samples.shape[0]


@numba.njit(inline="always")
def _dot(one, other, size):  # type: ignore[no-untyped-def]
    """Inner product."""
    sums = every(0.0)
    for i in range(0, size, LANES):
        sums = fma(load(one, i), load(other, i), sums)
    return over_lanes(sums)


@numba.njit(inline="always")
def _add(x, factor, other, size):  # type: ignore[no-untyped-def]
    """X + factor other, in the place of x."""
    weight = every(factor)
    for i in range(0, size, LANES):
        store(x, i, fma(weight, load(other, i), load(x, i)))


@numba.njit(inline="always")
def _largest(v, size):  # type: ignore[no-untyped-def]
    """Largest square of an entry."""
    best = 0.0
    for i in range(size):
        best = max(best, v[i] * v[i])
    return best


@numba.njit(
    types.int64(_FLOATS, _MATRIX, _FLOATS, _MATRIX, _FLOATS, types.float64, types.float64, _COUNTS),
    cache=True,
    nogil=True,
    error_model="numpy",
)
def deflated_steps(v, basis, learnt, samples, eta, sign, level, reached):  # type: ignore[no-untyped-def]
    """Steps of one path in place; returns how many succeeded.

    ``v`` has shape (m,) and ``basis``, Q, shape (j, m), with m a multiple of LANES and zeros beyond
    d. ``samples``, shape (steps, m), and ``eta``, shape (steps,), are those of the steps. ``sign``
    is s, or 0 for the sign of ``learnt[0]``, the sum of y^4 - 3 over all steps, the present one
    included. ``reached`` holds the steps made, and the first step after which the squared tangent
    to the nearest axis was at most ``level``, -1 before.
    """
    size = v.shape[0]
    x, rows, first = pointer(v), pointer(basis), pointer(samples)
    for step in range(samples.shape[0]):
        z = beyond(first, step * size)
        y = _dot(x, z, size)
        s = sign
        if s == 0.0:
            learnt[0] += y * y * y * y - 3.0
            s = math.copysign(1.0, learnt[0])
        _add(x, eta[step] * s * (y * y * y), z, size)
        for j in range(basis.shape[0]):
            row = beyond(rows, j * size)
            _add(x, -_dot(row, x, size), row, size)
        square = _dot(x, x, size)
        if not 0.0 < square < math.inf:
            return step
        scale = 1.0 / math.sqrt(square)
        for i in range(0, size, LANES):
            store(x, i, every(scale) * load(x, i))
        reached[0] += 1
        if reached[1] < 0 and _largest(v, size) * (1.0 + level) >= 1.0:
            reached[1] = reached[0]
    return samples.shape[0]
