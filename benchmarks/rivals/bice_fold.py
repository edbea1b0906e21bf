"""A fold with bice: pseudo-arclength continuation, then its location by bisection."""

from __future__ import annotations

import contextlib
import io

import numpy as np
from bice import Equation, Problem
from numpy.typing import NDArray

from benchmarks.rivals.folds import Fold

Array = NDArray[np.float64]
_MOST = 5000


class Steady(Equation):
    """The equations of a fold as bice takes them."""

    def __init__(self, fold: Fold) -> None:
        super().__init__(shape=(len(fold.start),))
        self.fold, self.parameter = fold, fold.parameter
        self.u = np.array(fold.start)

    def rhs(self, u: Array) -> Array:
        """Residual."""
        return self.fold.residual(u, self.parameter)

    def jacobian(self, u: Array) -> Array:
        """Its derivative."""
        return self.fold.jacobian(u, self.parameter)


def find(fold: Fold, step: float = 1e-3, longest: float = 1.0) -> float:
    """Parameter at the fold.

    Parameters
    ----------
    fold
        Equations and start.
    step, longest
        First and longest step of the continuation; bice's own by default.
    """
    problem, equation = Problem(), Steady(fold)
    problem.add_equation(equation)
    problem.continuation_parameter = (equation, "parameter")
    problem.settings.neigs = None
    problem.settings.use_sparse_matrices = False
    stepper = problem.continuation_stepper
    stepper.ds, stepper.ds_max = fold.way * step, longest
    stepper.fd_epsilon = 1e-6
    # It reports on the standard output.
    with contextlib.redirect_stdout(io.StringIO()):
        problem.newton_solve()
        unstable = [_step(problem)]
        while unstable[-1] == unstable[0] and len(unstable) < _MOST:
            unstable.append(_step(problem))
        problem.locate_bifurcation(tolerance=1e-7)
    return float(problem.get_continuation_parameter())


def _step(problem: Problem) -> int:
    """Continue, and count the unstable eigenvalues."""
    problem.continuation_step()
    return int(problem.bifurcation_diagram.current_solution().nunstable_eigenvalues)
