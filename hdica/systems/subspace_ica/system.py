"""The subspace model, whose non-Gaussian direction lies among its principal components; its ICA.

"Reduce and Conquer: Independent Component Analysis at linear sample complexity", 2025. The
dimension of the inputs, and the number of samples, are fields.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from hdica.errors import HdicaError, speaking_of, suggestion
from hdica.finite.random.streams import streams_of
from hdica.ingredients.contrasts import Contrast, make_contrast
from hdica.ingredients.grammar import constants_used
from hdica.ingredients.plain import is_number, plain
from hdica.ingredients.quadrature import dot, numbers
from hdica.ingredients.sources import Source, make_source
from hdica.systems.arguments import check_memory, whole
from hdica.systems.fields import CONSTANTS, LAWS
from hdica.systems.method import Array
from hdica.systems.parameters import Parameters
from hdica.systems.subspace_ica.samples import Spiked
from hdica.systems.trials import content_of

PAPER = "Reduce and Conquer 2025"
HOME = "hdica.systems.subspace_ica"
LARGEST = 1e12  # strength of a spike, and ratio of the entries of a direction
MOST_SAMPLES = 2**40
_SPACES = ("principal", "ambient", "known")


def _refused(name: str, value: object, allowed: str) -> HdicaError:
    return HdicaError(f"{name} = {value!r} is not allowed ({allowed})")


def _whole(name: str, least: int, most: int) -> Callable[[object], int]:
    """What reads a whole number in a range; 100.0 is the number 100."""

    def read(value: object) -> int:
        if not is_number(value) or not least <= value <= most or int(value) != value:
            raise _refused(name, value, f"a whole number from {least} to {most}")
        return int(value)

    return read


def _unless_none(read: Callable[[object], int | float]) -> BeforeValidator:
    return BeforeValidator(lambda value: None if value is None else read(value))


def _positive(name: str, allowed: str) -> BeforeValidator:
    def read(value: object) -> float:
        if not is_number(value) or not 0 < value < math.inf:
            raise _refused(name, value, allowed)
        return float(value)

    return _unless_none(read)


def _beta(value: object) -> float | list[float]:
    beta = plain(value)
    for strength in beta if isinstance(beta, list) and beta else [beta]:
        if not is_number(strength) or not 0 < strength <= LARGEST:
            allowed = f"a number > 0 and <= {LARGEST:g}, or a list of them, one a spike"
            raise _refused("beta", value, allowed)
    return [float(strength) for strength in beta] if isinstance(beta, list) else float(beta)


def _alpha(value: object) -> object:
    alpha = plain(value)
    if alpha == "equal":
        return alpha
    entries = numbers(alpha) if isinstance(alpha, list) and alpha else None
    if entries is None or not np.all(np.isfinite(entries)) or not np.any(entries):
        allowed = "'equal', or a list of finite numbers, one a spike and not all 0"
        raise _refused("alpha", value, suggestion(value, ("equal",), allowed))
    return entries.tolist()


def _latent(value: Any) -> Any:
    try:
        make_source(value)
    except HdicaError as exc:
        raise HdicaError(str(exc).replace("source:", "latent:", 1)) from None
    return value


def _space(value: object) -> object:
    if value in _SPACES:
        return value
    space = plain(value)
    if isinstance(space, Mapping) and set(space) == {"principal"}:
        return {"principal": _whole("space.principal", 1, 2**31)(space["principal"])}
    allowed = "'principal', {principal: d}, 'ambient' or 'known'"
    raise _refused("space", value, suggestion(value, _SPACES, allowed))


def _batch(value: object) -> str | int:
    if value in ("all", "fresh"):
        return str(value)
    if not is_number(value) or not 1 <= value <= MOST_SAMPLES or int(value) != value:
        allowed = "'all', 'fresh' or a whole number >= 1"
        raise _refused("batch", value, suggestion(value, ("all", "fresh"), allowed))
    return int(value)


def _start(value: object) -> object:
    if isinstance(value, str) and value == "uniform":
        return value
    start = plain(value)
    if isinstance(start, Mapping) and set(start) == {"overlap"}:
        overlap = start["overlap"]
        if is_number(overlap) and 0 <= overlap <= 1:
            return {"overlap": float(overlap)}
    allowed = "'uniform' or {overlap: a0} with 0 <= a0 <= 1"
    raise _refused("start", value, suggestion(value, ("uniform", "overlap"), allowed))


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

    dimension: Annotated[int, BeforeValidator(_whole("dimension", 2, 10**9))] = Field(
        description="dimension D of the inputs, a whole number >= 2"
    )
    rank: Annotated[int, BeforeValidator(_whole("rank", 1, 10**4))] = Field(
        description="number r of spikes, from 1 to `dimension`"
    )
    beta: Annotated[float | list[float], BeforeValidator(_beta)] = Field(
        description="strength > 0 of the spikes: one number, or a list, one a spike"
    )
    alpha: Annotated[str | list[float], BeforeValidator(_alpha)] = Field(
        "equal",
        description="coefficients of v: `equal`, or a list of `rank` numbers, scaled to length one",
    )
    latent: Annotated[str | dict[str, Any], BeforeValidator(_latent)] = Field(
        "rademacher", description=f"law of the latent variable h: {LAWS}"
    )

    @model_validator(mode="after")
    def _one_a_spike(self) -> SubspaceModel:
        if self.rank > self.dimension:
            raise HdicaError(
                f"rank = {self.rank} is not allowed (at most dimension = {self.dimension})",
                ["rank", "dimension"],
            )
        for name in ("beta", "alpha"):
            values = getattr(self, name)
            if isinstance(values, list) and len(values) != self.rank:
                raise HdicaError(
                    f"{name} with {len(values)} numbers is not allowed (one a spike: rank = "
                    f"{self.rank})",
                    [name, "rank"],
                )
        return self

    @property
    def a(self) -> Array:
        """Coefficients alpha_rho (1 + beta_rho)^-1/2 of the whitened direction Sv, shape (r,)."""
        return weights(self) / np.sqrt(1 + strengths(self))

    @property
    def gamma(self) -> float:
        """Signal-to-noise ratio |Sv|^2 = v'C^-1 v of the reduced model (4), from 0 to 1."""
        return dot(self.a, self.a)

    @property
    def spike(self) -> Array:
        """The direction Sv/|Sv| of the reduced model in the basis of the u^rho, shape (r,)."""
        a = self.a
        return a / np.sqrt(dot(a, a))

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

    def blocks(self, n: int, seed: int = 0, rows: int = 4096) -> Iterator[Array]:
        """The same samples, whatever ``rows`` is, in blocks of shape (rows, D) at most."""
        count = whole(n, "n", f"a whole number from 1 to {MOST_SAMPLES}", 1)
        most = whole(rows, "rows", "a whole number >= 1", 1)
        number = whole(seed, "seed", "a whole number >= 0", 0)
        others = frozenset(type(self).model_fields) - frozenset(SubspaceModel.model_fields)
        content = {**content_of(self, others), "system": SubspaceModel.__name__}
        take = self.spiked.samples(streams_of(content, "sample")(number))
        return (take(min(most, count - first)) for first in range(0, count, most))


