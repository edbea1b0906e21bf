"""One-unit FastICA from several starts at once.

w~ = mean(y g(w.y)) - mean(g'(w.y)) w, w <- w~/|w~| (Hyvarinen and Oja 1997, Neural Comput. 9;
Hyvarinen and Oja 2000, Neural Netw. 13, eq. 43), on whitened samples y.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hdica.finite.fastica.found import Found, checked_directions, unit_rows
from hdica.finite.fastica.packed import Packed, code_of, packed, scratch
from hdica.ingredients.contrasts import Contrast
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]
_AT_ONCE = 100_000_000
"""Products of a sample and a start between two checks of the deadline: a tenth of a second."""


def accumulate(y: Array, w: Array, contrast: Contrast) -> tuple[Array, Array]:
    """Sums over samples that one iteration of FastICA is made of.

    For samples that come in blocks: the next iterate of start j is the direction of
    a_j - b_j w_j after a and b of all blocks have been added. The rounding of sums depends on
    where blocks end, but not on what other directions there are.

    Parameters
    ----------
    y
        Whitened samples, shape (n, d).
    w
        Unit vectors, shape (k, d).
    contrast
        G, with g = G'.

    Returns
    -------
    a = sum of y g(w.y), shape (k, d), and b = sum of g'(w.y), shape (k,).

    Raises
    ------
    HdicaError
        If the samples or directions have a wrong shape.
    """
    return sums_of(packed(y), w, contrast)


def sums_of(samples: Packed, w: Array, contrast: Contrast) -> tuple[Array, Array]:
    """The same of packed samples."""
    w = checked_directions(w, samples.y.shape[1])
    return _one_pass(samples, w, contrast, False, scratch(*w.shape))


def scores(y: Array, w: Array, contrast: Contrast) -> Array:
    """Mean of G(w.y) less that of a standard normal law, shape (k,); arguments as above."""
    return scores_of(packed(y), w, contrast)


def scores_of(samples: Packed, w: Array, contrast: Contrast) -> Array:
    """The same of packed samples."""
    w = checked_directions(w, samples.y.shape[1])
    return _scores(samples, w, contrast, scratch(*w.shape))


def _scores(samples: Packed, w: Array, contrast: Contrast, room: tuple[Array, Array]) -> Array:
    _, height = _one_pass(samples, w, contrast, True, room)
    return np.asarray(height / len(samples.y) - contrast.gaussian_mean)


def _one_pass(
    samples: Packed, w: Array, contrast: Contrast, only_value: bool, room: tuple[Array, Array]
) -> tuple[Array, Array]:
    from hdica.finite.fastica.kernels import one_pass

    a, b = np.empty_like(w), np.empty(len(w))
    one_pass(samples.samples, w, len(w), code_of(contrast), a, b, room, only_value)
    return a, b


def fastica(
    y: Array,
    starts: Array,
    contrast: Contrast,
    *,
    tolerance: float = 1e-10,
    most: int = 200,
    path: bool = False,
) -> Found:
    """One-unit FastICA on whitened samples from several starts at once.

    A start that has converged drops out; each has the bits that it has alone. One whose next
    iterate would vanish or not be finite stays where it is, not converged.

    Parameters
    ----------
    y
        Whitened samples, shape (n, d).
    starts
        First w, one a row, shape (k, d), not zero; their length does not matter.
    contrast
        G, with g = G'.
    tolerance, most
        A start has converged once abs(abs(w'.w) - 1) of two iterates that follow one another is
        below the tolerance, and is given up after ``most`` iterations.
    path
        Whether to keep w after every iteration.

    Raises
    ------
    HdicaError
        If the samples or starts have a wrong shape, or a start is no direction.
    """
    return iterated(packed(y), starts, contrast, tolerance=tolerance, most=most, path=path)


def iterated(
    samples: Packed,
    starts: Array,
    contrast: Contrast,
    *,
    before: Array | None = None,
    tolerance: float,
    most: int,
    path: bool = False,
) -> Found:
    """The same of packed samples, orthogonal to orthonormal directions ``before``, shape (j, d)."""
    from hdica.finite.fastica.kernels import iterate

    d = samples.y.shape[1]
    w = unit_rows(starts, d)
    k, first = len(w), w.copy()
    iterations, converged = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=bool)
    way = np.empty((k, most if path else 0, d))
    before = np.empty((0, d)) if before is None else before
    room = np.empty((k, d)), np.empty((k, d)), np.empty(k), np.empty(k, dtype=np.int64)
    spare, code = scratch(k, d), code_of(contrast)
    some, done, moving = max(1, _AT_ONCE // (w.size * len(samples.y))), 0, np.arange(k)
    while done < most and moving.size:
        check_deadline()
        some = min(some, most - done)
        part, counts = w[moving], np.zeros(moving.size, dtype=np.int64)
        steps, ended = np.empty((moving.size, some if path else 0, d)), counts > 0
        rest = steps, counts, ended, room, spare
        iterate(samples.samples, part, before, code, tolerance, some, *rest)
        w[moving], converged[moving] = part, ended
        iterations[moving] += counts
        if path:
            way[moving, done : done + some] = steps
        moving, done = moving[(counts == some) & ~ended], done + some
    kept = _whole_way(first, way, iterations) if path else None
    return Found(w, iterations, converged, _scores(samples, w, contrast, spare), kept)


def _whole_way(first: Array, way: Array, iterations: NDArray[np.int64]) -> Array:
    """Starts and iterates, shape (k, longest + 1, d), the last of each start repeated."""
    steps = np.arange(int(iterations.max()) + 1)
    at = np.minimum(steps, iterations[:, None])
    every = np.concatenate([first[:, None], way], axis=1)
    return np.ascontiguousarray(np.take_along_axis(every, at[:, :, None], axis=1))
