"""What the Fokker-Planck solver solves, and where a run of it is, in arrays for compiled lines.

It solves a mean field at the nodes of its prior that count. Where the feature moves, densities
relax to their mixture between steps of the march: entries that change places mix the laws at all
xi, so that at the rate delta dP(x | xi)/dt gains delta (mean of P(x | xi') over xi' - P(x | xi)).
Alone, that is solved exactly: over dt each law keeps the share exp(-delta dt) of itself and takes
the rest from the mixture, which stays. With half of it before and half after each step (Strang
1968) the march keeps order two, its errors have the expansion that is extrapolated, masses stay
positive, and neither they nor E[x^2] and R change. All atoms use the same cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array, Indices, Mask
from hdica.ingredients.priors import Prior
from hdica.ingredients.quadrature import dot
from hdica.ingredients.starts import NOT_NORMAL, Start
from hdica.limits.mean_field.density import grid as at
from hdica.limits.mean_field.density.grid import Lattice, Mesh, Windows, carried, make_mesh
from hdica.limits.mean_field.family import Coefficient, MeanField, Scaled
from hdica.limits.numerics.series import adaptive, packed, times
from hdica.process.progress import check_deadline

Law = tuple[Array, Array, Array, Array]
"""Coefficients as compiled code takes them: see :func:`tabulated`."""
Functional = Callable[[Array, Array], Array]
NARROWEST = 1e-4
"""Smallest variance of the start that cells resolve at a sane cost."""
NO_WEIGHT = 1e-18


@lru_cache(maxsize=32)
def _interpolation(points: int) -> tuple[tuple[float, ...], Array]:
    """Chebyshev points, and the matrix that takes values there to coefficients."""
    angle = np.pi * (np.arange(points) + 0.5) / points
    matrix = np.cos(np.arange(points)[:, None] * angle) * (2 / points)
    matrix[0] /= 2
    return tuple(np.cos(angle).tolist()), matrix


def _rows(coefficient: Coefficient, taus: Array) -> Array:
    """B or g at each step size as compiled code takes it, shape (step sizes, numbers)."""
    if isinstance(coefficient, Scaled):
        return times(packed(coefficient.function), taus[:, None] ** coefficient.power)
    first, _ = adaptive(lambda q: float(coefficient(q, float(taus[0]))))
    points, matrix = _interpolation(max(8, 2 * first.coef.size))
    values = [[float(coefficient(q, tau)) for q in points] for tau in taus.tolist()]
    # Sums and no product of matrices, whose rounding may follow the number of BLAS threads.
    series = [np.sum(matrix * np.array(row), axis=1) for row in values]
    return np.array([np.append(0.0, row) for row in series])


def tabulated(field: MeanField, taus: Array) -> Law:
    """The law at S step sizes: b and g as packed functions, a row each, and B, shape (S,).

    Last comes 2h, of a rule that does not keep the norm, else nothing.
    """
    strength, planes = np.array([float(field.strength(tau)) for tau in taus.tolist()]), field.planes
    if planes is not None:
        pull, noise = (np.tile(one, (taus.size, 1)) for one in (planes.pull, planes.diffusion))
        return pull, noise, strength, planes.curvature
    return _rows(field.pull, taus), _rows(field.diffusion, taus), strength, np.empty(0)


@dataclass(frozen=True, eq=False)
class Problem:
    """A mean field at the nodes of its prior that count, and their weights, shape (atoms,).

    ``mirrored`` says whether P(-x | -xi) = P(x | xi), and the nodes stand for their mirror images
    too.
    """

    field: MeanField
    xi: Array
    weights: Array
    mirrored: bool = False

    @property
    def moves(self) -> bool:
        """Whether the laws at all nodes mix, because the feature moves."""
        return self.field.motion.moves

    @cached_property
    def constant_law(self) -> Law | None:
        """The law of all times, or None if the step size varies."""
        tau = self.field.schedule.constant
        return None if tau is None else tabulated(self.field, np.array([tau]))

    def law(self, taus: Array) -> tuple[Law, Indices]:
        """The law at the step sizes that occur, and the row of each of ``taus``."""
        if self.constant_law is not None:
            return self.constant_law, np.zeros(taus.shape, dtype=np.int64)
        distinct, rows = np.unique(taus, return_inverse=True)
        return tabulated(self.field, distinct), rows.reshape(taus.shape).astype(np.int64)

    def integrands(self, mesh: Mesh, functionals: Mapping[str, Functional]) -> Array:
        """What to sum against the masses for each functional, shape (functionals, cells)."""
        if not functionals:
            return np.empty((0, mesh.offsets[-1]))
        xi, x, weights = mesh.flat(self.xi, self.weights)
        rows = [np.broadcast_to(h(xi, x), x.shape) for h in functionals.values()]
        if self.mirrored:
            images = [np.broadcast_to(h(-xi, -x), x.shape) for h in functionals.values()]
            rows = [(row + image) / 2 for row, image in zip(rows, images, strict=True)]
        return np.array([weights * row for row in rows])


class Places(NamedTuple):
    """Atom of the problem, or of its mirror image, at each node of the prior; -1 without weight."""

    atom: Indices
    flipped: Mask


def start_refusal(start: Start, prior: Prior) -> str:
    """Empty if cells can resolve the start, else the sentence that says why not."""
    if start.length is not None:
        return f"start {NOT_NORMAL}"
    _, var = start.conditional(prior.nodes.points)
    if var >= NARROWEST:
        return ""
    return (
        f"start {start.label} gives x the variance {var:.3g} at a given xi, which the "
        f"method 'pde' cannot resolve (allowed: at least {NARROWEST:g}; the method "
        "'particles' takes any)"
    )


def _symmetric(field: MeanField, xi: Array, weights: Array) -> bool:
    """Whether the limit is the same for -xi and -x: the prior, the start and phi say so."""
    order = np.argsort(xi)
    points, shares = xi[order], weights[order]
    mean, _ = field.start.conditional(points)
    even = np.array_equal(points, -points[::-1]) and np.array_equal(shares, shares[::-1])
    return bool(even and np.array_equal(mean, -mean[::-1]) and field.phi.is_odd)


def posed(field: MeanField) -> tuple[Problem, Places]:
    """The problem of a mean field, with half of its nodes where the other half mirrors them."""
    refusal = start_refusal(field.start, field.prior)
    if refusal:
        raise HdicaError(refusal)
    points, weights = field.prior.nodes
    counts = weights >= NO_WEIGHT
    mirrored = not field.motion.moves and _symmetric(field, points[counts], weights[counts])
    own = counts & (points >= 0) if mirrored else counts
    atom = np.full(points.size, -1)
    atom[own] = np.arange(np.count_nonzero(own))
    flipped = counts & ~own
    number = dict(zip(points[own].tolist(), atom[own].tolist(), strict=True))
    atom[flipped] = [number[-xi] for xi in points[flipped].tolist()]
    share = np.where(mirrored & (points > 0), 2.0, 1.0) * weights
    return Problem(field, points[own], share[own], mirrored), Places(atom, flipped)


Memory = tuple[Array, Array, Array, Array]
CompiledMesh = tuple[Array, Indices, Indices, Array, Array]
"""Table, offsets and lows of a mesh, nodes and weights of the prior, for compiled code."""
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
    time, step to try, Q, 2h or P, whether the rate is known, cost so far, next mark. ``memory``:
    what earlier steps taught about the stages, and room to work.
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
        return self.work[at.MASS]

    @property
    def q(self) -> float:
        """Overlap."""
        return float(self.clock[at.Q])

    @property
    def other(self) -> float:
        """2h of a rule that keeps the norm, else P = E[x^2]."""
        return float(self.clock[at.OTHER])

    @property
    def goal(self) -> float:
        """What E[x^2] is to be."""
        return self.other if self.problem.field.planes else 1.0

    @property
    def cells(self) -> CompiledMesh:
        """The mesh and the nodes."""
        mesh, problem = self.mesh, self.problem
        return mesh.table, mesh.offsets, mesh.lows, problem.xi, problem.weights

    def forget(self) -> None:
        """A new piece of the step size begins, of which nothing is known."""
        self.memory = blank_memory(self.problem.xi.size)
        self.clock[at.RATED] = 0.0

    def move(self, windows: Windows) -> None:
        """Go on with other windows."""
        old, refine = self.windows, self.mesh.refine
        if np.array_equal(old.low, windows.low) and np.array_equal(old.high, windows.high):
            return
        mesh = self.mesh.on(windows) or _roomy(self.problem, self.mesh.lattice, windows, refine)
        work = np.empty((self.work.shape[0], mesh.offsets[-1]))
        for row in (at.MASS, at.RATE):
            work[row] = carried(self.work[row], old, windows, refine)
        self.windows, self.mesh, self.work = windows, mesh, work


def blank_memory(atoms: int) -> Memory:
    """A memory that has learnt nothing."""
    return np.zeros((2, at.PAST + 1, 3)), np.zeros((2, 5)), np.empty(atoms), np.empty(atoms)


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
    """Cell masses of the normal laws of the start, with its E[x^2] to rounding.

    The variance is corrected by O(dx^2), because the sum of x^2 over cells is not its integral.
    """
    mean, var = problem.field.start.conditional(problem.xi)
    square, sizes = problem.field.start.square, np.diff(mesh.offsets)
    _, x, weights = mesh.flat(problem.xi, problem.weights)
    dx = np.concatenate([mesh.dx[cells] for _, cells in mesh.slices()])
    away = (x - np.repeat(mean, sizes)) ** 2 / 2
    for _ in range(20):
        check_deadline()
        mass = np.exp(-away / var) * dx
        mass /= np.repeat(np.add.reduceat(mass, mesh.offsets[:-1]), sizes)
        miss = dot(weights * mass * x, x) - square
        if abs(miss) < 2e-15 * square:
            break
        var -= miss
    return mass


def begin(
    problem: Problem,
    lattice: Lattice,
    windows: Windows,
    refine: int,
    reach: Windows | None = None,
) -> State:
    """The state at t = 0, with the multiplier that its formula gives, or with its P.

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
    q, tau = field.q0, field.schedule.at(0.0)
    r = dot(weights * mass * x, field.phi.value(x))
    work, clock = np.zeros((at.SMOOTH + 1, mass.size)), np.zeros(7)
    work[at.MASS] = mass
    clock[at.DT], clock[at.Q], clock[at.OTHER] = _FIRST_STEP, q, field.other(q, r, tau)
    return State(problem, windows, mesh, work, clock, blank_memory(problem.xi.size))


