"""A run of the march, every step of it remembered: what a sweep backwards goes along."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.limits.mean_field.density.grid import Mesh, Windows
from hdica.limits.mean_field.density.layout import GAMMA, KEPT, MASS, ONE, Q, T
from hdica.limits.mean_field.density.march import Plan, cut
from hdica.limits.mean_field.density.problem import Law, Problem
from hdica.limits.mean_field.density.state import State, begin
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of a stretch of steps: their mesh, windows, and the flat arrays over them."""

    mesh: Mesh
    windows: Windows
    weights: Array
    xi: Array
    x: Array
    low: Array
    high: Array
    atom: NDArray[np.int64]
    compiled: tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Step:
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
    rows: NDArray[np.int64]


def cells_of(state: State) -> Cells:
    """Flat arrays over the cells that a state uses."""
    mesh, problem = state.mesh, state.problem
    xi, x, weights = mesh.flat(problem.xi, problem.weights)
    faces = [(mesh.faces[c], mesh.faces[c.start + 1 : c.stop + 1]) for _, c in mesh.slices()]
    low, high = (np.concatenate([pair[k] for pair in faces]) for k in (0, 1))
    atom = np.repeat(np.arange(problem.xi.size), np.diff(mesh.offsets))
    return Cells(mesh, state.windows, weights, xi, x, low, high, atom, state.cells)


def begun(problem: Problem, plan: Plan, refine: int) -> State:
    """The state at t = 0 on the cells of a plan, each cut into ``refine``."""
    return begin(problem, plan.lattice, plan.windows, refine, plan.reach)


def remembered(problem: Problem, plan: Plan, refine: int) -> Iterator[Step]:
    """The steps of a plan, each cell and each step cut into ``refine``, one after the other."""
    state, piece = begun(problem, plan, refine), None
    for run in plan.runs:
        if run.piece is not piece:
            state.forget()
            piece = run.piece
        state.move(run.windows)
        cells, ends = cells_of(state), cut(run.start, run.ends, refine)
        starts = np.concatenate([[state.clock[T]], ends[:-1]])
        stages = piece.tau(np.stack([starts + GAMMA * (ends - starts), ends], 1))
        law, rows = problem.law(stages)
        taus = piece.tau(np.stack([starts, ends], 1))
        for k in range(ends.size):
            check_deadline()
            yield _taken(state, cells, starts[k], ends[k : k + 1], law, rows[k : k + 1], taus[k])


def _taken(
    state: State,
    cells: Cells,
    start: float,
    end: Array,
    law: Law,
    rows: NDArray[np.int64],
    taus: Array,
) -> Step:
    from hdica.limits.mean_field.density.loop import march

    before, q0 = state.work[MASS].copy(), state.q
    none = np.empty((0, before.size))
    march(end, rows, 2, cells.compiled, law, state.memory, state.clock, state.work, none, none)
    past = state.memory[0]
    stages = [past[j][int(past[j][KEPT, 0]) - 1, 1:] for j in (0, 1)]
    return Step(
        cells=cells,
        end=float(end[0]),
        length=float(end[0] - start),
        before=before,
        middle=state.work[ONE].copy(),
        after=state.work[MASS].copy(),
        met=np.concatenate(stages),
        q=np.array([q0, state.clock[Q]]),
        taus=taus,
        law=law,
        rows=rows[0],
    )


def restored(values: Array, new: Cells, old: Cells) -> Array:
    """Columns on the windows of the steps before: the transpose of carrying masses on.

    Mass that is folded into the end of a smaller window counts as mass there does.
    """
    refine, parts = new.mesh.refine, []
    for a in range(new.windows.low.size):
        first, end = int(new.mesh.offsets[a]), int(new.mesh.offsets[a + 1])
        own = values[first:end]
        shift = int(old.windows.low[a] - new.windows.low[a]) * refine
        size = int(old.windows.high[a] - old.windows.low[a]) * refine
        parts.append(own[np.clip(np.arange(size) + shift, 0, end - first - 1)])
    return np.ascontiguousarray(np.concatenate(parts))
