"""Samples for offline baselines: drawn, whitened and averaged over, a block at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.random.streams import RUN
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]
Blocks = Callable[[], Iterable[Array]]
"""``blocks()`` begins a pass over the samples: blocks of shape (block, d), always the same ones."""
IN_MEMORY = 20_000_000
"""Most numbers of samples, count times d, that are kept; more are drawn anew in every pass."""


@dataclass(frozen=True, eq=False)
class Whitening:
    """x -> K (x - c) with the sample mean c, shape (d,), and K = C^-1/2, shape (d, d)."""

    centre: Array
    matrix: Array


def passes(
    begin: Callable[[], Callable[[int], Array]],
    dimension: int,
    count: int,
    mixing: Array | None = None,
) -> Blocks:
    """Passes over the first ``count`` samples of a stream.

    Parameters
    ----------
    begin
        Begins the stream: ``begin()(size)`` are its first samples Z, shape (size, d).
    dimension, count
        d and the number of samples.
    mixing
        Orthonormal A of the observed samples X = A Z, shape (d, d); None for the identity.

    Raises
    ------
    HdicaError
        If there are fewer samples than dimensions.
    """
    if count <= dimension:
        raise HdicaError(
            f"samples = {count} is not allowed (more than the dimension {dimension}, "
            "else their covariance has no inverse)"
        )

    def draw() -> Iterator[Array]:
        take = begin()
        for first in range(0, count, RUN):
            check_deadline()
            block = take(min(RUN, count - first))
            yield block if mixing is None else block @ mixing.T

    if count * dimension > IN_MEMORY:
        return draw
    with one_thread():
        kept = list(draw())
    return lambda: kept


def whitening_of(blocks: Blocks) -> Whitening:
    """Mean and symmetric inverse root of the covariance of the samples, in one pass.

    Raises
    ------
    HdicaError
        If the sample covariance has no inverse.
    """
    count, first, second = 0, np.zeros(()), np.zeros(())
    with one_thread():
        for block in blocks():
            check_deadline()
            count += len(block)
            first = first + np.sum(block, axis=0)
            second = second + block.T @ block
        centre = first / count
        values, vectors = np.linalg.eigh(second / count - np.outer(centre, centre))
        if not values[0] > 1e-12 * values[-1]:
            raise HdicaError(
                f"samples = {count} is not allowed with whitening (their covariance in "
                f"{centre.size} dimensions has no inverse)"
            )
        return Whitening(centre, (vectors / np.sqrt(values)) @ vectors.T)


@dataclass(frozen=True, eq=False)
class Samples:
    """Whitened samples x, as averages over them: they are never stored.

    Without whitening x = X.
    """

    blocks: Blocks
    white: Whitening | None

    def unmixing(self, w: Array) -> Array:
        """B with w.x = b.(X - c)."""
        return w if self.white is None else self.white.matrix @ w

    def projections(self, *directions: Array) -> Iterator[tuple[Array, list[Array]]]:
        """Blocks of X - c, with w.x for every direction w."""
        ways = [self.unmixing(w) for w in directions]
        for block in self.blocks():
            centred = block if self.white is None else block - self.white.centre
            yield centred, [centred @ b for b in ways]

    def cubic(self, w: Array) -> tuple[Array, float, float]:
        """Averages of y^3 x, of y^2 and of y^4, with y = w.x."""
        push, square, fourth, count = np.zeros(w.size), 0.0, 0.0, 0
        for centred, (y,) in self.projections(w):
            y2 = y * y
            push += (y2 * y) @ centred
            square += float(np.sum(y2))
            fourth += float(np.sum(y2 * y2))
            count += len(y)
        return self.unmixing(push) / count, square / count, fourth / count

    def quartic(self, w: Array, direction: Array) -> Array:
        """Averages of C(4, j) y^(4-j) z^j for j = 0..4, with y = w.x and z = direction.x."""
        sums, count = np.zeros(5), 0
        for _, (y, z) in self.projections(w, direction):
            y2, yz, z2 = y * y, y * z, z * z
            products = (y2 * y2, 4 * y2 * yz, 6 * y2 * z2, 4 * yz * z2, z2 * z2)
            sums += [float(np.sum(p)) for p in products]
            count += len(y)
        return sums / count
