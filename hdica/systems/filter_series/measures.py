"""How far filters lie in a subspace, and how far from normal their projections are.

"Reduce and Conquer" (2025), (A.1) and (A.2), with what the two leave open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array
from hdica.process.machine import one_thread

ORTHONORMAL = 1e-8  # largest deviation of U U' from the identity that is put down to rounding
BLOCK = 4096  # patches that are averaged over at a time


def _floats(values: ArrayLike, name: str) -> Array:
    """Finite numbers as an array."""
    try:
        array = np.asarray(values)
        array = np.empty(0) if array.dtype.kind == "c" else array.astype(float)
    except (TypeError, ValueError, OverflowError):
        raise HdicaError(f"{name} is not allowed (an array of finite numbers)") from None
    if not array.size or not np.all(np.isfinite(array)):
        raise HdicaError(f"{name} is not allowed (an array of finite numbers)")
    return array


def excess_overlap(
    filters: ArrayLike, basis: ArrayLike, *, squared: bool = True, normalised: bool = False
) -> Any:
    """How much more of each filter lies in a subspace than of a random one.

    Parameters
    ----------
    filters
        w, shape (..., d): one filter, or many.
    basis
        U, shape (k, d): orthonormal rows that span the subspace, such as leading principal
        components.
    squared
        True: abs(P w)^2/abs(w)^2 - k/d with the projection P = U'U. A random direction has the
        mean 0 and a filter in the subspace 1 - k/d. False: 1 - abs(w - P w)/abs(w) - k/d, (A.1)
        as it is printed, which is negative for a random direction: see
        :func:`random_excess_overlap`.
    normalised
        Whether the squared form is divided by 1 - k/d, so that 1 is the value in the subspace.

    Returns
    -------
    float or numpy.ndarray
        Shape (...).

    Raises
    ------
    HdicaError
        If the rows of the basis are not orthonormal, the shapes do not fit, a filter is 0, or the
        printed form is to be normalised.

    Notes
    -----
    Paper (A.1) calls k/d the overlap of a random basis, which holds of squared lengths alone.

    Examples
    --------
    >>> import hdica
    >>> float(hdica.excess_overlap([3, 4, 0, 12], [[1, 0, 0, 0], [0, 1, 0, 0]]).round(6))
    -0.352071
    >>> float(hdica.excess_overlap([3, 4, 0, 0], [[1, 0, 0, 0], [0, 1, 0, 0]], normalised=True))
    1.0
    """
    w, u = _floats(filters, "filters"), _floats(basis, "basis")
    if u.ndim != 2 or w.ndim < 1 or w.shape[-1] != u.shape[1]:
        raise HdicaError(
            f"filters of shape {w.shape} and a basis of shape {u.shape} are not allowed "
            "((..., d) and (k, d))"
        )
    k, d = u.shape
    if k > d or np.abs(u @ u.T - np.eye(k)).max() > ORTHONORMAL:
        raise HdicaError("basis is not allowed (its rows must be orthonormal)")
    if normalised and (not squared or k == d):
        raise HdicaError(
            "normalised = True is not allowed here (squared lengths and a basis of k < d rows)"
        )
    # Lengths of 1e-200 have no squares: every filter is scaled by its largest entry first.
    largest = np.abs(w).max(axis=-1, keepdims=True)
    if np.any(largest == 0):
        raise HdicaError("filters with one that is 0 are not allowed (it has no direction)")
    w = w / largest
    w = w / np.linalg.norm(w, axis=-1, keepdims=True)
    inside = w @ u.T
    if not squared:
        excess = 1 - np.linalg.norm(w - inside @ u, axis=-1) - k / d
    else:
        excess = np.sum(inside**2, axis=-1) - k / d
    excess = excess / (1 - k / d) if normalised else excess
    return excess if excess.ndim else np.float64(excess)


def excess_kurtosis(projections: ArrayLike, axis: int = 0) -> Any:
    """Excess kurtosis E s^4 - 3 of projections, centred and scaled to variance 1: (A.2).

    Parameters
    ----------
    projections
        s, any shape.
    axis
        Along which the samples lie.

    Returns
    -------
    float or numpy.ndarray
        The shape without ``axis``; NaN where all samples are alike. Centred, which the paper does
        not say but without which it would be no cumulant; variance and fourth moment are means over
        the samples (ddof 0).

    Raises
    ------
    HdicaError
        If there is no such axis, or a number is not finite.

    Examples
    --------
    >>> import hdica
    >>> float(hdica.excess_kurtosis([1, 2, 3, 4, 10]).round(6))
    -0.212
    """
    s = _floats(projections, "projections")
    if isinstance(axis, bool) or not isinstance(axis, int | np.integer):
        raise HdicaError(f"axis = {axis!r} is not allowed (a whole number)")
    if not -s.ndim <= axis < s.ndim:
        raise HdicaError(f"axis = {axis} is not allowed (projections have {s.ndim} axes)")
    s = s - s.mean(axis=axis, keepdims=True)
    largest = np.abs(s).max(axis=axis, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        s = s / largest
        return np.mean(s**4, axis=axis) / np.mean(s**2, axis=axis) ** 2 - 3


def random_excess_overlap(d: int, k: int, *, squared: bool = True) -> tuple[float, float]:
    """Mean and standard deviation of the excess overlap of a random direction.

    Parameters
    ----------
    d, k
        Dimension, and that of the subspace, 1 <= k <= d.
    squared
        Which form: see :func:`excess_overlap`.

    Returns
    -------
    tuple of float
        Of abs(P w)^2/abs(w)^2, which has the law Beta(k/2, (d - k)/2): 0 and
        sqrt(2 k (d - k)/(d^2 (d + 2))). Of the printed form
        1 - B((d - k + 1)/2, k/2)/B((d - k)/2, k/2) - k/d, about 1 - sqrt(1 - k/d) - k/d, and its
        own standard deviation.

    Raises
    ------
    HdicaError
        If d or k is not allowed.

    Examples
    --------
    >>> import hdica
    >>> [round(one, 6) for one in hdica.random_excess_overlap(121, 48, squared=False)]
    [-0.172367, 0.040459]
    """
    if isinstance(d, bool) or not isinstance(d, int | np.integer) or d < 1:
        raise HdicaError(f"d = {d!r} is not allowed (a whole number >= 1)")
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= d:
        raise HdicaError(f"k = {k!r} is not allowed (a whole number from 1 to d = {d})")
    if squared:
        return 0.0, float(np.sqrt(2 * k * (d - k) / (d**2 * (d + 2))))
    if k == d:
        return 0.0, 0.0
    from scipy.special import betaln

    outside = float(np.exp(betaln((d - k + 1) / 2, k / 2) - betaln((d - k) / 2, k / 2)))
    # abs(w - P w)^2/abs(w)^2 has the mean 1 - k/d.
    return 1 - outside - k / d, float(np.sqrt(max(1 - k / d - outside**2, 0.0)))


@dataclass(frozen=True, eq=False)
class Principal:
    """Principal components of patches."""

    centred: Array  # patches x minus their mean, shape (P, d)
    components: Array  # orthonormal rows, the leading first, their largest entries positive: (d, d)
    variances: Array  # along them, shape (d,), decreasing


def principal(patches: Array) -> Principal:
    """Principal components of patches of shape (P, d); one thread, so that bits are the same."""
    from scipy.linalg import eigh

    with one_thread():
        centred = patches - patches.mean(axis=0)
        covariance = np.zeros((patches.shape[1],) * 2)
        for first in range(0, len(centred), BLOCK):
            block = centred[first : first + BLOCK]
            covariance += block.T @ block
        variances, vectors = eigh(covariance / len(centred))
    rows = vectors.T[::-1]
    largest = rows[np.arange(len(rows)), np.abs(rows).argmax(axis=1)]
    return Principal(
        centred,
        np.ascontiguousarray(rows * np.sign(largest)[:, None]),
        np.maximum(variances[::-1], 0.0),
    )


def kept_share(filters: Array, components: Array) -> Array:
    """Share of each filter's squared length in the leading components, in [0, 1].

    Filters have shape (K, d), and components are all d, the leading one first: entry k - 1 of the
    result, shape (K, d), is for the leading k of them.
    """
    with one_thread():
        scaled = filters / np.abs(filters).max(axis=1, keepdims=True)
        squares = (scaled @ components.T) ** 2
    summed = np.cumsum(squares, axis=1)
    return summed / summed[:, -1:]


def excesses(share: Array, random: float | Array) -> tuple[Array, Array]:
    """Excess overlaps, squared and as printed: see :func:`excess_overlap`."""
    return share - random, 1 - np.sqrt(np.maximum(1 - share, 0.0)) - random


def kurtoses(filters: Array, centred: Array) -> tuple[Array, Array]:
    """Excess kurtosis of projections w.x of patches, and of w.(x - mean of the pixels of x).

    Filters have shape (K, d), patches x shape (P, d) and mean 0 in every pixel. The DC component,
    which varies most of all, says nothing of the filter's form.
    """
    with one_thread():
        projected = centred @ filters.T
        level = centred.mean(axis=1)
    without = projected - np.outer(level, filters.sum(axis=1))
    return excess_kurtosis(projected), excess_kurtosis(without)
