"""The limit of online ICA with several features: an equation for the overlaps alone.

With u = sum_j Q_j c_j + s z, z normal and s^2 = 1 - sum_j Q_j^2,

    dQ_j/dt = -tau (<c_j f(u)> - Q_j <u f(u)>) - (tau^2/2) <f(u)^2> Q_j,

which is below (11) of Wang and Lu 2017, with the sign of G corrected, for one feature. For a
polynomial f the averages are moments of the sources, polynomials in Q.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.sources import Source
from hdica.limits.numerics.solvers import integrate

Array = NDArray[np.float64]
FINE, COARSE = 1e-12, 1e-10
"""Tolerances of the integration, and of the run that tells its error."""
CONTROL = 1.02
"""Factor by which the drift of the negative control is wrong."""


@dataclass(frozen=True, eq=False)
class Averages:
    """<c_j f(u)>, <u f(u)> and <f(u)^2> of a polynomial f, from moments of the sources."""

    coefficients: Array  # of f, lowest degree first, shape (d + 1,)
    square: Array  # of f^2, shape (2 d + 1,)
    moments: Array  # E c_j^p / p! at [j, p], shape (M, size)
    raised: Array  # E c_j^(p + 1) / p! at [j, p], shape (M, d + 1)

    def at(self, q: Array) -> tuple[Array, float, float]:
        """The three averages at overlaps of shape (M,); the first is of shape (M,)."""
        size, degree = self.moments.shape[1], self.coefficients.size
        powers = q[:, None] ** np.arange(size)
        series = self.moments * powers
        normal = _normal(max(0.0, 1.0 - math.fsum(q * q)), size)
        moment = _product([normal, *series]) * _FACTORIALS[:size]
        along = np.empty(q.size)
        for j in range(q.size):
            others = [series[k, :degree] for k in range(q.size) if k != j]
            own = self.raised[j] * powers[j, :degree]
            mixed = _product([normal[:degree], *others, own]) * _FACTORIALS[:degree]
            along[j] = math.fsum(self.coefficients * mixed)
        mean_u = math.fsum(self.coefficients * moment[1 : degree + 1])
        return along, mean_u, math.fsum(self.square * moment[: self.square.size])


_MOST = 130
_FACTORIALS = np.array([float(math.factorial(p)) for p in range(_MOST)])


def _normal(variance: float, size: int) -> Array:
    """E (s z)^p / p!, the coefficients of exp(s^2 t^2/2), shape (size,)."""
    found = np.zeros(size)
    for p in range(0, size, 2):
        found[p] = (variance / 2) ** (p // 2) / math.factorial(p // 2)
    return found


def _product(series: Sequence[Array]) -> Array:
    """Product of power series of one length, cut off there."""
    found = series[0]
    for other in series[1:]:
        found = np.convolve(found, other)[: found.size]
    return found


def averages_of(f: Formula, sources: Sequence[Source]) -> Averages:
    """The averages of a polynomial ``f``, whose moments are known to be finite."""
    c = f.coefficients
    if c is None or 2 * c.size >= _MOST:
        raise HdicaError(
            f"nonlinearity = {f.text!r} is not allowed here (a polynomial of degree below "
            f"{_MOST // 2 - 1})",
            ["nonlinearity"],
        )
    square = np.convolve(c, c)
    size = max(square.size, c.size + 1)
    moments = np.array(
        [[law.moment(p) / math.factorial(p) for p in range(size)] for law in sources]
    )
    raised = np.array(
        [[law.moment(p + 1) / math.factorial(p) for p in range(c.size)] for law in sources]
    )
    return Averages(c, square, moments, raised)


def drift(averages: Averages, q: Array, tau: float) -> Array:
    """dQ/dt at overlaps of shape (M,)."""
    along, mean_u, square = averages.at(q)
    return np.asarray(-tau * (along - q * mean_u) - tau * tau / 2 * square * q)


@dataclass(frozen=True)
class Path:
    """The limit at the asked times, each array of shape (T, M)."""

    q: Array
    error: Array  # difference to a run of 100 times coarser tolerance, plus the finer tolerance
    control: Array  # with the drift wrong by 2 %: what a comparison must be able to reject


def solve(averages: Averages, schedule: Schedule, start: Array, times: Array) -> Path:
    """Overlaps at increasing times from those of the start, by Dormand and Prince's order 8."""

    def rate(q: Array, tau: float) -> Array:
        return drift(averages, q, tau)

    fine = integrate(rate, schedule, start, times, FINE)
    coarse = integrate(rate, schedule, start, times, max(COARSE, fine.tolerance))
    wrong = integrate(
        lambda q, tau: CONTROL * rate(q, tau), schedule, start, times, max(COARSE, fine.tolerance)
    )
    error = np.abs(fine.states - coarse.states) + fine.tolerance
    return Path(fine.states, error, wrong.states)
