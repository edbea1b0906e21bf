"""Escape at a fixed step size tau: the mean is n C exp(n S) steps as n grows (WKB).

For phi = 0 and tau below the critical one the chain of the overlap is trapped about Q = 0, up to an
unstable fixed point Q_u. One step moves Q by J/n + J2/n^2 and by what |a|^2 adds, with g = tau
f(u), e1 = g^2 - 2 g u and e2 = g^2 (c^2 + e^2 - 2):

    J = -g c - Q e1/2,    J2 = g c e1/2 - Q e2/2 + 3 Q e1^2/8.

With H(Q, p) = ln E exp(p J) and p*(Q) > 0 its root, S is the integral of p* from 0 to Q_u; the
prefactor C is the next order of the same expansion. A diffusion has -2 D/V in the place of p*,
which is wrong at any fixed tau.

At fixed c and u only the density of u and J depend on Q, with dJ/dQ = -e1/2: derivatives over Q are
averages with the score (e c s + Q (1 - e^2))/s^2, s^2 = 1 - Q^2, and need no slope of f.

p* may bend within a thousandth of Q, where another way to make a large step takes over. Panels of Q
are halved until that changes nothing; at each Q the averages over c and e are two composite Gauss
rules that share no node, on panels that are halved until the two agree. What is left of either
disagreement is the error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula
from hdica.ingredients.laws import part_edges
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import Nodes, dot, panel_nodes
from hdica.ingredients.sources import Source
from hdica.limits.averages.double_average import features
from hdica.process.progress import check_deadline

_FINE, _COARSE = 16, 12
"""Nodes on a panel of c, of e and (the former) of Q."""
_PANELS, _REACH, _LEVELS = 16, 16.0, 5
"""Panels of e at first, how far they reach, and how often they are halved at most."""
_AGREED = 1e-9
"""Disagreement, relative for p* and absolute for ln C, that is left alone."""
_ROUNDING = np.array([1e-11, 1e-11, 2e-9])
"""Least errors of S and of what a diffusion has, relative, and of ln C."""
_STEPS = 60
_UNIT = np.array([1e-300, 1e-300, 1.0])
_NOISE = 1e-7
"""Disagreement of halved panels that may be rounding."""
_MOST = 400
"""Panels of Q beyond which none is halved."""
_LEAST, _FAR, _SHARE = 1e-60, 1e-50, 1e-9
"""Weight below which a node is left out; and that below which nodes have no such share of a tilted
law, unless it has moved into tails without end."""
_NOTHING = 1e-22
"""Tilted weight below which a node is left out."""
_HEAVY = 1.3
"""Growth of the apparent variance of the tails, from the moments of order 40 to those of order 80,
above which they are heavier than Gaussian."""
WORST_EXPONENT, WORST_PREFACTOR = 1e-6, 1e-3
"""Largest relative errors of S and C with which they are a result."""


@dataclass(frozen=True)
class Action:
    """The mean escape time n C exp(n S) steps, what it is made of, and absolute errors."""

    exponent: float  # S
    prefactor: float  # C
    diffusive: float  # what a diffusion has in the place of S
    unstable: float  # Q_u
    exponent_error: float
    prefactor_error: float
    diffusive_error: float
    unstable_error: float

    def log_steps(self, n: int) -> float:
        """Logarithm of the mean number of steps at n; its relative error falls as 1/n."""
        return math.log(n) + math.log(self.prefactor) + n * self.exponent

    def error(self, n: int) -> float:
        """Relative error of that number at n by those of S and C, without the 1/n."""
        return math.expm1(min(n * self.exponent_error, 700)) + self.prefactor_error / self.prefactor


@dataclass(frozen=True, eq=False)
class _Step:
    """One step of the chain at an overlap, over nodes c and e; arrays of shape (nodes,)."""

    q: float
    weights: Array
    c: Array
    e: Array
    u: Array
    g: Array

    @cached_property
    def longer(self) -> Array:
        """e1."""
        return self.g * self.g - 2 * self.g * self.u

    @cached_property
    def first(self) -> Array:
        """J."""
        return -self.g * self.c - self.q * self.longer / 2

    @cached_property
    def score(self) -> Array:
        """Derivative over Q of the log density of u at fixed c."""
        rest = 1 - self.q * self.q
        return (self.e * self.c * math.sqrt(rest) + self.q * (1 - self.e**2)) / rest

    @cached_property
    def drift(self) -> float:
        """<J>."""
        return dot(self.weights, self.first)

    @cached_property
    def noise(self) -> float:
        """Var J."""
        return dot(self.weights, self.first**2) - self.drift**2

    @cached_property
    def slope(self) -> float:
        """The derivative of <J> over Q."""
        return dot(self.weights, self.first * self.score - self.longer / 2)

    @property
    def second(self) -> Array:
        """J2."""
        square = self.g * self.g * (self.c**2 + self.e**2 - 2)
        along = self.g * self.c * self.longer / 2
        return along - self.q * square / 2 + 3 * self.q * self.longer**2 / 8

    def tilted(self, p: float) -> tuple[float, float, Array]:
        """H(Q, p), its derivative over p, and what the tilted law adds to weights, not divided."""
        with np.errstate(over="ignore", invalid="ignore"):
            grown = self.weights * np.expm1(p * self.first)
            more = float(np.sum(grown))
            slope = (self.drift + dot(grown, self.first)) / (1 + more)
        return math.log1p(more), slope, grown

    def above(self) -> tuple[_Step, float]:
        """A p above p*, and the step without nodes that count nowhere below it."""
        high = -2 * self.drift / self.noise
        while self.tilted(high)[0] < 0:
            high *= 2
        while not math.isfinite(self.tilted(high)[1]):
            high *= 0.75
        counted = self.weights * np.exp(np.maximum(high * self.first, 0.0)) > _NOTHING
        parts = (self.weights, self.c, self.e, self.u, self.g)
        return _Step(self.q, *(part[counted] for part in parts)), high

    def root(self, p: float) -> float:
        """P*(Q) > 0, at which H vanishes: Newton's steps fall to it from above, as H is convex."""
        for _ in range(_STEPS):
            value, slope, _ = self.tilted(p)
            moved = value / slope
            p -= moved
            if moved <= 4e-16 * p:
                break
        return p


