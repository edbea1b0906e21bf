"""Contrasts of eight numbers at once, right to a few units in the last place.

exp by the argument modulo log 2 (Cody and Waite 1980) and a Chebyshev fit; tanh and log(1 + e) by
the same exponential. Written out in vectors, they are the same numbers on every processor.
"""

from __future__ import annotations

import math

import numba
import numpy as np

from hdica.finite.random.gaussian import polynomial
from hdica.finite.random.lanes import as_floats, as_words, every, fma, magnitude, where, with_sign

EXP, LOGCOSH, KURTOSIS, HE4, FORMULA = range(5)  # contrasts with code of their own, and all others
KINDS = {"exp": EXP, "logcosh": LOGCOSH, "kurtosis": KURTOSIS, "he4": HE4}
_WORD = np.uint64
_BIAS = _WORD(1023)
# A float of about this size has whole numbers as its lowest bits.
_MAGIC = 1.5 * 2.0**52
_LOG_E = 1.4426950408889634
# log 2 as a sum whose first part has trailing zeros.
_LOG_2, _LOG_2_REST = 0.6931471675634384, 1.2996506893889889e-08
_LEAST = -708.0
_LOG_TWO = math.log(2.0)

# Chebyshev fits, highest power first: (exp(r) - 1 - r)/r^2 for abs(r) <= log(2)/2;
# (artanh(u)/u - 1)/u^2 in u^2 <= 1/9.
_EXP = (
    2.510037611136142e-08,
    2.7620076242527254e-07,
    2.7557268479724004e-06,
    2.4801521321606647e-05,
    0.00019841269863040922,
    0.0013888888917197209,
    0.008333333333330065,
    0.041666666666624164,
    0.16666666666666669,
    0.5000000000000001,
)
_ARTANH = (
    0.07815288900461426,
    0.03746071897775383,
    0.05422589197440007,
    0.05867139530651599,
    0.06667589315724629,
    0.07692271982430275,
    0.09090909948981357,
    0.11111111099118386,
    0.1428571428580005,
    0.19999999999999762,
    0.3333333333333333,
)


@numba.njit(inline="always")
def _powers(x):  # type: ignore[no-untyped-def]
    """2^m and exp(r) - 1 with x = m log 2 + r, for x <= 0; exp(-708) is the least."""
    x = where(every(_LEAST) < x, x, every(_LEAST))
    shifted = fma(x, every(_LOG_E), every(_MAGIC))
    whole = shifted - every(_MAGIC)
    r = fma(-whole, every(_LOG_2_REST), fma(-whole, every(_LOG_2), x))
    power = as_floats((as_words(shifted) + every(_BIAS)) << 52)
    return power, fma(polynomial(_EXP, r), r * r, r)


@numba.njit(inline="always")
def exponential(x):  # type: ignore[no-untyped-def]
    """exp(x) of x <= 0; 0 below -708."""
    power, rest = _powers(x)
    return where(every(_LEAST) < x, fma(power, rest, power), every(0.0))


@numba.njit(inline="always")
def slopes(kind, s):  # type: ignore[no-untyped-def]
    """G' and G'' of a contrast with code of its own."""
    if kind == EXP:
        square = s * s
        e = exponential(every(-0.5) * square)
        return s * e, fma(-square, e, e)
    if kind == LOGCOSH:
        power, rest = _powers(every(-2.0) * magnitude(s))
        e = fma(power, rest, power)
        less = fma(power, rest, power - every(1.0))
        inverse = every(1.0) / (every(2.0) + less)
        return with_sign(less * inverse, s), every(4.0) * e * (inverse * inverse)
    square = s * s
    if kind == KURTOSIS:
        return every(4.0) * square * s, every(12.0) * square
    return every(4.0) * s * (square - every(3.0)), every(12.0) * (square - every(1.0))


@numba.njit(inline="always")
def values(kind, s):  # type: ignore[no-untyped-def]
    """G of a contrast with code of its own."""
    square = s * s
    if kind == EXP:
        return -exponential(every(-0.5) * square)
    if kind == LOGCOSH:
        size = magnitude(s)
        e = exponential(every(-2.0) * size)
        u = e / (every(2.0) + e)
        u2 = u * u
        log = every(2.0) * fma(u * u2, polynomial(_ARTANH, u2), u)
        return (size - every(_LOG_TWO)) + log
    if kind == KURTOSIS:
        return fma(square, square, every(-3.0))
    return fma(square, square - every(6.0), every(3.0))