def strengths(system: SubspaceModel) -> Array:
    """Beta of every spike, shape (r,)."""
    beta = system.beta
    return np.array(beta if isinstance(beta, list) else [beta] * system.rank, dtype=float)


def weights(system: SubspaceModel) -> Array:
    """alpha, the coefficients of v in the basis of the spikes, shape (r,), of length one."""
    if system.alpha == "equal":
        return np.full(system.rank, 1 / math.sqrt(system.rank))
    alpha = np.array(system.alpha, dtype=float)
    # Scaled first, so that no square overflows.
    alpha /= np.abs(alpha).max()
    return alpha / math.sqrt(dot(alpha, alpha))


def latent(system: SubspaceModel) -> Source:
    """Law of the non-Gaussian latent variable h."""
    return make_source(system.latent)


class SubspaceICA(SubspaceModel):
    """ICA of the subspace model (3): FastICA, gradient descent or its flow on n of its samples.

    Samples are centred, projected on a space, whitened there, and a direction w of length one is
    looked for at which the mean of G(w.y) is extreme. What is followed is its overlap with Sv/|Sv|:
    S = C^-1/2, v is the non-Gaussian direction (Reduce and Conquer 2025, (2)-(4) and (B.5)).

    Raises
    ------
    HdicaError
        If a parameter is not allowed; the sentence names it and what is allowed.
    """

    contrast: str = Field(
        "exp", description="contrast G: `exp`, `logcosh`, `kurtosis`, `he4`, or a formula in `s`"
    )
    samples_per_dimension: Annotated[
        float | None,
        _positive("samples_per_dimension", "a finite number > 0; none is for infinitely many"),
    ] = Field(None, description="n/D, this or `samples`; neither for infinitely many samples")
    samples: Annotated[int | None, _unless_none(_whole("samples", 2, MOST_SAMPLES))] = Field(
        None, description="number n of samples, a whole number >= 2"
    )
    space: Annotated[str | dict[str, int], BeforeValidator(_space)] = Field(
        "principal",
        description=(
            "`principal` (the `rank` leading components), `{principal: d}`, `ambient`, or `known` "
            "(the true spikes)"
        ),
    )
    whitening: Literal["sample", "population"] = Field(
        "sample", description="by the covariance of the `sample` or of the `population`"
    )
    algorithm: Literal["fastica", "sgd", "flow"] = Field(
        "fastica",
        description="`fastica` (2), `sgd` (B.5), or `flow`, its limit",
    )
    batch: Annotated[str | int, BeforeValidator(_batch)] = Field(
        "all", description="`all` n samples, `fresh` ones for every iteration, or B samples (`sgd`)"
    )
    eta: Annotated[float | None, _positive("eta", "a finite number > 0")] = Field(
        None, description="step size > 0 of `sgd`; time is η times the step"
    )
    iterations: Annotated[int, BeforeValidator(_whole("iterations", 1, 10**6))] = Field(
        200, description="most iterations of FastICA"
    )
    tolerance: float = Field(
        1e-10, gt=0, lt=1, description="FastICA has converged once 1 − |w′·w| is below it"
    )
    restarts: Annotated[int, BeforeValidator(_whole("restarts", 1, 10**5))] = Field(
        10, description="starts of FastICA, the least Gaussian result is taken"
    )
    start: Annotated[str | dict[str, float], BeforeValidator(_start)] = Field(
        "uniform", description="`uniform` or `{overlap: a0}`"
    )
    direction: Literal["auto", "ascent", "descent"] = Field(
        "auto", description="`ascent` or `descent` of `sgd` and `flow`; `auto` for what finds v"
    )
    constants: dict[str, float] = Field({}, description=CONSTANTS)

    aliases: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "a0": ("start", "overlap"),
        "d": ("space", "principal"),
    }
    formulas: ClassVar[Mapping[str, str]] = {"contrast": "s"}
    sized_by: ClassVar[Mapping[str, str]] = {"component": "rank", "restart": "restarts"}

    @model_validator(mode="after")
    def _consistent(self) -> SubspaceICA:
        contrast(self)
        for check in (_check_count, _check_space, _check_batch, _check_algorithm):
            check(self)
        return self

    def dims(self) -> dict[str, tuple[float, ...]]:
        """Own dimensions of results: the numbers of the spikes and of the starts."""
        return {"component": tuple(range(self.rank)), "restart": tuple(range(self.restarts))}


