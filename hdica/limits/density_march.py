"""The Fokker-Planck solver in time: an adaptive run writes a plan, refined runs follow it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.schedules import Schedule
from hdica.limits.density_grid import Lattice, Windows, carried, make_mesh, same, union
from hdica.limits.density_stage import Guess, Problem
from hdica.limits.density_start import begin, start_windows
from hdica.limits.density_steps import Piece, State, Step, advance

Array = NDArray[np.float64]
Observer = Callable[[float, float, State], None]
STEP_ERROR = 2e-6
"""Local error of a step of the coarsest level; its global error is extrapolated away."""
EDGE = 1e-15
"""Mass times (1 + x^2) that may lie in the outer eighth of an atom's window."""
BUDGET = 1e7
"""Cells times steps that the coarsest level may take: about a minute with two refined levels."""
_SHORTEST = 1e-10


@dataclass(frozen=True, eq=False)
class Leg:
    """One step of the coarsest level.

    Parameters
    ----------
    start, end
        Times.
    windows
        Cells in use.
    fresh
        Whether a new piece of the step size begins with it.
    """

    start: float
    end: float
    windows: Windows
    fresh: bool


@dataclass(frozen=True, eq=False)
class Plan:
    """What the coarsest level found out.

    Parameters
    ----------
    lattice
        Its cells.
    windows
        Those of the start.
    legs
        Its steps.
    stopped
        Why it ended early, or empty.
    finest
        The finest length that it met.
    """

    lattice: Lattice
    windows: Windows
    legs: tuple[Leg, ...]
    stopped: str
    finest: float


