"""Gradient flow of the overlap, da/dt = +-L'(a)(1 - a^2), its times and its bound.

In z = ln a - ln(1 - a^2)/2, the logarithm of the tangent a/sqrt(1 - a^2), the flow is
dz/dt = +-L'(a)/a: no end is singular, and dt = a dz/L'(a) is integrated by Gauss rules.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import chebyshev
from numpy.typing import NDArray

from hdica.ingredients.quadrature import gauss_legendre
from hdica.systems.subspace_ica.loss import Loss, series

Array = NDArray[np.float64]
_WIDTH, _FINE, _COARSE = 0.5, 16, 12
_FIRST, _MOST = 16, 128
_ENOUGH = 3e-14
_FAR = 40.0
"""Largest abs(z) that differs from the ends, 0 and 1."""


def to_line(a: Array) -> Array:
    """Z = ln(a/sqrt(1 - a^2)) of overlaps strictly between 0 and 1."""
    a = np.asarray(a, dtype=float)
    return np.asarray(np.log(a) - np.log((1 - a) * (1 + a)) / 2)


def from_line(z: Array) -> Array:
    """The overlap of z."""
    z = np.asarray(z, dtype=float)
    small = np.exp(-np.abs(z))
    size = np.sqrt(1 + small * small)
    return np.asarray(np.where(z < 0, small / size, 1 / size))


@dataclass(frozen=True, eq=False)
class _Fit:
    """L'(a)/a^p as a Chebyshev series on [0, 1], in a^2 if ``even``, else in a; with its error."""

    power: int
    even: bool
    coefficients: Array
    error: float

    def place(self, a: Array) -> Array:
        """The variable of the series, from 0 to 1."""
        return np.asarray(a * a if self.even else a)


def _order(loss: Loss) -> tuple[int, bool]:
    """A power of a with which L' vanishes at least, and whether L'(a) is odd."""
    terms = series(loss.contrast, loss.source).terms
    even = loss.source.symmetric or not any(terms[1::2])
    deciding = terms[4 if even else 3]
    return (3 if even else 2) if math.isfinite(deciding) else 1, even


@lru_cache(maxsize=64)
def _fit(loss: Loss) -> _Fit:
    """The series, of as many terms as it takes, each value of L' by quadrature."""
    power, even = _order(loss)
    order = _FIRST
    while True:
        x = (1 + chebyshev.chebpts1(order)) / 2
        a = np.sqrt(x) if even else x
        values = loss.at(a)
        scaled = values.slope / a**power
        coefficients = np.asarray(chebyshev.chebfit(2 * x - 1, scaled, order - 1), dtype=float)
        size = np.abs(coefficients)
        rough = float(size[-3:].sum())
        if rough <= _ENOUGH * float(size.max()) or order >= _MOST:
            error = 2 * rough + float(np.max(values.slope_error))
            return _Fit(power, even, coefficients, error)
        order *= 2


