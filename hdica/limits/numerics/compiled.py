"""The compiled inner lines of the limits; imported when a limit is first solved.

Loading compiled code takes about a second, which a command that only reads a study or a store
must not pay.
"""

from __future__ import annotations

import math

import numba
import numpy as np


@numba.njit("float64(float64[::1], float64)", cache=True)
def clenshaw(coefficients, x):  # type: ignore[no-untyped-def]
    """Value at ``x`` of a Chebyshev series (Clenshaw 1955)."""
    high = 0.0
    higher = 0.0
    for k in range(coefficients.size - 1, 0, -1):
        high, higher = coefficients[k] + 2.0 * x * high - higher, high
    return coefficients[0] + x * high - higher


@numba.njit("float64(float64[::1], float64)", cache=True)
def value_at(packed, q):  # type: ignore[no-untyped-def]
    """Value at overlap ``q`` of a function that :mod:`hdica.limits.numerics.series` laid out."""
    if packed[0] == 0.0:
        return clenshaw(packed[1:], q)
    size = min(1.0, abs(q))
    first = 4 + int(packed[3])
    half = packed[4:first] if q < 0.0 else packed[first:]
    place = 4.0 / math.pi * math.asin(size)
    value = clenshaw(half, place - 1.0)
    for _ in range(int(packed[2])):
        value *= place
    if packed[1] > 0.0:
        value /= max(math.sqrt((1.0 - size) * (1.0 + size)), 1e-9)
    return value


@numba.njit("float64(float64[::1], float64, float64)", cache=True)
def plane(packed, q, square):  # type: ignore[no-untyped-def]
    """Value at Q and P = E[x^2] of a function that ``series.packed_planes`` laid out.

    Beyond the range of P, and for a Q that no estimate has, that of the nearest place.
    """
    rows, columns = int(packed[0]), int(packed[1])
    root = math.sqrt(max(square, 1e-300))
    cosine = min(1.0, max(-1.0, q / root))
    height = (math.log(max(square, 1e-300)) - packed[3]) / packed[4]
    height = min(1.0, max(-1.0, height))
    place = 2.0 / math.pi * math.asin(cosine)
    high, higher = 0.0, 0.0
    for i in range(rows - 1, 0, -1):
        begin = 5 + i * columns
        value = clenshaw(packed[begin : begin + columns], place)
        high, higher = 2.0 * height * high - higher + value, high
    value = clenshaw(packed[5 : 5 + columns], place) + height * high - higher
    if packed[2] > 0.0:
        value /= max(math.sqrt((1.0 - cosine) * (1.0 + cosine)), 1e-9)
    return value


@numba.njit(
    "void(float64, float64[::1], float64, float64[::1], float64[::1], float64[::1],"
    "float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])",
    cache=True,
)
def overlap_rhs(tau, y, factor, d1, d2, s1, s2, v2, v3, v4, out):  # type: ignore[no-untyped-def]
    """Drift of the overlap and of its variance at one step size, written to ``out``."""
    q = min(1.0, max(-1.0, y[0]))
    out[0] = factor * (tau * value_at(d1, q) + tau**2 * value_at(d2, q))
    slope = tau * value_at(s1, q) + tau**2 * value_at(s2, q)
    noise = tau**2 * value_at(v2, q) + tau**3 * value_at(v3, q) + tau**4 * value_at(v4, q)
    out[1] = 2 * slope * y[1] + noise


@numba.njit(
    "void(float64, float64[::1], float64[::1], float64[::1], float64[::1], float64[::1],"
    "float64, float64, float64[::1])",
    cache=True,
)
def error_rhs(tau, y, d1, d2, s1, s2, e1, e2, out):  # type: ignore[no-untyped-def]
    """Drift of the overlap, and of the error that errors of its two orders in tau cause."""
    q = min(1.0, max(-1.0, y[0]))
    out[0] = tau * value_at(d1, q) + tau**2 * value_at(d2, q)
    slope = tau * value_at(s1, q) + tau**2 * value_at(s2, q)
    out[1] = slope * y[1] + tau * e1 + tau**2 * e2


_STENCIL = 6


@numba.njit("void(float64[::1], float64[::1], float64[::1])", cache=True)
def interpolate(values, u, out):  # type: ignore[no-untyped-def]
    """Values at 0, 1, 2, ... at the points ``u``, by polynomials through the nearest six."""
    n = min(_STENCIL, values.size)
    weights = np.ones(n)
    for k in range(n):
        for j in range(n):
            if j != k:
                weights[k] /= k - j
    for p in range(u.size):
        first = min(max(int(np.floor(u[p])) - n // 2 + 1, 0), values.size - n)
        offset = u[p] - first
        total = 0.0
        for k in range(n):
            share = weights[k] * values[first + k]
            for j in range(n):
                if j != k:
                    share *= offset - j
            total += share
        out[p] = total
