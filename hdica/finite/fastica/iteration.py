"""FastICA on whitened samples: one component from several starts at once, or several components.

w~ = mean(y g(w.y)) - mean(g'(w.y)) w, w <- w~/|w~| (Hyvarinen and Oja 1997, Neural Comput. 9;
Hyvarinen and Oja 2000, Neural Netw. 13, eq. 43), on whitened samples y.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.random import LANES
from hdica.finite.record import aligned_zeros
from hdica.ingredients.contrasts import Contrast
from hdica.ingredients.formula import Formula
from hdica.ingredients.plain import Array
from hdica.process.machine import one_thread
from hdica.process.progress import check_deadline


@dataclass(frozen=True, eq=False)
class Fit:
    """What became of k starts."""

    w: Array  # unit vectors in whitened coordinates, whose sign is that of the start, shape (k, d)
    iterations: NDArray[np.int64]  # how many each start made, shape (k,)
    converged: NDArray[np.bool_]  # whether 1 - abs(w'.w) of its last two was below the tolerance
    score: Array  # mean of G(w.y) less that over a standard normal law, (k,); NaN without G
    path: Array | None = None  # w after 0, 1, ... iterations, (k, longest + 1, d), if asked for


def best(fit: Fit) -> int:
    """Index of the start whose projection is farthest from Gaussian: the largest abs(score).

    Only starts that converged count, unless none did; of several that are equal, the first.
    """
    size = np.abs(fit.score)
    among = fit.converged if np.any(fit.converged) else np.ones(size.shape, dtype=bool)
    return int(np.argmax(np.where(among & ~np.isnan(size), size, -1.0)))


def _directions(w: Array, d: int) -> Array:
    """Directions as a C-contiguous array of float64, shape (k, d); not normalised."""
    w = np.array(np.atleast_2d(w), dtype=np.float64, order="C")
    if w.ndim != 2 or len(w) == 0 or w.shape[1] != d:
        raise HdicaError(f"starts of shape {w.shape} are not allowed (starts by {d} coordinates)")
    return w


def unit_rows(starts: Array, d: int) -> Array:
    """Every start over its length, (k, d); refused if one is no direction of d coordinates."""
    w = _directions(starts, d)
    size = np.sqrt(np.sum(w * w, axis=1, keepdims=True))
    bad = ~((size > 0) & (size < np.inf))
    if np.any(bad):
        raise HdicaError(
            f"start of length {size[bad][0]} is not allowed (a direction: finite, not zero)"
        )
    return w / size


KEPT = 2**24  # numbers of samples that are rearranged once; of more, blocks in every pass
Packed = tuple[Array, Array, bool]
"""Samples, shape (n, d), panels of all of them or of one block, and whether of all."""


def packed(y: Array | Packed) -> Packed:
    """Samples as the kernels read them; refused if there are none, or none of two dimensions."""
    if isinstance(y, tuple):
        return y
    from hdica.finite.fastica.kernels import block_of, pack

    y = np.ascontiguousarray(y, dtype=np.float64)
    if y.ndim != 2 or 0 in y.shape:
        raise HdicaError(f"samples of shape {y.shape} are not allowed (samples by coordinates)")
    n, d = y.shape
    whole = y.size <= KEPT
    panels = -(-n // LANES)
    room = aligned_zeros(panels if whole else block_of(d), d | 1, LANES)
    if whole:
        pack(y, 0, panels, room, 0)
    return y, room, whole


def scratch(starts: int, d: int) -> tuple[Array, Array]:
    """Room for the projections of one block, with rows of no power of two for the cache's sake."""
    from hdica.finite.fastica.kernels import block_of

    rows = LANES * (block_of(d) | 1)
    both = aligned_zeros(starts + 1, rows)
    return both[:starts], both[starts]


Aim = Contrast | Formula  # a contrast G, or its slope g = G' alone


def code_of(aim: Aim) -> tuple[int, int, int, int]:
    """Kind of a contrast, and addresses of G, g and g' of a formula; 0 if there is no G."""
    from hdica.finite.fastica.functions import FORMULA, KINDS

    if isinstance(aim, Formula):
        g, curvature = (int(f.compiled_block.address) for f in (aim, aim.derivative))
        return FORMULA, 0, g, curvature
    kind = KINDS.get(aim.name, FORMULA)
    if kind != FORMULA:
        return kind, 0, 0, 0
    _, _, g, curvature = code_of(aim.formula.derivative)
    return kind, int(aim.formula.compiled_block.address), g, curvature


_AT_ONCE = 100_000_000  # products between two checks of the deadline: a tenth of a second


def accumulate(y: Array | Packed, w: Array, contrast: Contrast) -> tuple[Array, Array]:
    """Sums a of y g(w.y), shape (k, d), and b of g'(w.y), shape (k,), over samples; g = G'.

    The next iterate of a unit vector w_j, of w of shape (k, d), is the direction of a_j - b_j w_j,
    added up over all blocks of samples of shape (n, d). Rounding depends on where blocks end, but
    not on what other directions there are. Refused if the samples or directions have a wrong shape.
    """
    samples = packed(y)
    w = _directions(w, samples[0].shape[1])
    return _one_pass(samples, w, contrast, False, scratch(*w.shape))


def scores(y: Array | Packed, w: Array, contrast: Contrast) -> Array:
    """Mean of G(w.y) less that of a standard normal law, shape (k,); arguments as above."""
    samples = packed(y)
    w = _directions(w, samples[0].shape[1])
    return _scores(samples, w, contrast, scratch(*w.shape))


def _scores(samples: Packed, w: Array, aim: Aim, room: tuple[Array, Array]) -> Array:
    if isinstance(aim, Formula):
        return np.full(len(w), np.nan)
    _, height = _one_pass(samples, w, aim, True, room)
    return height / len(samples[0]) - aim.gaussian_mean


