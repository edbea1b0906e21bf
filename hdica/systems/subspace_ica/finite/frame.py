"""Where ICA is run: whitened coordinates, and what a direction found in them means for the data.

A direction w in d whitened coordinates y = K U'(x - m) is the filter f = U K w on the inputs, and
the direction U w in the whitened inputs Sx with S = C^-1/2. Of the orthonormal U, shape (D, d), the
r rows of the spikes tell all: C, and the non-Gaussian direction v, are known outside of these.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.systems.subspace_ica.finite.draws import Spiked

Array = NDArray[np.float64]


def product(one: Array, other: Array) -> Array:
    """``one @ other``, summed in the same order whatever the number of rows."""
    return np.einsum("ij,jk->ik", one, other)


@dataclass(frozen=True, eq=False)
class Frame:
    """Whitened coordinates of the subspace model.

    Parameters
    ----------
    spiked
        The model.
    rows
        First r rows of U, shape (r, d).
    unmixing
        K, shape (d,) if it is diagonal, else symmetric of shape (d, d).
    sample
        Whether K is made of the covariance of the sample, or of that of the population.
    """

    spiked: Spiked
    rows: Array
    unmixing: Array
    sample: bool

    @property
    def size(self) -> int:
        """D."""
        return int(self.rows.shape[1])

    def scaled(self, x: Array) -> Array:
        """X K, row by row, shape (k, d)."""
        if self.unmixing.ndim == 1:
            return np.asarray(x * self.unmixing)
        return product(x, self.unmixing)

    def coordinates(self, w: Array) -> Array:
        """U w along the spikes u^rho for directions w, (k, d): shape (k, r)."""
        return product(w, self.rows.T)

    def overlap(self, w: Array) -> Array:
        """Overlaps |(U w).(Sv)|/|Sv| of unit directions w, (k, d), with the whitened v: (k,)."""
        a = self.spiked.alpha / np.sqrt(1 + self.spiked.beta)
        along = np.sum(self.coordinates(w) * a, axis=1)
        return np.asarray(np.abs(along) / math.sqrt(float(np.sum(a * a))))

    def correlation(self, w: Array) -> Array:
        """Correlations of f.x over the population with the best projection C^-1 v.x, (k,).

        |f.v|/(f'Cf v'C^-1 v)^1/2: those with h itself over the largest that a filter has.
        """
        filters = self.scaled(w)
        along = self.coordinates(filters)
        variance = np.sum(filters**2, axis=1) + np.sum(self.spiked.beta * along**2, axis=1)
        gamma = float(np.sum(self.spiked.alpha**2 / (1 + self.spiked.beta)))
        return np.asarray(np.abs(np.sum(along * self.spiked.alpha, axis=1))) / np.sqrt(
            variance * gamma
        )

    @property
    def held(self) -> float:
        """Length of the projection of v on the span of U."""
        inside = np.sum(self.spiked.alpha[:, None] * self.rows, axis=0)
        return math.sqrt(float(np.sum(inside * inside)))

    @property
    def signal(self) -> Array:
        """The direction along which y carries h, of length one, shape (d,).

        Whitened by the population y = K U'x carries h along K U'v. In samples whitened by
        themselves U K^-1 is what regresses x on y, so that it is along K^-1 U'C^-1 v: Reduce and
        Conquer 2025 has U = u^rho, and for both Sv/|Sv|.
        """
        spiked = self.spiked
        if self.sample:
            inside = np.sum((spiked.alpha / (1 + spiked.beta))[:, None] * self.rows, axis=0)
            whole = self.unmixing.ndim == 2
            found = np.linalg.solve(self.unmixing, inside) if whole else inside / self.unmixing
        else:
            inside = np.sum(spiked.alpha[:, None] * self.rows, axis=0)
            found = self.scaled(inside[None])[0]
        return np.asarray(found / math.sqrt(float(np.sum(found * found))))

    def along(self, w: Array) -> Array:
        """Overlaps |w.e| of unit directions w, (k, d), with :attr:`signal`, shape (k,)."""
        return np.asarray(np.abs(np.sum(w * self.signal, axis=1)))


def inverse_root(covariance: Array) -> Array:
    """C^-1/2 of a positive definite matrix, shape (d, d)."""
    values, vectors = np.linalg.eigh(covariance)
    return product(vectors / np.sqrt(values), vectors.T)


def symmetric_root(matrix: Array) -> Array:
    """The root of a symmetric matrix, of which rounding may make eigenvalues negative: (d, d)."""
    values, vectors = np.linalg.eigh(matrix)
    return product(vectors * np.sqrt(np.maximum(values, 0.0)), vectors.T)


def of_population(spiked: Spiked, rows: Array) -> Array:
    """K of the population in the span of U: (U'CU)^-1/2 with C = I + sum beta u u', (d, d)."""
    return inverse_root(np.eye(rows.shape[1]) + product(rows.T * spiked.beta, rows))
