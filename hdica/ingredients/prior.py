"""What a prior is: a law of the feature's entries, and how features are drawn from it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.quadrature import Nodes, dot

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Prior:
    """The law of the entries xi_i of the feature, with E xi^2 = 1.

    ``feature(rng, n)`` is a feature of shape (n,) with |xi|^2 = n exactly; laws with atoms give
    each atom its share of the n entries (rounded), so that no binomial noise is added. ``nodes`` is
    the law as a discrete measure: its atoms, or Gauss nodes for a continuous part. ``groups`` says
    to which group of entries each node belongs, shape (nodes,): one group an atom, one for the
    negative and one for the positive values of a continuous part; densities of the estimate given
    the feature are kept by group, and ``classify(xi)`` is that of each entry. ``random`` says
    whether the feature itself is drawn, and ``sum_spread`` is then n times the variance of the mean
    of its entries as n -> infinity, see :func:`spread_of_mean`; else 0. ``length`` is the only n
    that there is a feature for, None for any; ``entries`` then gives others by quantiles. ``iid``
    says that even the share of the entries that are zero is drawn. ``finer(order)`` are so
    many nodes on either side of zero of a law of which ``nodes`` are an approximation.
    """

    label: str
    feature: Callable[[np.random.Generator, int], Array]
    nodes: Nodes = field(repr=False)
    groups: NDArray[np.int64] = field(repr=False)
    classify: Callable[[Array], NDArray[np.int64]] = field(repr=False)
    random: bool = False
    sum_spread: float = 0.0
    length: int | None = None
    entries: Callable[[np.random.Generator, int], Array] | None = None
    iid: bool = False
    finer: Callable[[int], Nodes] | None = None

    def with_nodes(self, order: int) -> Prior:
        """The same by so many nodes on either side of zero, if nodes are an approximation."""
        if self.finer is None:
            return self
        nodes = self.finer(order)
        return replace(self, nodes=nodes, groups=self.classify(nodes.points))

    @property
    def strata(self) -> list[NDArray[np.bool_]]:
        """Nodes whose entries come in exact numbers: zeros and others, or all together."""
        zero = self.nodes.points == 0
        if self.iid or not zero.any() or zero.all():
            return [np.ones(zero.shape, dtype=bool)]
        return [zero, ~zero]

    def stand_ins(self, rng: np.random.Generator, count: int) -> Array:
        """Entries of a feature, shape (count,), for particles, of which there may be any number."""
        return (self.entries or self.feature)(rng, count)

    @property
    def group_values(self) -> Array:
        """Mean of xi in each group, shape (groups,)."""
        mass = np.bincount(self.groups, self.nodes.weights)
        first = np.bincount(self.groups, self.nodes.weights * self.nodes.points)
        return np.asarray(first / mass)

    @property
    def group_weights(self) -> Array:
        """Share of the entries in each group, shape (groups,)."""
        return np.asarray(np.bincount(self.groups, self.nodes.weights))


def spread_of_mean(nodes: Nodes, share: float = 1.0) -> float:
    """N times the variance of n^-1 sum_i xi_i where |xi|^2 = n and entries are drawn one by one.

    With a of the law and mu = E a, dividing by the length of a moves the mean by the average of
    a - mu a^2/2, to first order, so it is the variance of that. A ``share`` below 1 says that as
    many of the entries are drawn, which ``nodes`` then describe alone, and all others are zero.
    """
    mu = share * float(nodes.mean(nodes.points))
    moved = nodes.points - mu * nodes.points**2 / 2
    first = float(nodes.mean(moved))
    return share * float(nodes.mean((moved - first) ** 2))


def normalised(xi: Array) -> Array:
    """The same direction with length sqrt(n)."""
    return np.asarray(xi * math.sqrt(xi.size / dot(xi, xi)))
