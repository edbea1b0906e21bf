"""The compiled inner lines of the Fokker-Planck solver; imported when one is first solved.

Cell masses of all atoms lie one after the other in flat arrays: those of atom ``a`` at
``offsets[a]:offsets[a + 1]``, its first cell being cell ``lows[a]`` of the mesh. Face ``f`` of
the mesh lies between its cells ``f - 1`` and ``f``.
"""

from __future__ import annotations

import math

import numba

_FLOOR = 0.1
_SERIES = 1.0
"""Below this the Bernoulli function comes from its series, above it from expm1."""
# B_2k/(2k)! for k = 1, 2, ...: the Taylor coefficients of w/2 coth(w/2) in w^2.
_EVEN = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
    -3617 / 10670622842880000,
    43867 / 5109094217170944000,
    -174611 / 802857662698291200000,
)


@numba.njit("UniTuple(float64, 2)(float64)", cache=True)
def bernoulli(w):  # type: ignore[no-untyped-def]
    """Bernoulli function w/(e^w - 1) at ``w`` and at ``-w``, both without cancellation."""
    size = abs(w)
    if size < _SERIES:
        v = w * w
        even = _EVEN[9]
        even = even * v + _EVEN[8]
        even = even * v + _EVEN[7]
        even = even * v + _EVEN[6]
        even = even * v + _EVEN[5]
        even = even * v + _EVEN[4]
        even = even * v + _EVEN[3]
        even = even * v + _EVEN[2]
        even = even * v + _EVEN[1]
        even = even * v + _EVEN[0]
        even = even * v + 1.0
        return even - 0.5 * w, even + 0.5 * w
    small = size / math.expm1(size) if size < 700.0 else 0.0
    if w > 0.0:
        return small, small + size
    return small + size, small


@numba.njit(
    "void(float64[::1], float64[::1], int64[::1], int64[::1], float64[::1],"
    "float64[::1], float64[::1], float64[::1], float64[::1],"
    "float64, float64, float64, float64, float64)",
    cache=True,
)
def rates(right, left, offsets, lows, xi, dx, gap, middle, phi, b, big, h2, g, c):  # type: ignore[no-untyped-def]
    """Rates of Scharfetter and Gummel (1969) across every face, times ``c``.

    ``right[i]`` leads from cell i - 1 to cell i and ``left[i]`` back; no flux crosses the ends
    of an atom's window. The drift is averaged between the two centres, so that the discrete
    stationary law is that of Boltzmann at the centres.
    """
    for a in range(offsets.size - 1):
        shift = lows[a] - offsets[a]
        pull = b * xi[a]
        right[offsets[a]] = 0.0
        left[offsets[a]] = 0.0
        for i in range(offsets[a] + 1, offsets[a + 1]):
            f = i + shift
            w = (pull - big * phi[f] - h2 * middle[f]) * gap[f] / g
            back, forth = bernoulli(w)
            k = c * g / gap[f]
            right[i] = k * forth / dx[f - 1]
            left[i] = k * back / dx[f]


@numba.njit(
    "void(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], int64[::1])",
    cache=True,
)
def resolve(given, mass, right, left, share, offsets):  # type: ignore[no-untyped-def]
    """Solve (1 - c A) mass = given for every atom, ``right`` and ``left`` being c times A.

    Every column of 1 - c A sums to one, so the elimination runs without a single subtraction
    (Grassmann, Taksar and Heyman 1985): what is positive stays positive in floating point too,
    each mass with a small relative error, however small it is.
    """
    for a in range(offsets.size - 1):
        first, last = offsets[a], offsets[a + 1] - 1
        s = 1.0
        y = given[first]
        for i in range(first, last):
            inverse = 1.0 / (s + right[i + 1])
            share[i] = inverse
            mass[i] = y * inverse
            s = 1.0 + left[i + 1] * (s * inverse)
            y = given[i + 1] + right[i + 1] * mass[i]
        value = y / s
        mass[last] = value
        for i in range(last - 1, first - 1, -1):
            value = mass[i] + left[i + 1] * share[i] * value
            mass[i] = value


@numba.njit(
    "UniTuple(float64, 2)(float64[::1], int64[::1], int64[::1], float64[::1], float64[::1],"
    "float64[::1])",
    cache=True,
)
def moments(mass, offsets, lows, xi, weights, x):  # type: ignore[no-untyped-def]
    """Q = E[xi x] and E[x^2]."""
    overlap = 0.0
    square = 0.0
    for a in range(offsets.size - 1):
        shift = lows[a] - offsets[a]
        first = 0.0
        second = 0.0
        for i in range(offsets[a], offsets[a + 1]):
            moved = mass[i] * x[i + shift]
            first += moved
            second += moved * x[i + shift]
        overlap += weights[a] * xi[a] * first
        square += weights[a] * second
    return overlap, square


@numba.njit(
    "UniTuple(float64, 2)(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1],"
    "int64[::1], int64[::1], float64[::1], float64[::1], float64[::1], float64[::1],"
    "float64[::1], float64[::1], float64[::1], float64, float64, float64, float64, float64)",
    cache=True,
)
def sweep(  # type: ignore[no-untyped-def]
    given,
    mass,
    right,
    left,
    share,
    offsets,
    lows,
    xi,
    weights,
    x,
    dx,
    gap,
    middle,
    phi,
    b,
    big,
    h2,
    g,
    c,
):
    """One implicit solve with given coefficients; returns Q and E[x^2] of its result."""
    rates(right, left, offsets, lows, xi, dx, gap, middle, phi, b, big, h2, g, c)
    resolve(given, mass, right, left, share, offsets)
    return moments(mass, offsets, lows, xi, weights, x)


@numba.njit(
    "int64(float64[::1], float64[::1], float64[::1], float64[::1], int64[::1], float64)",
    cache=True,
)
def push(mass, moved, right, left, offsets, factor):  # type: ignore[no-untyped-def]
    """``moved`` = (1 + factor c A) mass, its fluxes limited; returns how many cells were.

    Where a cell would keep less than a tenth of its mass, which happens only in tails that empty
    within a step, the flux on its side towards the mode is cut down (what is missing is paid by
    the next cell towards the mode), so mass is conserved and nothing becomes negative.
    """
    limited = 0
    for a in range(offsets.size - 1):
        first, end = offsets[a], offsets[a + 1]
        mode = first
        inflow = 0.0
        for i in range(first, end):
            gone = 0.0
            if i + 1 < end:
                gone = factor * (right[i + 1] * mass[i] - left[i + 1] * mass[i + 1])
            moved[i] = mass[i] + inflow - gone
            inflow = gone
            if mass[i] > mass[mode]:
                mode = i
        for i in range(first, mode):
            short = _FLOOR * mass[i] - moved[i]
            if short > 0.0:
                moved[i] += short
                moved[i + 1] -= short
                limited += 1
        for i in range(end - 1, mode, -1):
            short = _FLOOR * mass[i] - moved[i]
            if short > 0.0:
                moved[i] += short
                moved[i - 1] -= short
                limited += 1
        if moved[mode] < 0.0:
            # A step so long that even the mode empties: backward Euler, which cannot fail.
            for i in range(first, end):
                moved[i] = mass[i]
            limited += end - first
    return limited
