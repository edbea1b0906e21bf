"""Search for the fixed points of (17) by Newton's method from many starts, for polynomial phi.

Starts are random at all scales from the barriers on; random but kept by a symmetry, where states
with few images are; and half way between the images of two states that are known, where saddles
are. Their numbers are fixed, and so is the seed: a search has the same bits everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.limits.hebbian_polynomial import Polynomial, rates_and_slopes
from hdica.limits.hebbian_symmetries import Symmetries, representatives

Array = NDArray[np.float64]
SAME = 1e-7
"""Nearer than this, two zeros are one."""
_ITERATIONS, _LONGEST, _CONVERGED = 60, 0.5, 1e-11
_SEED = 20020101
_POWER = 4


@dataclass(frozen=True)
class Search:
    """What a search found.

    Parameters
    ----------
    zeros
        One of each orbit, shape (N, K, M).
    hits
        How many starts ended at each orbit, shape (N,).
    starts
        Number of starts.
    """

    zeros: Array
    hits: Array
    starts: int

    @property
    def unseen(self) -> float:
        """Share of further starts expected to end elsewhere: that of zeros hit once (I. J. Good,
        Biometrika 40, 1953)."""
        return float(np.sum(self.hits == 1)) / max(1.0, float(self.hits.sum()))


def search(poly: Polynomial, group: Symmetries, batch: int, most: int) -> Search:
    """Zeros of all the cube, from batches of starts until there is nothing new.

    Parameters
    ----------
    poly
        Right-hand side of (17) over mu.
    group
        Its symmetries.
    batch
        Starts at a time; the last two batches find nothing new, and every zero is hit twice.
    most
        Starts to end after in any case.
    """
    rng = np.random.default_rng(_SEED)
    zeros, hits, starts, idle = np.zeros((0, *poly.shape)), np.zeros(0), 0, 0
    while starts < most and (idle < 2 or bool(np.any(hits < 2))):
        begin = np.concatenate(
            [
                _random(rng, poly, batch - 2 * (batch // 3)),
                _symmetric(rng, poly, group, batch // 3),
                _between(rng, poly, group, zeros, batch // 3),
            ]
        )
        ends, good = polished(poly, np.moveaxis(begin, 0, 2))
        found, _ = representatives(group, np.moveaxis(ends[:, :, good], 2, 0))
        more = converged(found, zeros)
        idle = 0 if len(more) else idle + 1
        zeros = np.concatenate([zeros, more])
        hits = np.concatenate([hits, np.zeros(len(more))]) + _counts(found, zeros)
        starts += batch
    return Search(zeros, hits, starts)


def polished(poly: Polynomial, r: Array) -> tuple[Array, NDArray[np.bool_]]:
    """Ends of Newton's method from a batch of R, shape (K, M, B), and which of them are zeros."""
    (k, m), n, batch = poly.shape, r.shape[0] * r.shape[1], r.shape[2]
    r, good, running = r.copy(), np.zeros(batch, dtype=bool), np.arange(batch)
    for _ in range(_ITERATIONS):
        f, slope = rates_and_slopes(poly, r[:, :, running])
        step = _solved(slope.reshape(n, n, -1), f.reshape(n, -1))
        size = np.sqrt(np.sum(step * step, axis=0))
        step *= np.minimum(1.0, _LONGEST / np.maximum(size, 1e-300))
        r[:, :, running] -= step.reshape(k, m, -1)
        # One step more than where it has converged: quadratically, so to rounding.
        good[running] = size < _CONVERGED
        running = running[~(size < 1e-15) & np.all(np.abs(r[:, :, running]) < 2.0, axis=(0, 1))]
        if not running.size:
            break
    rows, columns = (np.sum(r * r, axis=axis).max(axis=0) for axis in (0, 1))
    good &= np.maximum(rows, columns) < 1.0 + SAME
    return np.where(np.abs(r) < 1e-13, 0.0, r), good


def _solved(slope: Array, f: Array) -> Array:
    """The steps J x = f; of a singular J, a long one."""
    stacked = np.moveaxis(slope, 2, 0)
    size = 1e-15 * np.abs(stacked).max(axis=(1, 2)) + 1e-300
    shifted = stacked + size[:, None, None] * np.eye(slope.shape[0])
    return np.asarray(np.linalg.solve(shifted, f.T[:, :, None])[:, :, 0].T)


def converged(found: Array, known: Array) -> Array:
    """Those of ``found`` that are not known, each once, in the order in which they were found."""
    new = _nearest(found, known) > SAME
    fresh: list[Array] = []
    for one in found[new]:
        if not any(np.abs(one - other).max() < SAME for other in fresh):
            fresh.append(one)
    return np.array(fresh).reshape(-1, *found.shape[1:])


def _nearest(found: Array, known: Array) -> Array:
    gap = np.full(len(found), np.inf)
    for one in known:
        gap = np.minimum(gap, np.abs(found - one).max(axis=(1, 2)))
    return gap


def _counts(found: Array, zeros: Array) -> Array:
    near = [int(np.sum(np.abs(found - one).max(axis=(1, 2)) < SAME)) for one in zeros]
    return np.array(near, dtype=float)


def _random(rng: np.random.Generator, poly: Polynomial, count: int) -> Array:
    """Random R whose largest singular value has any scale between that of barriers and 1."""
    r = rng.normal(size=(count, *poly.shape))
    sizes = np.linalg.norm(r, 2, axis=(1, 2))
    least = min(0.5, 0.5 * float(np.sqrt(poly.mu)))
    scale = np.where(rng.random(count) < 0.5, rng.random(count), least ** rng.random(count))
    return np.asarray(r * (scale / sizes)[:, None, None])


def _symmetric(rng: np.random.Generator, poly: Polynomial, group: Symmetries, count: int) -> Array:
    """Random R that a random symmetry leaves as they are."""
    r, (k, m) = _random(rng, poly, count), poly.shape
    rows = group.rows
    for b in range(count):
        g = int(rng.integers(rows.size))
        order, sign = group.random_columns(rng)
        total = image = r[b]
        for _ in range(11):
            image = (rows.signs[g][:, None] * image[rows.orders[g]])[:, order] * sign
            total = total + image
        # The orders of these elements divide 12, or the average is near enough to be a start.
        r[b] = total * (np.abs(r[b]).max() / max(1e-9, float(np.abs(total).max())))
    return r


def _between(
    rng: np.random.Generator, poly: Polynomial, group: Symmetries, zeros: Array, count: int
) -> Array:
    """Points between random images of two zeros; random ones while fewer are known."""
    if len(zeros) < 2:
        return _random(rng, poly, count)
    found = np.empty((count, *poly.shape))
    for b in range(count):
        one, other = zeros[rng.integers(len(zeros), size=2)]
        g = int(rng.integers(group.rows.size))
        order, sign = group.random_columns(rng)
        image = (group.rows.signs[g][:, None] * other[group.rows.orders[g]])[:, order] * sign
        found[b] = one + rng.random() * (image - one)
    return found
