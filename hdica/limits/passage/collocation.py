"""First passages of a Markov chain of one variable out of an interval, by collocation.

The mean number of steps h(Q) until the chain leaves |Q| < a solves h(Q) - E h(Q') = 1 with h = 0
outside, the second moment g - E g(Q') = 2 h - 1, and the probability of no passage within N steps
is K^N 1. Both are expanded in Chebyshev polynomials of Q/a.

What matters is the difference between h(Q') and h(Q), which is smaller than h by the length of the
passage. It is therefore never a difference of numbers: with Q = a cos x,

    T_k(Q') - T_k(Q) = -2 sin(k (x + x')/2) sin(k (x' - x)/2),

and x' - x is found from Q' - Q itself. Passages of 10^16 steps keep several digits so, where the
plain form has none from 10^13 on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from hdica.limits.passage.step import Step
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]
_OFF = 2.0**-50


@dataclass(frozen=True, eq=False)
class Collocation:
    """The chain on |Q| < reach: 1 - K applied to polynomials, at points, shape (points, terms).

    ``orders`` are those of the polynomials: even ones alone where +Q and -Q are alike.
    ``values`` are the polynomials themselves at the points.
    """

    reach: float
    orders: NDArray[np.int64]
    values: Array
    matrix: Array

    def at(self, overlap: Array) -> Array:
        """The polynomials at overlaps, shape (overlaps, terms); 0 from the threshold on."""
        x = np.asarray(overlap, dtype=float) / self.reach
        inside = np.abs(x) < 1
        angle = np.arccos(np.where(inside, x, 0.0))
        return np.asarray(np.where(inside[:, None], np.cos(angle[:, None] * self.orders), 0.0))

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
            return np.asarray(scipy.linalg.lu_solve(self._factors, right))

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
        rates = np.where(rates.real < 0, 1j * rates.imag, rates)
        power = np.multiply.outer(steps, np.log1p(-rates))
        return np.asarray(np.clip(np.sum(parts * np.exp(power), axis=-1).real, 0.0, 1.0))


def collocated(step: Step, reach: float, terms: int, even: bool) -> Collocation:
    """The chain of a step on |Q| < ``reach``, in so many polynomials."""
    stride = 2 if even else 1
    orders = stride * np.arange(terms)
    angles = (np.arange(terms) + 0.5) * math.pi / (stride * terms)
    values = np.cos(np.multiply.outer(angles, orders))
    rows = []
    for angle, row in zip(angles.tolist(), values, strict=True):
        check_deadline()
        moved = step.change(reach * math.cos(angle)) / reach
        rows.append(_row(angle, moved, step.weights, row, stride))
    return Collocation(reach, orders, values, np.array(rows))


def _row(angle: float, moved: Array, weights: Array, here: Array, stride: int) -> Array:
    """1 - K applied to every polynomial, at one point x = cos(angle).

    Numbers go through the polynomials as powers of two complex numbers.
    """
    x, beside = math.cos(angle), math.sin(angle)
    inside = np.abs(x + moved) < 1
    left = float(np.sum(weights[~inside]))
    moved, weights = moved[inside], weights[inside]
    after = x + moved
    below = np.sqrt((1 - after) * (1 + after))
    turned = np.arctan2(
        -(x * (x + after) / (beside + below) + beside) * moved, below * beside + x * after
    )
    both = np.exp(0.5j * stride * (2 * angle + turned))
    half = np.exp(0.5j * stride * turned)
    row = left * here
    sums, changes = np.ones_like(both), np.ones_like(half)
    for k in range(1, here.size):
        sums, changes = sums * both, changes * half
        row[k] += 2 * float(np.sum(weights * sums.imag * changes.imag))
    return row
