"""The compiled inner lines of the Fokker-Planck solver and of its densities, imported when used.

Cell masses of all atoms lie one after the other in flat arrays: those of atom ``a`` at
``offsets[a]:offsets[a + 1]``, its first cell being cell ``lows[a]`` of the mesh, of which
``table`` is the table. Face ``f`` of the mesh lies between its cells ``f - 1`` and ``f``.
"""

from __future__ import annotations

import math

import numba

from hdica.limits.mean_field.density import grid as at

_FLOOR = 0.1
_SERIES = 1.0
"""Below this the Bernoulli function comes from its series, above it from expm1."""
_BLOCK = 16
"""Cells between two divisions of a pivot's numerator by its denominator, which would overflow in
so few only if rates exceeded 1e19."""
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


@numba.njit("float64(float64)", cache=True)
def even_part(w):  # type: ignore[no-untyped-def]
    """w/2 coth(w/2), the mean of the Bernoulli function at ``w`` and ``-w``, for |w| < 1."""
    v = w * w
    even = _EVEN[9]
    for k in range(8, -1, -1):
        even = even * v + _EVEN[k]
    return even * v + 1.0


@numba.njit("UniTuple(float64, 2)(float64)", cache=True)
def bernoulli(w):  # type: ignore[no-untyped-def]
    """Bernoulli function w/(e^w - 1) at ``w`` and at ``-w``, both without cancellation."""
    size = abs(w)
    if size < _SERIES:
        even = even_part(w)
        return even - 0.5 * w, even + 0.5 * w
    small = size / math.expm1(size) if size < 700.0 else 0.0
    if w > 0.0:
        return small, small + size
    return small + size, small


@numba.njit(
    "void(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64)",
    cache=True,
)
def _fluxes(right, left, w, from_left, from_right, k):  # type: ignore[no-untyped-def]
    """Rates of one atom, from the drift ``w`` across each face in units of the noise."""
    beyond = 0
    for i in range(right.size):
        half = 0.5 * w[i]
        even = even_part(w[i])
        right[i] = k * from_left[i] * (even + half)
        left[i] = k * from_right[i] * (even - half)
        beyond += abs(w[i]) >= _SERIES
    # Apart, so that the loop above has no branch and runs several cells at a time.
    if beyond > 0:
        for i in range(right.size):
            if abs(w[i]) >= _SERIES:
                back, forth = bernoulli(w[i])
                right[i] = k * from_left[i] * forth
                left[i] = k * from_right[i] * back
    right[0] = 0.0
    left[0] = 0.0


@numba.njit(
    "void(float64[::1], float64[::1], float64[::1], float64[:, ::1], int64[::1], int64[::1],"
    "float64[::1], float64, float64, float64, float64, float64)",
    cache=True,
)
def rates(right, left, w, table, offsets, lows, xi, b, big, h2, g, c):  # type: ignore[no-untyped-def]
    """Rates of Scharfetter and Gummel (1969) across every face, times ``c``.

    ``right[i]`` leads from cell i - 1 to cell i and ``left[i]`` back; no flux crosses the ends
    of an atom's window. The drift is averaged between the two centres, so that the discrete
    stationary law is that of Boltzmann at the centres. ``w`` is overwritten.
    """
    inverse = 1.0 / g
    for a in range(xi.size):
        first, end, low = offsets[a], offsets[a + 1], lows[a]
        high = low + end - first
        own, pull = w[first:end], b * xi[a]
        gap, phi = table[at.GAP, low:high], table[at.GAP_PHI, low:high]
        middle = table[at.GAP_MIDDLE, low:high]
        for i in range(own.size):
            own[i] = (pull * gap[i] - big * phi[i] - h2 * middle[i]) * inverse
        from_left, from_right = table[at.FROM_LEFT, low:high], table[at.FROM_RIGHT, low:high]
        _fluxes(right[first:end], left[first:end], own, from_left, from_right, c * g)


@numba.njit(
    "void(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])", cache=True
)
def _eliminate(before, mass, right, left, share):  # type: ignore[no-untyped-def]
    """Eliminate one atom's cells from both ends to its middle one, whose mass is then known.

    Every column of 1 - c A sums to one, so the elimination runs without a single subtraction
    (Grassmann, Taksar and Heyman 1985): what is positive stays positive in floating point too,
    each mass with a small relative error, however small it is. From either end the pivot of a
    cell is s/d plus the rate that leads on; s and d follow without a division, and two chains
    that do not wait for each other keep the processor busy.
    """
    n = before.size
    m = n // 2
    both = n - 1 - m
    extra = m - both
    s, p, u, z = 1.0, 1.0, 0.0, 0.0
    onwards, backwards = right[1:], left[1:]
    if extra > 0:
        inverse = 1.0 / (1.0 + right[1])
        share[0] = left[1] * inverse
        mass[0] = before[0] * inverse
        u = right[1] * mass[0]
        s = 1.0 + left[1] * inverse
    for begin in range(0, both, _BLOCK):
        d, q = 1.0, 1.0
        for k in range(begin, min(begin + _BLOCK, both)):
            # Unsigned, so that no index is tried for being negative.
            i, j = numba.uint64(k + extra), numba.uint64(n - 1 - k)
            on, back = onwards[i], backwards[i]
            more = on * d
            inverse = d / (s + more)
            share[i] = back * inverse
            d, s = s + more, (1.0 + back) * s + more
            mass[i] = (before[i] + u) * inverse
            u = (on * inverse) * (before[i] + u)
            on, back = left[j], right[j]
            more = on * q
            inverse = q / (p + more)
            share[j] = back * inverse
            q, p = p + more, (1.0 + back) * p + more
            mass[j] = (before[j] + z) * inverse
            z = (on * inverse) * (before[j] + z)
        s, p = s / d, p / q
    mass[m] = (before[m] + u + z) / (s + (p - 1.0))


