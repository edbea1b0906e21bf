"""Compiled kernels that never return, with Python's lock let go of and with it held."""

import numba


@numba.njit("void(float64[::1])", cache=True, nogil=True)
def spin(x):  # type: ignore[no-untyped-def]
    while x[0] == 0.0:
        x[1] += 1.0


@numba.njit("void(float64[::1])", cache=True)
def clutch(x):  # type: ignore[no-untyped-def]
    while x[0] == 0.0:
        x[1] += 1.0
