"""One sweep backwards along a run, for any functions of the entries at any times.

The run is one of the march, every step of it remembered. A function v with v = h at time T and
-dv/ds = J'v, J the limit's linearised operator, is what a small change of the density at any time
does to <h> at T. With the noise of a step (:func:`hdica.limits.bands.solve.common_noise`),

    n Var<h>_T = v_0' Sigma_0 v_0 + int_0^T 2g <v'^2> + s N s' ds,        s = (alpha, beta, gamma).

The first integral is never taken of v'^2, which is singular where h jumps. It is

    <h^2>_T - <v^2>_0 + what Q and R add to <v^2> on the way,

here exactly so for the march itself, whose adjoint is taken step by step. Backwards from its time a
jump smooths out over the distance that noise leads in a step: steps are short just before the times
asked for and grow from there on by a factor, and on the other side, forwards, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from hdica.ingredients.formula import Formula
from hdica.ingredients.plain import Array, Indices
from hdica.ingredients.priors import Prior
from hdica.limits.mean_field.density.grid import ONE, PAST, Mesh, T, Windows
from hdica.limits.mean_field.density.march import Plan, begun, runs_of
from hdica.limits.mean_field.density.state import (
    NO_WEIGHT,
    CompiledMesh,
    Law,
    Problem,
    State,
)
from hdica.process.progress import check_deadline


class Cells(NamedTuple):
    """The cells of a stretch of steps: their mesh, windows, and the flat arrays over them."""

    mesh: Mesh
    windows: Windows
    weights: Array
    xi: Array
    x: Array
    low: Array
    high: Array
    atom: Indices
    compiled: CompiledMesh


class Step(NamedTuple):
    """One step of the march: masses before, at its middle stage and after, and what they met.

    ``met`` are Q and 2h of the two stages, ``q`` the overlap before and after, ``taus`` the step
    sizes at its ends, ``rows`` those of the law.
    """

    cells: Cells
    end: float
    length: float
    before: Array
    middle: Array
    after: Array
    met: Array
    q: Array
    taus: Array
    law: Law
    rows: Indices


def cells_of(state: State) -> Cells:
    """Flat arrays over the cells that a state uses."""
    mesh, problem = state.mesh, state.problem
    xi, x, weights = mesh.flat(problem.xi, problem.weights)
    faces = [(mesh.faces[c], mesh.faces[c.start + 1 : c.stop + 1]) for _, c in mesh.slices()]
    low, high = (np.concatenate([pair[k] for pair in faces]) for k in (0, 1))
    atom = np.repeat(np.arange(problem.xi.size), np.diff(mesh.offsets))
    return Cells(mesh, state.windows, weights, xi, x, low, high, atom, state.cells)


def remembered(problem: Problem, plan: Plan, refine: int) -> Iterator[Step]:
    """The steps of a plan, each cell and each step cut into ``refine``, one after the other."""
    from hdica.limits.mean_field.density.loop import march

    state = begun(problem, plan, refine)
    for run, ends in runs_of(plan, state):
        start = float(state.clock[T])
        cells, starts = cells_of(state), np.append(start, ends[:-1])
        law, rows = run.piece.law(start, ends)
        taus = run.piece.tau(np.stack([starts, ends], 1))
        none = np.empty((0, state.work.shape[1]))
        for k in range(ends.size):
            check_deadline()
            before, q0, memory, one = state.mass.copy(), state.q, state.memory, slice(k, k + 1)
            arrays = cells.compiled, law, memory, state.clock, state.work, none, none
            march(ends[one], rows[one], 2, *arrays)
            stages = [past[int(past[PAST, 0]) - 1, 1:] for past in memory[0]]
            yield Step(
                cells=cells,
                end=float(ends[k]),
                length=float(ends[k] - starts[k]),
                before=before,
                middle=state.work[ONE].copy(),
                after=state.mass.copy(),
                met=np.concatenate(stages),
                q=np.array([q0, state.q]),
                taus=taus[k],
                law=law,
                rows=rows[k],
            )


def restored(values: Array, new: Cells, old: Cells) -> Array:
    """Columns on the windows of the steps before: the transpose of carrying masses on.

    Mass that is folded into the end of a smaller window counts as mass there does.
    """
    refine, parts = new.mesh.refine, []
    for a in range(new.windows.low.size):
        first, end = new.mesh.offsets[a], new.mesh.offsets[a + 1]
        own = values[first:end]
        shift = (old.windows.low[a] - new.windows.low[a]) * refine
        size = (old.windows.high[a] - old.windows.low[a]) * refine
        parts.append(own[np.clip(np.arange(size) + shift, 0, end - first - 1)])
    return np.ascontiguousarray(np.concatenate(parts))


_SHARE, _LEAST, _GROWTH = 0.5, 2e-4, 2.0
"""Length of a step relative to what is left before a time; relative to that time, at least; and
relative to the step before it, at most."""


def _cut(start: float, ends: Array, times: Array, before: float) -> Iterator[float]:
    """Ends of steps as before, and more of them where they are too long."""
    t, last = start, before
    for end in ends.tolist():
        later = times[times >= end - 1e-12 * max(1.0, end)]
        while later.size:
            mark = float(later[0])
            most = max(_SHARE * (mark - t), _LEAST * max(1.0, mark))
            most = min(most, _GROWTH * last)
            if end - t <= most:
                break
            # Half of what is left rather than a step with next to nothing behind it.
            step = most if end - t > 1.5 * most else (end - t) / 2
            t, last = t + step, step
            yield t
        t, last = end, end - t
        yield end


def graded(plan: Plan, times: Array) -> Plan:
    """The plan with steps cut before the times, each of which is the end of a step."""
    runs, last = [], np.inf
    for run in plan.runs:
        ends = np.array(list(_cut(run.start, run.ends, times, last)))
        last = float(np.diff(np.append(run.start, ends))[-1])
        runs.append(run._replace(ends=ends))
    return plan._replace(runs=tuple(runs))


TOGETHER = 64
"""Columns of a block: as many as a processor's cache holds."""


