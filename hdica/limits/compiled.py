"""The compiled inner lines of the limits; imported when a limit is first solved.

Loading compiled code takes about a second, which a command that only reads a study or a store
must not pay.
"""

from __future__ import annotations

import numba


@numba.njit("float64(float64[::1], float64)", cache=True)
def clenshaw(coefficients, x):  # type: ignore[no-untyped-def]
    """Value at ``x`` of a Chebyshev series (Clenshaw 1955)."""
    high = 0.0
    higher = 0.0
    for k in range(coefficients.size - 1, 0, -1):
        high, higher = coefficients[k] + 2.0 * x * high - higher, high
    return coefficients[0] + x * high - higher


@numba.njit(
    "void(float64, float64[::1], float64, float64[::1], float64[::1], float64[::1],"
    "float64[::1], float64[::1], float64[::1], float64[::1], float64[::1])",
    cache=True,
)
def overlap_rhs(tau, y, factor, d1, d2, s1, s2, v2, v3, v4, out):  # type: ignore[no-untyped-def]
    """Drift of the overlap and of its variance at one step size, written to ``out``."""
    q = min(1.0, max(-1.0, y[0]))
    out[0] = factor * (tau * clenshaw(d1, q) + tau**2 * clenshaw(d2, q))
    slope = tau * clenshaw(s1, q) + tau**2 * clenshaw(s2, q)
    noise = tau**2 * clenshaw(v2, q) + tau**3 * clenshaw(v3, q) + tau**4 * clenshaw(v4, q)
    out[1] = 2 * slope * y[1] + noise