@dataclass(frozen=True)
class Flow:
    """The flow up (``direction`` 1) or down (-1) a population loss, from 0 <= a <= 1.

    L' is taken in closed form where there is one, else from a Chebyshev series of L'(a)/a^p, p the
    order with which it vanishes at 0.
    """

    loss: Loss
    direction: int

    @property
    def _fitted(self) -> _Fit:
        return _fit(self.loss)

    def speed(self, a: Array) -> Array:
        """+-L'(a)/a, shape of ``a``; 0 at a = 0."""
        a = np.asarray(a, dtype=float)
        if self.loss.closed:
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = np.where(a > 0, self.loss.at(a).slope / a, 0.0)
            return np.asarray(self.direction * ratio)
        fit = self._fitted
        value = chebyshev.chebval(2 * fit.place(a) - 1, fit.coefficients)
        return np.asarray(self.direction * value * a ** (fit.power - 1))

    def times(self, start: float, ends: Array) -> tuple[Array, Array]:
        """Times from ``start`` to some overlaps, and their errors; shape of ``ends``.

        0 for ends that are not ahead, infinite for those that are not reached.
        """
        ends = np.asarray(ends, dtype=float)
        took, errors = np.zeros(ends.shape), np.zeros(ends.shape)
        for place, end in np.ndenumerate(ends):
            if end > start:
                took[place], errors[place] = self._time(start, float(end))
        return took, errors

    def _time(self, start: float, end: float) -> tuple[float, float]:
        if start <= 0.0 or end >= 1.0:
            return math.inf, 0.0
        low, high = (float(to_line(np.array(a))) for a in (start, end))
        fine, slow, wrong = self._elapsed(low, high, _FINE)
        if slow <= 0.0:
            return math.inf, 0.0
        coarse, _, _ = self._elapsed(low, high, _COARSE)
        return fine, abs(fine - coarse) + wrong + 1e-15 * fine

    def _elapsed(self, low: float, high: float, order: int) -> tuple[float, float, float]:
        """Integral of dz/speed, the least speed on the way, and the error from that of L'."""
        panels = max(1, math.ceil((high - low) / _WIDTH))
        edges = np.linspace(low, high, panels + 1)
        x, w = gauss_legendre(order)
        half = np.diff(edges)[:, None] / 2
        a = from_line(edges[:-1, None] + half * (x + 1))
        speed = self.speed(a)
        with np.errstate(divide="ignore"):
            share = self._share(a, speed)
            return (
                float(np.sum(half * w / speed)),
                float(speed.min()),
                float(np.sum(half * w / np.abs(speed) * share)),
            )

    def _share(self, a: Array, speed: Array) -> Array:
        """Relative error of the speed."""
        if self.loss.closed:
            return np.full(a.shape, 4e-16)
        fit = self._fitted
        return np.asarray(fit.error * a ** (fit.power - 1) / np.abs(speed))

    def path(self, start: float, times: Array) -> tuple[Array, Array]:
        """Overlaps at increasing times >= 0, and their errors, shape of ``times``.

        Solved in z (Dormand and Prince 8(5,3)); the error is how far the quadrature of dt puts the
        time of the overlap from the output time.
        """
        from scipy.integrate import solve_ivp

        times = np.asarray(times, dtype=float)
        if start <= 0.0 or start >= 1.0 or not times.size or times[-1] == 0.0:
            return np.full(times.shape, start), np.zeros(times.shape)
        first = float(to_line(np.array(start)))
        solved = solve_ivp(
            lambda t, z: self.speed(from_line(z)),
            (0.0, float(times[-1])),
            [first],
            method="DOP853",
            t_eval=times,
            rtol=1e-12,
            atol=1e-13,
        )
        z = np.clip(solved.y[0], -_FAR, _FAR)
        return from_line(z), self._missed(first, z, times)

    def _missed(self, first: float, z: Array, times: Array) -> Array:
        """Errors of overlaps, from the times at which quadrature has them."""
        a = from_line(z)
        speed = self.speed(a)
        rounding = 1e-15 * (1 + np.abs(z)) * a * (1 - a * a)
        errors = np.zeros(z.shape)
        for k, end in enumerate(z.tolist()):
            if abs(end) >= _FAR or abs(end - first) < 1e-12:
                continue
            took, _, wrong = self._elapsed(first, end, _FINE)
            late = abs(took - times[k]) + abs(wrong)
            errors[k] = late * abs(speed[k]) * a[k] * (1 - a[k] ** 2)
        return np.asarray(errors + rounding)

    def least_slope(self, low: float, high: float) -> float:
        """Least +-L' between two overlaps: C of the bound of Theorem 4."""
        from scipy.optimize import minimize_scalar

        grid = np.linspace(low, high, 257)
        values = grid * self.speed(grid)
        k = int(np.argmin(values))
        if k in (0, grid.size - 1):
            return float(values[k])

        def at(a: float) -> float:
            return float(a * self.speed(np.array(a)))

        least = minimize_scalar(at, bounds=(grid[k - 1], grid[k + 1]), method="bounded")
        return min(float(values[k]), float(least.fun))


def bound(least: float, start: float, times: Array) -> Array:
    """f(t) = tanh(C t + artanh a0), below which the overlap is not while L' >= C (Theorem 4)."""
    if start >= 1.0:
        return np.ones(np.shape(times))
    return np.asarray(np.tanh(least * np.asarray(times, dtype=float) + math.atanh(start)))


def bound_time(least: float, start: float, ends: Array) -> Array:
    """Time (artanh a1 - artanh a0)/C by which f is at a1; infinite for C <= 0."""
    ends = np.asarray(ends, dtype=float)
    with np.errstate(divide="ignore"):
        way = np.maximum(np.arctanh(ends) - math.atanh(start), 0.0)
        return np.asarray(way / least if least > 0 else np.where(way > 0, math.inf, 0.0))


def kurtosis_time(kappa4: float, gamma: float, start: float, end: float) -> float:
    """The time in closed form for G = s^4 - 3 and s^4 - 6 s^2 + 3.

    (-1/(2 a^2) + ln a - ln(1 - a^2)/2)/(4 abs(kappa_4) gamma^2) between both overlaps.
    """

    def at(a: float) -> float:
        return -1 / (2 * a * a) + math.log(a) - math.log((1 - a) * (1 + a)) / 2

    return (at(end) - at(start)) / (4 * abs(kappa4) * gamma**2)


def leading_time(loss: Loss, start: float) -> float:
    """Leading order 1/(2 C a0^2) of all times from a small overlap, L'(a) ~ +-C a^3.

    2 sqrt(2)/(gamma a0)^2 for G = -exp(-s^2/2) and random signs. Infinite where c_4 kappa_4 is 0.
    """
    terms = series(loss.contrast, loss.source).terms
    rise = 4 * abs(terms[4]) * loss.gamma**2 if len(terms) > 4 else 0.0
    return 1 / (2 * rise * start**2) if rise > 0 and start > 0 else math.inf
