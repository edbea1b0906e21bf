"""Samples of the subspace model, the same ones in whatever portions they are asked for.

Latent variables, spikes and noise have a stream each, and are drawn in blocks of rows that are
aligned to the first sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.finite.random.streams import Stream, normal_numbers
from hdica.ingredients.sources import Source
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]
Take = Callable[[int], Array]
"""``take(count)``: the next ``count`` samples, one a row."""
ROWS = 4096
"""Rows of a block of spikes."""
_NUMBERS = 2**20
"""Numbers of a block of noise, if it has more than one row."""


class Portions:
    """Blocks of rows, handed out in any portions."""

    def __init__(self, block: Callable[[], Array]) -> None:
        self.block = block
        self.left: Array | None = None

    def take(self, count: int) -> Array:
        """The next ``count`` rows."""
        parts: list[Array] = []
        while not parts or count > 0:
            check_deadline()
            if self.left is None or not len(self.left):
                self.left = self.block()
            parts.append(self.left[:count])
            self.left = self.left[count:]
            count -= len(parts[-1])
        return np.concatenate(parts)


def rows_of(dimension: int) -> int:
    """Rows of a block in many dimensions."""
    return max(1, min(ROWS, _NUMBERS // max(1, dimension)))


@dataclass(frozen=True, eq=False)
class Spiked:
    """The subspace model in the basis in which its spikes are the first axes.

    Parameters
    ----------
    dimension
        D.
    beta, alpha
        Strengths of the spikes and coefficients of v, shape (r,); alpha has length one.
    source
        Law of the latent variable h.
    """

    dimension: int
    beta: Array
    alpha: Array
    source: Source

    @property
    def rank(self) -> int:
        """Number of spikes r."""
        return self.alpha.size

    def signal(self, stream: Stream) -> Take:
        """Coordinates of samples in the span of the spikes, (count, r): the rest is noise alone.

        sqrt(beta_rho) g_rho + h alpha_rho + z_rho with the noise z of covariance I - alpha alpha'.
        """
        normal, latent = normal_numbers(stream("spikes")), stream("latent")
        root = np.sqrt(self.beta)

        def block() -> Array:
            h = np.asarray(self.source.sample(latent, ROWS), dtype=float)[:, None]
            g, z = normal(2 * ROWS * self.rank).reshape(2, ROWS, self.rank)
            z -= np.sum(z * self.alpha, axis=1, keepdims=True) * self.alpha
            return np.asarray(root * g + h * self.alpha + z)

        return Portions(block).take

    def samples(self, stream: Stream) -> Take:
        """Samples (3) in D dimensions, (count, D); their first r entries are :meth:`signal`."""
        signal, normal = self.signal(stream), normal_numbers(stream("noise"))
        rest = self.dimension - self.rank
        rows = rows_of(rest)
        noise = Portions(lambda: normal(rows * rest).reshape(rows, rest))

        def take(count: int) -> Array:
            found = np.empty((count, self.dimension))
            found[:, : self.rank] = signal(count)
            found[:, self.rank :] = noise.take(count)
            return found

        return take

    def whitened(self, stream: Stream) -> Take:
        """Samples y of the reduced model (4), (count, r): signal over sqrt(1 + beta)."""
        signal, scale = self.signal(stream), np.sqrt(1 + self.beta)
        return lambda count: np.asarray(signal(count) / scale)
