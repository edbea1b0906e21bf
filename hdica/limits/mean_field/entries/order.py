"""The order parameters of the limit at any time, as uncoupled entries are told them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from hdica.limits.mean_field.density.solve import DensityPath
from hdica.limits.mean_field.density.solve import solve as solve_density
from hdica.limits.mean_field.family import MeanField
from hdica.limits.mean_field.normal.solve import solve as solve_normal

Array = NDArray[np.float64]
TOLERANCE = 1e-5
"""Error of Q at which the limit is no further refined."""
KNOTS = 500
"""Times at which it is solved: what is between them is right to 1e-8 unless the step size jumps."""


@dataclass(frozen=True, eq=False)
class Order:
    """Q and R of a solved limit.

    ``known`` is the last time until which they are, ``stopped`` why they are not later, or empty.
    """

    q: scipy.interpolate.PchipInterpolator
    r: scipy.interpolate.PchipInterpolator
    known: float
    stopped: str

    def at(self, times: Array) -> tuple[Array, Array]:
        """Q and R at times up to ``known``, each of their shape; |Q| <= 1."""
        return np.clip(self.q(times), -1.0, 1.0), np.asarray(self.r(times))


def _knots(field: MeanField, last: float, count: int) -> Array:
    """Times to ``last``, denser where everything begins, with the jumps of the step size."""
    even = last * np.linspace(0.0, 1.0, count) ** 2
    jumps = [t for t in field.schedule.breaks if 0 < t < last]
    return np.unique(np.concatenate([even, jumps]))


def _solved(field: MeanField, times: Array) -> DensityPath:
    """By three numbers where phi is linear, else by the density."""
    if field.phi.slope_if_linear is not None:
        return solve_normal(field, times)
    return solve_density(field, times, tolerance=TOLERANCE)


def order_of(field: MeanField, last: float, knots: int = KNOTS) -> Order:
    """Q and R of a limit from t = 0 to ``last`` > 0."""
    times = _knots(field, last, knots)
    path = _solved(field, times)
    known = np.isfinite(path.q) & np.isfinite(path.r)
    times, q, r = times[known], path.q[known], path.r[known]
    return Order(
        scipy.interpolate.PchipInterpolator(times, q),
        scipy.interpolate.PchipInterpolator(times, r),
        float(times[-1]),
        path.stopped,
    )
