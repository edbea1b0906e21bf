"""What principal components of n samples keep of the feature, as D -> infinity at c = D/n.

A spike of strength beta stands out of the noise if beta > sqrt(c) (Baik, Ben Arous and Peche 2005;
Paul 2007): the eigenvalue tends to (1 + beta)(1 + c/beta), the squared overlap of the eigenvector
with the spike to phi^2 = (1 - c/beta^2)/(1 + c/beta). Scores of the principal components, whitened
by the sample or by the population, follow the reduced model (4) of "Reduce and Conquer" (2025) with
gamma_c in the place of gamma; this takes the place of its Lemma 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.ingredients.quadrature import dot

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Reduction:
    """The reduced model of spikes beta, coefficients alpha and c = D/n, 0 for n = infinity.

    Parameters
    ----------
    beta, alpha
        Strengths of the spikes and coefficients of v (of length one), shape (r,).
    c
        Dimensions per sample.
    size
        Number of principal components that are used, None for all that stand for a spike; of fewer
        than r those of the strongest spikes.
    """

    beta: Array
    alpha: Array
    c: float
    size: int | None = None

    @property
    def a(self) -> Array:
        """Coefficients alpha_rho (1 + beta_rho)^-1/2 of Sv, shape (r,)."""
        return np.asarray(self.alpha / np.sqrt(1 + self.beta))

    @property
    def gamma(self) -> float:
        """abs(Sv)^2 = v'C^-1 v, for infinitely many samples."""
        return dot(self.a, self.a)

    @property
    def direction(self) -> Array:
        """Vt = Sv/abs(Sv), shape (r,)."""
        return np.asarray(self.a / math.sqrt(self.gamma))

    @property
    def noise(self) -> Array:
        """Covariance of the noise of the reduced model: I - a a', shape (r, r)."""
        return np.asarray(np.eye(self.a.size) - self.a[:, None] * self.a)

    @property
    def found(self) -> NDArray[np.bool_]:
        """Whether a spike stands out of the noise, shape (r,)."""
        return np.asarray(self.beta > math.sqrt(self.c))

    @property
    def used(self) -> NDArray[np.bool_]:
        """Whether its principal component is among those that are used, shape (r,)."""
        order = np.argsort(np.argsort(-self.beta, kind="stable"), kind="stable")
        most = self.beta.size if self.size is None else self.size
        return np.asarray((self.beta > math.sqrt(self.c)) & (order < most))

    @property
    def eigenvalues(self) -> Array:
        """Limits of the eigenvalues of the sample covariance, shape (r,)."""
        out = (1 + self.beta) * (1 + self.c / self.beta)
        return np.asarray(np.where(self.found, out, (1 + math.sqrt(self.c)) ** 2))

    @property
    def scores(self) -> Array:
        """Squared overlap 1 - c/beta^2 of scores with those of the spike, 0 if unused, (r,)."""
        kept = 1 - self.c / self.beta**2
        return np.asarray(np.where(self.used, np.maximum(kept, 0.0), 0.0))

    @property
    def phi2(self) -> Array:
        """Squared overlap of the eigenvectors with the spikes, shape (r,).

        Of equal spikes the subspaces of both, not the single vectors.
        """
        return np.asarray(self.scores / (1 + self.c / self.beta))

    @property
    def a_c(self) -> Array:
        """What a becomes: alpha_rho ((1 - c/beta_rho^2)/(1 + beta_rho))^1/2, shape (r,)."""
        return np.asarray(self.a * np.sqrt(self.scores))

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
    def kept(self) -> float:
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


def threshold(c: float) -> float:
    """Strength sqrt(c) above which a spike is found."""
    return math.sqrt(c)


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