@numba.njit("UniTuple(float64, 3)(float64[::1], float64[::1], float64[::1])", cache=True)
def _substitute(mass, share, x):  # type: ignore[no-untyped-def]
    """Masses of one atom from its middle to both ends; returns their sums with 1, x and x^2."""
    n = mass.size
    m = n // 2
    v, w = mass[m], mass[m]
    total, first, second = v, v * x[m], v * x[m] * x[m]
    others, mean, square = 0.0, 0.0, 0.0
    for k in range(1, n - m):
        i, j = m - k, m + k
        v = mass[i] + share[i] * v
        w = mass[j] + share[j] * w
        mass[i], mass[j] = v, w
        total, others = total + v, others + w
        first, mean = first + v * x[i], mean + w * x[j]
        second, square = second + v * x[i] * x[i], square + w * x[j] * x[j]
    if n - m == m:
        v = mass[0] + share[0] * v
        mass[0] = v
        total, first, second = total + v, first + v * x[0], second + v * x[0] * x[0]
    return total + others, first + mean, second + square


@numba.njit(
    "UniTuple(float64, 2)(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1],"
    "float64[::1], float64[:, ::1], int64[::1], int64[::1], float64[::1], float64[::1])",
    cache=True,
)
def resolve(before, mass, right, left, share, sums, table, offsets, lows, xi, weights):  # type: ignore[no-untyped-def]
    """Solve (1 - c A) mass = given for every atom, ``right`` and ``left`` being c times A.

    Returns Q = E[xi x] and E[x^2] of the solution; ``sums`` becomes the mass of every atom.
    """
    overlap, square = 0.0, 0.0
    for a in range(xi.size):
        first, end, low = offsets[a], offsets[a + 1], lows[a]
        own, shares = mass[first:end], share[first:end]
        _eliminate(before[first:end], own, right[first:end], left[first:end], shares)
        sums[a], mean, second = _substitute(own, shares, table[at.X, low : low + end - first])
        overlap += weights[a] * xi[a] * mean
        square += weights[a] * second
    return overlap, square


@numba.njit("int64(float64[::1], float64[::1])", cache=True)
def _limit(mass, moved):  # type: ignore[no-untyped-def]
    """Cut the fluxes of one atom that overdraw a cell; returns how many cells were touched."""
    n = mass.size
    mode, limited = 0, 0
    for i in range(n):
        if mass[i] > mass[mode]:
            mode = i
    for i in range(mode):
        short = _FLOOR * mass[i] - moved[i]
        if short > 0.0:
            moved[i] += short
            moved[i + 1] -= short
            limited += 1
    for i in range(n - 1, mode, -1):
        short = _FLOOR * mass[i] - moved[i]
        if short > 0.0:
            moved[i] += short
            moved[i - 1] -= short
            limited += 1
    if moved[mode] < 0.0:
        # A step so long that even the mode empties: backward Euler, which cannot fail.
        moved[:] = mass
        limited += n
    return limited


@numba.njit(
    "int64(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], int64[::1],"
    "float64)",
    cache=True,
)
def push(mass, moved, right, left, flux, offsets, factor):  # type: ignore[no-untyped-def]
    """``moved`` = (1 + factor c A) mass, its fluxes limited; returns how many cells were.

    Where a cell would keep less than a tenth of its mass, which happens only in tails that empty
    within a step, the flux on its side towards the mode is cut down (what is missing is paid by
    the next cell towards the mode), so mass is conserved and nothing becomes negative.
    """
    limited = 0
    for a in range(offsets.size - 1):
        first, end = offsets[a], offsets[a + 1]
        own, new, across = mass[first:end], moved[first:end], flux[first:end]
        to, fro = right[first:end], left[first:end]
        n, short = own.size, 0
        across[0] = 0.0
        for i in range(1, n):
            across[i] = factor * (to[i] * own[i - 1] - fro[i] * own[i])
        for i in range(n - 1):
            new[i] = own[i] + across[i] - across[i + 1]
            short += new[i] < _FLOOR * own[i]
        new[n - 1] = own[n - 1] + across[n - 1]
        if short > 0 or new[n - 1] < _FLOOR * own[n - 1]:
            limited += _limit(own, new)
    return limited
