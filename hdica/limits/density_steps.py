"""One step in time of the Fokker-Planck solver: two implicit stages under E[x^2] = 1."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.limits.density_grid import Mesh, Windows
from hdica.limits.density_stage import Guess, Pair, Problem, Solved, implicit

Array = NDArray[np.float64]
GAMMA = 1 - 1 / math.sqrt(2)
"""The two-stage diagonally implicit method of order 2 that is L-stable (Alexander 1977)."""
PUSH = (1 - 2 * GAMMA) / GAMMA
"""p0 + (1 - gamma) dt A s1 = s1 + PUSH gamma dt A s1, because s1 = p0 + gamma dt A s1."""
# Quadrature of order 3 through the slopes at 0, gamma and 1, minus the weights of the method.
_MIDDLE = (1 / 6) / (GAMMA * (1 - GAMMA))
_LAST = 1 / 2 - GAMMA * _MIDDLE
_EMBEDDED = (1 - _MIDDLE - _LAST, _MIDDLE - (1 - GAMMA), _LAST - GAMMA)


@dataclass(frozen=True, eq=False)
class State:
    """Where a run is.

    Parameters
    ----------
    windows, mesh
        Cells in use.
    mass
        Cell masses.
    rate
        Their rate of change, or None where it is not known.
    q, h2
        Overlap and multiplier 2h.
    """

    windows: Windows
    mesh: Mesh
    mass: Array
    rate: Array | None
    q: float
    h2: float


@dataclass(frozen=True, eq=False)
class Piece:
    """A stretch of time on which the step size tau(t) is smooth, and what is learnt there.

    Parameters
    ----------
    problem
        What is solved.
    tau
        The step size, at the ends too that of the inside.
    guesses
        Of the two stages.
    """

    problem: Problem
    tau: Callable[[float], float]
    guesses: tuple[Guess, Guess]


@dataclass(frozen=True, eq=False)
class Step:
    """A step taken.

    Parameters
    ----------
    state
        The state after it.
    stages
        (t, Q, 2h) of both stages.
    met
        Whether both met E[x^2] = 1 and their own Q.
    error
        Estimate of the local error, sum of w |e| (1 + x^2)/2; NaN if not asked for.
    """

    state: State
    stages: tuple[tuple[float, float, float], tuple[float, float, float]]
    met: bool
    error: float


def advance(piece: Piece, state: State, span: Pair, estimate: bool) -> Step:
    """One step of the diagonally implicit method, positive and conservative by construction.

    Parameters
    ----------
    piece, state
        What is solved, and from where.
    span
        Beginning and end.
    estimate
        Whether to estimate the local error.
    """
    from hdica.limits.density_kernels import push

    problem, mesh, (first, second) = piece.problem, state.mesh, piece.guesses
    t, dt = span[0], span[1] - span[0]
    middle, c = t + GAMMA * dt, GAMMA * dt * problem.factor
    known = first.at(middle, (state.q, state.h2))
    one = implicit(problem, mesh, state.mass, first, known, piece.tau(middle), c)
    given = np.empty_like(one.mass)
    push(one.mass, given, one.right, one.left, mesh.offsets, PUSH)
    known = second.at(span[1], (one.q, one.h2))
    two = implicit(problem, mesh, given, second, known, piece.tau(span[1]), c)
    slope = (two.mass - given) / GAMMA
    error = _local_error(problem, state, dt, one, two, slope) if estimate else math.nan
    return Step(
        State(state.windows, mesh, _unrounded(mesh, two.mass), slope / dt, two.q, two.h2),
        ((middle, one.q, one.h2), (span[1], two.q, two.h2)),
        one.met and two.met,
        error,
    )


def _unrounded(mesh: Mesh, mass: Array) -> Array:
    """The same masses with unit sums: rounding alone would drift away over 10^5 steps."""
    sums = np.add.reduceat(mass, mesh.offsets[:-1])
    return np.asarray(mass / np.repeat(sums, np.diff(mesh.offsets)))


def _local_error(
    problem: Problem, state: State, dt: float, one: Solved, two: Solved, slope: Array
) -> float:
    """Difference to a quadrature of order 3, smoothed by the implicit operator."""
    from hdica.limits.density_kernels import resolve

    mesh, middle = state.mesh, (one.mass - state.mass) / GAMMA
    # After a jump the old slope says nothing: with the middle one the estimate errs high.
    before = middle if state.rate is None else state.rate * dt
    raw = _EMBEDDED[0] * before + _EMBEDDED[1] * middle + _EMBEDDED[2] * slope
    smooth = np.empty_like(raw)
    resolve(raw, smooth, two.right, two.left, np.empty_like(raw), mesh.offsets)
    _, x, weights = mesh.flat(problem.xi, problem.weights)
    return float(np.sum(weights * np.abs(smooth) * (1 + x * x)) / 2)
