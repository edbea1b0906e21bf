"""What FastICA ends at on n samples: thresholds of principal components, asymptotic variance V.

As D -> infinity at c = D/n, a spike of strength beta stands out of the noise if beta > sqrt(c)
(Baik, Ben Arous and Peche 2005; Paul 2007): the eigenvalue tends to (1 + beta)(1 + c/beta), the
squared overlap of the eigenvector with the spike to phi^2 = (1 - c/beta^2)/(1 + c/beta). Scores of
the principal components, whitened by the sample or by the population, follow the reduced model (4)
of "Reduce and Conquer" (2025) with gamma_c in the place of gamma; this takes the place of its
Lemma 3.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.ingredients.contrasts import Contrast
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import dot
from hdica.ingredients.sources import Source
from hdica.systems.subspace_ica.loss import Loss, averages_at


@dataclass(frozen=True)
class Reduction:
    """The reduced model of spikes beta, coefficients alpha and c = D/n, 0 for n = infinity."""

    beta: Array  # strengths of the spikes, shape (r,)
    alpha: Array  # coefficients of v, of length one, shape (r,)
    c: float  # dimensions per sample
    size: int | None = None  # principal components in use, of the strongest spikes

    @property
    def a(self) -> Array:
        """Coefficients alpha_rho (1 + beta_rho)^-1/2 of Sv, shape (r,)."""
        return self.alpha / np.sqrt(1 + self.beta)

    @property
    def gamma(self) -> float:
        """abs(Sv)^2 = v'C^-1 v, for infinitely many samples."""
        return dot(self.a, self.a)

    @property
    def direction(self) -> Array:
        """Vt = Sv/abs(Sv), shape (r,)."""
        return self.a / math.sqrt(self.gamma)

    @property
    def noise(self) -> Array:
        """Covariance of the noise of the reduced model: I - a a', shape (r, r)."""
        return np.eye(self.a.size) - self.a[:, None] * self.a

    @property
    def stands_out(self) -> NDArray[np.bool_]:
        """Whether a spike stands out of the noise, shape (r,)."""
        return self.beta > math.sqrt(self.c)

    @property
    def used(self) -> NDArray[np.bool_]:
        """Whether its principal component is among those that are used, shape (r,)."""
        order = np.argsort(np.argsort(-self.beta, kind="stable"), kind="stable")
        most = self.beta.size if self.size is None else self.size
        return self.stands_out & (order < most)

    @property
    def eigenvalues(self) -> Array:
        """Limits of the eigenvalues of the sample covariance, shape (r,)."""
        out = (1 + self.beta) * (1 + self.c / self.beta)
        return np.where(self.stands_out, out, (1 + math.sqrt(self.c)) ** 2)

    @property
    def scores(self) -> Array:
        """Squared overlap 1 - c/beta^2 of scores with those of the spike, 0 if unused, (r,)."""
        squared = np.maximum(1 - self.c / self.beta**2, 0.0)
        return np.where(self.used, squared, 0.0)

    @property
    def phi2(self) -> Array:
        """Squared overlap of the eigenvectors with the spikes, shape (r,).

        Of equal spikes the subspaces of both, not the single vectors.
        """
        return self.scores / (1 + self.c / self.beta)

    @property
    def a_c(self) -> Array:
        """What a becomes: alpha_rho ((1 - c/beta_rho^2)/(1 + beta_rho))^1/2, shape (r,)."""
        return self.a * np.sqrt(self.scores)

    @property
    def gamma_c(self) -> float:
        """Signal-to-noise ratio of the scores of principal components; 0 below all thresholds."""
        return dot(self.a_c, self.a_c)

    @property
    def direction_c(self) -> Array:
        """The direction of the feature among the scores, zeros if none is left, shape (r,)."""
        size = math.sqrt(self.gamma_c)
        return self.a_c / size if size > 0 else np.zeros(self.a.size)

    @property
    def length(self) -> float:
        """Length of the projection of v on the principal components: (sum alpha^2 phi^2)^1/2."""
        return math.sqrt(dot(self.alpha**2, self.phi2))

    @property
    def turned(self) -> float:
        """abs(Uhat vt_c . Sv)/abs(Sv): overlap of whitened directions if ICA makes no error."""
        return abs(dot(self.direction_c * np.sqrt(self.phi2), self.direction))

    @property
    def matched(self) -> float:
        """Correlation (gamma_c/gamma)^1/2 with the best projection if ICA makes no error."""
        return math.sqrt(self.gamma_c / self.gamma)


def best_strength(c: float) -> float:
    """The beta > 0 with the largest gamma_c, for spikes of equal strength.

    The root of beta^3 - 3 c beta - 2 c = 0: weaker spikes are lost among the noise, stronger ones
    hide the feature (gamma = 1/(1 + beta)).
    """
    if c >= 1:
        return 2 * math.sqrt(c) * math.cos(math.acos(1 / math.sqrt(c)) / 3)
    root = c * math.sqrt(1 - c)
    # c - root cancels where c is small; the product of both cubes is c^3.
    large = math.cbrt(c + root)
    return large + (c / large if large else 0.0)


