"""The overlap in closed form: the time at which q = Q^2 is reached, and q by its inverse.

For an odd polynomial f the limit of x <- x - tau f(u) y at a constant step size is dq/dt = q P(q)
with a polynomial P, such as (14) of Wang and Lu 2017. Partial fractions over its roots r_i give

    t = ln q / P(0) + sum_i ln(q - r_i) / (r_i P'(r_i)) + constant,

with the real part of the logarithm for roots off the real line, as those above a fold are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from hdica.ingredients.formula import Formula
from hdica.ingredients.sources import Source

Array = NDArray[np.float64]
Roots = NDArray[np.complex128]
_LEAST = math.log(1e-300)
"""Logarithm of q below which the overlap is 0."""
_EPS = float(np.finfo(float).eps)
_NEAR = 100
_STEADY = 1e-14
"""Rates relative to the coefficients of P below which a start is a steady state."""


def closed_refusal(f: Formula) -> str:
    """Empty if a nonlinearity has a closed form, else the sentence that says why not."""
    if f.coefficients is None or not f.is_odd:
        return f"no closed form is known for nonlinearity {f.text!r} (allowed: odd polynomials)"
    return ""


def _double_factorial(k: int) -> float:
    """<e^(k+1)> of a standard normal e, for odd k >= -1."""
    return float(math.prod(range(k, 0, -2)))


def _mean(law: Source, power: int, more: int) -> Polynomial:
    """<c^more u^power> for u = Q c + sqrt(1 - Q^2) e, over Q where ``more`` = 1, as one of q."""
    q, rest, total = Polynomial([0.0, 1.0]), Polynomial([1.0, -1.0]), Polynomial([0.0])
    for k in range(more, power + 1, 2):
        normal = power - k
        weight = math.comb(power, k) * law.moment(k + more) * _double_factorial(normal - 1)
        total = total + weight * q ** ((k - more) // 2) * rest ** (normal // 2)
    return total


def rates(f: Formula, law: Source) -> tuple[Polynomial, Polynomial]:
    """P1 and P2 of dq/dt = q (tau P1(q) + tau^2 P2(q)), for an odd polynomial f.

    Only moments of the source enter: no average is a quadrature.
    """
    assert f.coefficients is not None
    gain, square = Polynomial([0.0]), Polynomial(f.coefficients) ** 2
    for power in range(1, f.coefficients.size, 2):
        # <c f(u)>/Q - <f'(u)>, which is G/(tau Q).
        terms = _mean(law, power, 1) - power * _mean(law, power - 1, 0)
        gain = gain + float(f.coefficients[power]) * terms
    loss = Polynomial([0.0])
    for power in range(0, square.coef.size, 2):
        loss = loss + float(square.coef[power]) * _mean(law, power, 0)
    return 2 * Polynomial([-1.0, 1.0]) * gain, -loss


@dataclass(frozen=True, eq=False)
class ClosedOverlap:
    """dq/dt = q P(q) from one start.

    ``rate`` is P, in which P(0) < 0; ``q0`` is q at t = 0.
    """

    rate: Polynomial
    q0: float

    @cached_property
    def roots(self) -> Roots:
        """The roots of P, those off the real line in pairs."""
        coef = self.rate.coef
        small = np.abs(coef) <= 8 * _EPS * np.abs(coef).max()
        last = int(np.flatnonzero(~small)[-1])
        return np.asarray(Polynomial(coef[: last + 1]).roots(), dtype=complex)

    @cached_property
    def residues(self) -> Roots:
        """1/(r P'(r)) of every root."""
        return np.asarray(1 / (self.roots * self.rate.deriv()(self.roots)))

    def time(self, q: Array) -> Array:
        """The time of q from an arbitrary zero, infinite at a steady state."""
        gap = q - self.roots[:, None]
        # Real roots keep their side of q, so that only turns about the others count.
        turn = np.where(self.roots.imag[:, None] != 0, np.angle(gap), 0.0)
        with np.errstate(divide="ignore"):
            far = self.residues.real[:, None] * np.log(np.abs(gap))
            total = np.sum(far - self.residues.imag[:, None] * turn, axis=0)
            return np.asarray(np.log(q) / self.rate(0.0) + total)

    @cached_property
    def end(self) -> float:
        """The steady state that q tends to."""
        slope = self.q0 * float(self.rate(self.q0))
        if abs(slope) <= _STEADY * self.q0 * np.abs(self.rate.coef).max():
            return self.q0
        steady = np.append(self.roots[self.roots.imag == 0].real, 0.0)
        if slope > 0:
            return float(np.min(steady[steady > self.q0]))
        return float(np.max(steady[steady < self.q0]))

    def at(self, times: Array) -> Array:
        """The square of the overlap at some times, by inverting :meth:`time` to rounding."""
        from scipy.optimize import bisect

        if self.end == self.q0:
            return np.full(times.shape, self.q0)
        begin = float(self.time(np.array([self.q0]))[0])
        first, last = math.log(self.q0), math.log(self.end) if self.end > 0 else _LEAST

        def late(s: float, t: float) -> float:
            return float(self.time(np.array([math.exp(s)]))[0]) - begin - t

        found = np.full(times.shape, self.end)
        for k, t in enumerate(times):
            if t == 0:
                found[k] = self.q0
            elif late(last, t) > 0:
                found[k] = math.exp(bisect(late, first, last, args=(t,), xtol=1e-16))
        return found

    def error(self, q: Array) -> Array:
        """What rounding of the roots makes of q, as far as it is of first order."""
        roots, residues = self.roots[:, None], np.abs(self.residues[:, None])
        slope, bend = self.rate.deriv(), self.rate.deriv(2)
        size = Polynomial(np.abs(self.rate.coef))(np.abs(roots))
        moved = 4 * _EPS * size / np.abs(slope(roots)) + _EPS * np.abs(roots)
        share = moved * (1 / np.abs(roots) + np.abs(bend(roots) / slope(roots)))

        def off(value: Array) -> Array:
            gap = np.maximum(np.abs(value - roots), moved)
            lost = np.sum(residues * (share * np.abs(np.log(gap)) + moved / gap), axis=0)
            return np.asarray(lost + 4 * _EPS * np.abs(np.log(np.maximum(value, 1e-300))))

        spread = np.abs(q * self.rate(q)) * (off(q) + off(np.array([self.q0])))
        if not self.roots.size:
            return np.asarray(spread + 4 * _EPS * q)
        # At the end of a path the error is that of the root itself.
        there = np.max(np.where(np.abs(q - roots) < _NEAR * moved, moved, 0.0), axis=0)
        return np.asarray(spread + there + 4 * _EPS * q)


def closed_overlap(
    f: Formula, law: Source, tau: float, overlap: float, batch: int = 1
) -> ClosedOverlap:
    """The limit of the rule with ``f`` at a constant step size, from an overlap at t = 0.

    A step with the mean over ``batch`` samples loses 1/batch of what one sample makes it lose.
    """
    learning, loss = rates(f, law)
    return ClosedOverlap(tau * learning + tau**2 / batch * loss, overlap**2)
