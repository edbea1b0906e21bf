"""The mean-field family that the limits of projected rules with an element-wise regularizer share.

The conditional density P(x | xi) of the estimate follows

    dP/dt = -d/dx [(b xi - B phi(x) - 2 h x) P] + g d^2P/dx^2,

with b = b(Q, tau), g = g(Q, tau), B = B(tau) and the overlap Q = E[xi x]. The rule keeps
|x|^2 = n, hence E[x^2] = 1, which fixes

    2 h = g + b Q - B R,        R = E[x phi(x)].

For a rule by averages of its push b = -tau gain, g = tau^2 power/2 and B = tau: Wang and Lu 2017,
(6)-(10), with the sign of G corrected; any other push has its own averages.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.polynomial import Chebyshev

from hdica.ingredients.formula import Formula
from hdica.ingredients.plain import Array, Scalar
from hdica.ingredients.priors import Prior
from hdica.ingredients.schedules import STILL, Motion, Schedule
from hdica.ingredients.starts import Start
from hdica.limits.averages.expectations import Averages
from hdica.limits.numerics.series import Function, Halves, packed, scaled

Coefficient = Callable[[float, float], float]
OVERLAP, PENALTY = "xi.x/n", "x.phi(x)/n"
"""Names of order parameters here: systems call them as their users do."""


@dataclass(frozen=True, eq=False)
class Scaled:
    """A coefficient tau^power S(Q) of a limit, which compiled code can evaluate by itself.

    ``value(q, tau)`` is the coefficient, ``function`` is S on [-1, 1], ``error`` the largest of S,
    of S times sqrt(1 - Q^2) where it is divided by that.
    """

    value: Coefficient
    function: Function
    power: int
    error: float = 0.0

    def __call__(self, q: float, tau: float) -> float:
        """The coefficient at one overlap and step size."""
        return self.value(q, tau)

    def times(self, factor: float) -> Scaled:
        """The same times a number."""
        value, function = self.value, scaled(self.function, factor)
        return replace(self, value=lambda q, tau: factor * value(q, tau), function=function)

    def error_at(self, q: float, tau: float) -> float:
        """Error of the coefficient at one overlap and step size."""
        over = self.function.over if isinstance(self.function, Halves) else 0
        width = max(math.sqrt(max((1 - q) * (1 + q), 0.0)), 1e-9)
        return float(tau**self.power * self.error / width**over)


def coefficient_error(coefficient: Coefficient, q: float, tau: float) -> float:
    """Error of b or g at one overlap and step size, as far as it is known."""
    return coefficient.error_at(q, tau) if isinstance(coefficient, Scaled) else 0.0


_HEAD = 5
"""Numbers before the coefficients of a packed function of Q and P."""


@dataclass(frozen=True, eq=False)
class Planes:
    """B, g and 2h of a rule that does not keep the norm, as functions of Q and P = E[x^2].

    Each is packed as :func:`hdica.limits.numerics.compiled.plane` takes it, for P between ``low``
    and ``high``; ``error`` is the largest relative one, ``between(low, high)`` the same on another
    range.
    """

    pull: Array
    diffusion: Array
    curvature: Array
    low: float
    high: float
    error: float
    between: Callable[[float, float], Planes]

    def wrong_by(self, factor: float) -> Planes:
        """The same with b times a factor."""
        pull = self.pull.copy()
        pull[_HEAD:] *= factor
        return replace(
            self,
            pull=pull,
            between=lambda low, high: self.between(low, high).wrong_by(factor),
        )


@dataclass(frozen=True, eq=False)
class MeanField:
    """One limit of the family.

    The density is solved at each node of the prior, the law of xi; ``start`` is that of x given xi
    at t = 0. ``pull(q, tau)`` is b, ``diffusion(q, tau)`` is g > 0, ``strength(tau)`` is B >= 0. As
    :class:`Scaled` the first two cost the solvers nothing; any other function of both is tabulated
    at each step size that occurs.

    ``follows`` are the schedules that the coefficients are made of where their second argument, the
    value of ``schedule``, is the time 1 + t and no step size. ``motion`` mixes the laws at all xi:
    at the rate delta, dP(x | xi)/dt gains delta (sum over xi' of p(xi') P(x | xi') - P(x | xi)).

    A rule that does not keep the norm has ``planes`` in the place of ``pull`` and ``diffusion``,
    and E[x^2] = P is another order parameter.
    """

    prior: Prior
    start: Start
    schedule: Schedule
    phi: Formula
    pull: Coefficient
    diffusion: Coefficient
    strength: Scalar
    follows: tuple[Schedule, ...] = ()
    motion: Motion = STILL
    planes: Planes | None = None

    @property
    def q0(self) -> float:
        """Q at t = 0."""
        return self.start.overlap(self.prior)

    @property
    def followed(self) -> tuple[Schedule, ...]:
        """What a step in time must not leave behind."""
        return self.follows or (self.schedule,)

    def coefficients(self, q: float, other: float, tau: float) -> tuple[float, float, float]:
        """B, g and 2h; ``other`` is P of a rule that does not keep the norm, else 2h itself."""
        if self.planes is None:
            return self.pull(q, tau), self.diffusion(q, tau), other
        from hdica.limits.numerics.compiled import plane

        own = self.planes
        b, g, h2 = (plane(one, q, other) for one in (own.pull, own.diffusion, own.curvature))
        return b, g, h2

    def other(self, q: float, r: float, tau: float) -> float:
        """What the density is solved for beside Q, at the start: 2h, or P."""
        return self.start.square if self.planes else self.curvature(q, r, tau)

    def rates(self, q: Array, tau: float) -> Array:
        """B and g at overlaps, shape (2, overlaps)."""
        return np.array([[of(v, tau) for v in q.tolist()] for of in (self.pull, self.diffusion)])

    def curvature(self, q: float, r: float, tau: float) -> float:
        """2 h, the curvature of the effective potential that E[x^2] = 1 demands."""
        return self.diffusion(q, tau) + self.pull(q, tau) * q - self.strength(tau) * r


def field_of(
    mean: Averages, prior: Prior, start: Start, schedule: Schedule, phi: Formula
) -> MeanField:
    """The limit of x <- x + n^-1/2 F(u, c) y - (tau/n) phi(x), of F by its averages over tau."""
    # Averages in closed form are right to rounding.
    closed = isinstance(mean.gain, Chebyshev)
    errors = (0.0, 0.0) if closed else (mean.gain_error, mean.power_error / 2)
    gain, power = packed(mean.gain), packed(mean.power)

    def value(series: Array, q: float) -> float:
        return _value_at()(series, min(1.0, max(-1.0, float(q))))

    return MeanField(
        prior=prior,
        start=start,
        schedule=schedule,
        phi=phi,
        pull=Scaled(lambda q, tau: -tau * value(gain, q), scaled(mean.gain, -1.0), 1, errors[0]),
        diffusion=Scaled(
            lambda q, tau: tau**2 * value(power, q) / 2, scaled(mean.power, 0.5), 2, errors[1]
        ),
        strength=lambda tau: tau,
    )


@cache
def _value_at() -> Callable[[Array, float], float]:
    """Loaded when a limit is solved: who only asks whether there is one need not wait for it."""
    from hdica.limits.numerics.compiled import value_at

    function: Callable[[Array, float], float] = value_at
    return function