@dataclass(frozen=True, eq=False)
class _Chain:
    """The chain at a step size, and the largest p*/Q that its source allows."""

    f: Formula
    source: Source
    tau: float
    steepest: float
    grids: dict[tuple[int, int], tuple[Array, ...]] = field(default_factory=dict)

    def step(self, q: float, order: int, level: int) -> _Step:
        """What a step does at an overlap, by the rule with ``order`` nodes on a panel."""
        check_deadline()
        s = math.sqrt(1 - q * q)
        abrupt = features(self.f).met(2 * s / (1 << level))
        if abrupt.size:
            c, e, weights = self._grid(order, level, (q, s, abrupt))
        else:
            if (order, level) not in self.grids:
                self.grids[order, level] = self._grid(order, level)
            c, e, weights = self.grids[order, level]
        u = q * c + s * e
        with np.errstate(all="ignore"):
            g = self.tau * self.f.value(u)
        return _Step(q, weights, c, e, u, g)

    def _grid(
        self, order: int, level: int, cut: tuple[float, float, Array] | None = None
    ) -> tuple[Array, Array, Array]:
        """Nodes c and e and their weights, panels of e cut where u is at an abrupt place of f."""
        c, mass = self._values(order, level)
        base = np.linspace(-_REACH, _REACH, (_PANELS << level) + 1)
        rows = np.broadcast_to(base, (c.size, base.size))
        if cut is not None:
            q, s, abrupt = cut
            where = np.clip((abrupt - q * c[:, None]) / s, -_REACH, _REACH)
            rows = np.sort(np.concatenate([rows, where], axis=1), axis=1)
        e, width = panel_nodes(rows, order)
        weights = mass[:, None] * width * np.exp(-e * e / 2)
        counted = weights > _LEAST
        c, e = np.broadcast_to(c[:, None], e.shape)[counted], e[counted]
        return c, e, weights[counted] / np.sum(weights[counted])

    def _values(self, order: int, level: int) -> Iterator[Array]:
        """Values of the source and their weights, its panels halved so many times."""
        law = self.source.law
        pairs = [] if law.atoms is None else [law.atoms]
        for part in law.parts:
            edges = part_edges(part)
            places = np.arange(((edges.size - 1) << level) + 1) / (1 << level)
            t, width = panel_nodes(np.interp(places, np.arange(edges.size), edges), order)
            pairs.append(Nodes(part.point(t), part.mass(t) * width))
        return map(np.concatenate, zip(*pairs, strict=True))


