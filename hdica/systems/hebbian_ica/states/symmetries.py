"""Symmetries of (17): signs and permutations of projections and sources that map states to states.

A projection may change its sign where phi is odd, a source where its law is symmetric; projections
of equal sigma may be exchanged, and so may equal sources.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.systems.hebbian_ica.limit.equation_17 import Array, Field

Ints = NDArray[np.int64]
MOST = 50_000
_EQUAL, _TIED = 1e-6, 1e-9


@dataclass(frozen=True, eq=False)
class Side:
    """Signed permutations of the rows of R, or of its columns.

    (g R)_i = signs[g, i] R_orders[g, i], both of shape (elements, rows).
    """

    orders: Ints
    signs: Array

    @property
    def size(self) -> int:
        """Number of its elements."""
        return self.orders.shape[0]


@dataclass(frozen=True, eq=False)
class Symmetries:
    """A group of symmetries: each element of ``rows`` with each of ``columns``."""

    rows: Side  # of the projections
    kinds: Ints  # sources with equal numbers may be exchanged, shape (M,)
    flips: NDArray[np.bool_]  # whether a source may change its sign, shape (M,)

    @property
    def odd(self) -> bool:
        """Whether projections may change their signs."""
        return bool(np.any(self.rows.signs < 0))

    @property
    def row_kinds(self) -> Ints:
        """Projections with equal numbers may be exchanged, shape (K,)."""
        return np.asarray(self.rows.orders.min(axis=0))

    @property
    def column_count(self) -> float:
        """Number of signed permutations of the sources."""
        exchanges = [math.factorial(int(n)) for n in np.bincount(self.kinds)]
        return float(math.prod(exchanges)) * 2.0 ** int(self.flips.sum())

    def columns(self) -> Side:
        """All signed permutations of the sources."""
        return _side(self.kinds, self.flips)

    def random(self, rng: np.random.Generator) -> Callable[[Array], Array]:
        """A random element, as a function of one R."""
        g = int(rng.integers(self.rows.size))
        rows, row_signs = self.rows.orders[g], self.rows.signs[g][:, None]
        order = np.arange(self.kinds.size)
        for one in np.unique(self.kinds):
            own = np.flatnonzero(self.kinds == one)
            order[own] = rng.permutation(own)
        signs = np.where(self.flips & (rng.random(order.size) < 0.5), -1.0, 1.0)
        return lambda r: (row_signs * r[rows])[:, order] * signs

    def images(self, r: Array) -> Array:
        """Every distinct image of one R, shape (images, K, M)."""
        columns = self.columns()
        turned = self.rows.signs[:, :, None] * r[self.rows.orders]
        every = columns.signs[None, :, None] * turned[:, :, columns.orders].swapaxes(1, 2)
        flat = every.reshape(-1, r.size) + 0.0
        _, first = np.unique(np.round(flat / _EQUAL), axis=0, return_index=True)
        return np.asarray(flat[np.sort(first)].reshape(-1, *r.shape))


def symmetries(field: Field) -> Symmetries:
    """The symmetries of a field; of more than six projections, their signs alone or none.

    What holds is found by trial, at one R without any symmetry of its own.
    """
    k, m = field.shape
    number = np.arange(k * m).reshape(k, m)
    r = np.cos(1.0 + 2.4 * number)
    r *= 0.7 / float(np.linalg.svd(r, compute_uv=False)[0])
    parts = np.array(field.parts(r))

    def holds(turn: tuple[Ints, Array], axis: int) -> bool:
        image = _turned(r, turn, axis)
        gap = np.abs(np.array(field.parts(image)) - _turned(parts, turn, axis + 1))
        return bool(gap.max() < 1e-9 * np.abs(parts).max())

    odd = holds((np.arange(k), np.where(np.arange(k) == 0, -1.0, 1.0)), 0)
    flips = [holds((np.arange(m), np.where(np.arange(m) == j, -1.0, 1.0)), 1) for j in range(m)]
    kinds = np.arange(m)
    for j in range(m):
        for other in range(j):
            order = np.arange(m)
            order[[j, other]] = other, j
            if kinds[j] == j and holds((order, np.ones(m)), 1):
                kinds[j] = kinds[other]
    return Symmetries(_rows(field.sigma, odd), kinds, np.array(flips))


def _turned(values: Array, turn: tuple[Ints, Array], axis: int) -> Array:
    shape = [1] * values.ndim
    shape[axis] = -1
    return np.take(values, turn[0], axis=axis) * turn[1].reshape(shape)


def _rows(sigma: Array, odd: bool) -> Side:
    k = sigma.size
    kinds = np.where(sigma == sigma[0], 0, 1)
    signs = 2**k if odd else 1
    if signs * math.prod(math.factorial(int(n)) for n in np.bincount(kinds)) > MOST:
        kinds = np.arange(k)
    return _side(kinds, np.full(k, odd and signs <= MOST))


def _side(kinds: Ints, flips: NDArray[np.bool_]) -> Side:
    size = kinds.size
    groups = [np.flatnonzero(kinds == one) for one in np.unique(kinds)]
    orders = []
    for chosen in itertools.product(*[itertools.permutations(g.tolist()) for g in groups]):
        order = np.arange(size)
        for group, exchanged in zip(groups, chosen, strict=True):
            order[group] = exchanged
        orders.append(order)
    ways = [(1.0, -1.0) if flip else (1.0,) for flip in flips]
    signs = np.array(list(itertools.product(*ways)))
    both = np.repeat(np.array(orders), len(signs), axis=0)
    return Side(both, np.tile(signs, (len(orders), 1)))


def representatives(group: Symmetries, r: Array) -> tuple[Array, Array]:
    """One image of each of a batch of R, the same for all its images, and how many images it has.

    The image is that on which a fixed linear functional is largest, a_i b_j R_ij with decreasing
    weights: only by a coincidence do two images share its largest value. Shapes (B, K, M) and (B,).
    """
    images, counts = np.empty_like(r), np.empty(r.shape[0])
    step = max(1, 2_000_000 // (group.rows.size * r.shape[1] * r.shape[2]))
    for first in range(0, r.shape[0], step):
        part = slice(first, first + step)
        images[part], counts[part] = _representatives(group, r[part])
    return images + 0.0, counts


def _weights(size: int) -> Array:
    return np.asarray(1.0 / (1.0 + 0.6180339887 * np.arange(size)) ** 0.77)


def _representatives(group: Symmetries, r: Array) -> tuple[Array, Array]:
    rows, (batch, k, m) = group.rows, r.shape
    a, b = _weights(k), _weights(m)
    turned = rows.signs[:, None, :, None] * r[:, rows.orders].swapaxes(0, 1)
    score = np.sum(a[:, None] * turned, axis=2)
    sign = np.where(group.flips & (score < 0), -1.0, 1.0)
    score, turned = sign * score, sign[:, :, None] * turned
    order = np.broadcast_to(np.arange(m), score.shape).copy()
    for one in np.unique(group.kinds):
        own = np.flatnonzero(group.kinds == one)
        order[..., own] = own[np.argsort(-score[..., own], axis=-1, kind="stable")]
    turned = np.take_along_axis(turned, order[:, :, None, :], axis=3)
    value = np.sum(b * np.take_along_axis(score, order, axis=2), axis=2)
    best = value.max(axis=0)
    images = turned[np.argmax(value, axis=0), np.arange(batch)]
    same = (value > best - _TIED) & (np.abs(turned - images).max(axis=(2, 3)) < _EQUAL)
    fixed = same.sum(axis=0) * _fixed_columns(group, images)
    return images, rows.size * group.column_count / fixed


def _fixed_columns(group: Symmetries, r: Array) -> Array:
    """How many signed permutations of the sources leave each R as it is."""
    count = np.ones(r.shape[0])
    m = r.shape[2]
    for j in range(m):
        alike = [i for i in range(j + 1) if group.kinds[i] == group.kinds[j]]
        # The n-th of n equal columns has n places to go: together n! exchanges.
        count *= sum(np.abs(r[:, :, i] - r[:, :, j]).max(axis=1) < _EQUAL for i in alike)
        if group.flips[j]:
            count *= np.where(np.abs(r[:, :, j]).max(axis=1) < _EQUAL, 2.0, 1.0)
    return count
