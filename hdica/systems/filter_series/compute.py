"""Filters beside principal components of patches: every number that the methods give."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.inputs.series import Series
from hdica.process.machine import one_thread
from hdica.systems.filter_series.measures import excess_kurtosis

Array = NDArray[np.float64]
BLOCK = 4096
"""Patches that are averaged over at a time."""


@dataclass(frozen=True, eq=False)
class Principal:
    """Principal components of patches.

    Parameters
    ----------
    centred
        Patches x minus their mean, shape (P, d).
    components
        Orthonormal rows, shape (d, d), the leading one first; the largest entry of each is
        positive.
    variances
        Along them, shape (d,), decreasing.
    """

    centred: Array
    components: Array
    variances: Array


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
    """Share of each filter's squared length in the leading components.

    Parameters
    ----------
    filters
        Shape (K, d).
    components
        All d, the leading one first.

    Returns
    -------
    Array
        Shape (K, d): entry k - 1 for the leading k of them, in [0, 1].
    """
    with one_thread():
        scaled = filters / np.abs(filters).max(axis=1, keepdims=True)
        squares = (scaled @ components.T) ** 2
    summed = np.cumsum(squares, axis=1)
    return np.asarray(summed / summed[:, -1:])


def kurtoses(filters: Array, centred: Array) -> tuple[Array, Array]:
    """Excess kurtosis of projections of patches, and of patches without their own mean.

    Parameters
    ----------
    filters
        Shape (K, d).
    centred
        Patches x, shape (P, d), with mean 0 in every pixel.

    Returns
    -------
    tuple of Array
        Of w.x, shape (K,), and of w.(x - mean of the pixels of x): the DC component, which varies
        most of all, tells nothing of the filter's form.
    """
    with one_thread():
        projected = centred @ filters.T
        level = centred.mean(axis=1)
    without = projected - np.outer(level, filters.sum(axis=1))
    return excess_kurtosis(projected), excess_kurtosis(without)


@dataclass(frozen=True, eq=False)
class Path:
    """Means over filters and standard deviations among them at every snapshot, shape (T,)."""

    excess: Array
    excess_sd: Array
    printed: Array
    kurtosis: Array
    kurtosis_sd: Array
    dcremoved: Array


def path(found: Series, known: Principal, k: int) -> Path:
    """Excess overlap with the leading k components, and kurtosis, of every snapshot."""
    rows = []
    for snapshot in range(len(found.steps)):
        filters = found.vectors(snapshot)
        share = kept_share(filters, known.components)[:, k - 1]
        excess, printed = excesses(share, k / found.dimension)
        plain, without = kurtoses(filters, known.centred)
        rows.append(
            [excess.mean(), excess.std(), printed.mean(), plain.mean(), plain.std(), without.mean()]
        )
    return Path(*np.array(rows).T)


def excesses(share: Array, random: float | Array) -> tuple[Array, Array]:
    """Excess overlaps, squared and as printed, of the share of a filter and that of a random one.

    See :func:`hdica.systems.filter_series.measures.excess_overlap`.
    """
    return share - random, 1 - np.sqrt(np.maximum(1 - share, 0.0)) - random


def half_rise(steps: Array, values: Array) -> float:
    """First step at which a number is half-way from its first value to its last; NaN if unknown."""
    middle = (values[0] + values[-1]) / 2
    beyond = (values >= middle) if values[-1] >= values[0] else (values <= middle)
    known = beyond.any() and np.isfinite(middle)
    return float(steps[int(beyond.argmax())]) if known else float("nan")
