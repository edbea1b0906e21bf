"""First passages of a rule whose estimate has a length, by collocation in two variables.

The mean number of steps h until the overlap sqrt(q) |A| reaches a threshold solves h - E h = 1, as
in :mod:`hdica.limits.passage.collocation`, in Chebyshev polynomials of the overlap A of the
direction and a few of q, which hardly matters: a few steps later it is forgotten. As there, the
change of a polynomial of A is never a difference of numbers: in the y of which the polynomials are
T_k(y), and with D_k = T_k(y) - T_k(y'),

    D_(k+1) = 2 y' D_k - D_(k-1) + 2 (y - y') T_k(y).

Beyond the range of its polynomials q counts as that at its end, for the same direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.sources import Source
from hdica.limits.passage.collocation import Collocation
from hdica.limits.passage.length import Grid, Lengths, LongStep, lengths_of, long_step
from hdica.limits.passage.step import Function
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]
_MODES, _SPENT = 60, 1e-13
"""Dimensions of the Krylov space of a survival, and what is no new direction."""
_ROOM = 0.2
"""How far A may lie beyond the threshold where the weights are short: part of their shortening."""


@dataclass(frozen=True, eq=False)
class LongCollocation(Collocation):
    """The chain of direction and length; every polynomial of A with all those of q."""

    at_one: Array  # polynomials of q at q = 1, where chains begin

    def at(self, overlap: Array) -> Array:
        """The polynomials at overlaps and q = 1, shape (overlaps, terms)."""
        first = super().at(overlap)
        return np.asarray((first[:, :, None] * self.at_one).reshape(first.shape[0], -1))

    def survival(self, weights: Array, steps: Array) -> Array:
        """Probability of no passage within numbers of steps, for a start.

        (1 - 1/B)^N 1 with B = (1 - K)^-1, in the space of 1, B 1, B^2 1, ... (Arnoldi's method).
        """
        basis, small = self._krylov()
        with one_thread():
            lives, modes = np.linalg.eig(small)
            first = np.zeros(lives.size, dtype=complex)
            first[0] = 1.0  # the first polynomial is 1
            parts = np.linalg.solve(modes, first) * ((weights @ basis) @ modes)
        # A chain that is left has no rate below 0 but by rounding.
        rates = np.where(lives.real > 0, 1 / lives, 1.0)
        power = np.multiply.outer(steps, np.log1p(-np.minimum(rates.real, 0.5) - 1j * rates.imag))
        return np.asarray(np.clip(np.sum(parts * np.exp(power), axis=-1).real, 0.0, 1.0))

    def _krylov(self) -> tuple[Array, Array]:
        """An orthonormal basis that begins with 1, shape (terms, m), and B in it."""
        terms = self.matrix.shape[1]
        most = min(_MODES, terms)
        basis, small = np.zeros((terms, most + 1)), np.zeros((most + 1, most))
        basis[0, 0] = 1.0
        for k in range(most):
            check_deadline()
            with one_thread():
                new = self._solved(self.values @ basis[:, k])
                for _ in range(2):  # twice is enough
                    along = basis[:, : k + 1].T @ new
                    new = new - basis[:, : k + 1] @ along
                    small[: k + 1, k] += along
            norm = math.sqrt(float(np.sum(new * new)))
            if k + 1 == most or norm <= _SPENT * float(np.abs(small[:, k]).max()):
                return basis[:, : k + 1], small[: k + 1, : k + 1]
            small[k + 1, k] = norm
            basis[:, k + 1] = new / norm
        raise AssertionError("a space has at least one dimension")


@dataclass(frozen=True)
class _Bounds:
    """Where A and q are followed, and when a chain has escaped."""

    threshold: float
    reach: float  # of A
    lost: float  # q
    lengths: Lengths
    even: bool

    def inside(self, overlap: Array, q: Array) -> NDArray[np.bool_]:
        """Whether a chain has not escaped."""
        size = np.abs(overlap)
        return (size * np.sqrt(q) < self.threshold) & (size < self.reach) & (q < self.lost)


def long_collocated(
    step: LongStep, threshold: float, terms: int, grid: Grid, even: bool
) -> LongCollocation:
    """The chain below a threshold in so many polynomials of A, even ones where -A is like A."""
    lengths = lengths_of(step, (0.0, threshold), grid)
    reach = min(threshold * (1 + _ROOM * (1 - lengths.low)), (1 + threshold) / 2)
    bounds = _Bounds(threshold, reach, step.lost, lengths, even)
    stride = 2 if even else 1
    orders = stride * np.arange(terms)
    angles = (np.arange(terms) + 0.5) * math.pi / (stride * terms)
    first = np.cos(np.multiply.outer(angles, orders))
    second = lengths.polynomials(lengths.points)
    rows = []
    with one_thread():
        for angle, here in zip(angles.tolist(), first, strict=True):
            for q, beside in zip(lengths.points.tolist(), second, strict=True):
                check_deadline()
                rows.append(_row(step, bounds, (math.cos(angle), q), here, beside))
    at_one = lengths.polynomials(np.ones(1))[0]
    values = np.asarray(np.kron(first, second), dtype=float)
    return LongCollocation(reach, orders, values, np.array(rows), at_one)


def _row(
    step: LongStep, bounds: _Bounds, at: tuple[float, float], here: Array, beside: Array
) -> Array:
    """1 - K applied to every product of polynomials, at one point, shape (terms,)."""
    x, reach = at[0], bounds.reach
    change, q = step.moved(reach * x, at[1])
    inside = bounds.inside(reach * x + change, q)
    left = float(np.sum(step.weights[~inside]))
    moved, q, weights = change[inside] / reach, q[inside], step.weights[inside]
    if not bounds.even:
        moved = np.where(step.turns(q), -2 * x - moved, moved)
    lengths = bounds.lengths.polynomials(q)
    # What the length does: its first polynomial is 1 and does not change.
    longer = np.sum(weights[:, None] * (beside - lengths), axis=0)
    longer[0] = 0.0
    changes = _changes(x, moved, here, bounds.even) @ (weights[:, None] * lengths)
    row = changes + np.multiply.outer(here, left * beside + longer)
    return np.asarray(row.ravel())


def _changes(x: float, moved: Array, here: Array, even: bool) -> Array:
    """T_k(y) - T_k(y') for every polynomial and node, shape (polynomials, nodes)."""
    after = x + moved
    if even:
        twice, step = 4 * after * after - 2, -4 * moved * (x + after)
    else:
        twice, step = 2 * after, -2 * moved
    found = np.zeros((here.size, moved.size))
    found[1] = step / 2
    for k in range(1, here.size - 1):
        np.multiply(twice, found[k], out=found[k + 1])
        found[k + 1] -= found[k - 1]
        found[k + 1] += here[k] * step
    return found


@dataclass(frozen=True)
class LongChain:
    """A rule with a length at one n, and when it has escaped: sqrt(q) |A| >= ``threshold``."""

    f: Function
    source: Source
    eta: float
    alpha: float
    n: int
    threshold: float
    even: bool  # whether A and -A are alike
    odd: bool  # whether f is, and the source symmetric
    enough: float = 5e-4
    first: Grid = field(default_factory=Grid)

    @property
    def told(self) -> tuple[str, str]:
        """The step size, and what to do where it is too large."""
        return f"eta = {self.eta:.6g}", "take a smaller step size or n"

    def solved(self, terms: int, points: Grid) -> LongCollocation:
        """Its passage in so many polynomials of A."""
        rates = self.eta, self.alpha
        step = long_step(self.f, self.source, rates, self.n, points, self.odd)
        return long_collocated(step, self.threshold, terms, points, self.even)
