"""The coupled Fokker-Planck equation by hand: compiled finite volumes and SciPy's LSODA."""

from __future__ import annotations

from collections.abc import Callable

import numba as nb
import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

from benchmarks.rivals.example_2 import BETA, OMEGA, TAU, WEIGHTS, XI, faces, start

Array = NDArray[np.float64]
BAND = 1
"""The Jacobian without the coupling is tridiagonal, and LSODA needs no more to converge."""


@nb.njit(cache=True)
def rates(p, x, dx, xi, weights, tau, omega, beta):
    """dP/dt of the cells, shape (2, cells)."""
    n, out = x.size, np.empty_like(p)
    q, r = 0.0, 0.0
    for a in range(p.shape[0]):
        for i in range(n):
            q += weights[a] * xi[a] * x[i] * p[a, i] * dx
            r += weights[a] * beta * abs(x[i]) * p[a, i] * dx
    b, g = tau * omega * q, tau * tau * (1 + omega * q * q) / 2
    h2 = g + b * q - r
    for a in range(p.shape[0]):
        before = 0.0
        for i in range(n):
            flux = 0.0
            if i < n - 1:
                face = (x[i] + x[i + 1]) / 2
                side = 0.0 if abs(face) < dx / 4 else np.sign(face)
                w = (b * xi[a] - beta * side - h2 * face) * dx / g
                upstream = 1 + w / 2 + w * w / 12 if abs(w) < 1e-3 else -w / np.expm1(-w)
                flux = g / dx * (upstream * p[a, i] - (upstream - w) * p[a, i + 1])
            out[a, i] = (before - flux) / dx
            before = flux
    return out


def prepared(
    times: Array, tolerance: float, low: int, high: int, per_unit: int
) -> Callable[[], Array]:
    """A function that solves the equation and returns Q at the times.

    Parameters
    ----------
    times
        Shape (T,), the first 0.
    tolerance
        Relative; the absolute one is a hundredth of it.
    low, high, per_unit
        Domain, and cells per unit of length.
    """
    ends = faces(low, high, per_unit)
    x, dx = (ends[1:] + ends[:-1]) / 2, 1 / per_unit
    begin = np.tile(start(ends), XI.size)
    known = {"rtol": tolerance, "atol": tolerance / 100, "lband": BAND, "uband": BAND}

    def rate(t: float, flat: Array) -> Array:
        p = flat.reshape(XI.size, x.size)
        return rates(p, x, dx, XI, WEIGHTS, TAU, OMEGA, BETA).ravel()

    def solve() -> Array:
        found = solve_ivp(rate, (times[0], times[-1]), begin, "LSODA", times, **known)
        p = found.y.reshape(XI.size, x.size, times.size)
        return np.asarray(np.einsum("a,x,axt->t", WEIGHTS * XI, x * dx, p))

    return solve