SYMMETRIC = 0.25  # what V has more in sample-symmetric-whitened coordinates


@lru_cache(maxsize=256)
def variance(
    contrast: Contrast, source: Source, gamma: float, in_sample: bool = True
) -> tuple[float, float]:
    """V, with which E(1 - a^2) ~ (d - 1) V/n near the feature in d dimensions, and its error.

    At a = 1, with s = sqrt(gamma) h + sqrt(1 - gamma) N,

        V = (E g^2 - (E s g)^2)/(E s g - E g')^2,

    where the denominator is L'(1)^2. The overlap is that of the filter in coordinates in which the
    population is white; samples that whiten themselves (``in_sample``) take part of the noise away,
    and without that the numerator is E g^2.

    Refused if an average is infinite, or the contrast does not see the feature (L'(1) = 0).
    """
    g, q = contrast.slope, math.sqrt(gamma)

    def integrand(c: Array, e: Array, u: Array) -> Sequence[Array]:
        value = g(u)
        return value * value, u * value

    averages = averages_at(contrast, source, integrand, q)
    at_one = Loss(contrast, source, gamma).at(np.array(1.0))
    slope, slope_error = float(at_one.slope), float(at_one.slope_error)
    if abs(slope) <= 20 * slope_error:
        raise HdicaError(
            f"contrast = {contrast.formula.text!r} is not allowed with the latent variable "
            f"{source.label} (the population loss has no slope at the feature)",
            ["contrast", "latent"],
        )
    square, along = (float(v) for v in averages.value)
    square_error, along_error = (float(v) for v in averages.error)
    above = square - along * along if in_sample else square
    above_error = square_error + (2 * abs(along) * along_error if in_sample else 0.0)
    value = above / slope**2
    return value, above_error / slope**2 + 2 * abs(value) * slope_error / abs(slope)


def mean_square(contrast: Contrast, source: Source, gamma: float) -> float:
    """E g(s)^2 at the feature, which the noise of one sample has."""

    def integrand(c: Array, e: Array, u: Array) -> Sequence[Array]:
        value = contrast.slope(u)
        return (value * value,)

    return averages_at(contrast, source, integrand, math.sqrt(gamma)).value[0]


def remaining(value: float, count: float, size: int) -> float:
    """Overlap (1 + (d - 1) V/n)^-1/2 of the filter; 1 for infinitely many samples."""
    return 1.0 if math.isinf(count) else 1 / math.sqrt(1 + (size - 1) * value / count)


def level(
    contrast: Contrast, source: Source, gamma: float, size: int, eta: float, batch: int
) -> float:
    """E(1 - a^2) at which mini-batch updates (B.5) with a constant step size end.

    (d - 1) eta E g^2/(2 B abs(L'(1))), to first order in eta.
    """
    slope = abs(float(Loss(contrast, source, gamma).at(np.array(1.0)).slope))
    return (size - 1) * eta * mean_square(contrast, source, gamma) / (2 * batch * slope)


@dataclass(frozen=True)
class Prediction:
    """Final overlaps of FastICA as D -> infinity, and what they are made of."""

    overlap: float  # abs(Uhat w . Sv)/abs(Sv), of whitened directions
    correlation: float  # of the output with that of the best projection, in the population
    reduced: float  # (1 + (d - 1) V/n)^-1/2, with the feature of the reduced model
    variance: float  # V, infinite if no spike stands out
    variance_error: float  # from quadrature


def principal(
    contrast: Contrast,
    source: Source,
    reduction: Reduction,
    count: float,
    size: int,
    in_sample: bool = True,
) -> Prediction:
    """FastICA on scores of ``size`` = d estimated principal components of ``count`` = n samples.

    Overlap m vt_c . diag(phi) vt, that is m phi for equal spikes, and correlation
    m (gamma_c/gamma)^1/2, with m = (1 + (d - 1) V(gamma_c)/n)^-1/2. ``reduction`` is the reduced
    model at c = D/n; infinitely many samples are ``math.inf``; ``in_sample`` says whether the
    samples whiten themselves.
    """
    gamma = reduction.gamma_c
    if gamma <= 0:
        return Prediction(0.0, 0.0, 0.0, math.inf, math.inf)
    v, error = variance(contrast, source, gamma, in_sample)
    m = remaining(v, count, size)
    return Prediction(m * reduction.turned, m * reduction.matched, m, v, error)


def known_space(
    contrast: Contrast,
    source: Source,
    gamma: float,
    count: float,
    size: int,
    in_sample: bool = True,
) -> Prediction:
    """FastICA in a space that is known, and holds the feature: spikes u^rho, or all dimensions.

    As ``count`` grows at fixed ``size``; parameters as of :func:`principal`. Where the samples
    whiten themselves, the direction of w is seen in coordinates that they have turned and
    stretched, and its overlap has V + 1/4.
    """
    v, error = variance(contrast, source, gamma, in_sample)
    m = remaining(v, count, size)
    seen = remaining(v + SYMMETRIC, count, size) if in_sample else m
    return Prediction(seen, m, m, v, error)