@dataclass(frozen=True, eq=False)
class Target:
    """Functions h of the entries whose means at one time are asked for.

    ``values(cells)`` are their means over cells, shape (cells, functions), ``squares(cells, mass)``
    the means <h^2> at that time, shape (functions,), of ``count`` functions. Where it ``leads``, a
    solver refines until its variances are known.
    """

    time: float
    count: int
    values: Callable[[Cells], Array]
    squares: Callable[[Cells, Array], Array]
    leads: bool = True


Noise = Callable[[Array, Array], Array]
Seen = Callable[[Step, Array, Array], None]


class Swept(NamedTuple):
    """What a sweep leaves at t = 0: the columns there, and what the noise on the way adds.

    ``values`` of shape (cells, functions) are in the order of the targets, as ``way``, which is n
    Var<h> less what the start itself adds, and ``squares``, which is <h^2>.
    """

    cells: Cells
    values: Array
    way: Array
    squares: Array


def on_sphere(values: Array, squares: Array, mass: Array, cells: Cells) -> tuple[Array, Array]:
    """Functions less the multiple of x^2 that leaves <h' x> = 0, and their mean squares.

    E[x^2] does not fluctuate, so that their variance is the same; a step backwards would take it
    away at once.
    """
    radial, square = shared_of(values, mass, cells)[1] / 2, cells.x[:, None] ** 2
    weighed = (cells.weights * mass)[:, None]
    cross, fourth = np.sum(weighed * values * square, axis=0), np.sum(weighed * square**2)
    return values - radial * square, squares - 2 * radial * cross + radial**2 * fourth


