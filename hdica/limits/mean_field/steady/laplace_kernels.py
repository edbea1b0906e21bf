"""Compiled averages over exp(-a x^2 - k l1 |x| + c x), the steady densities of an l1 regularizer.

Branches and transitions ask for them thousands of times at a single overlap, where array code is
all overhead. Imported when a steady state is first solved: loading compiled code takes about a
second.
"""

from __future__ import annotations

import math

import numba
import numpy as np
import scipy

ORDER = 5
"""Moments x^0 to x^4."""
_SWITCH = 0.5
_FALL = 46.0
_POINTS, _WEIGHTS = scipy.special.roots_legendre(48)
_POINTS, _WEIGHTS = (_POINTS + 1) / 2, _WEIGHTS / 2
_HALF = math.sqrt(math.pi) / 2
_STEPS = 200


@numba.njit("float64(float64, float64, float64[::1])", cache=True, error_model="numpy")
def half_line(a, c, out):  # type: ignore[no-untyped-def]
    """Integrals of x^j exp(-a x^2 - c x) over x > 0, divided by exp(shift), which is returned.

    Integration by parts, 2 a M_(j+1) = j M_(j-1) - c M_j, is stable up to z = c/(2 sqrt(a)) =
    1/2, where terms begin to cancel (entirely as a -> 0). Beyond, Gauss-Legendre quadrature up
    to where the integrand has fallen by exp(-46). Infinite where a = 0 and c <= 0.
    """
    if c > 0 and c * c > 4 * _SWITCH**2 * a:
        ratio = a / c**2
        # u + ratio u^2 = FALL, in the form that is exact for a = 0.
        end = 2 * _FALL / (1 + math.sqrt(1 + 4 * ratio * _FALL))
        out[:] = 0.0
        for i in range(_POINTS.size):
            u = end * _POINTS[i]
            term = _WEIGHTS[i] * math.exp(-u - ratio * u * u)
            for j in range(ORDER):
                out[j] += term
                term *= _POINTS[i]
        for j in range(ORDER):
            out[j] *= (end / c) ** (j + 1)
        return 0.0
    if a <= 0:
        out[:] = np.inf
        return 0.0
    root = math.sqrt(a)
    z = c / (2 * root)
    # erfcx(z) = exp(z^2) erfc(z): z is at most 1/2 here, and exp(z^2) split off below 0.
    shift = z * z if z < 0 else 0.0
    out[0] = _HALF * math.erfc(z) * (1.0 if z < 0 else math.exp(z * z))
    out[1] = (math.exp(-shift) - 2 * z * out[0]) / 2
    for j in range(1, ORDER - 1):
        out[j + 1] = (j * out[j - 1] - 2 * z * out[j]) / 2
    for j in range(ORDER):
        out[j] /= root ** (j + 1)
    return shift


@numba.njit(
    "void(float64, float64, float64, float64, float64[::1], float64[::1])",
    cache=True,
    error_model="numpy",
)
def _both(l1, a, k, tilt, right, left):  # type: ignore[no-untyped-def]
    """The two sides of 0 become their parts of the averages, infinite where Z is."""
    right_shift, left_shift = half_line(a, k * l1 - tilt, right), half_line(a, k * l1 + tilt, left)
    shift = max(right_shift, left_shift)
    right *= math.exp(right_shift - shift)
    left *= math.exp(left_shift - shift)
    z = right[0] + left[0]
    if np.isfinite(z):
        right /= z
        left /= z
    else:
        right[:] = np.inf
        left[:] = 0.0


@numba.njit(
    "void(float64, float64[::1], float64[::1], float64[::1], float64[:, ::1], float64[:, ::1])",
    cache=True,
)
def averages(l1, a, k, tilt, powers, mixed):  # type: ignore[no-untyped-def]
    """E x^j and l1 E[x^j |x|] of each row, written to shape (5, rows) and (3, rows)."""
    right, left = np.empty(ORDER), np.empty(ORDER)
    for i in range(a.size):
        _both(l1, a[i], k[i], tilt[i], right, left)
        for j in range(ORDER):
            powers[j, i] = right[j] + left[j] if j % 2 == 0 else right[j] - left[j]
        for j in range(1, 4):
            # |x| x^j is x^(j+1) with opposite signs on the two sides.
            mixed[j - 1, i] = l1 * (right[j] - left[j] if j % 2 == 0 else right[j] + left[j])


@numba.njit(
    "UniTuple(float64, 2)(float64, float64[::1], float64, float64, float64[::1], float64[::1],"
    "float64[::1])",
    cache=True,
    error_model="numpy",
)
def _square(l1, weights, a, k, tilt, right, left):  # type: ignore[no-untyped-def]
    """E x^2 over all atoms, and the mean of its variance given the atom."""
    mean, spread = 0.0, 0.0
    for i in range(weights.size):
        _both(l1, a, k, tilt[i], right, left)
        second = right[2] + left[2]
        mean += weights[i] * second
        spread += weights[i] * (right[4] + left[4] - second * second)
    return mean, spread


@numba.njit("float64(float64, float64, float64, float64)", cache=True, error_model="numpy")
def _inside(new, old, low, high):  # type: ignore[no-untyped-def]
    """The Newton step where it stays in the bracket, else a bisection or an expansion."""
    width = abs(old) + 1
    if low <= new <= high and abs(new - old) <= 8 * width:
        return new
    if np.isfinite(high):
        # Near condensation a is orders of magnitude smaller than elsewhere.
        return math.sqrt(max(low, 1e-4 * high) * max(high, 0.0))
    return (low + old + 2 * width) / 2


@numba.njit(
    "void(float64, float64[::1], float64[::1], float64[:, ::1], float64[::1], float64[::1])",
    cache=True,
    error_model="numpy",
)
def multipliers(l1, weights, k, tilt, a, at_end):  # type: ignore[no-untyped-def]
    """The a with E x^2 = 1 of each row, or 0 where E x^2 < 1 even there; and E x^2 at 0."""
    right, left = np.empty(ORDER), np.empty(ORDER)
    for row in range(k.size):
        at_end[row], _ = _square(l1, weights, 0.0, k[row], tilt[row], right, left)
        a[row] = 0.0
        if at_end[row] < 1:
            continue
        low, high = 0.0, np.inf
        a[row] = (1 + math.sqrt(1 + 4 * np.sum(weights * tilt[row] ** 2))) / 4
        for _ in range(_STEPS):
            mean, spread = _square(l1, weights, a[row], k[row], tilt[row], right, left)
            if mean > 1:
                low = a[row]
            else:
                high = a[row]
            new = _inside(a[row] + mean * (mean - 1) / spread, a[row], low, high)
            # The last step is taken: near the root its error is the square of its size.
            settled = abs(new - a[row]) <= 1e-9 * (abs(new) + 1 / math.sqrt(spread))
            a[row] = new
            if settled:
                break
