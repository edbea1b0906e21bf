"""What samples of one's own are not that a rule of the family assumes, in sentences with numbers.

Mean 0, entries of variance 1, a covariance that is the identity (but for the spike of sparse PCA),
and a variance in every direction. Of many samples only some are looked at, evenly spaced: as many
as fit 128 MiB and give a covariance matrix within seconds.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.inputs.samples import Samples, samples_of
from hdica.process.machine import one_thread
from hdica.systems.fields import F, optional

Array = NDArray[np.float64]
_NUMBERS, _PRODUCTS, _SIDE = 2**24, 2e10, 1500
"""Most numbers that are read, most products of a covariance matrix, its most rows."""
_NOTHING = 1e-9
"""A share of variance this small is that of rounding, also of single precision."""
_MEAN, _SCALE, _SHAPE = 0.1, 0.1, 0.3
"""Deviations that matter to no rule: of the mean in standard deviations along its direction, of a
variance from 1, and of the variances along principal directions from their mean."""


@dataclass(frozen=True, eq=False)
class Traits:
    """What is seen of samples.

    Parameters
    ----------
    count, rows
        Samples, and how many of them are looked at.
    constant
        Columns that do not vary, and their values.
    means
        Means of the other columns over their standard deviations, shape (k,).
    scale
        Square root of their mean variance.
    referenced
        Whether the entries of every row have the same sum.
    spectrum
        Eigenvalues of their covariance over the mean variance, ascending.
    missing
        Directions without variance, beyond constant columns.
    """

    count: int
    rows: int
    constant: dict[int, float]
    means: Array
    scale: float
    referenced: bool
    spectrum: Array
    missing: int

    @property
    def ratio(self) -> float:
        """Columns over rows."""
        return self.means.size / self.rows


def rows_of(count: int, n: int) -> int:
    """How many of ``count`` samples of ``n`` entries are looked at."""
    most = _SIDE if n > _SIDE else int(_PRODUCTS / n**2)
    return min(count, most, max(2, _NUMBERS // n))


@lru_cache(maxsize=16)
def traits(samples: Samples) -> Traits:
    """Mean, variance and covariance of samples, of some of them if there are many."""
    count, n = samples.shape
    rows = rows_of(count, n)
    x = samples.taken(np.linspace(0, count - 1, rows).astype(np.int64))
    fixed = np.ptp(x, axis=0) == 0
    constant = {int(k): float(x[0, k]) for k in np.flatnonzero(fixed)} if rows > 1 else {}
    if rows < 2 or np.all(fixed):
        nothing = np.empty(0)
        return Traits(count, rows, constant, nothing, 0.0, False, nothing, 0)
    # By columns of size 1, whose squares neither overflow nor vanish.
    size = np.abs(x).max(axis=0)[~fixed]
    x = x[:, ~fixed] / size
    mean = x.mean(axis=0)
    x -= mean
    sd = np.sqrt(np.mean(x * x, axis=0))
    x /= sd
    correlation = _spectrum(x)
    largest = float((sd * size).max())
    share = sd * size / largest
    level = float(np.mean(share**2))
    x *= share / math.sqrt(level)
    referenced = float(np.var(x.sum(axis=1))) < _NOTHING * sd.size
    missing = int(np.sum(correlation < _NOTHING)) if rows >= 2 * sd.size else int(referenced)
    scale = largest * math.sqrt(level)
    return Traits(count, rows, constant, mean / sd, scale, referenced, _spectrum(x), missing)


def _spectrum(x: Array) -> Array:
    """Eigenvalues of x'x/rows, ascending: as many as the smaller side of x has."""
    with one_thread():
        product = x.T @ x if x.shape[1] <= x.shape[0] else x @ x.T
        return np.maximum(np.linalg.eigvalsh(product / len(x)), 0.0)


def data_notes(spikes: int, remedy: str) -> Callable[[F], tuple[str, ...]]:
    """What a system says of its data: a sentence for all that is not as its rule assumes.

    Parameters
    ----------
    spikes
        Directions in which the variance may be larger.
    remedy
        What to do, the last sentence if there is any.
    """

    def notes(system: F) -> tuple[str, ...]:
        if optional(system, "data") is None:
            return ()
        seen = traits(samples_of(optional(system, "data")))
        sentences = [_mean(seen), *_covariance(seen, spikes), _rank(seen)]
        wrong = [sentence for sentence in sentences if sentence]
        if wrong and seen.rows < seen.count:
            wrong.append(f"{seen.rows} of {seen.count} rows of data, evenly spaced, were looked at")
        return (*wrong, remedy) if wrong else ()

    return notes


def _mean(seen: Traits) -> str:
    # By chance its square is about the number of columns over that of rows.
    length = float(np.sum(seen.means**2))
    if length <= max(_MEAN**2, 10 * seen.ratio):
        return ""
    worst = float(np.abs(seen.means).max())
    return f"the mean of data is not 0: columns have means of up to {worst:.3g} standard deviations"


def _covariance(seen: Traits, spikes: int) -> list[str]:
    """Of the size of the entries, and of the covariance once they have variance 1."""
    k, ratio, sentences = seen.means.size, seen.ratio, []
    if k <= spikes:
        return []
    # All that the spectrum leaves out is 0, so that its sum is k.
    bulk = seen.spectrum[: seen.spectrum.size - spikes]
    level = float(bulk.sum()) / (k - spikes)
    bulk, chance = bulk / level, 6 * math.sqrt(2 / seen.rows)
    deviation = seen.scale * math.sqrt(level)
    if not abs(deviation * deviation - 1) <= _SCALE + chance / math.sqrt(k):
        sentences.append(
            f"the entries of data have standard deviation {deviation:.3g}, where 1 is assumed"
        )
    # Edges of the eigenvalues of samples whose covariance is the identity (Marchenko and Pastur).
    high = (1 + _SHAPE) * (1 + math.sqrt(ratio)) ** 2 + chance
    low = (1 - _SHAPE) * (1 - math.sqrt(ratio)) ** 2 - chance if ratio <= 0.5 else 0.0
    least, most = float(bulk[min(seen.missing, bulk.size - 1)]), float(bulk[-1])
    if most > high or least < low:
        but = " beyond that of the feature" if spikes else ""
        sentences.append(
            f"the covariance of data{but} is not a multiple of the identity: along its principal "
            f"directions the variance is {least:.3g} to {most:.3g} times its mean"
        )
    # Drawn samples never have a covariance that is the identity to so many digits.
    if spikes and most - least < 0.1 * math.sqrt(ratio) and seen.rows == seen.count:
        sentences.append(
            "the covariance of data is a multiple of the identity: they have no principal component"
        )
    return sentences


def _rank(seen: Traits) -> str:
    """Of constant columns and of directions without variance."""
    n, lost = seen.means.size + len(seen.constant), seen.missing + len(seen.constant)
    if not lost:
        return ""
    why, columns = [], list(seen.constant)
    if len(columns) == 1:
        why.append(f"column {columns[0]} is constant, {seen.constant[columns[0]]:.6g}")
    elif columns:
        why.append(f"{len(columns)} columns are constant, the first is column {columns[0]}")
    if seen.referenced:
        why.append("all rows have the same mean, as with an average reference")
    reason = f" ({', and '.join(why)})" if why else ""
    return f"data vary in {n - lost} of {n} directions{reason}"
