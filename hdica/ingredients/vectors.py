"""Features and first estimates that are given entry by entry, at their own n alone."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.held import VECTOR
from hdica.ingredients.prior import Prior, normalised
from hdica.ingredients.quadrature import Nodes, dot
from hdica.ingredients.slabs import by_sign, sided
from hdica.ingredients.starts import Start

Array = NDArray[np.float64]
FEW = 8
"""Distinct values up to which each is a group of entries of its own, and the law exact."""

MOST = 2**20
"""Distinct values of a vector of which the limit's rules are made: more would take minutes, and
neighbours of so many are alike to far below the 1e-6 to which the rules hold."""


def wrong_length(what: str, length: int, n: int) -> str:
    """Empty if n is the length of a vector, else the sentence that refuses it."""
    if n == length:
        return ""
    return f"n = {n} is not allowed ({what} is a vector of {length} entries, so n = {length})"


def _of_length(values: Array, what: str, n: int) -> Array:
    refusal = wrong_length(what, values.size, n)
    if refusal:
        raise HdicaError(refusal)
    return values.copy()


def vector_prior(values: Array) -> Prior:
    """The feature with these entries, shape (n,), times the factor that makes |xi|^2 = n.

    The limit knows their empirical law: as atoms if they have few distinct values, else by Gauss
    rules for the negative and the positive ones, which average functions with a kink at zero as
    the entries do to 1e-6 or better (:func:`hdica.ingredients.slabs.sided`).
    """
    xi = normalised(values)
    distinct, counts = np.unique(xi, return_counts=True)

    def feature(rng: np.random.Generator, n: int) -> Array:
        return _of_length(xi, "prior", n)

    def spread_out(rng: np.random.Generator, count: int) -> Array:
        """As many entries by their quantiles, for what stands for the limit at any count."""
        places = (np.arange(count) + 0.5) * xi.size / count
        return normalised(np.sort(xi)[places.astype(np.int64)])

    if distinct.size <= FEW:
        middle = (distinct[1:] + distinct[:-1]) / 2
        return Prior(
            VECTOR,
            feature,
            Nodes(distinct, counts / xi.size),
            np.arange(distinct.size),
            lambda entries: np.asarray(np.searchsorted(middle, entries)),
            length=xi.size,
            entries=spread_out,
        )
    zero = distinct == 0
    rest, atoms = (Nodes(distinct[part], counts[part] / xi.size) for part in (~zero, zero))
    nodes = sided(_joined(rest), atoms, "that is a vector")
    groups, classify = by_sign(nodes.points)
    return Prior(VECTOR, feature, nodes, groups, classify, length=xi.size, entries=spread_out)


def _joined(nodes: Nodes) -> Nodes:
    """Neighbours of a law in one, in ascending order, so that no more than MOST are left."""
    count = -(-nodes.points.size // MOST)
    if count <= 1:
        return nodes
    first = np.arange(0, nodes.points.size, count)
    weights = np.add.reduceat(nodes.weights, first)
    return Nodes(np.add.reduceat(nodes.weights * nodes.points, first) / weights, weights)


def vector_start(values: Array) -> Start:
    """The estimate that begins with these entries, shape (n,), times what makes |x|^2 = n."""
    x = normalised(values)

    def estimate(rng: np.random.Generator, xi: Array) -> Array:
        return _of_length(x, "start", xi.size)

    def overlap(prior: Prior) -> float:
        # Of a feature that is not drawn: its entries are known, and so is the joint law.
        return dot(prior.feature(np.random.default_rng(0), x.size), x) / x.size

    def conditional(xi: Array) -> tuple[Array, float]:
        raise HdicaError(f"start {NOT_NORMAL}")

    return Start(VECTOR, estimate, overlap, lambda prior: 0.0, conditional, length=x.size)


NOT_NORMAL = (
    "is a vector, whose entries follow no normal law given those of the feature, as the densities "
    "of this method do at t = 0 (the methods 'vector', 'chain' and 'ode' take any start)"
)