def fitted(state: State) -> Windows:
    """Windows that hold the density: wider where it nears an end, narrower where it is empty."""
    low, high = state.windows.low.copy(), state.windows.high.copy()
    for a, (part, cells) in enumerate(state.mesh.slices()):
        weight = state.mass[part] * (1 + state.mesh.x[cells] ** 2)
        n = weight.size
        for ends, inwards, sign in ((low, weight, -1), (high, weight[::-1], 1)):
            if np.sum(inwards[: max(2, n // 8)]) > EDGE:
                ends[a] += sign * max(4, n // 5)
            elif n > 64 and np.sum(inwards[: n // 3]) < EDGE / 100:
                ends[a] -= sign * (n // 6)
    return Windows(low, high)


def moved(state: State, windows: Windows, problem: Problem) -> State:
    """The same state on other windows; the very same if nothing changes."""
    if same(windows, state.windows):
        return state
    old, refine = state.windows, state.mesh.refine
    mesh = make_mesh(state.mesh.lattice, windows, refine, problem.field.phi.value)
    mass = carried(state.mass, old, windows, refine)
    rate = None if state.rate is None else carried(state.rate, old, windows, refine)
    return replace(state, windows=windows, mesh=mesh, mass=mass, rate=rate)


def pieces(problem: Problem, times: Array) -> Iterator[tuple[Piece, list[float]]]:
    """Stretches of smooth step size, each with the times inside at which a step must end."""
    schedule, last = problem.field.schedule, float(times[-1])
    breaks = [float(b) for b in schedule.breaks if 0 < b < last]
    stops = np.unique([*breaks, *times[times > 0]])
    for low, high in pairwise([0.0, *sorted(breaks), last]):
        inside = stops[(stops > low) & (stops <= high)].tolist()
        yield Piece(problem, _tau(schedule, low, high), (Guess(), Guess())), inside


def _tau(schedule: Schedule, low: float, high: float) -> Callable[[float], float]:
    """The step size of the open interval (low, high), also at its ends."""
    margin = 1e-12 * max(1.0, high)

    def tau(t: float) -> float:
        if schedule.constant is not None:
            return schedule.constant
        return float(schedule.value(np.array(min(max(t, low), high - margin))))

    return tau


def _ahead(t: float, mark: float, dt: float) -> float:
    """End of the next step: the mark itself, or equal parts of what is left before it."""
    left = mark - t
    parts = math.ceil(left / dt - 1e-9)
    return mark if parts <= 1 else t + (left / 2 if parts == 2 else dt)


def _learn(piece: Piece, step: Step) -> None:
    for guess, found in zip(piece.guesses, step.stages, strict=True):
        guess.learn(*found)


def _why(t: float, state: State) -> str:
    """One sentence for a run that cannot go on."""
    cost = f"more than {BUDGET:.0e} cells times steps ({state.windows.cells} cells by then)"
    if state.h2 < 0:
        return (
            f"the density condenses (2h = {state.h2:.3g} < 0) and was not followed beyond "
            f"t = {t:.6g}, because the few coordinates that grow without bound need {cost}"
        )
    return f"the density was not followed beyond t = {t:.6g}, because it needs {cost}"


@dataclass
class Explorer:
    """The coarsest level on its way.

    Parameters
    ----------
    observe
        Called with time, step size and state after every step.
    scale
        ``scale(state, tau)``: finest length of a density.
    state, t, dt
        Where it is, and the step to try next.
    """

    observe: Observer
    scale: Callable[[State, float], float]
    state: State
    t: float = 0.0
    dt: float = 1e-3
    spent: float = 0.0
    finest: float = math.inf

    def walk(self, piece: Piece, marks: list[float]) -> Iterator[Leg]:
        """Steps of the right length, on windows of the right width, to the last mark."""
        self.state, fresh = replace(self.state, rate=None), True
        for mark in marks:
            while self.t < mark:
                if self.spent > BUDGET or self.dt < _SHORTEST * (1 + self.t):
                    return
                end = _ahead(self.t, mark, self.dt)
                step = self.attempt(piece, (self.t, end), end < mark)
                if step is not None:
                    leg = Leg(self.t, end, self.state.windows, fresh)
                    self.accept(piece, step, end)
                    fresh = False
                    yield leg

    def attempt(self, piece: Piece, span: tuple[float, float], free: bool) -> Step | None:
        """A step, or None if it must be shorter or needs wider windows (which it then gets)."""
        step = advance(piece, self.state, span, True)
        self.spent += self.state.windows.cells
        length = span[1] - span[0]
        wanted = 0.9 * (STEP_ERROR / max(step.error, 1e-30)) ** (1 / 3) if step.met else 0.2
        if not step.error <= STEP_ERROR or not step.met:
            self.dt = length * min(0.9, max(0.2, wanted))
            return None
        wider = union(self.state.windows, fitted(step.state))
        if not same(wider, self.state.windows):
            self.state = moved(self.state, wider, piece.problem)
            return None
        grown = length * min(2.0, max(0.5, wanted))
        # A step cut short by a mark does not say that the next one must be short.
        self.dt = grown if free else max(self.dt, grown)
        return step

    def accept(self, piece: Piece, step: Step, t: float) -> None:
        """Go on from where a step led."""
        tau = piece.tau(t)
        _learn(piece, step)
        self.observe(t, tau, step.state)
        self.finest = min(self.finest, self.scale(step.state, tau))
        self.state = moved(step.state, fitted(step.state), piece.problem)
        self.t = t


def explore(
    problem: Problem,
    lattice: Lattice,
    times: Array,
    observe: Observer,
    scale: Callable[[State, float], float],
) -> Plan:
    """Run the coarsest level with adaptive steps and windows, and write down both.

    Parameters
    ----------
    times
        Output times, increasing; a step ends at each and at each jump of the step size.
    observe
        Called at t = 0 and after every step.
    scale
        ``scale(state, tau)``: finest length of the density at one time.
    """
    first = start_windows(problem, lattice)
    explorer = Explorer(observe, scale, begin(problem, lattice, first, 1))
    observe(0.0, float(problem.field.schedule.value(np.array(0.0))), explorer.state)
    legs: list[Leg] = []
    for piece, marks in pieces(problem, times):
        legs += explorer.walk(piece, marks)
        if marks and explorer.t < marks[-1]:
            why = _why(explorer.t, explorer.state)
            return Plan(lattice, first, tuple(legs), why, explorer.finest)
    return Plan(lattice, first, tuple(legs), "", explorer.finest)


def follow(problem: Problem, plan: Plan, times: Array, refine: int, observe: Observer) -> None:
    """Repeat the steps of a plan, each cell and each step cut into ``refine``."""
    state = begin(problem, plan.lattice, plan.windows, refine)
    observe(0.0, float(problem.field.schedule.value(np.array(0.0))), state)
    stretches = pieces(problem, times)
    for leg in plan.legs:
        if leg.fresh:
            piece, _ = next(stretches)
        state = moved(state, leg.windows, problem)
        for span in pairwise(np.linspace(leg.start, leg.end, refine + 1).tolist()):
            step = advance(piece, state, span, False)
            _learn(piece, step)
            state = step.state
        observe(leg.end, piece.tau(leg.end), state)
