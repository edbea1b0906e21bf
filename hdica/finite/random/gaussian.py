"""Normal numbers from eight SFC64 generators side by side, by the method of Box and Muller.

SFC64 (Doty-Humphrey 2014) is NumPy's ``numpy.random.SFC64``: lane l of the raw stream is, bit for
bit, what NumPy's generator of the same seed words gives. Two words make two normal numbers
(Box and Muller 1958), with logarithm, sine and cosine by polynomials that are right to 5e-11:
far below what any number of simulated steps can tell. Radii end at 8.57 standard deviations,
beyond which the normal law has 1e-16 of its mass.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from numba import types
from numpy.typing import NDArray

from hdica.finite.random import LANES
from hdica.finite.random.lanes import (
    CHUNK,
    as_floats,
    as_words,
    every,
    fma,
    load,
    pointer,
    square_root,
    store,
)

WORD = np.uint64
WARM_UP = 12
"""Words that NumPy's seeding of SFC64 throws away."""
_ONE = WORD(0x3FF0000000000000)
_FRACTION = WORD(0x000FFFFFFFFFFFFF)
_ROOT_HALF = WORD(np.float64(math.sqrt(0.5)).view(np.uint64))
_SHIFT = WORD((1023 << 52) - int(_ROOT_HALF))
# A whole number k below 2^52, put into these bits, is the float 2^52 + k.
_WHOLE = WORD(0x4330000000000000)
_WHOLE_AND_BIAS = 2.0**52 + 1023.0
_HALF_STEP = 2.0**-53

# Chebyshev fits, highest power first: -log2(1 + f)/f for 1/sqrt(2) <= 1 + f <= sqrt(2);
# sqrt(2 log 2) sin(pi a)/a and sqrt(2 log 2) cos(pi a) in a^2 for abs(a) <= 1/2.
_LOG = (
    -0.07553790398013412,
    0.1414478821058739,
    -0.14495052999815844,
    0.14349039375280995,
    -0.15878356832510718,
    0.1802710257711494,
    -0.20617283226751987,
    0.24045433696411997,
    -0.28853739437873954,
    0.3606736553159396,
    -0.4808983601762459,
    0.7213475209631551,
    -1.4426950408708794,
)
_SINE = (
    -0.008275195400400275,
    0.09660690467811829,
    -0.7055655304365985,
    3.002587849592021,
    -6.08451680251295,
    3.698942676934427,
)
_COSINE = (
    0.0021664220047636048,
    -0.030349293305051966,
    0.27707452759120094,
    -1.57215123267619,
    4.7787683139194845,
    -5.81028556970559,
    1.1774100225145891,
)


@numba.njit(inline="always")
def polynomial(coefficients, x):  # type: ignore[no-untyped-def]
    """Horner's rule; the tuple's length is part of its type, so the loop unrolls."""
    value = every(coefficients[0])
    for k in range(1, len(coefficients)):
        value = fma(value, x, every(coefficients[k]))
    return value


@numba.njit(inline="always")
def draw(a, b, c, count):  # type: ignore[no-untyped-def]
    """Eight words, one of each lane, and the state after them."""
    word = a + b + count
    return word, b ^ (b >> 11), c + (c << 3), ((c << 24) | (c >> 40)) + word, count + every(WORD(1))


@numba.njit(inline="always")
def uniform(word):  # type: ignore[no-untyped-def]
    """Numbers (k + 1/2)/2^52 inside (0, 1) from the upper 52 bits."""
    return as_floats((word >> 12) | every(_ONE)) - every(1.0 - _HALF_STEP)


@numba.njit(inline="always")
def minus_log2(u):  # type: ignore[no-untyped-def]
    """Minus the logarithm of normal u > 0 to base 2, within 5e-11 of itself."""
    # u = 2^-octave (1 + f) with 1 + f around 1.
    shifted = as_words(u) + every(_SHIFT)
    octave = every(_WHOLE_AND_BIAS) - as_floats((shifted >> 52) | every(_WHOLE))
    f = as_floats((shifted & every(_FRACTION)) + every(_ROOT_HALF)) - every(1.0)
    return fma(polynomial(_LOG, f), f, octave)


@numba.njit(inline="always")
def normal_pair(first, second):  # type: ignore[no-untyped-def]
    """Two vectors of independent standard normal numbers from two vectors of words.

    The radius is sqrt(-2 log u), the angle pi a with a uniform in (-1/2, 1/2), and the lowest bit
    of the second word, which the uniform number leaves out, chooses the sign of the cosine.
    """
    radius = square_root(minus_log2(uniform(first)))
    a = uniform(second) - every(0.5)
    square = a * a
    cosine = as_words(radius * polynomial(_COSINE, square)) ^ (second << 63)
    return radius * a * polynomial(_SINE, square), as_floats(cosine)


@numba.njit(inline="always")
def read_state(first):  # type: ignore[no-untyped-def]
    """a, b, c and the counter of every lane, from a pointer to the first."""
    c, count = load(first, 2 * LANES), load(first, 3 * LANES)
    return load(first, 0), load(first, LANES), c, count


@numba.njit(inline="always")
def write_state(first, a, b, c, count):  # type: ignore[no-untyped-def]
    """Put them back."""
    store(first, 0, a)
    store(first, LANES, b)
    store(first, 2 * LANES, c)
    store(first, 3 * LANES, count)


@numba.njit
def normal_block(lanes, out, size):  # type: ignore[no-untyped-def]
    """Standard normal numbers, a multiple of CHUNK, by pointers to the state and to the first."""
    a, b, c, count = read_state(lanes)
    for i in range(0, size, CHUNK):
        first, a, b, c, count = draw(a, b, c, count)
        second, a, b, c, count = draw(a, b, c, count)
        one, other = normal_pair(first, second)
        store(out, i, one)
        store(out, i + LANES, other)
    write_state(lanes, a, b, c, count)


@numba.njit(types.void(types.uint64[::1], types.uint64[::1]), cache=True, nogil=True)
def fill_words(state, words):  # type: ignore[no-untyped-def]
    """Raw stream: word k of lane l at ``words[LANES k + l]``; the state is of :func:`lanes_of`."""
    a, b, c, count = read_state(pointer(state))
    out = pointer(words)
    for i in range(0, words.size, LANES):
        word, a, b, c, count = draw(a, b, c, count)
        store(out, i, word)
    write_state(pointer(state), a, b, c, count)


@numba.njit(types.void(types.uint64[::1], types.float64[::1]), cache=True, nogil=True)
def fill_normal(state, numbers):  # type: ignore[no-untyped-def]
    """Standard normal numbers, a multiple of CHUNK; the state is of :func:`lanes_of`."""
    normal_block(pointer(state), pointer(numbers), numbers.size)


def lanes_of(rng: np.random.Generator) -> NDArray[np.uint64]:
    """Eight generators in place of one that has drawn nothing yet; the first is that one.

    SFC64 from a ``SeedSequence``: lane l is seeded with the words 3 l to 3 l + 2 of the sequence,
    as NumPy seeds SFC64 with the first three. The state, of shape (4 LANES,), holds a, b, c and the
    counter of every lane.
    """
    sequence = rng.bit_generator.seed_seq
    words = sequence.generate_state(3 * LANES, np.uint64).reshape(LANES, 3)
    state = np.concatenate([words.T.ravel(), np.ones(LANES, dtype=np.uint64)])
    fill_words(state, np.empty(WARM_UP * LANES, dtype=np.uint64))
    return state
