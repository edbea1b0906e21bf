"""Where a run of the Fokker-Planck solver is, in the arrays that its compiled lines work on."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.limits.mean_field.density.grid import Lattice, Mesh, Windows, carried, make_mesh
from hdica.limits.mean_field.density.layout import DT, H2, KEPT, MASS, RATE, RATED, SMOOTH, Q
from hdica.limits.mean_field.density.problem import Problem
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]
Memory = tuple[Array, Array, Array, Array]
_REACH = 9.0
"""Standard deviations beyond which a normal law has no mass in double precision."""
_FIRST_STEP = 1e-3
MOST_CELLS = 10**6
"""At the start, on the coarsest mesh: 3 GB on the finest, and ten steps cost all that a run may."""
_ROOM = 3
"""Windows begin with one part in so many to spare on either side of the mesh."""


@dataclass(eq=False)
class State:
    """Where a run is.

    ``work``: flat arrays over the cells, masses, their rate of change, and room to work. ``clock``:
    time, step to try, Q, 2h, whether the rate is known, cost so far, next mark. ``memory``: what
    earlier steps taught about the stages, and room to work.
    """

    problem: Problem
    windows: Windows
    mesh: Mesh
    work: Array
    clock: Array
    memory: Memory

    @property
    def mass(self) -> Array:
        """Cell masses."""
        return np.asarray(self.work[MASS])

    @property
    def q(self) -> float:
        """Overlap."""
        return float(self.clock[Q])

    @property
    def h2(self) -> float:
        """Multiplier."""
        return float(self.clock[H2])

    @property
    def cells(self) -> tuple[Array, NDArray[np.int64], NDArray[np.int64], Array, Array]:
        """The mesh and the nodes as the compiled lines take them."""
        mesh, problem = self.mesh, self.problem
        return mesh.table, mesh.offsets, mesh.lows, problem.xi, problem.weights

    def forget(self) -> None:
        """A new piece of the step size begins, of which nothing is known."""
        self.memory = blank_memory(self.problem.xi.size)
        self.clock[RATED] = 0.0

    def move(self, windows: Windows) -> None:
        """Go on with other windows."""
        old = self.windows
        if np.array_equal(old.low, windows.low) and np.array_equal(old.high, windows.high):
            return
        lattice, refine = self.mesh.lattice, self.mesh.refine
        mesh = self.mesh.on(windows)
        if mesh is None:
            mesh = _roomy(self.problem, lattice, windows, refine)
        work = np.empty((self.work.shape[0], int(mesh.offsets[-1])))
        for row in (MASS, RATE):
            work[row] = carried(self.work[row], old, windows, refine)
        self.windows, self.mesh, self.work = windows, mesh, work


def blank_memory(atoms: int) -> Memory:
    """Nothing learnt."""
    return np.zeros((2, KEPT + 1, 3)), np.zeros((2, 5)), np.empty(atoms), np.empty(atoms)


def _roomy(problem: Problem, lattice: Lattice, windows: Windows, refine: int) -> Mesh:
    spare = int(windows.high.max() - windows.low.min()) // _ROOM
    return make_mesh(lattice, windows, refine, problem.field.phi.value, spare)


def start_windows(problem: Problem, lattice: Lattice, narrow: float) -> Windows:
    """Where the normal laws of the start have mass.

    ``narrow`` is the time at which the density is narrowest, for whose sake cells are as small.
    """
    mean, var = problem.field.start.conditional(problem.xi)
    reach = _REACH * math.sqrt(var)
    low, high = np.floor(lattice.number(mean - reach)), np.ceil(lattice.number(mean + reach))
    cells = float(np.sum(high - low))
    if not cells <= MOST_CELLS:
        other = "a wider start" if narrow == 0 else "earlier times"
        raise HdicaError(
            f"the density was not followed, because it is so narrow at t = {narrow:.6g} that it "
            f"needs {cells:.2g} cells (at most {MOST_CELLS:.0e}: choose a larger step size, a "
            f"weaker or smoother regularizer, or {other})"
        )
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
        check_deadline()
        mass = np.exp(-away / var) * dx
        mass /= np.repeat(np.add.reduceat(mass, mesh.offsets[:-1]), sizes)
        miss = float(np.sum(weights * mass * x * x)) - 1.0
        if abs(miss) < 2e-15:
            break
        var -= miss
    return np.asarray(mass)


def begin(
    problem: Problem,
    lattice: Lattice,
    windows: Windows,
    refine: int,
    reach: Windows | None = None,
) -> State:
    """The state at t = 0, with the multiplier that its formula gives.

    Each cell of the lattice is cut into ``refine``; ``reach`` are windows that hold all to come, if
    known.
    """
    field = problem.field
    if reach is None:
        mesh = _roomy(problem, lattice, windows, refine)
    else:
        whole = make_mesh(lattice, reach, refine, field.phi.value)
        mesh = whole.on(windows) or whole
    mass = start_masses(problem, mesh)
    _, x, weights = mesh.flat(problem.xi, problem.weights)
    q, tau = field.start.overlap(field.prior), float(field.schedule.value(np.array(0.0)))
    r = float(np.sum(weights * mass * x * field.phi.value(x)))
    work, clock = np.zeros((SMOOTH + 1, mass.size)), np.zeros(7)
    work[MASS] = mass
    clock[DT], clock[Q], clock[H2] = _FIRST_STEP, q, field.curvature(q, r, tau)
    return State(problem, windows, mesh, work, clock, blank_memory(problem.xi.size))
