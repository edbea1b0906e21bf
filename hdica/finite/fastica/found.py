"""What FastICA finds, and which of several starts found most."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Found:
    """What became of k starts.

    Parameters
    ----------
    w
        Unit vectors in whitened coordinates, shape (k, d); a sign is a matter of the start.
    iterations
        How many each start made, shape (k,).
    converged
        Whether 1 - abs(w'.w) of its last two was below the tolerance, shape (k,).
    score
        Mean of G(w.y) over the samples less the mean of G over a standard normal law, shape (k,):
        0 in expectation along a Gaussian direction.
    path
        w after 0, 1, ... iterations, shape (k, longest + 1, d), the last one repeated where a start
        was done before the longest; None if it was not asked for.
    """

    w: Array
    iterations: NDArray[np.int64]
    converged: NDArray[np.bool_]
    score: Array
    path: Array | None = None


def best(found: Found) -> int:
    """Index of the start whose projection is farthest from Gaussian: the largest abs(score).

    Only starts that converged count, unless none did; of several that are equal, the first.
    """
    size = np.abs(found.score)
    among = found.converged if np.any(found.converged) else np.ones(size.shape, dtype=bool)
    return int(np.argmax(np.where(among & ~np.isnan(size), size, -1.0)))


def checked_samples(y: Array) -> Array:
    """Samples as a C-contiguous array of float64, shape (n, d).

    Raises
    ------
    HdicaError
        If it has not two dimensions, or there is no sample or no coordinate.
    """
    y = np.ascontiguousarray(y, dtype=np.float64)
    if y.ndim != 2 or 0 in y.shape:
        raise HdicaError(f"samples of shape {y.shape} are not allowed (samples by coordinates)")
    return y


def checked_directions(w: Array, d: int) -> Array:
    """Directions as a C-contiguous array of float64, shape (k, d); not normalised.

    Raises
    ------
    HdicaError
        If there is none, or one has not d coordinates.
    """
    w = np.array(np.atleast_2d(w), dtype=np.float64, order="C")
    if w.ndim != 2 or len(w) == 0 or w.shape[1] != d:
        raise HdicaError(f"starts of shape {w.shape} are not allowed (starts by {d} coordinates)")
    return w


def unit_rows(starts: Array, d: int) -> Array:
    """Every start over its length, shape (k, d).

    Raises
    ------
    HdicaError
        If there is none, one has not d coordinates, or is zero or not finite.
    """
    w = checked_directions(starts, d)
    size = np.sqrt(np.sum(w * w, axis=1, keepdims=True))
    bad = ~((size > 0) & (size < np.inf))
    if np.any(bad):
        raise HdicaError(
            f"start of length {size[bad][0]} is not allowed (a direction: finite, not zero)"
        )
    return np.asarray(w / size)
