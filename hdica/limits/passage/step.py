"""One step of the exact chain of an overlap: how far it moves, over all that is random in it.

Of a rule that restores the length of its estimate, with c the source, e the entry of a along the
estimate and X ~ chi2 of n - 2 degrees of freedom the rest of |a|^2, u = Q c + e sqrt(1 - Q^2) and h
= -tau f(u)/n,

    Q' = (Q + h c)/N,    N^2 = 1 + 2 h u + h^2 (c^2 + e^2 + X):

the update (2) of Wang and Lu 2017 in one variable, exact at every n for phi = 0.

Of a rule that leaves the length free its direction and its length move. The weights follow w <- m w
+ h x with m = 1 + alpha (1 - |w|^2) and h = eta f(w.x), as in (13) of Rattray (2002) for one
projection and one source. With A the overlap of the direction w/|w|, q = |w|^2, c the source, e the
entry of x along the rest of the direction, X ~ chi2 of n - 2 degrees of freedom the rest of |x|^2,
u = A c + e sqrt(1 - A^2) and g = eta f(sqrt(q) u)/(m sqrt(q)),

    A' = (A + g c)/N,    q' = m^2 q N^2,    N^2 = 1 + 2 g u + g^2 (c^2 + e^2 + X):

the direction moves as that of a rule with the norm restored, by a step that depends on q, and q
returns to 1 within a few steps.

Rules of quadrature come from the recurrence of their polynomials: those of SciPy overflow where n
is in the hundreds, as they normalise by gamma functions.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hdica.ingredients.plain import Array, Function, Mask
from hdica.ingredients.quadrature import Nodes, dot, from_recurrence, gauss, gaussian_nodes
from hdica.ingredients.sources import Source
from hdica.process.progress import check_deadline


def chi2_nodes(freedom: int, points: int) -> Nodes:
    """The rule of chi2 with ``freedom`` > 0 degrees of freedom, twice that of Laguerre."""
    k = np.arange(points, dtype=float)
    shape = freedom / 2 - 1
    return from_recurrence(2 * (2 * k + shape + 1), 2 * np.sqrt(k[1:] * (k[1:] + shape)))


def sphere_nodes(n: int, points: int) -> Nodes:
    """The rule of one coordinate of a random direction in n >= 3 dimensions, Gegenbauer's."""
    k, half = np.arange(1.0, points), n / 2 - 1
    off_diagonal = np.sqrt(k * (k + 2 * half - 1) / (4 * (k + half) * (k + half - 1)))
    return from_recurrence(np.zeros(points), off_diagonal)


_LEAST, _LEAST_LONG = 1e-25, 1e-20
"""Weights below which a node of the two steps is left out: its share of any passage is below
rounding, and below the error of a passage in two variables."""
_SAME = 1e-9


