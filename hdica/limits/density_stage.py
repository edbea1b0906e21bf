"""One implicit stage of the Fokker-Planck solver, with Q and the multiplier 2h as unknowns."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hdica.limits.density_grid import Mesh
from hdica.limits.mean_field import MeanField

Array = NDArray[np.float64]
Pair = tuple[float, float]
_SWEEPS = 14
_Q_EXACT, _SQUARE_EXACT = 5e-13, 6e-14


@dataclass(frozen=True, eq=False)
class Problem:
    """What is solved: a mean field at the nodes of its prior that count.

    Parameters
    ----------
    field
        The equations.
    xi, weights
        Nodes and their weights, shape (atoms,).
    factor
        Multiplies the whole right-hand side.
    """

    field: MeanField
    xi: Array
    weights: Array
    factor: float = 1.0


@dataclass
class Guess:
    """What earlier steps taught about one stage.

    Parameters
    ----------
    past
        The last solutions (t, Q, 2h), at most three.
    answer
        Derivatives of Q and E[x^2] after the solve by Q and 2h, per unit of c: row by row.
    """

    past: list[tuple[float, float, float]] = field(default_factory=list)
    answer: tuple[float, float, float, float] | None = None

    def learn(self, t: float, q: float, h2: float) -> None:
        """Remember an accepted solution."""
        self.past = [*self.past[-2:], (t, q, h2)]

    def at(self, t: float, otherwise: Pair) -> Pair:
        """Q and 2h extrapolated to time t."""
        if not self.past:
            return otherwise
        q = h2 = 0.0
        for i, (ti, qi, hi) in enumerate(self.past):
            others = (tj for j, (tj, _, _) in enumerate(self.past) if j != i)
            share = math.prod((t - tj) / (ti - tj) for tj in others)
            q, h2 = q + share * qi, h2 + share * hi
        return min(1.0, max(-1.0, q)), h2


class Broyden:
    """Newton's method for two unknowns whose derivatives are corrected by what they foretell."""

    def __init__(self, a: float, b: float, c: float, d: float) -> None:
        self.slopes = (a, b, c, d)
        self.move = (0.0, 0.0)
        self.misses: Pair | None = None

    def next(self, misses: Pair) -> Pair:
        """The move that the present misses ask for."""
        if self.misses is not None:
            self._correct(misses, self.misses)
        a, b, c, d = self.slopes
        det = a * d - b * c
        self.misses = misses
        self.move = ((b * misses[1] - d * misses[0]) / det, (c * misses[0] - a * misses[1]) / det)
        return self.move

    def _correct(self, new: Pair, old: Pair) -> None:
        (x, y), (a, b, c, d) = self.move, self.slopes
        norm = x * x + y * y
        # A difference of two misses near rounding would teach noise.
        if norm == 0.0 or max(abs(old[0]), abs(old[1])) < 1e-11:
            return
        first = (new[0] - old[0] - a * x - b * y) / norm
        second = (new[1] - old[1] - c * x - d * y) / norm
        self.slopes = (a + first * x, b + first * y, c + second * x, d + second * y)


def _first_answer(problem: Problem, q: float, tau: float) -> tuple[float, float, float, float]:
    """How Q and E[x^2] answer to Q (through b and g) and to 2h, to first order in c."""
    mean = problem.field
    low, high = max(-1.0, q - 1e-4), min(1.0, q + 1e-4)
    pull = (mean.pull(high, tau) - mean.pull(low, tau)) / (high - low)
    noise = (mean.diffusion(high, tau) - mean.diffusion(low, tau)) / (high - low)
    return pull, -q, 2 * (pull * q + noise), -2.0


@dataclass(frozen=True, eq=False)
class Solved:
    """A stage.

    Parameters
    ----------
    mass
        Cell masses.
    right, left
        c times the rates across each face, by which the stage was solved.
    q, h2
        Overlap and multiplier.
    met
        Whether E[x^2] = 1 and Q = E[xi x] to rounding.
    """

    mass: Array
    right: Array
    left: Array
    q: float
    h2: float
    met: bool


def implicit(
    problem: Problem, mesh: Mesh, given: Array, guess: Guess, known: Pair, tau: float, c: float
) -> Solved:
    """Solve (1 - c A(Q, 2h)) mass = given together with Q = E[xi x] and E[x^2] = 1.

    Parameters
    ----------
    given
        Cell masses before the stage.
    guess
        What earlier steps taught; learns the answer of this one.
    known
        Q and 2h to begin with.
    tau, c
        Step size of the rule, and time span of the stage.
    """
    from hdica.limits.density_kernels import sweep

    mean, (q, h2) = problem.field, known
    p, b, s, d = guess.answer or _first_answer(problem, q, tau)
    search = Broyden(c * p - 1.0, c * b, c * s, c * d)
    mass, right, left, share = (np.empty_like(given) for _ in range(4))
    atoms = (mesh.offsets, mesh.lows, problem.xi, problem.weights)
    cells = (mesh.x, mesh.dx, mesh.gap, mesh.middle, mesh.phi)
    strength, met = mean.strength(tau), False
    for _ in range(_SWEEPS):
        drift = (mean.pull(q, tau), strength, h2, mean.diffusion(q, tau), c)
        found, square = sweep(given, mass, right, left, share, *atoms, *cells, *drift)
        misses = (found - q, square - 1.0)
        met = abs(misses[0]) < _Q_EXACT and abs(misses[1]) < _SQUARE_EXACT
        if met or not math.isfinite(found + square):
            break
        dq, dh = search.next(misses)
        q, h2 = min(1.0, max(-1.0, q + dq)), h2 + dh
    a, b, s, d = search.slopes
    guess.answer = ((a + 1.0) / c, b / c, s / c, d / c)
    return Solved(mass, right, left, q, h2, met)
