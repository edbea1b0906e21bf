"""The overlap under x <- x - tau f(u) y or any push, back to |x|^2 = n: drift, noise, folds.

Wang and Lu 2017, below (11); Rattray 2002, (17) for one projection and one source. Of a push
G(u, c) over samples of which c is the component along the feature, y = xi c/sqrt(n) + a, a normal
and orthogonal to xi, Stein's identity gives
E[G y_i] = n^-1/2 (xi_i (<c G> - Q <G_u>) + x_i <G_u>): the limit needs <c G> - Q <G_u> and <G^2>.

For an odd polynomial f at a constant step size q = Q^2 has a closed form: dq/dt = q P(q) with a
polynomial P, such as (14) of Wang and Lu 2017. Partial fractions over its roots r_i give

    t = ln q / P(0) + sum_i ln(q - r_i) / (r_i P'(r_i)) + constant,

with the real part of the logarithm for roots off the real line, as those above a fold are.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.contrasts import Push
from hdica.ingredients.formula import Formula, parse_formula
from hdica.ingredients.laws import double_factorial
from hdica.ingredients.plain import Array
from hdica.ingredients.sources import Source
from hdica.limits.averages import expectations
from hdica.limits.numerics.series import Halves, fitted, interpolate, trimmed
from hdica.limits.overlap.drift import Drift, Noise
from hdica.limits.overlap.fixed_points import Folds, find_folds, fold_error

MORE = 32
"""Degree that products with Q and sqrt(1 - Q^2) add on a half."""


def projected_drift(
    mean: expectations.Averages, find_noise: Callable[[], Noise | None], zero: int = 1
) -> Drift:
    """dQ/dt = -tau (1 - Q^2) gain - tau^2 Q power/2, with the errors of both orders.

    ``zero`` is the order of the zero that the learning has at Q = 0; 0 where it has none.
    """
    gain, power = mean.gain, mean.power
    if isinstance(gain, Chebyshev) and isinstance(power, Chebyshev):
        q = Chebyshev([0.0, 1.0])
        return Drift(trimmed((q * q - 1) * gain), trimmed(-0.5 * q * power), find_noise)
    assert isinstance(gain, Halves)
    assert isinstance(power, Halves)
    whole = replace(gain, over=0)

    def learned(q: Array) -> Array:
        # Where the gain is divided by sqrt(1 - Q^2) the factor Q^2 - 1 takes that away.
        square = (1 - q) * (1 + q)
        return -whole(q) * (np.sqrt(square) if gain.over else square)

    first, second = (max(part.above.size, part.below.size) + MORE for part in (gain, power))
    learning = fitted(learned, first, zero=zero)
    loss = fitted(lambda q: -0.5 * q * power(q), second, zero=1)
    return Drift(learning, loss, find_noise, mean.gain_error, mean.power_error / 2)


@lru_cache(maxsize=64)
def pushed_averages(push: Push, source: Source) -> expectations.Averages:
    """The averages of a push for every overlap, each with its error.

    ``gain`` is Q <G_u> - <c G>, in the sign in which a descent along f = -G has it.
    """

    def sample(q: float) -> expectations.Integrand:
        def integrand(c: Array, e: Array, u: Array) -> tuple[Array, Array]:
            value = push.value(u, c)
            return q * push.slope(u, c) - c * value, value * value

        return integrand

    gain, power = expectations.smooth_parts(sample, parse_formula("x"), source, None)
    return expectations.Averages(gain.function, power.function, gain.error, power.error)


def pushed_drift(push: Push, source: Source) -> Drift:
    """Drift of the overlap: dQ/dt = tau (1 - Q^2) (<c G> - Q <G_u>) - tau^2 Q <G^2>/2."""
    return projected_drift(pushed_averages(push, source), lambda: None, zero=0)


_NOISE_GOAL = 1e-9
_ROUNDING = 4 * float(np.finfo(float).eps)


@lru_cache(maxsize=64)
def drift_of(f: Formula, law: Source) -> Drift:
    """Drift of the overlap under x <- x - tau f(u) y, for f and the law of a source."""
    return projected_drift(expectations.averages(f, law), lambda: _noise(f, law))


def _noise(f: Formula, law: Source) -> Noise | None:
    """Variance of a step of Q times n^2: Var[tau f (c - Q u) + Q tau^2 f^2/2], by powers of tau."""
    try:
        if f.coefficients is None:
            return _noise_on_halves(f, law)
        return _noise_of_polynomial(f, law)
    except HdicaError:
        return None


def _step_products(f: Formula, q: float) -> Callable[[Array, Array], list[Array]]:
    """Products of f(u) and c - Q u whose averages give that variance."""

    def integrand(c: Array, u: Array) -> list[Array]:
        value, rest = f.value(u), c - q * u
        square, push = value * value, value * rest
        return [push, square, square * square, push * push, square * push]

    return integrand


def _noise_of_polynomial(f: Formula, law: Source) -> Noise:
    assert f.coefficients is not None
    degree = 4 * f.coefficients.size  # that of the averages is no higher

    @lru_cache
    def means(q: float) -> Array:
        products = _step_products(f, q)
        return expectations.polynomial_averages(products, f, law, q, degree // 2 + 1)

    def mean(k: int) -> Chebyshev:
        return interpolate(lambda q: float(means(q)[k]), degree)

    first, second, fourth, spread, third = (mean(k) for k in range(5))
    q = Chebyshev([0.0, 1.0])
    v2 = trimmed(spread - first * first, 1e-14)
    v3 = trimmed(q * (third - first * second), 1e-14)
    return v2, v3, trimmed(0.25 * q * q * (fourth - second * second), 1e-14)


def _noise_on_halves(f: Formula, law: Source) -> Noise:
    def sample(q: float) -> Callable[[Array, Array, Array], list[Array]]:
        products = _step_products(f, q)
        return lambda c, e, u: products(c, u)

    parts = expectations.smooth_parts(sample, f, law, (1, 0, 0, 0, 1), _NOISE_GOAL)
    first, second, fourth, spread, third = (part.function for part in parts)
    degree = max(part.function.above.size for part in parts) + MORE
    return (
        fitted(lambda q: spread(q) - first(q) ** 2, degree),
        fitted(lambda q: q * (third(q) - first(q) * second(q)), degree),
        fitted(lambda q: 0.25 * q * q * (fourth(q) - second(q) ** 2), degree),
    )


@lru_cache(maxsize=256)
def _seen_again(f: Formula, law: Source, tau: float, q: float) -> float:
    """Difference to T(Q) by averages at one overlap, plus their own error."""
    if f.coefficients is not None:
        # Averages of polynomials are in closed form: their rounding alone.
        closed = expectations.averages(f, law)
        power = float(closed.power(q))
        share = 2 * (1 - q * q) / (abs(q) * power)
        return share * closed.gain_error + tau * closed.power_error / power
    (gain, gain_off), (power, power_off) = (
        expectations.gain_at(f, law, q),
        expectations.power_at(f, law, q),
    )
    share = 2 * (1 - q * q) / (abs(q) * power)
    again = -math.copysign(share, q) * gain
    return abs(again - tau) + share * gain_off + tau * power_off / power


def folds_of(f: Formula, law: Source) -> tuple[Folds, Array]:
    """Critical step sizes of that rule, and the error of each.

    Mirror images (Q and -Q at one step size, for odd f) are reported once, with Q > 0. The
    error is what the averages leave open, the difference to T(Q) from averages at that very Q,
    whose nodes are others, and rounding.
    """
    flow = drift_of(f, law)
    folds = find_folds(flow)
    distinct = [
        i
        for i, (tau, q) in enumerate(zip(folds.tau, folds.q, strict=True))
        if q > 0 or not np.any(np.isclose(folds.q, -q, atol=1e-7) & np.isclose(folds.tau, tau))
    ]
    tau, q = folds.tau[distinct], folds.q[distinct]
    pairs = zip(tau.tolist(), q.tolist(), strict=True)
    errors = [fold_error(flow, t, x) + _seen_again(f, law, t, x) + _ROUNDING * t for t, x in pairs]
    return Folds(tau, q), np.array(errors)


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


def _mean(law: Source, power: int, more: int) -> Polynomial:
    """<c^more u^power> for u = Q c + sqrt(1 - Q^2) e, over Q where ``more`` = 1, as one of q."""
    q, rest, total = Polynomial([0.0, 1.0]), Polynomial([1.0, -1.0]), Polynomial([0.0])
    for k in range(more, power + 1, 2):
        normal = power - k
        weight = math.comb(power, k) * law.moment(k + more) * double_factorial(normal - 1)
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
        last = np.flatnonzero(~small)[-1]
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
            return np.log(q) / self.rate(0.0) + total

    @cached_property
    def end(self) -> float:
        """The steady state that q tends to."""
        slope = self.q0 * float(self.rate(self.q0))
        if abs(slope) <= _STEADY * self.q0 * np.abs(self.rate.coef).max():
            return self.q0
        steady = np.append(self.roots[self.roots.imag == 0].real, 0.0)
        above, below = steady[steady > self.q0], steady[steady < self.q0]
        return float(above.min() if slope > 0 else below.max())

    def at(self, times: Array) -> Array:
        """The square of the overlap at some times, by inverting :meth:`time` to rounding."""
        from scipy.optimize import bisect

        if self.end == self.q0:
            return np.full(times.shape, self.q0)
        begin = float(self.time(np.array([self.q0]))[0])
        first, last = math.log(self.q0), math.log(self.end) if self.end > 0 else _LEAST

        def late(s: float, t: float) -> float:
            return float(self.time(np.array([math.exp(s)]))[0]) - begin - t

        squares = np.full(times.shape, self.end)
        for k, t in enumerate(times):
            if t == 0:
                squares[k] = self.q0
            elif late(last, t) > 0:
                squares[k] = math.exp(bisect(late, first, last, args=(t,), xtol=1e-16))
        return squares

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
            return lost + 4 * _EPS * np.abs(np.log(np.maximum(value, 1e-300)))

        spread = np.abs(q * self.rate(q)) * (off(q) + off(np.array([self.q0])))
        if not self.roots.size:
            return spread + 4 * _EPS * q
        # At the end of a path the error is that of the root itself.
        there = np.max(np.where(np.abs(q - roots) < _NEAR * moved, moved, 0.0), axis=0)
        return spread + there + 4 * _EPS * q


def closed_overlap(
    f: Formula, law: Source, tau: float, overlap: float, batch: int = 1
) -> ClosedOverlap:
    """The limit of the rule with ``f`` at a constant step size, from an overlap at t = 0.

    A step with the mean over ``batch`` samples loses 1/batch of what one sample makes it lose.
    """
    learning, loss = rates(f, law)
    return ClosedOverlap(tau * learning + tau**2 / batch * loss, overlap**2)
