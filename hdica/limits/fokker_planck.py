"""The mean-field Fokker-Planck equation of projected rules, solved to a stated error.

Space is cut into finite volumes with the fluxes of Scharfetter and Gummel (1969), time is
marched by an L-stable method of order two, and the constraint E[x^2] = 1 is met in every stage
by its own Lagrange multiplier 2h: the formula for 2h keeps it in theory, but where h < 0 any
error in it would grow like exp(-2 int 2h dt). The coarsest level chooses its steps; finer ones
halve all cells and all steps, and the results are extrapolated.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.limits.density import Curve, Density, extrapolated
from hdica.limits.density_grid import Mesh, make_lattice
from hdica.limits.density_march import BUDGET, Plan, explore, follow
from hdica.limits.density_scales import lengths
from hdica.limits.density_stage import Problem
from hdica.limits.density_steps import State
from hdica.limits.mean_field import MeanField
from hdica.limits.romberg import observed_order, romberg

Array = NDArray[np.float64]
Functional = Callable[[Array, Array], Array]
NARROWEST = 1e-4
"""Smallest variance of the start that cells resolve at a sane cost."""
NO_WEIGHT = 1e-18
_AT_START, _LATER = 0.1, 0.25
"""Cells of the coarsest level per finest scale of the start, and of what follows."""
_LEVELS, _MOST_LEVELS = 3, 6
_NEAR = 1.3
_EVEN = 5.0


@dataclass(frozen=True, eq=False)
class DensityPath:
    """The limit at the asked times; arrays of shape (T,), NaN after a stop.

    Parameters
    ----------
    q, r
        Overlap Q = E[xi x] and R = E[x phi(x)].
    curvature, pull
        2h and b at Q and R.
    q_error, r_error
        Estimated errors of Q and R.
    functionals, functional_errors
        Means of the functions asked for, by name, and their estimated errors.
    mass_error
        Largest |mass - 1| of an atom, on the finest level.
    moment_error
        |E x^2 - 1| on the finest level.
    multiplier_error
        Difference of the extrapolated multiplier to the formula for 2h.
    densities
        One for each snapshot.
    stopped
        Empty, or one sentence that says why and when the run ended early.
    levels, cells, steps
        Levels run; cells of all atoms and steps on the finest.
    spacing
        Width of the cells of the coarsest level.
    order
        Observed order of convergence of Q (2 if all is well).
    """

    q: Array
    r: Array
    curvature: Array
    pull: Array
    q_error: Array
    r_error: Array
    functionals: dict[str, Array]
    functional_errors: dict[str, Array]
    mass_error: Array
    moment_error: Array
    multiplier_error: Array
    densities: tuple[Density, ...]
    stopped: str
    levels: int
    cells: int
    steps: int
    spacing: float
    order: float


@dataclass
class Record:
    """What one level leaves after every step of the coarsest one, and at the snapshots.

    ``rows`` hold tau, Q, R, 2h, the two errors and the functionals at ``times``.
    """

    problem: Problem
    snapshots: frozenset[float]
    functionals: Mapping[str, Functional]
    times: list[float] = field(default_factory=list)
    rows: list[list[float]] = field(default_factory=list)
    kept: dict[float, tuple[Mesh, Array]] = field(default_factory=dict)
    cells: int = 0
    _values: tuple[Mesh, list[Array]] | None = None

    def _integrands(self, mesh: Mesh) -> list[Array]:
        """What to sum against the masses: the same until the mesh changes."""
        if self._values is None or self._values[0] is not mesh:
            xi, x, weights = mesh.flat(self.problem.xi, self.problem.weights)
            phi = self.problem.field.phi.value
            values = [xi * x, x * phi(x), x * x, *(h(xi, x) for h in self.functionals.values())]
            self._values = (mesh, [np.asarray(weights * v) for v in values])
        return self._values[1]

    def __call__(self, t: float, tau: float, state: State) -> None:
        """Record one time."""
        mass = state.mass
        q, r, square, *others = [float(np.sum(mass * v)) for v in self._integrands(state.mesh)]
        each = np.add.reduceat(mass, state.mesh.offsets[:-1])
        worst = float(np.max(np.abs(each - 1)))
        self.times.append(t)
        self.rows.append([tau, q, r, state.h2, worst, abs(square - 1), *others])
        self.cells = max(self.cells, mass.size)
        if t in self.snapshots:
            self.kept[t] = (state.mesh, mass)


def start_refusal(field: MeanField) -> str:
    """Empty if cells can resolve the start, else the sentence that says why not."""
    _, var = field.start.conditional(field.prior.nodes.points)
    if var >= NARROWEST:
        return ""
    return (
        f"start {field.start.label} gives x the variance {var:.3g} at a given xi, which the "
        f"method 'pde' cannot resolve (allowed: at least {NARROWEST:g}; the method "
        "'particles' takes any)"
    )


def _problem(field: MeanField, factor: float) -> tuple[Problem, NDArray[np.bool_]]:
    """The nodes that count, and which of the prior's they are."""
    nodes = field.prior.nodes
    counts = nodes.weights >= NO_WEIGHT
    refusal = start_refusal(field)
    if refusal:
        raise HdicaError(refusal)
    points = np.ascontiguousarray(nodes.points[counts], dtype=float)
    weights = np.ascontiguousarray(nodes.weights[counts], dtype=float)
    return Problem(field, points, weights, factor), counts


