"""One step of a rule whose estimate has a length: how its direction moves, and its length.

The weights follow w <- m w + h x with m = 1 + alpha (1 - |w|^2) and h = eta f(w.x), as in (13) of
Rattray (2002) for one projection and one source. With A the overlap of the direction w/|w|, q =
|w|^2, c the source, e the entry of x along the rest of the direction, X ~ chi2 of n - 2 degrees of
freedom the rest of |x|^2, u = A c + e sqrt(1 - A^2) and g = eta f(sqrt(q) u)/(m sqrt(q)),

    A' = (A + g c)/N,    q' = m^2 q N^2,    N^2 = 1 + 2 g u + g^2 (c^2 + e^2 + X):

the direction moves as that of a rule with the norm restored, by a step that depends on q, and q
returns to 1 within a few steps. That m < 0 turns w around is told beside.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.quadrature import Nodes, gauss, gaussian_nodes
from hdica.ingredients.sources import Source
from hdica.limits.passage.gauss import chi2_nodes
from hdica.limits.passage.step import Function
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]
_LEAST = 1e-20
"""Weight below which a node is left out: its share of any passage is below the error."""
_SAME = 1e-9
_MOST, _TIMES = 200, 6.0
"""Steps in which a length comes back, at most, and how often it loses a factor e in its law."""
_SHORT, _LONG = 0.02, 0.9
"""Ends of the range of q at most, above 0 and before where w turns around."""


@dataclass(frozen=True)
class Grid:
    """How many nodes there are of c, e and X, and how the length is resolved."""

    source: int = 16
    normal: int = 80
    rest: int = 2
    lengths: int = 5  # polynomials of q
    beyond: float = 1e-5  # share of the steps that may leave the range of q on either side

    def coarser(self) -> Grid:
        """A third fewer nodes, one polynomial less, and a narrower range."""
        return Grid(
            self.source * 2 // 3,
            self.normal * 2 // 3,
            self.rest,
            self.lengths - 1,
            self.beyond * 10,
        )

    def finer(self) -> Grid:
        """Half as many more nodes, two polynomials more, and a wider range."""
        return Grid(
            self.source * 3 // 2,
            self.normal * 3 // 2,
            self.rest + 1,
            self.lengths + 2,
            self.beyond / 10,
        )


@dataclass(frozen=True, eq=False)
class LongStep:
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
        return np.asarray(change), np.asarray(m * m * q * (1 + longer))

    def turns(self, q: Array) -> NDArray[np.bool_]:
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


@dataclass(frozen=True, eq=False)
class Lengths:
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
    found, spread = Lengths(np.ones(1), 1.0, 1.0), np.ones(1)
    for _ in range(min(math.ceil(_TIMES / (1 - abs(1 - 2 * step.alpha))), _MOST)):
        check_deadline()
        after = np.concatenate([step.moved(a, q)[1] for q in found.points for a in overlaps])
        shares = np.repeat(spread, len(overlaps)) / len(overlaps)
        weights = np.multiply.outer(shares, step.weights).ravel()
        low, high = _quantiles(after, weights, grid.beyond)
        # With the start, and between 0 and where w would turn around.
        low, high = max(min(low, 1.0), _SHORT), min(max(high, 1.0), 1 + _LONG / step.alpha)
        rule = gauss(Nodes(np.clip(after, low, high), weights), grid.lengths)
        order = np.argsort(-rule.weights, kind="stable")
        found, spread = Lengths(rule.points[order], low, high), rule.weights[order]
    return found


def _quantiles(values: Array, weights: Array, beyond: float) -> tuple[float, float]:
    """Those that leave a share on either side."""
    order = np.argsort(values, kind="stable")
    below = np.cumsum(weights[order])
    first, last = np.searchsorted(below / below[-1], [beyond, 1 - beyond])
    return float(values[order[first]]), float(values[order[min(last, order.size - 1)]])


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
        known = c.points > -_SAME
        c = replace(c, points=c.points[known], weights=(share * c.weights)[known])
    e, rest = gaussian_nodes(grid.normal), chi2_nodes(n - 2, grid.rest)
    weights = c.weights[:, None, None] * e.weights[:, None] * rest.weights
    known = weights > _LEAST
    places = (c.points[:, None, None], e.points[:, None], rest.points)
    sources, normals, lengths = (np.broadcast_to(p, weights.shape)[known] for p in places)
    square = sources**2 + normals**2 + lengths
    share = weights[known] / math.fsum(weights[known])
    return LongStep(f, *rates, sources, normals, square, share)