def contrast(system: SubspaceICA) -> Contrast:
    """The contrast G."""
    used = constants_used(system.contrast, "s")
    with speaking_of("contrast", *(f"constants.{name}" for name in sorted(used))):
        return make_contrast(system.contrast, system.constants)


def law(system: SubspaceICA) -> tuple[Contrast, Source]:
    """What a population loss depends on: the contrast G and the law of h."""
    return contrast(system), latent(system)


def samples_of(system: SubspaceICA) -> int | None:
    """n, the number of samples; None for infinitely many."""
    if system.samples is not None or system.samples_per_dimension is None:
        return system.samples
    return round(min(system.samples_per_dimension * system.dimension, 2.0 * MOST_SAMPLES))


def needed_samples(system: SubspaceICA) -> int:
    """n, for what needs finitely many samples."""
    count = samples_of(system)
    if count is None:
        raise HdicaError(
            "samples_per_dimension or samples is needed (without them there are infinitely many, "
            "which is for limits and for sgd on fresh samples)",
            ["samples_per_dimension", "samples"],
        )
    return count


def kind_of_space(system: SubspaceICA) -> str:
    """``"principal"``, ``"ambient"`` or ``"known"``."""
    return system.space if isinstance(system.space, str) else "principal"


def size_of_space(system: SubspaceICA) -> int:
    """Dimension d of the space in which ICA is run."""
    if not isinstance(system.space, str):
        return system.space["principal"]
    return system.dimension if system.space == "ambient" else system.rank


