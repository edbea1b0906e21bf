"""The Fokker-Planck solver in time: an adaptive run writes a plan, refined runs follow it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array
from hdica.limits.mean_field.density import grid as at
from hdica.limits.mean_field.density.grid import Indices, Lattice, Mesh, Windows
from hdica.limits.mean_field.density.state import (
    LONGEST,
    Functional,
    Law,
    Problem,
    State,
    begin,
    jump,
    relax,
    tabulated,
    together,
)
from hdica.process.progress import check_deadline


@dataclass(eq=False)
class Record:
    """What is seen after every step of the coarsest level, and kept at the snapshots.

    Functionals are h(xi, x) by name, means of which are taken; ``masses`` those of the cells of a
    mesh at the snapshots reached, ``cells`` the largest number of cells of all atoms.
    """

    problem: Problem
    snapshots: Array
    functionals: Mapping[str, Functional]
    masses: dict[float, tuple[Mesh, Array]] = field(default_factory=dict)
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
        return np.empty((steps, at.FIRST + len(self.functionals)))

    def begin(self, state: State) -> None:
        """See the start."""
        from hdica.limits.mean_field.density.loop import measure

        row = self.room(1)
        integrands = self.integrands(state.mesh)
        measure(row[0], state.mass, state.cells, integrands, state.other, state.goal)
        self.see(state, np.zeros(1), np.full(1, self.problem.field.schedule.at(0.0)), row)

    def see(self, state: State, times: Array, taus: Array, rows: Array) -> None:
        """Remember what was measured, and the masses if the state is at a snapshot."""
        rows = rows.copy()
        rows[:, 0] = taus
        self._times.append(times.copy())
        self._rows.append(rows)
        self.cells = max(self.cells, state.work.shape[1])
        t = float(state.clock[at.T])
        if t in self.snapshots and t not in self.masses:
            self.masses[t] = (state.mesh, state.work[at.MASS].copy())

    @property
    def times(self) -> Array:
        """Times seen, increasing."""
        return np.concatenate(self._times)

    @property
    def rows(self) -> Array:
        """tau, Q, R, 2h or P, the two errors and the functionals at those times."""
        return np.concatenate(self._rows)


BUDGET = 1e7
"""Cells times steps that the coarsest level may take."""
_EDGE = 1e-15
"""Mass times (1 + x^2) that may lie in the outer eighth of an atom's window."""
_ROWS = 256
"""Steps at most that one call of the compiled exploration takes."""
_NUMBERS = 1_000_000
"""Cells times steps that one call of the compiled march takes: a tenth of a second."""


class Piece(NamedTuple):
    """A stretch of time on which the step size tau(t) is smooth.

    A step must end at the marks: times inside, and its end.
    """

    problem: Problem
    low: float
    high: float
    marks: Array

    def tau(self, times: Array) -> Array:
        """The step size, at the ends too that of the inside."""
        schedule = self.problem.field.schedule
        margin = 1e-12 * max(1.0, self.high)
        inside = np.minimum(np.maximum(times, self.low), self.high - margin)
        return schedule.value(inside)

    def law(self, start: float, ends: Array) -> tuple[Law, Indices]:
        """The law at the step sizes of some steps, and its rows at both stages of each."""
        starts = np.append(start, ends[:-1])
        return self.problem.law(self.tau(np.stack([starts + at.GAMMA * (ends - starts), ends], 1)))


class Run(NamedTuple):
    """Consecutive steps of the coarsest level on the same cells, between ``start`` and the ends."""

    start: float
    ends: Array
    windows: Windows
    piece: Piece


class Plan(NamedTuple):
    """The steps of the coarsest level, from its first windows on, and why it ended early, if so."""

    lattice: Lattice
    windows: Windows
    runs: tuple[Run, ...]
    stopped: str

    @property
    def steps(self) -> int:
        """Number of steps."""
        return sum(run.ends.size for run in self.runs)

    @property
    def cost(self) -> float:
        """Cells times steps."""
        return float(sum(run.ends.size * run.windows.cells for run in self.runs))

    @property
    def reach(self) -> Windows:
        """Windows that hold all cells ever in use."""
        windows = [self.windows, *(run.windows for run in self.runs)]
        low, high = zip(*((one.low, one.high) for one in windows), strict=True)
        return Windows(np.min(low, axis=0), np.max(high, axis=0))


