"""The subspace model: data whose non-Gaussian direction lies among its principal components."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field, field_validator, model_validator

from hdica.errors import HdicaError, suggestion
from hdica.finite.random.streams import streams_of
from hdica.ingredients.plain import is_number, plain
from hdica.ingredients.quadrature import dot, numbers
from hdica.ingredients.sources import Source, make_source
from hdica.systems.arguments import check_memory, whole
from hdica.systems.fields import LAWS
from hdica.systems.parameters import Parameters
from hdica.systems.subspace_ica.samples import Spiked
from hdica.systems.trials import content_of

Array = NDArray[np.float64]
LARGEST = 1e12
"""Largest strength of a spike, and largest ratio of the entries of a direction."""
MOST_SAMPLES = 2**40
BETAS = f"a number > 0 and <= {LARGEST:g}, or a list of them, one a spike"
ALPHAS = "'equal', or a list of finite numbers, one a spike and not all 0"


def whole_number(value: Any, name: str, least: int, most: int) -> int:
    """A whole number in a range; 100.0 is the number 100."""
    if not is_number(value) or not least <= value <= most or int(value) != value:
        raise HdicaError(
            f"{name} = {value!r} is not allowed (a whole number from {least} to {most})"
        )
    return int(value)


def _beta(value: Any) -> Any:
    given = plain(value)
    for one in given if isinstance(given, list) and given else [given]:
        if not is_number(one) or not 0 < one <= LARGEST:
            raise HdicaError(f"beta = {value!r} is not allowed ({BETAS})")
    return [float(one) for one in given] if isinstance(given, list) else float(given)


def _alpha(value: Any) -> Any:
    given = plain(value)
    if given == "equal":
        return given
    entries = numbers(given) if isinstance(given, list) and given else None
    if entries is None or not np.all(np.isfinite(entries)) or not np.any(entries):
        raise HdicaError(
            f"alpha = {value!r} is not allowed ({suggestion(value, ('equal',), ALPHAS)})"
        )
    return entries.tolist()


def _latent(value: Any) -> Any:
    try:
        make_source(value)
    except HdicaError as exc:
        raise HdicaError(str(exc).replace("source:", "latent:", 1)) from None
    return value


Beta = Annotated[float | list[float], BeforeValidator(_beta)]
Alpha = Annotated[str | list[float], BeforeValidator(_alpha)]
Latent = Annotated[str | dict[str, Any], BeforeValidator(_latent)]


def strengths(system: Any) -> Array:
    """Beta of every spike, shape (r,)."""
    given = system.beta
    return np.array(given if isinstance(given, list) else [given] * system.rank, dtype=float)


def weights(system: Any) -> Array:
    """alpha, the coefficients of v in the basis of the spikes, shape (r,), of length one."""
    if system.alpha == "equal":
        return np.full(system.rank, 1 / math.sqrt(system.rank))
    alpha = np.array(system.alpha, dtype=float)
    # Scaled first, so that no square overflows.
    alpha /= np.abs(alpha).max()
    return np.asarray(alpha / math.sqrt(dot(alpha, alpha)))


def check_lengths(system: Any) -> None:
    """Refuse lists that have not one number a spike, and more spikes than dimensions."""
    if system.rank > system.dimension:
        raise HdicaError(
            f"rank = {system.rank} is not allowed (at most dimension = {system.dimension})",
            ["rank", "dimension"],
        )
    for name in ("beta", "alpha"):
        given = getattr(system, name)
        if isinstance(given, list) and len(given) != system.rank:
            raise HdicaError(
                f"{name} with {len(given)} numbers is not allowed (one a spike: rank = "
                f"{system.rank})",
                [name, "rank"],
            )


def latent(system: Any) -> Source:
    """Law of the non-Gaussian latent variable h."""
    return make_source(system.latent)


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
