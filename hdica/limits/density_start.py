"""The state of the Fokker-Planck solver at t = 0."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hdica.limits.density_grid import Lattice, Mesh, Windows, make_mesh
from hdica.limits.density_stage import Problem
from hdica.limits.density_steps import State

Array = NDArray[np.float64]
_REACH = 9.0
"""Standard deviations beyond which a normal law has no mass in double precision."""


def start_windows(problem: Problem, lattice: Lattice) -> Windows:
    """Where the normal laws of the start have mass."""
    mean, var = problem.field.start.conditional(problem.xi)
    reach = _REACH * math.sqrt(var)
    low, high = np.floor(lattice.number(mean - reach)), np.ceil(lattice.number(mean + reach))
    return Windows(low.astype(np.int64), high.astype(np.int64))


def start_masses(problem: Problem, mesh: Mesh) -> Array:
    """Cell masses of the normal laws of the start, with E[x^2] = 1 to rounding.

    The variance is corrected by O(dx^2), because the sum of x^2 over cells is not its integral.
    """
    mean, var = problem.field.start.conditional(problem.xi)
    sizes = np.diff(mesh.offsets)
    _, x, weights = mesh.flat(problem.xi, problem.weights)
    dx = np.concatenate([mesh.dx[cells] for _, cells in mesh.slices()])
    away = (x - np.repeat(mean, sizes)) ** 2 / 2
    for _ in range(20):
        mass = np.exp(-away / var) * dx
        mass /= np.repeat(np.add.reduceat(mass, mesh.offsets[:-1]), sizes)
        miss = float(np.sum(weights * mass * x * x)) - 1.0
        if abs(miss) < 2e-15:
            break
        var -= miss
    return np.asarray(mass)


def begin(problem: Problem, lattice: Lattice, windows: Windows, refine: int) -> State:
    """The state at t = 0, with the multiplier that its formula gives."""
    field = problem.field
    mesh = make_mesh(lattice, windows, refine, field.phi.value)
    mass = start_masses(problem, mesh)
    _, x, weights = mesh.flat(problem.xi, problem.weights)
    q, tau = field.start.overlap(field.prior), float(field.schedule.value(np.array(0.0)))
    r = float(np.sum(weights * mass * x * field.phi.value(x)))
    return State(windows, mesh, mass, None, q, field.curvature(q, r, tau))