def _integrands(chain: _Chain, q: float, order: int, level: int) -> Array:
    """p*, -2 D/V and the derivative of ln C over Q at an overlap; NaN without a root p* > 0."""
    step = chain.step(q, order, level)
    if not (step.drift < 0 and math.isfinite(step.noise)):
        return np.full(3, np.nan)
    ratio = -2 * step.drift / step.noise
    step, high = step.above()
    p = step.root(high)
    _, slope, grown = step.tilted(p)
    total = 1 + float(np.sum(grown))
    tilted = (step.weights + grown) / total
    if p >= chain.steepest * q or float(np.sum(tilted[step.weights < _FAR])) > _SHARE:
        raise _too_heavy(chain.source)
    spread = dot(tilted, step.first**2) - slope**2
    # The mean of the score is zero: what is left of it is rounding.
    moved = dot(grown, step.score) / total - p * dot(tilted, step.longer) / 2
    along = step.score - p * step.longer / 2
    mixed = dot(tilted, (step.first - slope) * along - step.longer / 2)
    # The last term is how |a|^2 fluctuates.
    rest = dot(tilted, p * step.second + (p * step.q) ** 2 * step.g**4 / 4)
    turn = -moved / slope
    return np.array([p, ratio, (mixed + (spread - slope**2) * turn / 2 - rest) / slope])


def _ends(chain: _Chain, top: float, order: int, level: int) -> Array:
    """Q_u, and the factor of C that is not an integral over Q."""
    for _ in range(8):
        step = chain.step(top, order, level)
        top -= step.drift / step.slope
        if not 0 < top < 1:
            return np.full(2, np.nan)
    bottom, step = chain.step(0.0, order, level), chain.step(top, order, level)
    steep = -bottom.slope * step.slope
    if not steep > 0:
        return np.full(2, np.nan)
    return np.array([top, math.pi * math.sqrt(bottom.noise / step.noise / steep)])


def check_tails(source: Source) -> None:
    """Refuse tails with which E exp(p J) is infinite: one large c is what escapes."""
    before, beyond = _tail_variances(source)
    # A bounded law has a smaller and smaller one, a normal one the same.
    if not beyond <= _HEAVY * before:
        raise _too_heavy(source)


def _tail_variances(source: Source) -> tuple[float, float]:
    """Variances of the normal laws with the same growth of moments, about two high orders."""
    low, high = (source.moment(k) / source.moment(k - 2) / (k - 1) for k in (40, 80))
    finite = math.isfinite(source.moment(80))
    return low, high if finite else math.inf


def _steepest(f: Formula, source: Source) -> float:
    """The largest p*/Q with a finite E exp(p J) for the tails of the source.

    A large c can move Q by c^2/(2 Q) if f grows faster than u, so that a normal tail of variance v
    needs p* < Q/v; a bounded law and a slower f need nothing.
    """
    before, beyond = _tail_variances(source)
    near, far = (np.abs(f.value(np.array([-u, u]))).max() / u for u in (10.0, 1000.0))
    return 1 / beyond if beyond > before / _HEAVY and far > 2 * near else math.inf


def _too_heavy(source: Source) -> HdicaError:
    return HdicaError(
        f"source: {source.label} is not allowed for escapes at fixed tau by WKB (its tails are "
        "heavier than Gaussian: E exp(p J) is infinite, escapes are by single large samples "
        "and have no exponent)"
    )


