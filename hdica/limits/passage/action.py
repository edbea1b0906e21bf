"""Escape at a fixed step size tau: the mean is n C exp(n S) steps as n grows (WKB).

For phi = 0 and tau below the critical one the chain of the overlap is trapped about Q = 0, up to an
unstable fixed point Q_u. One step moves Q by J/n + J2/n^2 and by what |a|^2 adds, with g = tau
f(u), e1 = g^2 - 2 g u and e2 = g^2 (c^2 + e^2 - 2):

    J = -g c - Q e1/2,    J2 = g c e1/2 - Q e2/2 + 3 Q e1^2/8.

With H(Q, p) = ln E exp(p J) and p*(Q) > 0 its root, S is the integral of p* from 0 to Q_u; the
prefactor C is the next order of the same expansion. A diffusion has -2 D/V in the place of p*,
which is wrong at any fixed tau.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.quadrature import gauss, panel_nodes
from hdica.ingredients.sources import Source
from hdica.limits.passage.step import Function

Array = NDArray[np.float64]
_SOURCE, _NORMAL, _FAR = 24, 225, 14.0
"""Nodes of c; of e, evenly, since exp(p J) is no polynomial; and how far they reach."""
_PLACES, _STEP = 400, 1e-3
_HEAVY = 1.3
"""Growth of the apparent variance of the tails, from the moments of order 40 to those of order 80,
above which they are heavier than Gaussian."""


@dataclass(frozen=True)
class Action:
    """The mean escape time n C exp(n S) steps, and what it is made of."""

    unstable: float  # Q_u
    exponent: float  # S
    prefactor: float  # C
    diffusive: float  # what a diffusion has in the place of S

    def log_steps(self, n: int) -> float:
        """Logarithm of the mean number of steps at n; its relative error falls as 1/n."""
        return math.log(n) + math.log(self.prefactor) + n * self.exponent


@dataclass(frozen=True, eq=False)
class _Jump:
    """The law of a step: nodes c (a column) and e, with their weights."""

    f: Function
    tau: float
    c: Array
    e: Array
    weights: Array

    def at(self, q: float) -> _Here:
        """What a step does at an overlap."""
        u = q * self.c + math.sqrt(1 - q * q) * self.e
        g = self.tau * self.f(u)
        return _Here(self, q, u, g, -g * self.c - q * (g * g - 2 * g * u) / 2)

    def drift(self, q: float) -> float:
        """<J>."""
        return self.at(q).drift


@dataclass(frozen=True, eq=False)
class _Here:
    """u, g = tau f(u) and J at every node, for one overlap."""

    jump: _Jump
    q: float
    u: Array
    g: Array
    first: Array

    @cached_property
    def drift(self) -> float:
        """<J>."""
        return float(np.sum(self.jump.weights * self.first))

    @cached_property
    def noise(self) -> float:
        """Var J."""
        return float(np.sum(self.jump.weights * self.first**2)) - self.drift**2

    @property
    def second(self) -> Array:
        """J2."""
        c, e, g = self.jump.c, self.jump.e, self.g
        e1, e2 = g * g - 2 * g * self.u, g * g * (c**2 + e**2 - 2)
        return g * c * e1 / 2 - self.q * e2 / 2 + 3 * self.q * e1**2 / 8

    def log_mean(self, p: float) -> float:
        """H(Q, p)."""
        with np.errstate(over="ignore"):
            return math.log1p(float(np.sum(self.jump.weights * np.expm1(p * self.first))))

    def tilted(self, p: float) -> Array:
        """Weights of the law tilted by exp(p J)."""
        weights = self.jump.weights * np.exp(p * self.first)
        return np.asarray(weights / np.sum(weights))

    def slope(self, p: float) -> float:
        """H_p, the drift of the tilted law."""
        return float(np.sum(self.tilted(p) * self.first))


def _jump(f: Function, source: Source, tau: float) -> _Jump:
    c = gauss(source.nodes, _SOURCE)
    e = np.linspace(-_FAR, _FAR, _NORMAL)
    normal = np.exp(-(e**2) / 2)
    return _Jump(f, tau, c.points[:, None], e, c.weights[:, None] * normal / np.sum(normal))


def _derivative(function: Callable[[float], float], at: float) -> float:
    """By central differences of order four."""
    near, far = (function(at + k * _STEP) - function(at - k * _STEP) for k in (1, 2))
    return (8 * near - far) / (12 * _STEP)


def _check_tails(source: Source) -> None:
    """Refuse tails with which E exp(p J) is infinite: one large c is what escapes."""
    apparent = []
    for order in (40, 80):
        above, below = source.moment(order), source.moment(order - 2)
        apparent.append(above / below / (order - 1) if math.isfinite(above) else math.inf)
    # A bounded law has a smaller and smaller one, a normal one the same.
    if not apparent[1] <= _HEAVY * apparent[0]:
        raise HdicaError(
            f"source: {source.label} is not allowed for escapes at fixed tau by WKB (its tails are "
            "heavier than Gaussian: E exp(p J) is infinite, escapes are by single large samples "
            "and have no exponent)"
        )


def _unstable(jump: _Jump) -> float:
    """The first overlap above 0 at which the drift turns from down to up."""
    from scipy.optimize import brentq

    places = np.linspace(0.0, 1.0, _PLACES + 1)[1:-1].tolist()
    drifts = [jump.drift(q) for q in places]
    for low, high, below, above in zip(places, places[1:], drifts, drifts[1:], strict=False):
        if below < 0 <= above:
            return float(brentq(jump.drift, low, high, xtol=1e-14))
    raise HdicaError(
        f"tau: {jump.tau:.6g} is not allowed for escapes at fixed tau by WKB (there is no unstable "
        "overlap to reach: it must be below the critical step size, and f must learn the source)"
    )


def _root(here: _Here) -> float:
    """P*(Q) > 0, at which H vanishes."""
    from scipy.optimize import brentq

    guess = -2 * here.drift / here.noise
    low, high = guess / 2, guess
    while here.log_mean(low) > 0:
        low /= 2
    while here.log_mean(high) < 0:
        low, high = high, 2 * high
    return float(brentq(here.log_mean, low, high, xtol=1e-14, rtol=1e-12))


def _second_order(here: _Here, p: float) -> float:
    """The derivative of ln C over Q."""
    jump, q = here.jump, here.q
    tilted = here.tilted(p)
    slope = float(np.sum(tilted * here.first))
    spread = float(np.sum(tilted * here.first**2)) - slope**2
    turn = -_derivative(lambda at: jump.at(at).log_mean(p), q) / slope
    mixed = _derivative(lambda at: jump.at(at).slope(p), q)
    # The last term is how |a|^2 fluctuates.
    rest = float(np.sum(tilted * (p * here.second + (p * q) ** 2 * here.g**4 / 4)))
    return (mixed + (spread - slope**2) * turn / 2 - rest) / slope


def action(f: Function, source: Source, tau: float, points: int = 28) -> Action:
    """Exponent and prefactor of the escape from Q = 0 at a fixed step size.

    By Gauss-Legendre of so many ``points`` over Q.

    Raises
    ------
    HdicaError
        If the tails of the source are heavier than Gaussian, or if there is no trap to leave.
    """
    _check_tails(source)
    jump = _jump(f, source, tau)
    top = _unstable(jump)
    places, weights = panel_nodes(np.array([0.0, top]), points)
    stops = [jump.at(q) for q in places.tolist()]
    roots = [_root(here) for here in stops]
    ratios = [-2 * here.drift / here.noise for here in stops]
    terms = [_second_order(here, p) for here, p in zip(stops, roots, strict=True)]
    down, up = -_derivative(jump.drift, 0.0), _derivative(jump.drift, top)
    lead = math.pi * math.sqrt(jump.at(0.0).noise / jump.at(top).noise / (down * up))
    return Action(
        unstable=top,
        exponent=math.fsum(weights * roots),
        prefactor=lead * math.exp(math.fsum(weights * terms)),
        diffusive=math.fsum(weights * ratios),
    )