LONGEST = 0.5
"""Step of the coarsest level in units of 1/delta."""


def together(windows: Windows) -> Windows:
    """The cells that any atom uses, for all of them."""
    low, high = np.full_like(windows.low, windows.low.min()), windows.high.max()
    return Windows(low, np.full_like(windows.high, high))


def mix(state: State, share: float) -> None:
    """Each atom's law gives a share of itself for as much of the mixture."""
    weights = state.problem.weights / np.sum(state.problem.weights)
    laws = state.work[at.MASS].reshape(weights.size, -1)
    # Sums and no product of matrices, whose rounding may follow the number of BLAS threads.
    mixture = np.sum(weights[:, None] * laws, axis=0)
    laws *= 1 - share
    laws += share * mixture
    low, size = state.mesh.lows[0], state.mesh.offsets[1]
    first = dot(mixture, state.mesh.x[low : low + size])
    mean = dot(weights, state.problem.xi) * first
    state.clock[at.Q] += share * (mean - state.clock[at.Q])


def relax(state: State, dt: float) -> None:
    """What exchanges do to the laws over a time."""
    rate = state.problem.field.motion.rate
    if rate > 0:
        mix(state, -math.expm1(-rate * dt))


def jump(state: State, t: float) -> None:
    """What a jump of the feature at this time does to the laws, if there is one."""
    motion = state.problem.field.motion
    if t > 0 and t in motion.jumps:
        mix(state, motion.share)
