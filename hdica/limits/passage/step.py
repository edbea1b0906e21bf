"""One step of the exact chain of the overlap: how far it moves, over all that is random in it.

With c the source, e the entry of a along the estimate and X ~ chi2 of n - 2 degrees of freedom the
rest of |a|^2, u = Q c + e sqrt(1 - Q^2) and h = -tau f(u)/n,

    Q' = (Q + h c)/N,    N^2 = 1 + 2 h u + h^2 (c^2 + e^2 + X):

the update (2) of Wang and Lu 2017 in one variable, exact at every n for phi = 0.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.quadrature import Nodes, gauss, gaussian_nodes
from hdica.ingredients.sources import Source
from hdica.limits.passage.gauss import chi2_nodes

Array = NDArray[np.float64]
Function = Callable[[Array], Array]
_LEAST = 1e-25
"""Weight below which a node is left out: its share of any passage is below rounding."""


@dataclass(frozen=True)
class Points:
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


@dataclass(frozen=True, eq=False)
class Step:
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
        beside = math.sqrt(1 - overlap * overlap)
        u = overlap * self.c + beside * self.e
        h = -self.tau / self.n * self.f(u)
        longer = h * (2 * u + h * self.square)
        norm = np.sqrt(1 + longer)
        return np.asarray((h * self.c - overlap * longer / (1 + norm)) / norm)

    def moments(self, overlap: float) -> tuple[float, float]:
        """Mean and variance of Q' - Q."""
        change = self.change(overlap)
        mean = float(np.sum(self.weights * change))
        return mean, float(np.sum(self.weights * (change - mean) ** 2))


def step_of(f: Function, source: Source, tau: float, n: int, points: Points) -> Step:
    """The step for a nonlinearity f, n >= 3."""
    c = gauss(source.nodes, points.source)
    e = gaussian_nodes(points.normal)
    rest = chi2_nodes(n - 2, points.length)
    return Step(f, tau, n, *_product(c, e, rest))


def _product(c: Nodes, e: Nodes, rest: Nodes) -> tuple[Array, Array, Array, Array]:
    weights = c.weights[:, None, None] * e.weights[:, None] * rest.weights
    shape = weights.shape
    known = weights > _LEAST
    sources = np.broadcast_to(c.points[:, None, None], shape)[known]
    normals = np.broadcast_to(e.points[:, None], shape)[known]
    lengths = np.broadcast_to(rest.points, shape)[known]
    square = sources**2 + normals**2 + lengths
    return sources, normals, square, weights[known] / math.fsum(weights[known])
