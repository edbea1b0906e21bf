"""Mean and covariance of samples that come in one array or in passes of blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]
Blocks = Callable[[], Iterable[Array]]
"""``blocks()`` begins a pass over the samples: blocks of shape (block, D), always the same ones."""
_ENTRIES, _FEWEST = 2**20, 64
"""Entries of an array that are multiplied at once, and the fewest samples."""


def passes_of(samples: Array | Blocks) -> Blocks:
    """Passes over an array of shape (n, D), some rows at once; other passes as they are.

    Raises
    ------
    HdicaError
        If an array has not two dimensions.
    """
    if callable(samples):
        return samples
    x = np.asarray(samples, dtype=np.float64)
    if x.ndim != 2:
        raise HdicaError(f"samples of shape {x.shape} are not allowed (samples by coordinates)")
    rows = max(_ENTRIES // max(x.shape[1], 1), _FEWEST)
    return lambda: (x[first : first + rows] for first in range(0, len(x), rows))


@dataclass(frozen=True, eq=False)
class Moments:
    """Number of samples n, their mean, shape (D,), and covariance, shape (D, D), over n."""

    count: int
    mean: Array
    covariance: Array


def sample_mean(blocks: Blocks) -> tuple[int, Array]:
    """Number of samples and their mean, shape (D,), in one pass.

    Raises
    ------
    HdicaError
        If there are fewer than two samples.
    """
    count, total = 0, np.zeros(())
    for block in blocks():
        check_deadline()
        count += len(block)
        total = total + np.sum(block, axis=0)
    if count < 2:
        raise HdicaError(f"samples = {count} is not allowed (at least 2, to be whitened)")
    return count, total / count


def covariance_of(blocks: Blocks, count: int, mean: Array) -> Array:
    """Covariance over n, shape (D, D), in one pass, the same bits for any number of threads."""
    covariance = np.zeros((mean.size, mean.size))
    with one_thread():
        for block in blocks():
            check_deadline()
            centred = block - mean
            covariance += centred.T @ centred
    return covariance / count


def times_covariance(blocks: Blocks, count: int, mean: Array, v: Array) -> Array:
    """C V of the sample covariance C and V, shape (D, any), in one pass, without C."""
    found = np.zeros(v.shape)
    with one_thread():
        for block in blocks():
            check_deadline()
            centred = block - mean
            found += centred.T @ (centred @ v)
    return found / count


def sample_moments(samples: Array | Blocks) -> Moments:
    """Mean and covariance in two passes.

    The mean comes first, as second moments less its square have no digits where it is large.

    Raises
    ------
    HdicaError
        If there are fewer than two samples, or an array has not two dimensions.
    """
    blocks = passes_of(samples)
    count, mean = sample_mean(blocks)
    return Moments(count, mean, covariance_of(blocks, count, mean))