class Points(NamedTuple):
    """How many nodes there are of c, of e and of X."""

    source: int = 24
    normal: int = 80
    length: int = 6

    def coarser(self) -> Points:
        """A third fewer of each."""
        return Points(self.source * 2 // 3, self.normal * 2 // 3, self.length - 1)

    def finer(self) -> Points:
        """Half as many more of each."""
        return Points(self.source * 3 // 2, self.normal * 3 // 2, self.length + 2)


class Step(NamedTuple):
    """A step of the chain at one n: nodes c, e, c^2 + |a|^2 and their weights, shape (nodes,)."""

    f: Function
    tau: float
    n: int
    c: Array
    e: Array
    square: Array
    weights: Array

    def change(self, overlap: float) -> Array:
        """Q' - Q at every node, to the precision of the change and not of Q."""
        side = math.sqrt(1 - overlap * overlap)
        u = overlap * self.c + side * self.e
        h = -self.tau / self.n * self.f(u)
        longer = h * (2 * u + h * self.square)
        norm = np.sqrt(1 + longer)
        return (h * self.c - overlap * longer / (1 + norm)) / norm

    def moments(self, overlap: float) -> tuple[float, float]:
        """Mean and variance of Q' - Q."""
        change = self.change(overlap)
        mean = dot(self.weights, change)
        return mean, dot(self.weights, (change - mean) ** 2)


def step_of(
    f: Function, source: Source, tau: float, n: int, points: Points, scale: float = 1.0
) -> Step:
    """The step for a nonlinearity f, n >= 3, and a multiple of the source."""
    c = gauss(source.nodes, points.source)
    c = Nodes(scale * c.points, c.weights)
    e = gaussian_nodes(points.normal)
    rest = chi2_nodes(n - 2, points.length)
    return Step(f, tau, n, *_product(c, e, rest, _LEAST))


def _product(c: Nodes, e: Nodes, rest: Nodes, least: float) -> tuple[Array, Array, Array, Array]:
    """Nodes c, e and |x|^2 with weights above the least."""
    weights = c.weights[:, None, None] * e.weights[:, None] * rest.weights
    counted = weights > least
    places = (c.points[:, None, None], e.points[:, None], rest.points)
    sources, normals, lengths = (np.broadcast_to(p, weights.shape)[counted] for p in places)
    square = sources**2 + normals**2 + lengths
    return sources, normals, square, weights[counted] / math.fsum(weights[counted])


_MOST, _TIMES = 200, 6.0
"""Steps in which a length comes back, at most, and how often it loses a factor e in its law."""
_SHORT, _LONG = 0.02, 0.9
"""Ends of the range of q at most, above 0 and before where w turns around."""


class Grid(NamedTuple):
    """How many nodes there are of c, e and X, and how the length is resolved."""

    source: int = 16
    normal: int = 80
    rest: int = 2
    lengths: int = 5  # polynomials of q
    beyond: float = 1e-5  # share of the steps that may leave the range of q on either side

    def coarser(self) -> Grid:
        """A third fewer nodes, one polynomial less, and a narrower range."""
        c, e = self.source * 2 // 3, self.normal * 2 // 3
        return Grid(c, e, self.rest, self.lengths - 1, self.beyond * 10)

    def finer(self) -> Grid:
        """Half as many more nodes, two polynomials more, and a wider range."""
        c, e = self.source * 3 // 2, self.normal * 3 // 2
        return Grid(c, e, self.rest + 1, self.lengths + 2, self.beyond / 10)


class LongStep(NamedTuple):
    """A step at one n: nodes c, e, |x|^2 and their weights, shape (nodes,)."""

    f: Function
    eta: float
    alpha: float
    c: Array
    e: Array
    square: Array
    weights: Array

    @property
    def turning(self) -> float:
        """The q from which on m < 0."""
        return 1 + 1 / self.alpha

    @property
    def lost(self) -> float:
        """The q from which on it grows with every step, and the overlap with it."""
        return 1 + 2 / self.alpha

    def moved(self, overlap: float, q: float) -> tuple[Array, Array]:
        """A' - A, to the precision of the change and not of A, and q' at every node; m > 0."""
        m, size = 1 + self.alpha * (1 - q), math.sqrt(q)
        u = overlap * self.c + math.sqrt(1 - overlap * overlap) * self.e
        g = self.eta / (m * size) * self.f(size * u)
        longer = g * (2 * u + g * self.square)
        norm = np.sqrt(1 + longer)
        change = (g * self.c - overlap * longer / (1 + norm)) / norm
        return change, m * m * q * (1 + longer)

    def turns(self, q: Array) -> Mask:
        """Whether w has been turned around when its length has come back."""
        turned, q = np.zeros(q.shape, dtype=bool), q.copy()
        for _ in range(_MOST):
            far = q > self.turning
            if not far.any():
                break
            turned[far] = ~turned[far]
            m = 1 + self.alpha * (1 - q[far])
            q[far] *= m * m
        return turned


class Lengths(NamedTuple):
    """The q at which equations hold: Gaussian nodes of its own law, and the range of that law."""

    points: Array
    low: float
    high: float

    def polynomials(self, q: Array) -> Array:
        """Newton's polynomials over the points, shape (..., points); beyond the range its end's."""
        inside = np.clip(q, self.low, self.high)[..., None]
        factors = np.ones((*np.shape(q), self.points.size))
        factors[..., 1:] = (inside - self.points[:-1]) / (self.high - self.low)
        return np.asarray(np.cumprod(factors, axis=-1))


def lengths_of(step: LongStep, overlaps: tuple[float, ...], grid: Grid) -> Lengths:
    """Where q is when A stays, from q = 1 on until it is forgotten.

    Its law has a bulk near 1, a step size wide, and far tails that hardly count.
    """
    lengths, spread = Lengths(np.ones(1), 1.0, 1.0), np.ones(1)
    for _ in range(min(math.ceil(_TIMES / (1 - abs(1 - 2 * step.alpha))), _MOST)):
        check_deadline()
        after = np.concatenate([step.moved(a, q)[1] for q in lengths.points for a in overlaps])
        shares = np.repeat(spread, len(overlaps)) / len(overlaps)
        weights = np.multiply.outer(shares, step.weights).ravel()
        # Those that leave a share on either side.
        order = np.argsort(after, kind="stable")
        below = np.cumsum(weights[order])
        first, last = np.searchsorted(below / below[-1], [grid.beyond, 1 - grid.beyond])
        low, high = float(after[order[first]]), float(after[order[min(last, order.size - 1)]])
        # With the start, and between 0 and where w would turn around.
        low, high = max(min(low, 1.0), _SHORT), min(max(high, 1.0), 1 + _LONG / step.alpha)
        rule = gauss(Nodes(np.clip(after, low, high), weights), grid.lengths)
        order = np.argsort(-rule.weights, kind="stable")
        lengths, spread = Lengths(rule.points[order], low, high), rule.weights[order]
    return lengths


def long_step(
    f: Function, source: Source, rates: tuple[float, float], n: int, grid: Grid, folded: bool
) -> LongStep:
    """The step for eta and alpha, the ``rates``, n >= 3.

    ``folded``: c, e and -c, -e move alike, as for odd f and a symmetric source, and one of the two
    is enough.
    """
    c = gauss(source.nodes, grid.source)
    if folded:
        share = np.where(np.abs(c.points) < _SAME, 1.0, 2.0)
        half = c.points > -_SAME
        c = Nodes(c.points[half], (share * c.weights)[half])
    e, rest = gaussian_nodes(grid.normal), chi2_nodes(n - 2, grid.rest)
    return LongStep(f, *rates, *_product(c, e, rest, _LEAST_LONG))
