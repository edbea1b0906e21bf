"""What a prior is: a law of the feature's entries, and one with any law among zeros."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np
from numpy.random import Generator

from hdica.errors import HdicaError
from hdica.ingredients.laws import Law, Source, composite_rule
from hdica.ingredients.plain import Array, Indices, Mask
from hdica.ingredients.quadrature import ORDER, Nodes, dot, gauss

Feature = Callable[[Generator, int], Array]


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
    feature: Feature
    nodes: Nodes = field(repr=False)
    groups: Indices = field(repr=False)
    classify: Callable[[Array], Indices] = field(repr=False)
    random: bool = False
    sum_spread: float = 0.0
    length: int | None = None
    entries: Feature | None = None
    iid: bool = False
    finer: Callable[[int], Nodes] | None = None

    def with_nodes(self, order: int) -> Prior:
        """The same by so many nodes on either side of zero, if nodes are an approximation."""
        if self.finer is None:
            return self
        nodes = self.finer(order)
        return replace(self, nodes=nodes, groups=self.classify(nodes.points))

    @property
    def strata(self) -> list[Mask]:
        """Nodes whose entries come in exact numbers: zeros and others, or all together."""
        zero = self.nodes.points == 0
        if self.iid or not zero.any() or zero.all():
            return [np.ones(zero.shape, dtype=bool)]
        return [zero, ~zero]

    @property
    def group_values(self) -> Array:
        """Mean of xi in each group, shape (groups,)."""
        mass = np.bincount(self.groups, self.nodes.weights)
        first = np.bincount(self.groups, self.nodes.weights * self.nodes.points)
        return first / mass

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
    return xi * math.sqrt(xi.size / dot(xi, xi))


def by_value(
    values: Array,
) -> tuple[Indices, Callable[[Array], Indices]]:
    """Groups of nodes by increasing value, and that of any entry by the nearest one."""
    distinct, groups = np.unique(values, return_inverse=True)
    middle = (distinct[1:] + distinct[:-1]) / 2
    return groups, lambda xi: np.searchsorted(middle, xi)


def by_sign(points: Array) -> tuple[Indices, Callable[[Array], Indices]]:
    """Groups of nodes by sign, those that there are numbered from 0, and that of any entry."""
    there = np.unique(np.sign(points))

    def classify(xi: Array) -> Indices:
        return np.minimum(np.searchsorted(there, np.sign(xi)), there.size - 1)

    return classify(points), classify


ORDERS = (24, 32, 48, 64)
"""Nodes for each side of a slab: the first with which averages are known well enough."""
_PANEL = 4 * ORDER
"""Nodes of each panel from which finer rules are made: a law of few panels has no more."""
GOOD, WORST = 1e-8, 1e-6
"""Errors of averages with a kink at xi = 0 that end the search, and that are refused."""
_ZERO = 1e-12
_NOTHING = 1e-16
_TRIES = 1000


def until_not_zero(draw: Feature, label: str) -> Feature:
    """Features of entries that are drawn again until one of them is not zero."""

    def feature(rng: Generator, n: int) -> Array:
        for _ in range(_TRIES):
            xi = draw(rng, n)
            if np.any(xi):
                return normalised(xi)
        raise HdicaError(f"prior {label} has no non-zero entry at n = {n} (take n larger)")

    return feature


def _fine(source: Source, order: int = ORDER) -> tuple[Nodes, Nodes]:
    """Atoms and a fine rule for the rest of the law as written, with unit second moment."""
    scale, law, none = math.sqrt(1 + source.shift**2), source.law, Nodes(np.empty(0), np.empty(0))
    atoms = law.atoms or none
    points = (atoms.points + source.shift) / scale
    atoms = Nodes(np.where(np.abs(points) < _ZERO, 0.0, points), atoms.weights)
    if not law.parts:
        return atoms, none
    rest = composite_rule(Law(law.parts), np.array([-source.shift]), order)
    points = (rest.points + source.shift) / scale
    return atoms, Nodes(_one_sided(points), rest.weights)


def _one_sided(xi: Array) -> Array:
    """The same, a support that ends at zero being on one side of it though rounding may differ."""
    tiny = np.abs(xi) < _ZERO
    if np.any(xi[~tiny] > 0) and np.any(xi[~tiny] < 0):
        return xi
    return np.where(tiny, (1.0 if np.any(xi[~tiny] > 0) else -1.0) * np.abs(xi), xi)


def _sides(nodes: Nodes, atoms: Nodes) -> Iterator[Nodes]:
    """Negative values, zero as an atom, positive values: those that there are."""
    points, weights = _together([nodes, atoms])
    smooth = np.arange(points.size) < nodes.points.size
    positive = float(np.sum(weights[points > 0])) > 0
    at_zero = points == 0
    low = (points < 0) | (at_zero & smooth & (not positive))
    high = (points > 0) | (at_zero & smooth & positive)
    for side in (low, at_zero & ~smooth, high):
        # Far out is nothing that an average sees, but much that a Gauss rule would follow.
        matters = side & (weights * (1 + points * points) > _NOTHING)
        if matters.any():
            distinct, place = np.unique(points[matters], return_inverse=True)
            mass = np.bincount(np.ravel(place), weights[matters])
            yield Nodes(distinct, np.asarray(mass))


def _together(rules: list[Nodes]) -> Nodes:
    return Nodes(*map(np.concatenate, zip(*rules, strict=True)))


def _tests(nodes: Nodes, stretch: float) -> Array:
    """Averages of functions that change with abs(xi) as the estimate's mean and penalty may."""
    xi = stretch * nodes.points
    size, square = np.abs(xi), xi * xi
    rows = [size, xi * np.tanh(xi), np.exp(-square), np.sqrt(1 + square) - 1, square]
    return nodes.mean(np.stack(rows)) / stretch**2