def pieces(problem: Problem, times: Array) -> Iterator[Piece]:
    """Stretches of smooth step size, each with the times inside at which a step must end."""
    field, last = problem.field, float(times[-1])
    breaks = sorted({b for b in (*field.schedule.breaks, *field.motion.jumps) if 0 < b < last})
    stops = np.unique([*breaks, *times[times > 0]])
    for low, high in pairwise([0.0, *breaks, last]):
        yield Piece(problem, low, high, stops[(stops > low) & (stops <= high)])


@contextmanager
def _in_range(state: State) -> Iterator[None]:
    """Refuse in a sentence what leaves the range of numbers of 16 digits."""
    try:
        yield
    except ZeroDivisionError:
        raise HdicaError(
            f"the density could not be followed beyond t = {state.clock[at.T]:.6g}: its rates are "
            "too large or too small, or its times too near to each other, for numbers of 16 digits "
            "(choose a more moderate step size, signal, prior or regularizer, or other times)"
        ) from None


def _law_ahead(piece: Piece, state: State) -> Law:
    """The law of all times, or of both stages of the very next step where tau varies."""
    from hdica.limits.mean_field.density.loop import ahead

    problem = piece.problem
    if problem.constant_law is not None:
        return problem.constant_law
    t, later = float(state.clock[at.T]), piece.marks[piece.marks > state.clock[at.T]]
    end = ahead(t, later[0], state.clock[at.DT]) if later.size else t
    return tabulated(problem.field, piece.tau(np.array([t + at.GAMMA * (end - t), end])))


def _walk(piece: Piece, state: State, record: Record, step_error: float) -> Iterator[Run]:
    """Steps through a piece, one run of them after the other."""
    from hdica.limits.mean_field.density.loop import walk

    halts = np.isin(piece.marks, record.snapshots)
    state.forget()
    jump(state, piece.low)
    state.clock[at.MARK], reason = 0.0, at.ROOM
    # Laws that mix do so after every step.
    most = 1 if piece.problem.moves else _ROWS
    start, run, ends, measures = float(state.clock[at.T]), [], np.empty(most), record.room(most)
    while reason not in (at.DONE, at.BROKE):
        check_deadline()
        windows = np.zeros((4, state.windows.low.size), dtype=np.int64)
        windows[:2] = state.windows.low, state.windows.high
        limits, integrands = (step_error, _EDGE, BUDGET), record.integrands(state.mesh)
        before, rate = float(state.clock[at.T]), piece.problem.field.motion.rate
        if rate > 0:
            # Where laws mix, the next step is no longer than they allow.
            state.clock[at.DT] = min(float(state.clock[at.DT]), LONGEST / rate)
        with _in_range(state):
            reason, count = walk(
                piece.marks, halts, *limits, state.cells, _law_ahead(piece, state),
                state.memory, state.clock, state.work, windows, integrands, ends, measures,
            )  # fmt: skip
        record.see(state, ends[:count], piece.tau(ends[:count]), measures[:count])
        run.append(ends[:count].copy())
        if piece.problem.moves and count:
            relax(state, float(state.clock[at.T]) - before)
            state.clock[at.RATED] = 0.0
        if reason != at.ROOM:
            steps = np.concatenate(run)
            if steps.size:
                yield Run(start, steps, state.windows, piece)
            start, run = float(state.clock[at.T]), []
        if reason == at.WINDOWS:
            fitting = Windows(windows[0], windows[1])
            state.move(together(fitting) if piece.problem.moves else fitting)


