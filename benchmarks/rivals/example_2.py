"""Example 2 of Wang and Lu 2016 as plain numbers: what every solver of its limit needs.

For xi in {0, 1/sqrt(rho)}, dP/dt = -d/dx [(b xi - beta sign(x) - 2h x) P] + g d^2P/dx^2 with
b = tau omega Q, g = tau^2 (1 + omega Q^2)/2 and 2h = g + b Q - R, where Q = E[xi x] and
R = E[beta |x|].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

Array = NDArray[np.float64]
TAU, OMEGA, BETA, RHO = 0.5, 1.0, 0.27, 0.05
XI, WEIGHTS = np.array([0.0, RHO**-0.5]), np.array([1 - RHO, RHO])
START_MEAN, START_SD = 0.5**0.5, 0.5**0.5


def faces(low: int, high: int, per_unit: int) -> Array:
    """Ends of equal cells; one of them is the kink x = 0."""
    return np.linspace(low, high, (high - low) * per_unit + 1)


def start(ends: Array) -> Array:
    """Means over the cells of the density at t = 0, which is the same at both xi."""
    return np.asarray(np.diff(norm.cdf(ends, START_MEAN, START_SD)) / np.diff(ends))
