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
from dataclasses import replace
from functools import lru_cache, partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hdica.ingredients.formula import Formula
from hdica.ingredients.plain import Array
from hdica.limits.mean_field.density import state
from hdica.limits.mean_field.density.grid import Curve, Density, Mesh, extrapolated, make_lattice
from hdica.limits.mean_field.density.march import BUDGET, Plan, Record, explore, follow
from hdica.limits.mean_field.family import MeanField
from hdica.limits.numerics.solvers import romberg
from hdica.process.progress import tell

_REACH = 4.0
"""Where most of a law with E[x^2] = 1 lies."""
_SIDE = 1e-9


class Lengths(NamedTuple):
    """What the regularizer contributes.

    ``jump`` is half its largest: near it the density decays like exp(-B jump |x|/g); ``slope`` its
    largest positive one elsewhere, which narrows peaks as 2h does; ``own`` its own length, range
    over slope, infinite for a function that is linear by pieces.
    """

    jump: float
    slope: float
    own: float

    def finest(self, g: float, strength: float, h2: float) -> float:
        """The finest length at one time."""
        steep, curved = strength * self.jump, h2 + strength * self.slope
        of_jump = g / steep if steep > 0 else math.inf
        return min(self.own, of_jump, math.sqrt(g / curved) if curved > 0 else math.inf)


@lru_cache(maxsize=64)
def lengths(phi: Formula) -> Lengths:
    """Lengths of a regularizer, by sampling it between its kinks."""
    kinks = [k for k in phi.kinks if abs(k) < _REACH]
    sides = np.array(kinks)
    jumps = np.abs(phi.value(sides + _SIDE) - phi.value(sides - _SIDE)) / 2
    slope, own = 0.0, math.inf
    edges = np.array([-_REACH, *kinks, _REACH])
    for low, high in pairwise(edges.tolist()):
        x = np.linspace(low + _SIDE, high - _SIDE, 2001)
        value = phi.value(x)
        rise = np.diff(value) / np.diff(x)
        slope = max(slope, float(rise.max()))
        if np.ptp(rise) > 1e-6 * (np.abs(rise).max() + 1e-300):
            own = min(own, float(np.ptp(value) / np.abs(rise).max()))
    return Lengths(float(jumps.max(initial=0.0)), slope, own)


_AT_START, _LATER = 0.1, 0.25
"""Cells of the coarsest level per finest scale of the start, and of what follows."""
_LEVELS, _MOST_LEVELS = 3, 6
_LEVEL = f"density: refinement {{}} of at most {_MOST_LEVELS}"
_STEP_ERROR = 2e-6
"""Local error of a step; the global one is extrapolated away."""
_FINE, _COARSEST = 1e-7, 3.0
"""Tolerance that asks for the widths above, and the largest factor on them."""
_NEAR, _NEXT = 2.0, 2
"""An error is the largest within this factor in time, and of so many steps on each side."""
_EVEN = 5.0
_CLOSEST, _MOST_CUTS = 1e-5, 400
"""Distance of faces at kinks at least, and how many a lattice takes."""