def explore(
    problem: Problem,
    lattice: Lattice,
    times: Array,
    record: Record,
    step_error: float,
    first: Windows,
) -> Plan:
    """Run the coarsest level with adaptive steps and windows, and write down both.

    ``first`` are the windows of the start. A step ends at each of the increasing times and at each
    jump of the step size; ``step_error`` is the local error of one that is accepted. The record
    sees t = 0 and the end of every step.
    """
    first = together(first) if problem.moves else first
    state = begin(problem, lattice, first, 1)
    record.begin(state)
    runs: list[Run] = []
    why = ""
    for piece in pieces(problem, times):
        runs += _walk(piece, state, record, step_error)
        if piece.marks.size and state.clock[at.T] < piece.marks[-1]:
            t, cells = state.clock[at.T], state.windows.cells
            cost = f"more than {BUDGET:.0e} cells times steps ({cells} cells by then)"
            why = f"the density was not followed beyond t = {t:.6g}, because it needs {cost}"
            if state.other < 0:
                why = (
                    f"the density condenses (2h = {state.other:.3g} < 0) and was not followed "
                    f"beyond t = {t:.6g}, because the few coordinates that grow without bound "
                    f"need {cost}"
                )
            break
    return Plan(lattice, first, tuple(runs), why)


def cut(start: float, ends: Array, parts: int) -> Array:
    """Ends of the steps when each is cut into equal parts, shape (steps * parts,)."""
    starts = np.append(start, ends[:-1])
    shares = np.arange(1, parts + 1) / parts
    parted = starts[:, None] + (ends - starts)[:, None] * shares
    parted[:, -1] = ends
    return parted.ravel()


def advance(
    piece: Piece, state: State, ends: Array, every: int, integrands: Array, measures: Array
) -> int:
    """Steps to each of ``ends``, measured after ``every``; how many did not meet their E[x^2]."""
    from hdica.limits.mean_field.density.loop import march, measure

    missed, (law, rows) = 0, piece.law(float(state.clock[at.T]), ends)
    arrays = (state.cells, law, state.memory, state.clock, state.work, integrands)
    # Some steps a call, of which none depends on how many: the kernel looks at no clock.
    moves, some = piece.problem.moves, every * max(1, _NUMBERS // (every * state.work.shape[1]))
    with _in_range(state):
        for first in range(0, ends.size, 1 if moves else some):
            check_deadline()
            row = measures[first // every :]
            if not moves:
                part = slice(first, first + some)
                missed += int(march(ends[part], rows[part], every, *arrays, row))
                continue
            # Laws that mix do so before and after each step.
            part, half = slice(first, first + 1), (ends[first] - state.clock[at.T]) / 2
            relax(state, half)
            missed += int(march(ends[part], rows[part], 2, *arrays, row))
            relax(state, half)
            if (first + 1) % every == 0:
                measure(row[0], state.mass, state.cells, integrands, state.other, state.goal)
    return missed


def begun(problem: Problem, plan: Plan, refine: int) -> State:
    """The state at t = 0 on the cells of a plan, each cut into ``refine``."""
    return begin(problem, plan.lattice, plan.windows, refine, plan.reach)


def runs_of(plan: Plan, state: State) -> Iterator[tuple[Run, Array]]:
    """The runs of a plan and the ends of their steps, cut as cells are; the state is at each."""
    piece = None
    for run in plan.runs:
        if run.piece is not piece:
            state.forget()
            piece = run.piece
            jump(state, piece.low)
        state.move(run.windows)
        yield run, cut(run.start, run.ends, state.mesh.refine)


def follow(problem: Problem, plan: Plan, refine: int, record: Record) -> None:
    """Repeat the steps of a plan, each cell and each step cut into ``refine``."""
    state = begun(problem, plan, refine)
    record.begin(state)
    for run, ends in runs_of(plan, state):
        measures, integrands = record.room(run.ends.size), record.integrands(state.mesh)
        advance(run.piece, state, ends, refine, integrands, measures)
        record.see(state, run.ends, run.piece.tau(run.ends), measures)
