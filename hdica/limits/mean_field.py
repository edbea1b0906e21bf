"""The mean-field family that the limits of projected rules with an element-wise regularizer share.

The conditional density P(x | xi) of the estimate follows

    dP/dt = -d/dx [(b xi - B phi(x) - 2 h x) P] + g d^2P/dx^2,

with b = b(Q, tau), g = g(Q, tau), B = B(tau) and the overlap Q = E[xi x]. The rule keeps
|x|^2 = n, hence E[x^2] = 1, which fixes

    2 h = g + b Q - B R,        R = E[x phi(x)].
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.formula import Formula
from hdica.ingredients.priors import Prior
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.starts import Start

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scaled:
    """A coefficient tau^power S(Q) of a limit, which compiled code can evaluate by itself.

    Parameters
    ----------
    value
        ``value(q, tau)``: the coefficient.
    series
        Coefficients of S as a Chebyshev series on [-1, 1].
    power
        Power of tau.
    """

    value: Callable[[float, float], float]
    series: Array
    power: int

    def __call__(self, q: float, tau: float) -> float:
        """The coefficient at one overlap and step size."""
        return self.value(q, tau)

    def times(self, factor: float) -> Scaled:
        """The same times a number."""
        return Scaled(lambda q, tau: factor * self.value(q, tau), factor * self.series, self.power)


@dataclass(frozen=True, eq=False)
class MeanField:
    """One limit of the family.

    Parameters
    ----------
    prior
        Law of xi; the density is solved at each of its nodes.
    start
        Law of x given xi at t = 0.
    schedule
        Step size tau(t).
    phi
        The regularizer.
    pull
        ``pull(q, tau)``: b, the coefficient of xi in the drift.
    diffusion
        ``diffusion(q, tau)``: g > 0. As a :class:`Scaled`, like ``pull``, it costs the solvers
        nothing; any other function of both is tabulated at each step size that occurs.
    strength
        ``strength(tau)``: B >= 0, the coefficient of -phi(x) in the drift.
    """

    prior: Prior
    start: Start
    schedule: Schedule
    phi: Formula
    pull: Callable[[float, float], float]
    diffusion: Callable[[float, float], float]
    strength: Callable[[float], float]

    def curvature(self, q: float, r: float, tau: float) -> float:
        """2 h, the curvature of the effective potential that E[x^2] = 1 demands."""
        pulled = self.pull(q, tau) * q
        return self.diffusion(q, tau) + pulled - self.strength(tau) * r
