"""FastICA on prepared samples, on the same ones or on new ones in every iteration."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from hdica.finite.fastica.found import Found
from hdica.finite.fastica.one_unit import accumulate, fastica, scores
from hdica.finite.random.streams import Stream
from hdica.ingredients.contrasts import Contrast
from hdica.process.progress import check_deadline
from hdica.systems.subspace_ica.finite.draws import ROWS, Take
from hdica.systems.subspace_ica.finite.frame import Frame
from hdica.systems.subspace_ica.finite.prepared import Prepared

Array = NDArray[np.float64]


def starts(frame: Frame, number: int, overlap: float | None, stream: Stream) -> Array:
    """Unit vectors to begin with, one a row, shape (number, d).

    Uniform on the sphere, or with a given overlap with the signal and uniform else.
    """
    d = frame.size
    w = stream("start").standard_normal((number, d))
    if overlap is not None:
        e = frame.signal
        across = w - np.sum(w * e, axis=1, keepdims=True) * e
        size = np.sqrt(np.sum(across**2, axis=1, keepdims=True))
        # In one dimension there is no other direction.
        w = overlap * e + math.sqrt(1 - overlap * overlap) * across / size if d > 1 else e + 0 * w
    return np.asarray(w / np.sqrt(np.sum(w * w, axis=1, keepdims=True)))


def from_starts(
    prepared: Prepared, w: Array, contrast: Contrast, tolerance: float, most: int
) -> Found:
    """FastICA that uses the same samples in every iteration."""
    return fastica(prepared.y, w, contrast, tolerance=tolerance, most=most)


def with_new_samples(
    prepared: Prepared,
    w: Array,
    contrast: Contrast,
    tolerance: float,
    most: int,
    stream: Stream,
) -> Found:
    """FastICA that uses as many new samples in every iteration, all starts the same ones.

    The coordinates are those of the first samples; the score is that over further new samples.
    """
    count, take = len(prepared.y), prepared.renew(lambda part: stream(f"fresh {part}"))
    w = w.copy()
    iterations, converged = np.zeros(len(w), dtype=np.int64), np.zeros(len(w), dtype=bool)
    alive = np.arange(len(w))
    for _ in range(most):
        new = _iterate(take, count, w[alive], contrast)
        done = np.abs(np.abs(np.sum(new * w[alive], axis=1)) - 1) < tolerance
        w[alive], converged[alive] = new, done
        iterations[alive] += 1
        alive = alive[~done]
        if not alive.size:
            break
    total = np.zeros(len(w))
    for first in range(0, count, ROWS):
        check_deadline()
        block = take(min(ROWS, count - first))
        total += scores(block, w, contrast) * len(block)
    return Found(w, iterations, converged, total / count)


def _iterate(take: Take, count: int, w: Array, contrast: Contrast) -> Array:
    """W <- Pi(mean(y g(w.y)) - mean(g'(w.y)) w) of new samples; w where that has no direction."""
    a, b = np.zeros_like(w), np.zeros(len(w))
    for first in range(0, count, ROWS):
        check_deadline()
        pushed, bent = accumulate(take(min(ROWS, count - first)), w, contrast)
        a, b = a + pushed, b + bent
    new = a - b[:, None] * w
    with np.errstate(over="ignore", invalid="ignore"):
        size = np.sqrt(np.sum(new * new, axis=1, keepdims=True))
    directed = np.isfinite(size) & (size > 0)
    return np.where(directed, new / np.where(directed, size, 1.0), w)