def _stepped(step: Step, blocks: Sequence[Array]) -> tuple[list[Array], ...]:
    """One step backwards, by block: columns before it, at both stages, and what Q and R add."""
    from hdica.limits.bands.kernels import stages, step_back

    cells = step.cells
    factors = stages(
        step.middle, step.after, step.met, step.rows, step.length, cells.compiled, step.law,
        cells.weights,
    )  # fmt: skip
    shared = step.before, step.after, *factors, cells.compiled, cells.weights
    first, *rest = zip(*(step_back(block, *shared) for block in blocks), strict=True)
    return (list(first), *map(list, rest))


def shared_of(values: Array, mass: Array, cells: Cells) -> Array:
    """<v' xi>, <v' x> and <v''> of every column v, shape (3, functions)."""
    from hdica.limits.bands.kernels import shared

    means = np.empty((3, values.shape[1]))
    shared(means, np.ascontiguousarray(values), mass, cells.compiled, cells.weights)
    return means


def _before(ends: Array, blocks: list[Array]) -> list[Array]:
    """Columns before all others, in blocks that a processor's cache holds."""
    if blocks and ends.shape[1] + blocks[0].shape[1] <= TOGETHER:
        return [np.concatenate([ends, blocks[0]], axis=1), *blocks[1:]]
    starts = range(0, ends.shape[1], TOGETHER)
    return [np.ascontiguousarray(ends[:, k : k + TOGETHER]) for k in starts] + blocks


def _joined(blocks: Sequence[Array]) -> Array:
    return blocks[0] if len(blocks) == 1 else np.concatenate(blocks, axis=-1)


def sweep(
    steps: Sequence[Step],
    targets: Sequence[Target],
    noise: Noise | None,
    seen: Seen | None = None,
    passed: Seen | None = None,
) -> Swept:
    """Backwards along all steps, from the last target to t = 0.

    Without ``noise`` nothing is added up. ``seen(step, first, second)`` gets the columns at both
    stages of every step, the weight of what changes the rates there, and ``passed(step, end,
    start)`` those at both ends of it. Targets are in order of increasing time, none of them at
    t = 0.
    """
    left, cells = list(targets), steps[-1].cells
    blocks: list[Array] = []
    way, squares, late = np.empty(0), np.empty(0), np.empty((3, 0))
    if noise is not None:
        q, taus = (np.concatenate(rows) for rows in ([s.q for s in steps], [s.taus for s in steps]))
        noises = noise(q, taus).reshape(len(steps), 2, 3, 3)
    for number, step in reversed(list(enumerate(steps))):
        check_deadline()
        if step.cells is not cells:
            blocks = [restored(block, cells, step.cells) for block in blocks]
            cells = step.cells
            if blocks and noise is not None:
                late = _joined([shared_of(block, step.after, cells) for block in blocks])
        while left and left[-1].time == step.end:
            # Those of earlier times come first, as in the order of the targets.
            target = left.pop()
            square = target.squares(cells, step.after)
            ends, moved = on_sphere(target.values(cells), square, step.after, cells)
            blocks = _before(ends, blocks)
            way, squares = np.concatenate([moved, way]), np.concatenate([square, squares])
            if noise is not None:
                late = np.concatenate([shared_of(ends, step.after, cells), late], axis=1)
        if not blocks:
            continue
        later = blocks
        blocks, first, second, gained = _stepped(step, blocks)
        if seen is not None:
            seen(step, _joined(first), _joined(second))
        if passed is not None:
            passed(step, _joined(later), _joined(blocks))
        if noise is not None:
            early = _joined([shared_of(block, step.before, cells) for block in blocks])
            way = way + _joined(gained)
            forms = (
                np.einsum("ik,ij,jk->k", slopes, noises[number, end], slopes)
                for end, slopes in enumerate((early, late))
            )
            way, late = way + step.length / 2 * sum(forms), early
    begin = steps[0]
    weighed = (cells.weights * begin.before)[:, None]
    values = _joined(blocks)
    return Swept(cells, values, way - np.sum(weighed * values**2, axis=0), squares)


