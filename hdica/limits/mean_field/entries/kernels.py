"""The compiled inner lines of uncoupled entries; imported when the first of them move.

Neither sums nor fused operations: every entry goes through the same roundings as in plain NumPy,
however wide the processor is.
"""

from __future__ import annotations

import numba

PULL, STRENGTH, CURVATURE, SPREAD = range(4)
"""Columns of what a step is told: b, B and 2 h of the drift b xi - B phi - 2 h z, and the standard
deviation of the noise of a step."""


@numba.njit(
    "void(float64[::1], float64[::1], float64, float64, float64[:, ::1], float64[:, ::1], float64)",
    cache=True,
    nogil=True,
)
def net_steps(z, xi, jump, slope, told, noise, n):  # type: ignore[no-untyped-def]
    """Steps of 1/n with phi(z) = jump sign(z) + slope z, in place; a row a step.

    A row of ``noise`` may be longer than ``z``: what is beyond is not used.
    """
    for k in range(told.shape[0]):
        pull, strength, curvature = told[k, PULL], told[k, STRENGTH], told[k, CURVATURE]
        spread, w = told[k, SPREAD], noise[k]
        for i in range(z.size):
            x = z[i]
            side = jump if x > 0.0 else (-jump if x < 0.0 else 0.0)
            drift = pull * xi[i] - strength * (side + slope * x) - curvature * x
            z[i] = (x + drift / n) + spread * w[i]


@numba.njit(
    "void(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64)",
    cache=True,
    nogil=True,
)
def one_step(z, xi, phi, told, noise, n):  # type: ignore[no-untyped-def]
    """One step of 1/n where phi(z) is known, in place."""
    pull, strength, curvature = told[PULL], told[STRENGTH], told[CURVATURE]
    for i in range(z.size):
        drift = pull * xi[i] - strength * phi[i] - curvature * z[i]
        z[i] = (z[i] + drift / n) + told[SPREAD] * noise[i]
