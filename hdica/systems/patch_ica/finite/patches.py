"""Training patches, whitened, and projections of held-out patches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from hdica.finite.random.streams import Stream
from hdica.finite.whitening.moments import Blocks, sample_moments
from hdica.finite.whitening.principal import Whitened, whitened
from hdica.inputs.images import Picture, patch_blocks
from hdica.inputs.store import blocks_of, kept_blocks
from hdica.process.machine import one_thread

Array = NDArray[np.float64]
IN_MEMORY = 2 * 10**8
"""Most numbers of training patches, n times D, in memory; more are streamed from disk."""


@dataclass(frozen=True, eq=False)
class Patches:
    """Where patches come from.

    Parameters
    ----------
    images
        Pictures, grey or in colour.
    width
        Pixels of a side.
    stream
        Random numbers by their part: ``"train"`` and ``"test"`` choose patches.
    """

    images: Sequence[Picture]
    width: int
    stream: Stream

    def blocks(self, part: str, count: int) -> Iterator[Array]:
        """The first ``count`` patches of a part, in blocks of shape (block, D)."""
        return patch_blocks(self.images, self.width, count, self.stream(part))

    @contextmanager
    def passes(self, part: str, count: int) -> Iterator[Blocks]:
        """Passes over the same patches, in memory or, if there are too many, on disk."""
        entries = self.width**2 * int(np.prod(self.images[0].pixels.shape[2:]))
        if count * entries > IN_MEMORY:
            with kept_blocks(self.blocks(part, count), count, entries) as stored:
                yield partial(blocks_of, stored)
        else:
            kept = list(self.blocks(part, count))
            yield lambda: kept


@dataclass(frozen=True, eq=False)
class Training:
    """Training patches after whitening.

    Parameters
    ----------
    white
        Their mean and leading principal components.
    scores
        The whitened patches y, shape (n, d).
    passes
        Passes over the patches themselves.
    """

    white: Whitened
    scores: Array
    passes: Blocks

    def filters(self, w: Array) -> Array:
        """Filters on centred patches whose projections are w.y, shape (k, D), of w (k, d)."""
        with one_thread():
            return np.ascontiguousarray((self.white.unmixing @ w.T).T)

    def features(self, w: Array) -> Array:
        """What a unit of w.y adds to a patch, U Lambda^(1/2) w, shape (k, D), of w (k, d)."""
        with one_thread():
            mixing = self.white.directions * np.sqrt(self.white.variances)
            return np.ascontiguousarray((mixing @ w.T).T)

    def whitening_filters(self, v: Array) -> Array | None:
        """Filters of directions v, shape (k, D), in all D whitened coordinates.

        C = L L', and L^-1 (x - mean) is white: its coordinates are turned against those of the
        eigenvectors, which no uniform direction knows. None where C has no inverse.
        """
        import scipy.linalg

        with one_thread():
            try:
                root = np.linalg.cholesky(sample_moments(self.passes).covariance)
            except np.linalg.LinAlgError:
                return None
            found = scipy.linalg.solve_triangular(root, v.T, lower=True, trans="T")
        return np.ascontiguousarray(found.T) if np.all(np.isfinite(found)) else None


@contextmanager
def trained(patches: Patches, count: int, rank: int) -> Iterator[Training]:
    """Draw and whiten ``count`` training patches in their ``rank`` leading components.

    Raises
    ------
    HdicaError
        If the patches vary in fewer directions.
    """
    with patches.passes("train", count) as passes:
        white = whitened(passes, rank)
        yield Training(white, white.all_scores(passes), passes)


def projections(patches: Patches, part: str, count: int, mean: Array, filters: Array) -> Array:
    """Projections a.(x - mean) of patches on filters a, shape (count, k)."""
    with one_thread():
        found = [(block - mean) @ filters.T for block in patches.blocks(part, count)]
    return np.concatenate(found)


def directions(rng: np.random.Generator, many: int, size: int) -> Array:
    """Uniform directions, shape (many, size)."""
    raw = rng.standard_normal((many, size))
    return np.asarray(raw / np.sqrt(np.sum(raw * raw, axis=1, keepdims=True)))


def standardised(s: Array) -> Array:
    """Projections, shape (count, k), with mean 0 and variance 1 each over the count."""
    centred = s - np.mean(s, axis=0)
    spread = np.sqrt(np.mean(centred * centred, axis=0))
    return np.asarray(centred / spread)
