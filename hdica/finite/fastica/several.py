"""Several components of the same samples: by deflation, or all with symmetric decorrelation."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.fastica.found import Found, checked_directions, unit_rows
from hdica.finite.fastica.one_unit import iterated, scores_of, sums_of
from hdica.finite.fastica.packed import Packed, packed
from hdica.ingredients.contrasts import Contrast
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]
_DEPENDENT = 1e-28
"""Of the eigenvalues of W W^T, which are squares: the smallest over the largest."""


def components(
    y: Array,
    starts: Array,
    contrast: Contrast,
    *,
    symmetric: bool = False,
    tolerance: float = 1e-10,
    most: int = 200,
) -> Found:
    """As many orthogonal components as there are starts, on whitened samples.

    Parameters
    ----------
    y, starts, contrast, tolerance, most
        As in :func:`hdica.finite.fastica.one_unit.fastica`; at most d starts.
    symmetric
        False: one component after another, each orthogonal to those before (Hyvarinen and Oja
        2000, eq. 44). True: all at once, W <- (W W^T)^(-1/2) W after every iteration (eq. 45),
        converged once all of them have.

    Raises
    ------
    HdicaError
        As for one component; if there are more starts than coordinates, or symmetric starts
        are linearly dependent.
    """
    samples, d = packed(y), np.shape(y)[1]
    given = checked_directions(starts, d)
    if len(given) > d:
        raise HdicaError(
            f"starts of shape {given.shape} are not allowed (at most {d} orthogonal components)"
        )
    if symmetric:
        return _symmetric(samples, given, contrast, tolerance, most)
    first, found = unit_rows(given, d), []
    w = np.empty_like(first)
    for j, start in enumerate(first):
        one = iterated(samples, start, contrast, before=w[:j], tolerance=tolerance, most=most)
        w[j] = one.w[0]
        found.append(one)
    return Found(
        w,
        np.concatenate([one.iterations for one in found]),
        np.concatenate([one.converged for one in found]),
        np.concatenate([one.score for one in found]),
    )


def _symmetric(
    samples: Packed, starts: Array, contrast: Contrast, tolerance: float, most: int
) -> Found:
    n, k, done, iterations = len(samples.y), len(starts), False, 0
    w = decorrelated(starts)
    while iterations < most and not done:
        check_deadline()
        a, b = sums_of(samples, w, contrast)
        new = decorrelated((a - b[:, None] * w) / n)
        done = bool(np.max(np.abs(np.abs(np.sum(new * w, axis=1)) - 1)) < tolerance)
        w, iterations = new, iterations + 1
    score = scores_of(samples, w, contrast)
    return Found(w, np.full(k, iterations), np.full(k, done), score)


def decorrelated(w: Array) -> Array:
    """(W W^T)^(-1/2) W, shape (k, d).

    Raises
    ------
    HdicaError
        If the rows are linearly dependent or not finite.
    """
    with one_thread():
        gram = w @ w.T
        finite = bool(np.all(np.isfinite(gram)))
        values, vectors = np.linalg.eigh(gram) if finite else (np.zeros(1), gram)
        if not values[0] > _DEPENDENT * values[-1]:
            raise HdicaError("linearly dependent directions are not allowed (one a component)")
        return np.asarray((vectors / np.sqrt(values)) @ vectors.T @ w)