def sided(
    nodes: Nodes,
    atoms: Nodes,
    label: str,
    stretch: float = 1.0,
    orders: tuple[int, ...] = ORDERS,
) -> Nodes:
    """A law by few nodes, a Gauss rule for either side of zero; refused where these do not do.

    ``nodes`` are a fine rule for what is continuous, ``label`` names the law in the sentence, the
    entries xi are ``stretch`` times the law, and ``orders`` the numbers of nodes of a side to try.
    """
    sides = list(_sides(nodes, atoms))
    wanted = _tests(_together(sides), stretch)
    for order in orders:
        few = _together([gauss(side, order) for side in sides])
        few = Nodes(few.points, few.weights / few.weights.sum())
        error = float(np.abs(_tests(few, stretch) - wanted).max())
        if error < GOOD:
            break
    if not error < WORST:
        raise HdicaError(
            f"prior: slab {label} is not allowed (averages over it are off by {error:.0e} with "
            f"{few.points.size} nodes, because its tails are too heavy: at most {WORST:.0e})"
        )
    return Nodes(few.points / math.sqrt(float(few.mean(few.points**2))), few.weights)


def _among_zeros(slab: Nodes, rho: float) -> Nodes:
    """The law of all entries: a share rho of them follows a law, the others are zero."""
    if rho == 1:
        return slab
    zero = slab.points == 0
    points = np.append(slab.points[~zero], 0.0)
    weights = np.append(rho * slab.weights[~zero], 1 - rho * float(np.sum(slab.weights[~zero])))
    order = np.argsort(points, kind="stable")
    return Nodes(points[order], weights[order])


def slab_prior(source: Source, rho: float, iid: bool) -> Prior:
    """Entries that are 0 but for a share rho, which follows a law as it is written.

    The law is rescaled to the second moment 1/rho and keeps its mean. ``iid`` says that whether an
    entry is in the slab is drawn, too, and is not one of round(rho n).
    """
    label = source.label if rho == 1 else f"slab({source.label}, {rho:g})"
    atoms, rest = _fine(source)

    def rule(orders: tuple[int, ...], whole: Nodes) -> Nodes:
        few = sided(whole, atoms, source.label, 1 / math.sqrt(rho), orders)
        x, w = few.points / math.sqrt(rho), few.weights
        if source.symmetric and source.shift == 0:
            # Mirror images to the last bit, by which limits save half.
            x, w = (x - x[::-1]) / 2, (w + w[::-1]) / 2
        return Nodes(x, w)

    slab = rule(ORDERS, rest)
    nodes = _among_zeros(slab, rho)
    scale = math.sqrt((1 + source.shift**2) * rho)
    sides = set(np.sign(slab.points).tolist())
    one_sided = _one_sided if len(sides) == 1 else lambda xi: xi

    def values(rng: Generator, size: int) -> Array:
        raw = (source.sample(rng, size) + source.shift) / scale
        return np.where(np.abs(raw) < _ZERO, 0.0, raw) if atoms.points.size else one_sided(raw)

    def entries(rng: Generator, n: int) -> Array:
        xi = np.zeros(n)
        active = rng.random(n) < rho if iid else np.arange(n) >= n - max(1, round(rho * n))
        xi[active] = values(rng, int(np.count_nonzero(active)))
        return xi

    spread = spread_of_mean(nodes) if iid else spread_of_mean(slab, rho)
    groups, classify = by_sign(nodes.points)

    @cache
    def finer(order: int) -> Nodes:
        return _among_zeros(rule((order,), _fine(source, _PANEL)[1]), rho)

    feature, more = until_not_zero(entries, label), finer if rest.points.size else None
    return Prior(label, feature, nodes, groups, classify, True, spread, iid=iid, finer=more)