Function = Callable[[Array, Array], Array]


def overlap(xi: Array, x: Array) -> Array:
    """Xi x, whose mean is Q."""
    return xi * x


def penalty(phi: Formula) -> Function:
    """X phi(x), whose mean is R."""
    return lambda xi, x: x * phi.value(x)


def means(time: float, functions: Sequence[Function]) -> Target:
    """Means of functions h(xi, x)."""

    def values(cells: Cells) -> Array:
        rows = [np.broadcast_to(h(cells.xi, cells.x), cells.x.shape) for h in functions]
        return np.stack(rows, axis=1)

    def squares(cells: Cells, mass: Array) -> Array:
        weighed = cells.weights * mass
        return np.sum(weighed[:, None] * values(cells) ** 2, axis=0)

    return Target(time, len(functions), values, squares)


def _inside(cells: Cells, low: Array, high: Array) -> Array:
    """Which part of each cell lies between the ends of intervals, shape (cells, intervals)."""
    left, right = cells.low[:, None], cells.high[:, None]
    within = np.minimum(right, high) - np.maximum(left, low)
    return np.clip(within / (right - left), 0.0, 1.0)


def _of_shares(time: float, values: Callable[[Cells], Array], scales: Array) -> Target:
    """Means of indicators times ``scales``, whose squares are known where a cell is cut, too."""

    def squares(cells: Cells, mass: Array) -> Array:
        weighed = cells.weights * mass
        return np.sum(weighed[:, None] * values(cells), axis=0) * scales

    return Target(time, scales.size, values, squares)


def support(time: float, prior: Prior, thresholds: Sequence[float]) -> Target:
    """True and false positive rates and misclassified shares, one after the other.

    Each is an indicator over a share of the entries: its square is itself over that share. The
    share that is misclassified is one of all entries. False positives are NaN without a zero.
    """
    theta = np.asarray(thresholds, dtype=float)
    ends = np.full(theta.shape, np.inf)
    active = float(np.sum(prior.nodes.weights[prior.nodes.points != 0]))
    none = np.nan if active >= 1 - 1e-12 else 1 / (1 - active)

    def values(cells: Cells) -> Array:
        above = _inside(cells, theta, ends) + _inside(cells, -ends, -theta)
        there = (cells.xi != 0)[:, None]
        wrong = np.where(there, 1 - above, above)
        return np.concatenate([above * there / active, above * ~there * none, wrong], axis=1)

    scales = np.repeat([1 / active, none, 1.0], theta.size)
    return _of_shares(time, values, scales)


def histogram(time: float, prior: Prior, low: Array, high: Array, edges: Array) -> Target:
    """Densities in bins and distribution functions at edges of each group of entries.

    In the order (groups, bins), then (groups, edges). Of a bin with density p <h^2> is p/(width
    share), of a distribution function F/share; what their variance has beside it is smooth in x.
    """
    groups, shares = prior.group_values.size, prior.group_weights
    of_atoms = prior.groups[prior.nodes.weights >= NO_WEIGHT]  # no others have an atom
    below = np.full(edges.shape, -np.inf)

    def values(cells: Cells) -> Array:
        group = of_atoms[cells.atom % of_atoms.size]
        bins = _inside(cells, low, high) / (high - low)
        under = _inside(cells, below, edges)
        own = [(group == g)[:, None] / shares[g] for g in range(groups)]
        return np.concatenate([part * one for part in (bins, under) for one in own], axis=1)

    of_bins = np.concatenate([1 / (high - low) / shares[g] for g in range(groups)])
    of_edges = np.repeat(1 / shares, edges.size)
    target = _of_shares(time, values, np.concatenate([of_bins, of_edges]))
    # Bins may be narrower than cells, and most of their variance is <h^2>.
    return replace(target, leads=False)