class DensityPath(NamedTuple):
    """The limit at the asked times; arrays of shape (T,), NaN after a stop.

    ``q``, ``r``, ``square``: overlap Q = E[xi x], R = E[x phi(x)] and P = E[x^2], which is 1 where
    a rule keeps the norm; ``curvature``, ``pull``: 2h and b there;
    ``functionals``: means of the functions asked for, by name; each with its estimated error.
    ``mass_error`` and ``moment_error``: largest |mass - 1| of an atom and |E x^2 - 1|, on the
    finest level; ``multiplier_error``: difference of the extrapolated multiplier to the formula for
    2h. ``densities``: one for each snapshot. ``stopped``: empty, or one sentence that says why and
    when the run ended early. ``levels``: how many were run; ``cells`` of all atoms and ``steps`` on
    the finest.
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
    square: Array
    square_error: Array
    stopped: str = ""
    levels: int = 1
    cells: int = 0
    steps: int = 0


def _explored(
    problem: state.Problem,
    times: Array,
    tolerance: float,
    record: Callable[[], Record],
    faces: tuple[float, ...],
) -> tuple[Plan, Record]:
    """The coarsest level, its cells made finer until they resolve all that the run meets."""
    # Cells and steps whose extrapolated error, of order h^4, is the tolerance.
    coarse = min(_COARSEST, max(1.0, (tolerance / _FINE) ** 0.25))
    field = problem.field
    size = lengths(field.phi)
    _, var = field.start.conditional(problem.xi)
    tau0 = field.schedule.at(0.0)
    _, g0, _ = field.coefficients(field.q0, field.start.square, tau0)
    scale = min(math.sqrt(var), size.finest(g0, field.strength(tau0), 0.0))
    spacing, narrow = _AT_START * coarse * scale, 0.0
    # Within this distance cells hardly widen: it holds the atoms that matter to Q.
    matters = problem.weights * problem.xi**2 > 1e-3
    stretch = _EVEN + 1.5 * np.abs(problem.xi[matters]).max()
    for _ in range(4):
        tell(lambda: _LEVEL.format(1))
        seen = record()
        lattice = make_lattice(faces, spacing, stretch)
        windows = state.start_windows(problem, lattice, narrow)
        plan = explore(problem, lattice, times, seen, _STEP_ERROR * coarse**4, windows)
        _check_range(field, seen.rows[:, 3])
        scales = []
        for tau, q, _, other in seen.rows[:, :4].tolist():
            _, g, h2 = field.coefficients(q, other, tau)
            scales.append(size.finest(g, field.strength(tau), h2))
        finest = min(scales)
        narrow = float(seen.times[scales.index(finest)])
        if spacing <= 1.1 * _LATER * coarse * finest:
            break
        spacing = _LATER * coarse * finest
    return plan, seen


class _Beyond(Exception):
    """P leaves the range for which b, g and 2h are known."""


def _check_range(field: MeanField, squares: Array) -> None:
    planes = field.planes
    if planes is not None and not planes.low < squares.min() <= squares.max() < planes.high:
        raise _Beyond


def coarse(problem: state.Problem, times: Array, tolerance: float) -> tuple[Plan, Record]:
    """The coarsest level alone: its steps and cells, and what it meets at each of them."""
    none, kinks = np.empty(0), problem.field.phi.kinks
    return _explored(problem, times, tolerance, lambda: Record(problem, none, {}), kinks)


def _levels(
    problem: state.Problem,
    times: Array,
    tolerance: float,
    record: Callable[[], Record],
    faces: tuple[float, ...],
) -> tuple[Plan, list[Record]]:
    """As many levels as the tolerance on Q asks for and the budget allows."""
    plan, first = _explored(problem, times, tolerance, record, faces)
    records = [first]
    if problem.moves:
        # The exploration mixes only after each step: its plan is followed with halves around it.
        records = [record()]
        follow(problem, plan, 1, records[0])
    while len(records) < _MOST_LEVELS:
        if len(records) >= _LEVELS:
            _, error = romberg(np.array([r.rows for r in records])[:, :, 1])
            affordable = plan.cost * 4 ** len(records) <= BUDGET * 4**_LEVELS
            if float(np.max(error)) <= tolerance or not affordable:
                break
        records.append(record())
        tell(lambda: _LEVEL.format(len(records)))
        follow(problem, plan, 2 ** (len(records) - 1), records[-1])
    return plan, records


def _curve(mesh: Mesh, mass: Array, cells: slice, kinks: tuple[float, ...]) -> Curve:
    """Density of one atom on one level; mass too small for a logarithm becomes 1e-300."""
    faces, first = mesh.faces[cells.start : cells.stop + 1], mesh.first + cells.start
    at_kinks = mesh.lattice.number(np.array(kinks)) * mesh.refine - first
    breaks = [int(k) for k in np.rint(at_kinks) if 0 < k < mass.size]
    log = np.log(np.maximum(mass / mesh.dx[cells], 1e-300))
    return Curve(faces, log, tuple(breaks), lambda x: mesh.lattice.number(x) * mesh.refine - first)


def _density(t: float, field: MeanField, places: state.Places, records: list[Record]) -> Density:
    nodes = field.prior.nodes
    if t not in records[-1].masses:
        return Density(*nodes, ())
    levels = [r.masses[t] for r in records]
    curves = [
        [_curve(mesh, mass[part], cells, field.phi.kinks) for part, cells in mesh.slices()]
        for mesh, mass in levels
    ]
    fine = levels[-1][0]
    own = [
        extrapolated([level[a] for level in curves], fine.x[cells])
        for a, (_, cells) in enumerate(fine.slices())
    ]
    images = {a: own[a].mirrored() for a in set(places.atom[places.flipped].tolist())}
    where = zip(places.atom.tolist(), places.flipped.tolist(), strict=True)
    at_nodes = tuple(None if a < 0 else (images[a] if flip else own[a]) for a, flip in where)
    return Density(*nodes, at_nodes)


_WIDER = 4.0
"""How a range of P is widened."""


def solve(
    field: MeanField,
    times: Array,
    *,
    snapshots: Sequence[float] = (),
    functionals: Mapping[str, state.Functional] | None = None,
    cuts: Mapping[str, Sequence[float]] | None = None,
    tolerance: float = 1e-7,
) -> DensityPath:
    """Solve the limit (Wang and Lu 2017, (10)-(14); Wang and Lu 2016, (8)-(11)).

    At increasing times, in samples per dimension, which may begin with 0; densities P(x | xi) at
    each node of the prior are kept at the snapshots, some of these times, and means E[h(xi, x)] of
    the functionals, vectorised, at every time. Refinement ends at the tolerance as error of Q, or
    earlier, with the error reached, where a further level would cost more than about a minute.
    Functionals that have ``cuts``, where they or their slopes jump in x, are averaged on a lattice
    that has faces there, too, and the rest of the result is what it is without them.
    """
    while True:
        try:
            return _solved(field, times, snapshots, functionals or {}, cuts or {}, tolerance)
        except _Beyond:
            planes = field.planes
            assert planes is not None
            wider = planes.between(planes.low / _WIDER, planes.high * _WIDER)
            field = replace(field, planes=wider)


def _solved(
    field: MeanField,
    times: Array,
    snapshots: Sequence[float],
    functionals: Mapping[str, state.Functional],
    cuts: Mapping[str, Sequence[float]],
    tolerance: float,
) -> DensityPath:
    problem, places = state.posed(field)
    functionals, own = dict(functionals or {}), field.phi.kinks
    times = np.asarray(times, dtype=float)
    jumps = cuts
    rough = {k: _apart(own, jumps[k], problem.mirrored) for k in functionals if k in jumps}
    rough = {k: faces for k, faces in rough.items() if own != faces and len(faces) <= _MOST_CUTS}
    smooth = {k: h for k, h in functionals.items() if k not in rough}
    shown = np.array(snapshots, dtype=float)
    plan, records = _levels(problem, times, tolerance, lambda: Record(problem, shown, smooth), own)
    densities = tuple(_density(t, field, places, records) for t in shown.tolist())
    path = _path(field, times, plan, records, list(smooth), densities)
    for name, faces in rough.items():
        seen = partial(Record, problem, shown[:0], {name: functionals[name]})
        plan, records = _levels(problem, times, tolerance, seen, faces)
        other = _path(field, times, plan, records, [name], ())
        means = path.functionals | other.functionals
        errors = path.functional_errors | other.functional_errors
        path = path._replace(functionals=means, functional_errors=errors)
    return path


def _apart(own: tuple[float, ...], cuts: Sequence[float], mirrored: bool) -> tuple[float, ...]:
    """Kinks of phi and of a functional, and of its image, as far as cells tell them apart."""
    faces = list(own)
    for cut in sorted({*cuts, *(-c for c in cuts if mirrored)}):
        if all(abs(cut - other) >= _CLOSEST for other in faces):
            faces.append(float(cut))
    return tuple(sorted(faces))


def enveloped(error: Array, times: Array) -> Array:
    """The largest error nearby, shape (times, quantities): one that changes sign is not zero."""
    index = np.arange(times.size)
    low = np.minimum(np.searchsorted(times, times / _NEAR), np.maximum(index - _NEXT, 1))
    high = np.maximum(np.searchsorted(times, times * _NEAR, side="right"), index + _NEXT + 1)
    low[:1], high[:1] = 0, 1  # the start itself is known
    pairs = zip(low.tolist(), high.tolist(), strict=True)
    return np.array([error[i:j].max(axis=0) for i, j in pairs])


def _path(
    field: MeanField,
    times: Array,
    plan: Plan,
    records: list[Record],
    names: list[str],
    densities: tuple[Density, ...],
) -> DensityPath:
    levels = np.array([r.rows for r in records])
    reached = records[0].times
    best, error = romberg(levels)
    table = np.full((3, times.size, best.shape[1]), np.nan)
    chosen = np.isin(times, reached)
    where = np.searchsorted(reached, times[chosen])
    table[:, chosen] = np.array([best, enveloped(error, reached), levels[-1]])[:, where]
    curvature, pull = np.full((2, times.size), np.nan)
    for i, (tau, q, r, other) in enumerate(table[0, :, :4].tolist()):
        if math.isfinite(q):
            pull[i], _, curvature[i] = field.coefficients(q, other, tau)
            if field.planes is None:
                curvature[i] = field.curvature(q, r, tau)
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
        multiplier_error=np.abs(table[0, :, 3] - curvature) * (field.planes is None),
        square=table[0, :, 3] if field.planes else np.where(chosen, 1.0, np.nan),
        square_error=table[1, :, 3] if field.planes else np.zeros(times.size),
        densities=densities,
        stopped=plan.stopped,
        levels=len(records),
        cells=records[-1].cells,
        steps=plan.steps * 2 ** (len(records) - 1),
    )
