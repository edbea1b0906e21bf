"""First passages of a Markov chain of one variable out of an interval, by collocation.

The mean number of steps h(Q) until the chain leaves |Q| < a solves h(Q) - E h(Q') = 1 with h = 0
outside, the second moment g - E g(Q') = 2 h - 1, and the probability of no passage within N steps
is K^N 1. Both are expanded in Chebyshev polynomials of Q/a.

What matters is the difference between h(Q') and h(Q), which is smaller than h by the length of the
passage. It is therefore never a difference of numbers: with Q = a cos x,

    T_k(Q') - T_k(Q) = -2 sin(k (x + x')/2) sin(k (x' - x)/2),

and x' - x is found from Q' - Q itself. Passages of 10^16 steps keep several digits so, where the
plain form has none from 10^13 on.

Where the estimate has a length there are two variables. The mean number of steps h until the
overlap sqrt(q) |A| reaches a threshold solves h - E h = 1 in Chebyshev polynomials of the overlap A
of the direction and a few of q, which hardly matters: a few steps later it is forgotten. As there,
the change of a polynomial of A is never a difference of numbers: in the y of which the polynomials
are T_k(y), and with D_k = T_k(y) - T_k(y'),

    D_(k+1) = 2 y' D_k - D_(k-1) + 2 (y - y') T_k(y).

Beyond the range of its polynomials q counts as that at its end, for the same direction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from hdica.ingredients.plain import Array, Indices, Mask
from hdica.ingredients.quadrature import dot
from hdica.limits.passage.step import Grid, Lengths, LongStep, Step, lengths_of
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline

Complex = NDArray[np.complex128]
_OFF = 2.0**-50


@dataclass(frozen=True, eq=False)
class Collocation:
    """The chain on |Q| < reach: 1 - K applied to polynomials, at points, shape (points, terms).

    ``orders`` are those of the polynomials: even ones alone where +Q and -Q are alike.
    ``values`` are the polynomials themselves at the points.
    """

    reach: float
    orders: Indices
    values: Array
    matrix: Array

    def at(self, overlap: Array) -> Array:
        """The polynomials at overlaps, shape (overlaps, terms); 0 from the threshold on."""
        x = np.asarray(overlap, dtype=float) / self.reach
        inside = np.abs(x) < 1
        angle = np.arccos(np.where(inside, x, 0.0))
        return np.where(inside[:, None], np.cos(angle[:, None] * self.orders), 0.0)

    @cached_property
    def mean(self) -> Array:
        """Coefficients of the mean number of steps."""
        return self._solved(np.ones(len(self.values)))

    @cached_property
    def second(self) -> Array:
        """Coefficients of the mean squared number of steps."""
        return self._solved(2 * np.sum(self.values * self.mean, axis=1) - 1)

    def _solved(self, right: Array) -> Array:
        with one_thread():
            return scipy.linalg.lu_solve(self._factors, right)

    @cached_property
    def _factors(self) -> tuple[Array, NDArray[np.int32]]:
        with one_thread():
            return scipy.linalg.lu_factor(self.matrix)

    @cached_property
    def rounding(self) -> float:
        """Relative error of the mean by rounding: what it moves by if every entry is off a little.

        Seen at the middle, with numbers that are off by eight units of their last place.
        """
        off = np.random.Generator(np.random.PCG64(0)).choice([-1.0, 1.0], self.matrix.shape)
        with one_thread():
            other = np.linalg.solve(self.matrix * (1 + _OFF * off), np.ones(len(self.values)))
        at = self.at(np.zeros(1))[0]
        return float(abs(np.sum(at * (other - self.mean)) / np.sum(at * self.mean)))

    def survival(self, weights: Array, steps: Array) -> Array:
        """Probability of no passage within numbers of steps, for a start.

        ``weights`` are the mean polynomials of the start, shape (terms,); ``steps`` need not be
        whole numbers: between them it is the same sum of powers.
        """
        with one_thread():
            rates, modes = scipy.linalg.eig(self.matrix, self.values)
            ones = np.zeros(len(self.orders), dtype=complex)
            ones[0] = 1.0  # the first polynomial is 1
            parts = np.linalg.solve(modes, ones) * np.sum(weights[:, None] * modes, axis=0)
        # A chain that is left has no rate below 0 but by rounding.
        return _powers(parts, -np.where(rates.real < 0, 1j * rates.imag, rates), steps)


def _powers(parts: Complex, shares: Complex, steps: Array) -> Array:
    """Sums of parts times powers of 1 + shares, as probabilities."""
    power = np.multiply.outer(steps, np.log1p(shares))
    return np.clip(np.sum(parts * np.exp(power), axis=-1).real, 0.0, 1.0)


def _points(terms: int, even: bool) -> tuple[int, Indices, Array, Array]:
    """Least order above 0, orders of the polynomials, angles of the points and values there."""
    stride = 2 if even else 1
    orders = stride * np.arange(terms)
    angles = (np.arange(terms) + 0.5) * math.pi / (stride * terms)
    return stride, orders, angles, np.cos(np.multiply.outer(angles, orders))


def collocated(step: Step, reach: float, terms: int, even: bool) -> Collocation:
    """The chain of a step on |Q| < ``reach``, in so many polynomials."""
    stride, orders, angles, values = _points(terms, even)
    rows = []
    for angle, row in zip(angles.tolist(), values, strict=True):
        check_deadline()
        moved = step.change(reach * math.cos(angle)) / reach
        rows.append(_row(angle, moved, step.weights, row, stride))
    return Collocation(reach, orders, values, np.array(rows))


def _row(angle: float, moved: Array, weights: Array, values: Array, stride: int) -> Array:
    """1 - K applied to every polynomial, at one point x = cos(angle).

    Numbers go through the polynomials as powers of two complex numbers.
    """
    x, side = math.cos(angle), math.sin(angle)
    inside = np.abs(x + moved) < 1
    left = float(np.sum(weights[~inside]))
    moved, weights = moved[inside], weights[inside]
    after = x + moved
    below = np.sqrt((1 - after) * (1 + after))
    turned = np.arctan2(
        -(x * (x + after) / (side + below) + side) * moved, below * side + x * after
    )
    both = np.exp(0.5j * stride * (2 * angle + turned))
    half = np.exp(0.5j * stride * turned)
    row = left * values
    sums, changes = np.ones_like(both), np.ones_like(half)
    for k in range(1, values.size):
        sums, changes = sums * both, changes * half
        row[k] += 2 * dot(weights * sums.imag, changes.imag)
    return row


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
        return (first[:, :, None] * self.at_one).reshape(first.shape[0], -1)

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
        return _powers(parts, -np.minimum(rates.real, 0.5) - 1j * rates.imag, steps)

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
            norm = math.sqrt(dot(new, new))
            if k + 1 == most or norm <= _SPENT * np.abs(small[:, k]).max():
                return basis[:, : k + 1], small[: k + 1, : k + 1]
            small[k + 1, k] = norm
            basis[:, k + 1] = new / norm
        raise AssertionError("a space has at least one dimension")


class _Bounds(NamedTuple):
    """Where A and q are followed, and when a chain has escaped."""

    threshold: float
    reach: float  # of A
    lost: float  # q
    lengths: Lengths
    even: bool

    def inside(self, overlap: Array, q: Array) -> Mask:
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
    _, orders, angles, first = _points(terms, even)
    second = lengths.polynomials(lengths.points)
    rows = []
    with one_thread():
        for angle, along in zip(angles.tolist(), first, strict=True):
            for q, across in zip(lengths.points.tolist(), second, strict=True):
                check_deadline()
                rows.append(_long_row(step, bounds, (math.cos(angle), q), along, across))
    at_one = lengths.polynomials(np.ones(1))[0]
    values = np.asarray(np.kron(first, second))
    return LongCollocation(reach, orders, values, np.array(rows), at_one)


def _long_row(
    step: LongStep, bounds: _Bounds, at: tuple[float, float], values: Array, of_length: Array
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
    longer = np.sum(weights[:, None] * (of_length - lengths), axis=0)
    longer[0] = 0.0
    changes = _changes(x, moved, values, bounds.even) @ (weights[:, None] * lengths)
    row = changes + np.multiply.outer(values, left * of_length + longer)
    return row.ravel()


def _changes(x: float, moved: Array, values: Array, even: bool) -> Array:
    """T_k(y) - T_k(y') for every polynomial and node, shape (polynomials, nodes)."""
    after = x + moved
    if even:
        twice, step = 4 * after * after - 2, -4 * moved * (x + after)
    else:
        twice, step = 2 * after, -2 * moved
    changes = np.zeros((values.size, moved.size))
    changes[1] = step / 2
    for k in range(1, values.size - 1):
        np.multiply(twice, changes[k], out=changes[k + 1])
        changes[k + 1] -= changes[k - 1]
        changes[k + 1] += values[k] * step
    return changes
