"""The coupled Fokker-Planck equation in FiPy: implicit, exponentially fitted, of order two in time.

Both densities lie side by side on one mesh with a wall between them, because FiPy's cost is that
of a call and not of a cell. FiPy's own time stepping is Euler's; a source makes it BDF2.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from benchmarks.rivals.example_2 import BETA, OMEGA, TAU, WEIGHTS, XI, faces, start

os.environ.setdefault("FIPY_SOLVERS", "scipy")
import fipy as fp

Array = NDArray[np.float64]
_WALL = 1e-12
"""Diffusion through the wall; 0 is divided by."""
_SWEEPS = 3
"""Of an Euler step, whose coefficients no step before predicts."""


class Model:
    """Mesh, unknown, coefficients and the two equations."""

    def __init__(self, ends: Array) -> None:
        n, dx = ends.size - 1, float(ends[1] - ends[0])
        x = np.tile((ends[1:] + ends[:-1]) / 2, 2)
        weight = np.repeat(WEIGHTS, n) * dx
        self.to_q, self.to_r = weight * np.repeat(XI, n) * x, weight * BETA * np.abs(x)
        self.face = np.concatenate([ends[:-1], ends])
        self.xi = np.repeat(XI, [n, n + 1])
        self.side = np.where(np.abs(self.face) < dx / 4, 0.0, np.sign(self.face))
        self.inner = np.ones(2 * n + 1, dtype=bool)
        self.inner[[0, n, -1]] = False
        mesh = fp.Grid1D(nx=2 * n, dx=dx)
        self.p = fp.CellVariable(mesh=mesh, value=np.tile(start(ends), 2), hasOld=True)
        self.source = fp.CellVariable(mesh=mesh)
        self.g, self.drift = fp.FaceVariable(mesh=mesh), fp.FaceVariable(mesh=mesh, rank=1)
        flow = fp.ExponentialConvectionTerm(coeff=self.drift) - fp.DiffusionTerm(coeff=self.g)
        self.euler = fp.TransientTerm() + flow == 0
        self.bdf2 = fp.TransientTerm(coeff=1.5) + flow == self.source
        self.solver = fp.LinearLUSolver(tolerance=1e-13)

    def moments(self) -> Array:
        """Q and R."""
        value = self.p.value
        return np.array([np.sum(self.to_q * value), np.sum(self.to_r * value)])

    def couple(self, moments: Array) -> None:
        """Coefficients at given Q and R."""
        q, r = moments
        b, g = TAU * OMEGA * q, TAU**2 * (1 + OMEGA * q * q) / 2
        drift = b * self.xi - BETA * self.side - (g + b * q - r) * self.face
        self.g.setValue(np.where(self.inner, g, _WALL))
        self.drift.setValue((drift * self.inner)[None])

    def step(self, dt: float, moments: Array, older: Array | None) -> Array:
        """One step with coefficients at predicted moments; returns the moments after it."""
        old = self.p.value.copy()
        self.p.updateOld()
        if older is not None:
            self.source.setValue((old - older) / (2 * dt))
        for _ in range(_SWEEPS if older is None else 1):
            self.couple(moments)
            equation = self.euler if older is None else self.bdf2
            equation.sweep(var=self.p, dt=dt, solver=self.solver)
            moments = self.moments()
        return moments


def prepared(times: Array, dt: float, low: int, high: int, per_unit: int) -> Callable[[], Array]:
    """A function that solves the equation and returns Q at the times.

    Parameters
    ----------
    times
        Shape (T,), the first 0.
    dt
        Longest step.
    low, high, per_unit
        Domain, and cells per unit of length.
    """

    def solve() -> Array:
        model = Model(faces(low, high, per_unit))
        now, before, older, last = model.moments(), None, None, 0.0
        found = [now[0]]
        for begin, end in pairwise(times):
            steps = int(np.ceil((end - begin) / dt - 1e-9))
            own = float(end - begin) / steps
            for _ in range(steps):
                # A step of another length begins anew: the formula is that of equal steps.
                again = before is not None and np.isclose(own, last)
                value = model.p.value.copy()
                after = model.step(
                    own, 2 * now - before if again else now, older if again else None
                )
                now, before, older, last = after, now, value, own
            found.append(now[0])
        return np.array(found)

    return solve
