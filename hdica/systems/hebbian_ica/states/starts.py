"""Where a search for the fixed points of (17) begins.

Starts are patterns, one source or none a projection; random at all scales from that of the barriers
on; random but kept by a symmetry, where states with few images are; between the images of two
states that are known, where saddles are; and rows of the one with rows of the other, as projections
on different sources hardly know of each other. All are arrays of shape (count, K, M).
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from hdica.systems.hebbian_ica.states.symmetries import Symmetries, representatives

Array = NDArray[np.float64]
MOST_PATTERNS = 4096
SCALES = (0.97, 0.8, 0.6, 0.4, 0.2)
"""Of a pattern: from its own place down to where barriers are."""
_ORDERS = 12
"""A multiple of the orders of signed permutations of up to three things, and of most of four."""


def random_starts(rng: np.random.Generator, shape: tuple[int, int], mu: float, count: int) -> Array:
    """Random R: singular values evenly spread in (0, 1), half of them scaled down to barriers."""
    left, _, right = np.linalg.svd(rng.normal(size=(count, *shape)), full_matrices=False)
    least = min(0.5, 0.5 * float(np.sqrt(mu)))
    values = rng.random((count, left.shape[2]))
    small = rng.random(count) < 0.5
    values[small] *= (least ** rng.random(count))[small, None]
    return np.asarray(np.sum(left[:, :, :, None] * (values[:, :, None] * right)[:, None], axis=2))


def symmetric_starts(rng: np.random.Generator, group: Symmetries, r: Array) -> Array:
    """Means of each R over its images under the powers of a random symmetry, as large as R."""
    found = np.empty_like(r)
    for b, one in enumerate(r):
        turn = group.random(rng)
        total = image = one
        for _ in range(_ORDERS - 1):
            image = turn(image)
            total = total + image
        found[b] = total * (np.abs(one).max() / max(1e-9, float(np.abs(total).max())))
    return found


def starts_between(rng: np.random.Generator, group: Symmetries, zeros: Array, count: int) -> Array:
    """Points on the way from one zero to a random image of another, or of the same."""
    found = np.empty((count, *zeros.shape[1:]))
    for b in range(count):
        one, other = zeros[rng.integers(len(zeros), size=2)]
        found[b] = one + rng.random() * (group.random(rng)(other) - one)
    return found


def spliced_starts(rng: np.random.Generator, group: Symmetries, zeros: Array, count: int) -> Array:
    """Some rows of one zero, and those of a random image of another."""
    found = np.empty((count, *zeros.shape[1:]))
    for b in range(count):
        one, other = zeros[rng.integers(len(zeros), size=2)]
        mine = rng.random(len(one)) < 0.5
        found[b] = np.where(mine[:, None], one, group.random(rng)(other))
    return found


def mixed_starts(
    rng: np.random.Generator, group: Symmetries, zeros: Array, mu: float, count: int
) -> Array:
    """All kinds but patterns, four in eight spliced; random ones while no two zeros are known."""
    part = count // 8
    begin = random_starts(rng, zeros.shape[1:], mu, count)
    begin[:part] = symmetric_starts(rng, group, begin[:part])
    if len(zeros) > 1:
        begin[part : 3 * part] = starts_between(rng, group, zeros, 2 * part)
        begin[3 * part : 7 * part] = spliced_starts(rng, group, zeros, 4 * part)
    return begin


def pattern_starts(
    rng: np.random.Generator, group: Symmetries, shape: tuple[int, int], most: int
) -> Array:
    """Patterns from their own places down to where barriers are, no two of them images."""
    every, _ = representatives(group, patterns(shape, not group.odd))
    _, first = np.unique(np.round(every, 6).reshape(len(every), -1), axis=0, return_index=True)
    scaled = np.concatenate([scale * every[np.sort(first)] for scale in SCALES])
    if len(scaled) <= most:
        return scaled
    return scaled[np.sort(rng.choice(len(scaled), most, replace=False))]


def patterns(shape: tuple[int, int], signed: bool) -> Array:
    """R with one source or none a projection, those on the same source sharing it evenly.

    Rattray 2002, section 4.3: where projections begin alike towards a source they may stay so
    until noise parts them. Where there are more than 4096 ways, those with a source for all or
    none of the projections remain. They are ``signed`` where phi is not odd.
    """
    k, m = shape
    choices = [None] + [(j, s) for j in range(m) for s in ((1.0, -1.0) if signed else (1.0,))]
    if len(choices) ** k <= MOST_PATTERNS:
        every = list(itertools.product(choices, repeat=k))
    else:
        every = [tuple((i, s) if i < m else None for i in range(k)) for s in (1.0, -1.0)]
        every.append((None,) * k)
    found = np.zeros((len(every), k, m))
    for r, chosen in zip(found, every, strict=True):
        for i, one in enumerate(chosen):
            if one is not None:
                r[i, one[0]] = one[1]
        r /= np.sqrt(np.maximum(np.sum(np.abs(r), axis=0), 1.0))
    return found