def _stretch(problem: Problem) -> float:
    """Distance within which cells hardly widen: it holds the atoms that matter to Q."""
    matters = problem.weights * problem.xi**2 > 1e-3
    return _EVEN + 1.5 * float(np.abs(problem.xi[matters]).max())


def _explored(problem: Problem, times: Array, record: Callable[[], Record]) -> tuple[Plan, Record]:
    """The coarsest level, its cells made finer until they resolve all that the run meets."""
    field = problem.field
    size = lengths(field.phi)

    def scale(state: State, tau: float) -> float:
        g = field.diffusion(state.q, tau)
        return size.finest(g, field.strength(tau), state.h2)

    _, var = field.start.conditional(problem.xi)
    q0, tau0 = field.start.overlap(field.prior), float(field.schedule.value(np.array(0.0)))
    g0 = field.diffusion(q0, tau0)
    spacing = _AT_START * min(math.sqrt(var), size.finest(g0, field.strength(tau0), 0.0))
    for _ in range(4):
        seen = record()
        lattice = make_lattice(field.phi.kinks, spacing, _stretch(problem))
        plan = explore(problem, lattice, times, seen, scale)
        if spacing <= 1.1 * _LATER * plan.finest:
            break
        spacing = _LATER * plan.finest
    return plan, seen


def _levels(
    problem: Problem, times: Array, tolerance: float, record: Callable[[], Record]
) -> tuple[Plan, list[Record]]:
    """As many levels as the tolerance on Q asks for and the budget allows."""
    plan, first = _explored(problem, times, record)
    records = [first]
    spent = float(sum(leg.windows.cells for leg in plan.legs))
    while len(records) < _MOST_LEVELS:
        if len(records) >= _LEVELS:
            _, error = romberg(np.array([r.rows for r in records])[:, :, 1])
            affordable = spent * 4 ** len(records) <= BUDGET * 4**_LEVELS
            if float(np.max(error)) <= tolerance or not affordable:
                break
        records.append(record())
        follow(problem, plan, times, 2 ** (len(records) - 1), records[-1])
    return plan, records


def _curve(mesh: Mesh, mass: Array, cells: slice, kinks: tuple[float, ...]) -> Curve:
    """Density of one atom on one level; mass too small for a logarithm becomes 1e-300."""
    faces, first = mesh.faces[cells.start : cells.stop + 1], mesh.first + cells.start
    at_kinks = mesh.lattice.number(np.array(kinks)) * mesh.refine - first
    breaks = [int(k) for k in np.rint(at_kinks) if 0 < k < mass.size]
    log = np.log(np.maximum(mass / mesh.dx[cells], 1e-300))
    return Curve(faces, log, tuple(breaks), lambda x: mesh.lattice.number(x) * mesh.refine - first)


def _curves(levels: list[tuple[Mesh, Array]], kinks: tuple[float, ...]) -> list[Curve]:
    """Density of every atom at one time, extrapolated over the levels."""
    found = [
        [_curve(mesh, mass[part], cells, kinks) for part, cells in mesh.slices()]
        for mesh, mass in levels
    ]
    fine = levels[-1][0]
    return [
        extrapolated([level[a] for level in found], fine.x[cells])
        for a, (_, cells) in enumerate(fine.slices())
    ]