def _one_pass(
    samples: Packed, w: Array, contrast: Aim, only_value: bool, room: tuple[Array, Array]
) -> tuple[Array, Array]:
    from hdica.finite.fastica.kernels import one_pass

    a, b = np.empty_like(w), np.empty(len(w))
    one_pass(samples, w, len(w), code_of(contrast), a, b, room, only_value)
    return a, b


def fastica(
    y: Array | Packed,
    starts: Array,
    contrast: Aim,
    *,
    before: Array | None = None,
    tolerance: float = 1e-10,
    most: int = 200,
    path: bool = False,
) -> Fit:
    """One-unit FastICA on whitened samples from several starts at once.

    Samples y have shape (n, d), starts shape (k, d) and any length, and all stay orthogonal to the
    orthonormal directions ``before``, shape (j, d). A start has converged once abs(abs(w'.w) - 1)
    of two iterates that follow one another is below the tolerance, and then drops out; each has
    the bits that it has alone. It is given up after ``most`` iterations; one whose next iterate
    would vanish or not be finite stays where it is, not converged. ``path`` keeps w after every
    iteration. In place of a contrast G a formula g = G' will do, for which there is no score.

    Refused if the samples or starts have a wrong shape, or a start is no direction.
    """
    from hdica.finite.fastica.kernels import iterate

    samples = packed(y)
    n, d = samples[0].shape
    w = unit_rows(starts, d)
    k, first = len(w), w.copy()
    iterations, converged = np.zeros(k, dtype=np.int64), np.zeros(k, dtype=bool)
    way = np.empty((k, most if path else 0, d))
    before = np.empty((0, d)) if before is None else before
    room = np.empty((k, d)), np.empty((k, d)), np.empty(k), np.empty(k, dtype=np.int64)
    spare, code = scratch(k, d), code_of(contrast)
    some, done, moving = max(1, _AT_ONCE // (w.size * n)), 0, np.arange(k)
    while done < most and moving.size:
        check_deadline()
        some = min(some, most - done)
        part, counts = w[moving], np.zeros(moving.size, dtype=np.int64)
        steps, ended = np.empty((moving.size, some if path else 0, d)), counts > 0
        rest = steps, counts, ended, room, spare
        iterate(samples, part, before, code, tolerance, some, *rest)
        w[moving], converged[moving] = part, ended
        iterations[moving] += counts
        if path:
            way[moving, done : done + some] = steps
        moving, done = moving[(counts == some) & ~ended], done + some
    fit = Fit(w, iterations, converged, _scores(samples, w, contrast, spare))
    if not path:
        return fit
    # Starts and iterates, the last of each start repeated.
    at = np.minimum(np.arange(iterations.max() + 1), iterations[:, None])
    every = np.concatenate([first[:, None], way], axis=1)
    whole = np.ascontiguousarray(np.take_along_axis(every, at[:, :, None], axis=1))
    return replace(fit, path=whole)


_DEPENDENT = 1e-28  # of the eigenvalues of W W^T, squares: the smallest over the largest


def components(
    y: Array,
    starts: Array,
    contrast: Contrast,
    *,
    symmetric: bool = False,
    tolerance: float = 1e-10,
    most: int = 200,
) -> Fit:
    """As many orthogonal components as there are starts, at most d, on whitened samples.

    One component after another, each orthogonal to those before (Hyvarinen and Oja 2000, eq. 44),
    or if ``symmetric`` all at once, W <- (W W^T)^(-1/2) W after every iteration (eq. 45), converged
    once all of them have. Other parameters are those of :func:`fastica`.

    Refused as one component is, for more starts than coordinates, and for symmetric starts that
    are linearly dependent.
    """
    samples = packed(y)
    d = samples[0].shape[1]
    directions = _directions(starts, d)
    if len(directions) > d:
        raise HdicaError(
            f"starts of shape {directions.shape} are not allowed (at most {d} orthogonal "
            "components)"
        )
    if symmetric:
        return _symmetric(samples, directions, contrast, tolerance, most)
    first, fits = unit_rows(directions, d), []
    w = np.empty_like(first)
    for j, start in enumerate(first):
        fit = fastica(samples, start, contrast, before=w[:j], tolerance=tolerance, most=most)
        w[j] = fit.w[0]
        fits.append(fit)
    columns = zip(*((fit.iterations, fit.converged, fit.score) for fit in fits), strict=True)
    return Fit(w, *map(np.concatenate, columns))


def _symmetric(
    samples: Packed, starts: Array, contrast: Contrast, tolerance: float, most: int
) -> Fit:
    n, k, done, iterations = len(samples[0]), len(starts), False, 0
    w = decorrelated(starts)
    while iterations < most and not done:
        check_deadline()
        a, b = accumulate(samples, w, contrast)
        new = decorrelated((a - b[:, None] * w) / n)
        done = np.max(np.abs(np.abs(np.sum(new * w, axis=1)) - 1)) < tolerance
        w, iterations = new, iterations + 1
    return Fit(w, np.full(k, iterations), np.full(k, done), scores(samples, w, contrast))


def decorrelated(w: Array) -> Array:
    """(W W^T)^(-1/2) W, shape (k, d); refused if rows are linearly dependent or not finite."""
    with one_thread():
        gram = w @ w.T
        finite = np.all(np.isfinite(gram))
        values, vectors = np.linalg.eigh(gram) if finite else (np.zeros(1), gram)
        if not values[0] > _DEPENDENT * values[-1]:
            raise HdicaError("linearly dependent directions are not allowed (one a component)")
        return (vectors / np.sqrt(values)) @ vectors.T @ w