def _refined(rule: Callable[[int, int], Array], level: int) -> tuple[Array, Array, int]:
    """Values of a rule of some order and level, their errors, and the level that was needed."""
    before: tuple[float, Array, Array] | None = None
    while True:
        values = rule(_FINE, level)
        error = np.abs(values - rule(_COARSE, level))
        worst = float(np.max(error / np.maximum(np.abs(values), _UNIT[: values.size])))
        if before is not None and before[0] < _NOISE and worst > before[0] / 4:
            # What halving does not make smaller is rounding.
            return before[1], before[2], level - 1
        if worst <= _AGREED or level == _LEVELS:
            return values, error, level
        level, before = level + 1, (worst, values, error)


def _panel(chain: _Chain, low: float, high: float, level: int) -> tuple[Array, Array, int]:
    """Integrals over a panel of Q, what the averages leave unknown of them, and the least level."""
    places, weights = panel_nodes(np.array([low, high]), _FINE)
    total, error, levels = np.zeros(3), np.zeros(3), []
    for q, weight in zip(places.tolist(), weights.tolist(), strict=True):
        values, off, level = _refined(partial(_integrands, chain, q), level)
        total, error = total + weight * values, error + weight * off
        levels.append(level)
    return total, error, min(levels)


def _integrals(chain: _Chain, top: float) -> tuple[Array, Array]:
    """S, what a diffusion has in its place, ln C but for a factor; and their errors."""
    panels = [(0.0, top, math.inf, *_panel(chain, 0.0, top, 0))]
    size = np.maximum(np.abs(panels[0][3]), [0.0, 0.0, 1.0])
    total, error, count = np.zeros(3), np.zeros(3), 1
    while panels:
        low, high, before, whole, _, level = panels.pop()
        middle = (low + high) / 2
        halves = [_panel(chain, *ends, level) for ends in ((low, middle), (middle, high))]
        count += 2
        value = halves[0][0] + halves[1][0]
        missed = np.abs(value - whole)
        worst = float(np.max(missed / size))
        if not worst > _AGREED or count > _MOST or (worst > before / 4 and worst < _NOISE):
            total, error = total + value, error + missed + halves[0][1] + halves[1][1]
        else:
            panels += [(low, middle, worst, *halves[0]), (middle, high, worst, *halves[1])]
    return total, error + _ROUNDING * size


def action(f: Formula, source: Source, tau: float, unstable: float) -> Action:
    """Exponent and prefactor of the escape from Q = 0 at a fixed step size.

    ``unstable`` is the first unstable fixed point above 0, Q_u, which is refined here. Refused if
    the tails of the source are heavier than Gaussian, or if refinement does not find S to one part
    in a million and C to one in a thousand.
    """
    chain = _Chain(f, source, tau, _steepest(f, source))
    (top, lead), (moved, off), _ = _refined(partial(_ends, chain, unstable), 0)
    if math.isfinite(top):
        values, errors = _integrals(chain, float(top))
        exponent, diffusive, log = values.tolist()
        prefactor = float(lead) * math.exp(log)
        relative = math.expm1(min(errors[2] + off / lead, 700.0))
        if errors[0] <= WORST_EXPONENT * exponent and relative <= WORST_PREFACTOR:
            sizes = (exponent, prefactor, diffusive, float(top))
            off_exponent, off_diffusive, _ = errors.tolist()
            off_prefactor, off_top = relative * prefactor, float(moved) + 1e-12
            return Action(*sizes, off_exponent, off_prefactor, off_diffusive, off_top)
    raise HdicaError(
        f"tau: {tau:.6g} is not allowed for escapes at fixed tau by WKB with the source "
        f"{source.label} and the nonlinearity {f.text!r} (refinement does not find the exponent "
        f"to {WORST_EXPONENT:g} and the prefactor to {WORST_PREFACTOR:g} of itself: take tau "
        "farther from the critical step size, or a smoother f or source)"
    )
