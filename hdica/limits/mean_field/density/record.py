"""What one level of the Fokker-Planck solver leaves behind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hdica.limits.mean_field.density.grid import Mesh
from hdica.limits.mean_field.density.layout import FIRST, MASS, T
from hdica.limits.mean_field.density.problem import Functional, Problem
from hdica.limits.mean_field.density.state import State

Array = NDArray[np.float64]


@dataclass(eq=False)
class Record:
    """What is seen after every step of the coarsest level, and kept at the snapshots.

    Functionals are h(xi, x) by name, means of which are taken; ``kept`` are mesh and masses at the
    snapshots reached, ``cells`` the largest number of cells of all atoms.
    """

    problem: Problem
    snapshots: Array
    functionals: Mapping[str, Functional]
    kept: dict[float, tuple[Mesh, Array]] = field(default_factory=dict)
    cells: int = 0
    _times: list[Array] = field(default_factory=list)
    _rows: list[Array] = field(default_factory=list)
    _weighed: tuple[Mesh, Array] | None = None

    def integrands(self, mesh: Mesh) -> Array:
        """What to sum against the masses for each functional: the same until the mesh changes."""
        if self._weighed is None or self._weighed[0] is not mesh:
            self._weighed = (mesh, self.problem.integrands(mesh, self.functionals))
        return self._weighed[1]

    def room(self, steps: int) -> Array:
        """Rows to measure so many states in."""
        return np.empty((steps, FIRST + len(self.functionals)))

    def begin(self, state: State, tau: float) -> None:
        """See the start."""
        from hdica.limits.mean_field.density.loop import measure

        row = self.room(1)
        measure(row[0], state.mass, state.cells, self.integrands(state.mesh), state.h2)
        self.see(state, np.zeros(1), np.full(1, tau), row)

    def see(self, state: State, times: Array, taus: Array, rows: Array) -> None:
        """Remember what was measured, and the masses if the state is at a snapshot."""
        rows = rows.copy()
        rows[:, 0] = taus
        self._times.append(times.copy())
        self._rows.append(rows)
        self.cells = max(self.cells, state.work.shape[1])
        t = float(state.clock[T])
        if t in self.snapshots and t not in self.kept:
            self.kept[t] = (state.mesh, state.work[MASS].copy())

    @property
    def times(self) -> Array:
        """Times seen, increasing."""
        return np.concatenate(self._times)

    @property
    def rows(self) -> Array:
        """tau, Q, R, 2h, the two errors and the functionals at those times."""
        return np.concatenate(self._rows)
