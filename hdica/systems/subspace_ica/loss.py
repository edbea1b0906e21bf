"""The population loss of the reduced model and its slope, with their errors, and as a series.

For h of any law s = sqrt(gamma) a h + sqrt(1 - gamma a^2) N is what a filter of overlap a sees of
y = sqrt(gamma) h vt + zhat ("Reduce and Conquer", 2025, (4)), and

    L(a) = E G(s),    L'(a) = sqrt(gamma) E[h g(s)] - gamma a E[g'(s)],  g = G'.

The printed Lemma 5 has another formula: errata of the paper. With c_k = E G(N) He_k(N)

    L(a) = sum_k c_k/k! E[He_k(h)] (sqrt(gamma) a)^k.

E He_1(h) = E He_2(h) = 0 for every h of mean 0 and variance 1. The series ends where G is a
polynomial; else it diverges for laws with heavy tails, and is summed up to its least term.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import hermite_e
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.contrasts import Contrast
from hdica.ingredients.sources import Source
from hdica.limits.averages.double_average import Average, double_average, features

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
        x = np.asarray(q, dtype=float)
        exist = [t for t in terms if not math.isnan(t)]
        powers = x[..., None] ** np.arange(len(exist))
        parts = powers * np.array(exist)
        size = np.abs(parts)
        if self.ends:
            return parts.sum(axis=-1), _ROUNDING * size.sum(axis=-1)
        present = [k for k, t in enumerate(exist) if t != 0.0]
        if len(present) < 2 or len(exist) < len(terms):
            return np.full(x.shape, math.nan), np.full(x.shape, math.inf)
        last = np.array(present)[np.argmin(size[..., present], axis=-1)]
        # Terms up to the least one; it and those that follow are what is not exist.
        summed = np.arange(len(exist)) < last[..., None]
        left = np.take_along_axis(size, last[..., None], axis=-1)[..., 0]
        total = np.where(summed, parts, 0.0).sum(axis=-1)
        return total, 2 * left + _ROUNDING * np.where(summed, size, 0.0).sum(axis=-1)


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
    terms = series(contrast, source).terms
    sizes = [math.sqrt(math.factorial(k)) for k in range(len(terms))]
    largest = max(
        abs(c) * size for c, size in zip(contrast_coefficients(contrast), sizes, strict=True)
    )
    for k in range(1, len(terms)):
        if math.isnan(terms[k]):
            return None
        if abs(terms[k]) * sizes[k] > _NOTHING * largest:
            return k
    return None


_INFINITE = 1e-9
_CLOSED = 4e-16
"""Rounding of the closed forms, relative."""


@dataclass(frozen=True)
class Values:
    """Loss, slope and their errors, arrays of one shape."""

    loss: Array
    slope: Array
    loss_error: Array
    slope_error: Array


@dataclass(frozen=True)
class Loss:
    """L(a) of a contrast, a law of h and a signal-to-noise ratio gamma in (0, 1]."""

    contrast: Contrast
    source: Source
    gamma: float

    @property
    def closed(self) -> bool:
        """Whether it has a closed form: -exp(-s^2/2) with random signs, or a polynomial G."""
        return self._lemma_5 or self.contrast.formula.coefficients is not None

    @property
    def _lemma_5(self) -> bool:
        return self.contrast.name == "exp" and self.source.label == "rademacher"

    def at(self, alpha: Array) -> Values:
        """Loss and slope at overlaps of any shape, from -1 to 1."""
        a = np.asarray(alpha, dtype=float)
        if self._lemma_5:
            return self._exponential(a)
        root = math.sqrt(self.gamma)
        terms = series(self.contrast, self.source)
        loss, loss_error = terms.value(root * a)
        slope, slope_error = terms.slope(root * a)
        values = Values(loss, root * slope, loss_error, root * slope_error)
        return values if terms.ends else self._refined(a, values)

    def _exponential(self, a: Array) -> Values:
        """Lemma 5 corrected: for G = -exp(-s^2/2) and h of random signs."""
        q = self.gamma * a * a
        decay = np.exp(-q / (2 * (2 - q)))
        loss = -((2 - q) ** -0.5) * decay
        slope = self.gamma**2 * a**3 * (2 - q) ** -2.5 * decay
        return Values(loss, slope, _CLOSED * np.abs(loss), 4 * _CLOSED * np.abs(slope))

    def _refined(self, a: Array, by_series: Values) -> Values:
        """By quadrature wherever that is better than the series."""
        fine = by_series.loss_error <= 1e-15 * (1 + np.abs(by_series.loss))
        fine &= by_series.slope_error <= 1e-14 * np.abs(by_series.slope)
        columns = [np.array(v, dtype=float) for v in vars(by_series).values()]
        for place in zip(*np.nonzero(~fine), strict=True) if a.ndim else [()] * int(not fine):
            fine_values = self._quadrature(float(a[place]))
            for value, error in ((0, 2), (1, 3)):
                # A comparison that NaN or an infinite error of the series loses.
                if not columns[error][place] <= fine_values[error]:
                    columns[value][place] = fine_values[value]
                    columns[error][place] = fine_values[error]
        return Values(*columns)

    def _quadrature(self, a: float) -> tuple[float, float, float, float]:
        """Loss, slope and their errors at one overlap."""
        root = math.sqrt(self.gamma)
        g, g1, q = self.contrast.slope, self.contrast.curvature, root * a
        s = math.sqrt(max(0.0, (1 - q) * (1 + q)))
        steep = features(self.contrast.formula.derivative).steep and s > 0

        def integrand(c: Array, e: Array, u: Array) -> Sequence[Array]:
            slope = g(u)
            # Where g' is unbounded, E g'(s) = E[e g(s)]/sqrt(1 - q) by Stein's lemma.
            bend = e * slope / s if steep else g1(u)
            return self.contrast.value(u), c * slope - q * bend

        averages = averages_at(self.contrast, self.source, integrand, q)
        value, error = averages.value, averages.error
        return float(value[0]), root * float(value[1]), float(error[0]), root * float(error[1])


def averages_at(contrast: Contrast, source: Source, integrand: object, q: float) -> Average:
    """< integrand(h, e, s) > at sqrt(gamma) a = q.

    Raises
    ------
    HdicaError
        If one of them is infinite.
    """
    averages = double_average(integrand, features(contrast.formula.derivative), source.law, q)  # type: ignore[arg-type]
    if not np.all(np.isfinite(averages.value)) or bool(np.any(averages.far > _INFINITE)):
        raise too_heavy(contrast, source)
    return averages


@lru_cache(maxsize=256)
def direction_of(contrast: Contrast, source: Source, gamma: float = 1.0) -> int:
    """1 if ascent of L leads to the feature, -1 if descent does.

    The sign of c_4 kappa_4 for the contrasts ``exp`` and ``logcosh`` with symmetric laws that have
    a fourth cumulant, else that of L' at overlaps in (0, 1]. For G that are not even this is about
    the feature with the sign of a > 0.

    Raises
    ------
    HdicaError
        If L is constant, as for a normal h, or neither rises nor falls all the way.
    """
    terms = series(contrast, source).terms
    loss = Loss(contrast, source, gamma)
    if not loss.closed and contrast.name and source.symmetric:
        fourth = terms[4]
        if math.isfinite(fourth) and abs(fourth) > 1e-14:
            return 1 if fourth > 0 else -1
    a = np.linspace(0.0, 1.0, 129 if loss.closed else 13)[1:]
    at = loss.at(a)
    signs = np.sign(np.where(np.abs(at.slope) <= 20 * at.slope_error, 0.0, at.slope))
    if not np.any(signs):
        raise HdicaError(
            f"contrast = {contrast.formula.text!r} is not allowed with the latent variable "
            f"{source.label} (the population loss does not depend on the overlap)",
            ["contrast", "latent"],
        )
    first = signs[np.flatnonzero(signs)[0]]
    if np.any(signs == -first):
        raise HdicaError(
            f"direction = 'auto' is not allowed with contrast = {contrast.formula.text!r} and the "
            f"latent variable {source.label} (the population loss turns before overlap "
            f"{a[int(np.argmax(signs == -first))]:.3g}; allowed: 'ascent' or 'descent')",
            ["direction", "contrast", "latent"],
        )
    return int(first)