def _density(
    t: float, field: MeanField, counts: NDArray[np.bool_], records: list[Record]
) -> Density:
    nodes = field.prior.nodes
    if t not in records[-1].kept:
        return Density(nodes.points, nodes.weights, ())
    found = iter(_curves([r.kept[t] for r in records], field.phi.kinks))
    curves = tuple(next(found) if here else None for here in counts.tolist())
    return Density(nodes.points, nodes.weights, curves)


def solve(
    field: MeanField,
    times: Array,
    *,
    snapshots: Sequence[float] = (),
    functionals: Mapping[str, Functional] | None = None,
    tolerance: float = 1e-7,
    factor: float = 1.0,
) -> DensityPath:
    """Solve the limit (Wang and Lu 2017, (10)-(14); Wang and Lu 2016, (8)-(11)).

    Parameters
    ----------
    field
        The equations; P(x | xi) is solved at each node of its prior.
    times
        Shape (T,), increasing, in samples per dimension; may begin with 0.
    snapshots
        Times, among ``times``, at which the densities are kept.
    functionals
        Name and h(xi, x), vectorised, of means E[h(xi, x)] to keep at every time.
    tolerance
        Error of Q at which refinement ends; it ends earlier, with the error reached, where a
        further level would cost more than about a minute.
    factor
        Multiplies the whole right-hand side; 1.02 is a limit that is wrong by 2 %.

    Raises
    ------
    HdicaError
        If the start has no density given xi, or one too narrow for cells.
    """
    problem, counts = _problem(field, factor)
    functionals = dict(functionals or {})
    times = np.asarray(times, dtype=float)
    kept = frozenset(map(float, snapshots))
    plan, records = _levels(problem, times, tolerance, lambda: Record(problem, kept, functionals))
    densities = tuple(_density(float(t), field, counts, records) for t in snapshots)
    return _path(field, times, plan, records, list(functionals), densities)


def _enveloped(error: Array, times: Array) -> Array:
    """The largest error nearby: an estimate that changes sign is no error of zero.

    Parameters
    ----------
    error
        Shape (times, quantities).
    times
        Shape (times,), increasing.
    """
    low = np.searchsorted(times, times / _NEAR)
    high = np.searchsorted(times, times * _NEAR, side="right")
    pairs = zip(low.tolist(), high.tolist(), strict=True)
    return np.array([error[i:j].max(axis=0) for i, j in pairs])


def _formulas(field: MeanField, rows: Array) -> Array:
    """2h and b from tau, Q and R in the first columns, shape (2, T)."""
    found = np.full((2, len(rows)), np.nan)
    for i, (tau, q, r) in enumerate(rows[:, :3].tolist()):
        if math.isfinite(q):
            found[:, i] = field.curvature(q, r, tau), field.pull(q, tau)
    return found


def _path(
    field: MeanField,
    times: Array,
    plan: Plan,
    records: list[Record],
    names: list[str],
    densities: tuple[Density, ...],
) -> DensityPath:
    levels = np.array([r.rows for r in records])
    reached = np.array(records[0].times)
    best, error = romberg(levels)
    table = np.full((3, times.size, best.shape[1]), np.nan)
    chosen = np.isin(times, reached)
    where = np.searchsorted(reached, times[chosen])
    table[:, chosen] = np.array([best, _enveloped(error, reached), levels[-1]])[:, where]
    curvature, pull = _formulas(field, table[0])
    return DensityPath(
        q=table[0, :, 1],
        r=table[0, :, 2],
        curvature=curvature,
        pull=pull,
        q_error=table[1, :, 1],
        r_error=table[1, :, 2],
        functionals=dict(zip(names, table[0, :, 6:].T, strict=True)),
        functional_errors=dict(zip(names, table[1, :, 6:].T, strict=True)),
        mass_error=table[2, :, 4],
        moment_error=table[2, :, 5],
        multiplier_error=np.abs(table[0, :, 3] - curvature),
        densities=densities,
        stopped=plan.stopped,
        levels=len(records),
        cells=records[-1].cells,
        steps=len(plan.legs) * 2 ** (len(records) - 1),
        spacing=plan.lattice.spacing,
        order=observed_order(levels[:, :, 1]),
    )
