"""Compiled kernels that do not return until the first number that they are given tells them to.

One lets go of Python's lock, the other holds it. What they write to is found out as they run, so
that no compiler looks at that number once and for all.
"""

import numba


@numba.njit("void(float64[::1])", cache=True, nogil=True)
def spin(x):  # type: ignore[no-untyped-def]
    while x[0] == 0.0:
        x[1 + int(x[2])] += 1.0


@numba.njit("void(float64[::1])", cache=True)
def clutch(x):  # type: ignore[no-untyped-def]
    while x[0] == 0.0:
        x[1 + int(x[2])] += 1.0