def first_overlap(system: SubspaceICA) -> float | None:
    """Overlap at the start; None for a start that is uniform on the sphere."""
    return None if isinstance(system.start, str) else system.start["overlap"]


def only(system: SubspaceICA, what: str, *algorithms: str) -> None:
    """Refuse other algorithms for something."""
    if system.algorithm not in algorithms:
        allowed = " or ".join(map(repr, algorithms))
        raise HdicaError(
            f"algorithm = {system.algorithm!r} is not allowed for {what} (allowed: {allowed})",
            ["algorithm"],
        )


def name_of_samples(system: SubspaceICA) -> str:
    """The field that says how many samples there are."""
    return "samples_per_dimension" if system.samples is None else "samples"


def _check_count(system: SubspaceICA) -> None:
    if system.samples is not None and system.samples_per_dimension is not None:
        raise HdicaError(
            "samples_per_dimension, samples: both are not allowed (one of them, or neither for "
            "infinitely many samples)",
            ["samples_per_dimension", "samples"],
        )
    count = samples_of(system)
    if count is not None and count < 2:
        raise HdicaError(
            f"samples_per_dimension = {system.samples_per_dimension:g} with dimension = "
            f"{system.dimension} is not allowed (n = {count}: at least 2 samples are needed)",
            ["samples_per_dimension", "dimension"],
        )


def _check_space(system: SubspaceICA) -> None:
    d, count = size_of_space(system), samples_of(system)
    if d > system.dimension:
        raise HdicaError(
            f"space.principal = {d} is not allowed (at most dimension = {system.dimension})",
            ["space.principal", "dimension"],
        )
    # Their principal components need samples, and to whiten n centred ones d <= n - 1.
    estimated = system.whitening == "sample" or kind_of_space(system) == "principal"
    if estimated and count is not None and count <= d:
        raise HdicaError(
            f"samples = {count} is not allowed with space = {system.space!r} (more than its "
            f"dimension {d}, else the covariance has no inverse)",
            [name_of_samples(system), "space"],
        )


def _check_batch(system: SubspaceICA) -> None:
    batch, count = system.batch, samples_of(system)
    allowed = ("all", "fresh") if system.algorithm == "fastica" else ("all",)
    if batch not in allowed and not (system.algorithm == "sgd" and isinstance(batch, int)):
        more = " or a number of samples" if system.algorithm == "sgd" else ""
        raise HdicaError(
            f"batch = {batch!r} is not allowed with algorithm = {system.algorithm!r} (allowed: "
            f"{' or '.join(map(repr, allowed))}{more})",
            ["batch", "algorithm"],
        )
    if isinstance(batch, int) and count is not None and batch > count:
        raise HdicaError(
            f"batch = {batch} is not allowed (at most the number of samples, {count})", ["batch"]
        )
    # Infinitely many samples are those of the reduced model.
    if batch == "all" and count is None and system.algorithm == "sgd":
        raise HdicaError(
            "batch = 'all' is not allowed with algorithm = 'sgd' and infinitely many samples "
            "(a number of samples a step, or samples_per_dimension or samples)",
            ["batch", "samples_per_dimension", "samples"],
        )


_USERS = {
    **dict.fromkeys(("iterations", "tolerance", "restarts"), ("fastica",)),
    "eta": ("sgd",),
    "direction": ("sgd", "flow"),
}  # algorithms that use a field, if not all do
OF_FASTICA = frozenset(name for name, users in _USERS.items() if "fastica" in users)
OF_GRADIENTS = frozenset(_USERS) - OF_FASTICA


def _check_algorithm(system: SubspaceICA) -> None:
    """Refuse fields that the algorithm does not use."""
    algorithm = system.algorithm
    if algorithm == "sgd" and system.eta is None:
        raise HdicaError("eta is missing (algorithm = 'sgd' needs a step size > 0)", ["eta"])
    for name, users in _USERS.items():
        value = getattr(system, name)
        if algorithm not in users and value != type(system).model_fields[name].default:
            raise HdicaError(
                f"{name} = {value!r} is not allowed with algorithm = {algorithm!r} (it is for "
                f"{' and '.join(users)})",
                [name, "algorithm"],
            )
