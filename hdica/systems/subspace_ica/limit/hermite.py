"""The population loss as a series in the overlap, and how fast it rises from 0.

With s = sqrt(gamma) a h + sqrt(1 - gamma a^2) N and c_k = E G(N) He_k(N) the loss is

    L(a) = sum_k c_k/k! E[He_k(h)] (sqrt(gamma) a)^k.

E He_1(h) = E He_2(h) = 0 for every h of mean 0 and variance 1. The series ends where G is a
polynomial; else it diverges for laws with heavy tails, and is summed up to its least term.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import hermite_e
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.contrasts import Contrast
from hdica.ingredients.sources import Source

Array = NDArray[np.float64]
ORDERS = 24
"""Highest order of a series that does not end."""
_ROUNDING = 1e-15
_NOTHING = 1e-12


def hermite_mean(source: Source, k: int) -> float:
    """E He_k(h) of a standardised source; 0 for k = 1, 2 exactly, NaN where it does not exist."""
    if k in (1, 2) or (k % 2 and source.symmetric):
        return 0.0
    powers = hermite_e.herme2poly([0.0] * k + [1.0])
    moments = [source.moment(j) if p else 0.0 for j, p in enumerate(powers)]
    if not np.all(np.isfinite(moments)):
        return math.nan
    return math.fsum(p * m for p, m in zip(powers.tolist(), moments, strict=True))


@lru_cache(maxsize=128)
def contrast_coefficients(contrast: Contrast) -> tuple[float, ...]:
    """c_k/k! for k = 0, 1, ...: all of a polynomial, else up to :data:`ORDERS`."""
    powers = contrast.formula.coefficients
    if powers is not None:
        return tuple(hermite_e.poly2herme(powers).tolist())
    c = np.array([contrast.hermite(k) for k in range(ORDERS + 1)])
    factorials = np.array([math.factorial(k) for k in range(ORDERS + 1)], dtype=float)
    size = np.abs(c) / np.sqrt(factorials)
    # What is rounding only, such as the odd ones of an even G, would lead at small overlaps.
    c[size < _NOTHING * size.max()] = 0.0
    return tuple((c / factorials).tolist())


@dataclass(frozen=True)
class Series:
    """The loss in powers of Q = sqrt(gamma) a.

    Parameters
    ----------
    terms
        Factors of Q^0, Q^1, ..., NaN from the first that does not exist on.
    ends
        Whether these are all: G is a polynomial.
    """

    terms: tuple[float, ...]
    ends: bool

    def value(self, q: Array) -> tuple[Array, Array]:
        """L at every Q and its error, infinite where the series does not say, shape of ``q``."""
        return self._sum(q, self.terms)

    def slope(self, q: Array) -> tuple[Array, Array]:
        """dL/dQ at every Q and its error, shape of ``q``."""
        return self._sum(q, tuple(k * term for k, term in enumerate(self.terms))[1:])

    def _sum(self, q: Array, terms: tuple[float, ...]) -> tuple[Array, Array]:
        given = np.asarray(q, dtype=float)
        known = [t for t in terms if not math.isnan(t)]
        powers = given[..., None] ** np.arange(len(known))
        parts = powers * np.array(known)
        size = np.abs(parts)
        if self.ends:
            return parts.sum(axis=-1), _ROUNDING * size.sum(axis=-1)
        present = [k for k, t in enumerate(known) if t != 0.0]
        if len(present) < 2 or len(known) < len(terms):
            return np.full(given.shape, math.nan), np.full(given.shape, math.inf)
        last = np.array(present)[np.argmin(size[..., present], axis=-1)]
        # Terms up to the least one; it and those that follow are what is not known.
        kept = np.arange(len(known)) < last[..., None]
        left = np.take_along_axis(size, last[..., None], axis=-1)[..., 0]
        total = np.where(kept, parts, 0.0).sum(axis=-1)
        return total, 2 * left + _ROUNDING * np.where(kept, size, 0.0).sum(axis=-1)


@lru_cache(maxsize=256)
def series(contrast: Contrast, source: Source) -> Series:
    """The series of a contrast and a source.

    Raises
    ------
    HdicaError
        If G is a polynomial of which the source has not all moments.
    """
    c = contrast_coefficients(contrast)
    means = [hermite_mean(source, k) if one else 0.0 for k, one in enumerate(c)]
    terms = tuple(one * mean for one, mean in zip(c, means, strict=True))
    ends = contrast.formula.coefficients is not None
    if ends and any(math.isnan(term) for term in terms):
        raise too_heavy(contrast, source)
    return Series(terms, ends)


def too_heavy(contrast: Contrast, source: Source) -> HdicaError:
    """The sentence for a loss that is infinite."""
    return HdicaError(
        f"contrast = {contrast.formula.text!r} is not allowed with the latent variable "
        f"{source.label} (an average of the loss is infinite: its tails are too heavy)",
        ["contrast", "latent"],
    )


def information_exponent(contrast: Contrast, source: Source) -> int | None:
    """Least k >= 1 with c_k E He_k(h) != 0, so that L(a) - L(0) ~ a^k: 4 for even G.

    None if there is none up to the order that is known (a normal latent variable, or one without
    the moment that decides).
    """
    found = series(contrast, source).terms
    sizes = [math.sqrt(math.factorial(k)) for k in range(len(found))]
    largest = max(
        abs(c) * size for c, size in zip(contrast_coefficients(contrast), sizes, strict=True)
    )
    for k in range(1, len(found)):
        if math.isnan(found[k]):
            return None
        if abs(found[k]) * sizes[k] > _NOTHING * largest:
            return k
    return None
