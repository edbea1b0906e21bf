"""The subspace model: data whose non-Gaussian direction lies among its principal components."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from pydantic import Field, field_validator, model_validator

from hdica.finite.random.streams import streams_of
from hdica.ingredients.quadrature import dot
from hdica.systems.arguments import check_memory, whole
from hdica.systems.fields import LAWS
from hdica.systems.parameters import Parameters
from hdica.systems.subspace_ica.fields import (
    MOST_SAMPLES,
    Alpha,
    Array,
    Beta,
    Latent,
    check_lengths,
    latent,
    strengths,
    weights,
    whole_number,
)
from hdica.systems.subspace_ica.finite.draws import Spiked
from hdica.systems.trials import content_of

MOST = 10**9
"""Largest dimension: of many, not the samples but their principal components are drawn."""
MOST_SPIKES = 10**4
_ROWS = 4096


class SubspaceModel(Parameters):
    """Inputs x = sum_rho sqrt(beta_rho) g_rho u^rho + h v + z in D dimensions: (3) of the paper.

    The g_rho are standard normal, h is the latent variable, with mean 0 and variance 1, and z is
    normal with covariance I - v v'. The direction v = sum_rho alpha_rho u^rho, of length one, does
    not show in the covariance C = I + sum_rho beta_rho u^rho u^rho' ("Reduce and Conquer:
    Independent Component Analysis at linear sample complexity", 2025, (3)). The spikes u^rho are
    the first r canonical basis vectors: whatever does not prefer a basis has the same law for all.

    Raises
    ------
    HdicaError
        If a parameter is not allowed; the sentence names it and what is allowed.

    Examples
    --------
    >>> import hdica
    >>> model = hdica.SubspaceModel(dimension=100, rank=2, beta=[3, 1], alpha=[0.6, 0.8])
    >>> round(model.gamma, 6), model.sample(5, seed=0).shape
    (0.41, (5, 100))
    """

    dimension: int = Field(description="dimension D of the inputs, a whole number >= 2")
    rank: int = Field(description="number r of spikes, from 1 to `dimension`")
    beta: Beta = Field(description="strength > 0 of the spikes: one number, or a list, one a spike")
    alpha: Alpha = Field(
        "equal",
        description="coefficients of v: `equal`, or a list of `rank` numbers, scaled to length one",
    )
    latent: Latent = Field("rademacher", description=f"law of the latent variable h: {LAWS}")

    @field_validator("dimension", mode="before")
    @classmethod
    def _dimension(cls, value: Any) -> int:
        return whole_number(value, "dimension", 2, MOST)

    @field_validator("rank", mode="before")
    @classmethod
    def _rank(cls, value: Any) -> int:
        return whole_number(value, "rank", 1, MOST_SPIKES)

    @model_validator(mode="after")
    def _one_a_spike(self) -> SubspaceModel:
        check_lengths(self)
        return self

    @property
    def a(self) -> Array:
        """Coefficients alpha_rho (1 + beta_rho)^-1/2 of the whitened direction Sv, shape (r,)."""
        return np.asarray(weights(self) / np.sqrt(1 + strengths(self)))

    @property
    def gamma(self) -> float:
        """Signal-to-noise ratio |Sv|^2 = v'C^-1 v of the reduced model (4), from 0 to 1."""
        return dot(self.a, self.a)

    @property
    def spike(self) -> Array:
        """The direction Sv/|Sv| of the reduced model in the basis of the u^rho, shape (r,)."""
        a = self.a
        return np.asarray(a / np.sqrt(dot(a, a)))

    @property
    def spiked(self) -> Spiked:
        """The same for what draws samples."""
        return Spiked(self.dimension, strengths(self), weights(self), latent(self))

    def covariance(self) -> Array:
        """C = I + sum_rho beta_rho u^rho u^rho', shape (D, D).

        Raises
        ------
        HdicaError
            If it is larger than the memory.
        """
        check_memory(8.0 * self.dimension**2, f"dimension = {self.dimension}", "fewer dimensions")
        diagonal = np.ones(self.dimension)
        diagonal[: self.rank] += strengths(self)
        return np.diag(diagonal)

    def sample(self, n: int, seed: int = 0) -> Array:
        """The first n samples of a seed, shape (n, D).

        Raises
        ------
        HdicaError
            If n or the seed is no whole number, or the samples need more than the memory.
        """
        count = whole(n, "n", "a whole number >= 1", 1)
        check_memory(8.0 * count * self.dimension, f"n = {n}", "fewer samples, or blocks of them")
        return np.concatenate(list(self.blocks(count, seed, count)))

    def blocks(self, n: int, seed: int = 0, rows: int = _ROWS) -> Iterator[Array]:
        """The same samples, at most ``rows`` at a time: blocks of shape (rows, D).

        The samples do not depend on the size of the blocks.
        """
        count = whole(n, "n", f"a whole number from 1 to {MOST_SAMPLES}", 1)
        most = whole(rows, "rows", "a whole number >= 1", 1)
        number = whole(seed, "seed", "a whole number >= 0", 0)
        others = frozenset(type(self).model_fields) - frozenset(SubspaceModel.model_fields)
        content = {**content_of(self, others), "system": SubspaceModel.__name__}
        take = self.spiked.samples(streams_of(content, "sample")(number))
        return (take(min(most, count - first)) for first in range(0, count, most))
