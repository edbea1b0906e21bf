"""The coupled Fokker-Planck equation in py-pde: its grid, its backend, its time steppers.

Fluxes are those of Scharfetter and Gummel, compiled for py-pde's Numba backend as its manual
shows for equations that its expressions cannot say. A stepper is built once: py-pde compiles the
explicit ones anew in every call of ``solve``.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numba as nb
import numpy as np
from numpy.typing import NDArray
from pde import CartesianGrid, FieldCollection, PDEBase, ScalarField
from pde.solvers import RungeKuttaSolver, ScipySolver

from benchmarks.rivals.example_2 import BETA, OMEGA, TAU, WEIGHTS, XI, faces, start
from benchmarks.rivals.scipy_fokker_planck import BAND, rates

Array = NDArray[np.float64]


class Coupled(PDEBase):
    """Both conditional densities, coupled by Q and R."""

    def __init__(self, x: Array) -> None:
        super().__init__()
        self.x, self.dx = x, float(x[1] - x[0])

    def evolution_rate(self, state: FieldCollection, t: float = 0) -> FieldCollection:
        """dP/dt as a field."""
        found = state.copy()
        found.data[:] = rates(state.data, self.x, self.dx, XI, WEIGHTS, TAU, OMEGA, BETA)
        return found

    def make_evolution_rate(self, state: FieldCollection, backend: Any) -> Callable[..., Array]:
        """dP/dt of plain arrays, compiled."""
        x, dx, xi, weights = self.x, self.dx, XI, WEIGHTS

        @nb.njit
        def rate(data, t):
            return rates(data, x, dx, xi, weights, TAU, OMEGA, BETA)

        return rate


def _solver(equation: Coupled, method: str, tolerance: float) -> Any:
    if method == "explicit":
        return RungeKuttaSolver(equation, adaptive=True, tolerance=tolerance, backend="numba")
    known = {"rtol": tolerance, "atol": tolerance / 100, "lband": BAND, "uband": BAND}
    return ScipySolver(equation, backend="numba", method="LSODA", **known)


def prepared(
    times: Array, method: str, tolerance: float, low: int, high: int, per_unit: int
) -> Callable[[], Array]:
    """A function that solves the equation and returns Q at the times.

    Parameters
    ----------
    times
        Shape (T,), the first 0.
    method
        ``"explicit"``: py-pde's adaptive Runge-Kutta-Fehlberg stepper. ``"scipy"``: its wrapper
        of ``solve_ivp``, told to use LSODA with a banded Jacobian.
    tolerance
        Of the stepper.
    low, high, per_unit
        Domain, and cells per unit of length.
    """
    ends = faces(low, high, per_unit)
    grid = CartesianGrid([(low, high)], ends.size - 1)
    x = np.asarray(grid.axes_coords[0])
    begin = FieldCollection([ScalarField(grid, start(ends)) for _ in XI])
    stepper = _solver(Coupled(x), method, tolerance).make_stepper(begin, 1e-3)

    def overlap(state: FieldCollection) -> float:
        return float(np.sum(WEIGHTS * XI * np.sum(x * state.data, axis=1)) / per_unit)

    def solve() -> Array:
        state = begin.copy()
        found = [overlap(state)]
        for before, after in pairwise(times):
            stepper(state, float(before), float(after))
            found.append(overlap(state))
        return np.array(found)

    return solve
