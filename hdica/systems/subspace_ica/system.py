"""ICA of the subspace model, in its principal components or without them.

"Reduce and Conquer: Independent Component Analysis at linear sample complexity", 2025. The
dimension of the inputs, and the number of samples, are fields.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from pydantic import Field, field_validator, model_validator

from hdica.errors import HdicaError
from hdica.systems.fields import CONSTANTS
from hdica.systems.subspace_ica.fields import (
    Algorithm,
    Batch,
    Beginning,
    Direction,
    PerDimension,
    Samples,
    Space,
    StepSize,
    Whitening,
    contrast,
    kind_of_space,
    samples_of,
    size_of_space,
    whole_number,
)
from hdica.systems.subspace_ica.model import SubspaceModel

CONTRASTS = "`exp`, `logcosh`, `kurtosis`, `he4`, or a formula in `s`"
MOST_ITERATIONS, MOST_RESTARTS = 10**6, 10**5


PAPER = "Reduce and Conquer 2025"
HOME = "hdica.systems.subspace_ica"


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

    contrast: str = Field("exp", description=f"contrast G: {CONTRASTS}")
    samples_per_dimension: PerDimension = Field(
        None, description="n/D, this or `samples`; neither for infinitely many samples"
    )
    samples: Samples = Field(None, description="number n of samples, a whole number >= 2")
    space: Space = Field(
        "principal",
        description=(
            "`principal` (the `rank` leading components), `{principal: d}`, `ambient`, or `known` "
            "(the true spikes)"
        ),
    )
    whitening: Whitening = Field(
        "sample", description="by the covariance of the `sample` or of the `population`"
    )
    algorithm: Algorithm = Field(
        "fastica",
        description="`fastica` (2), `sgd` (B.5), or `flow`, its limit",
    )
    batch: Batch = Field(
        "all",
        description="`all` n samples, `fresh` ones for every iteration, or B samples (`sgd`)",
    )
    eta: StepSize = Field(None, description="step size > 0 of `sgd`; time is η times the step")
    iterations: int = Field(200, description="most iterations of FastICA")
    tolerance: float = Field(
        1e-10, gt=0, lt=1, description="FastICA has converged once 1 − |w′·w| is below it"
    )
    restarts: int = Field(10, description="starts of FastICA, the least Gaussian result is taken")
    start: Beginning = Field("uniform", description="`uniform` or `{overlap: a0}`")
    direction: Direction = Field(
        "auto", description="`ascent` or `descent` of `sgd` and `flow`; `auto` for what finds v"
    )
    constants: dict[str, float] = Field({}, description=CONSTANTS)

    aliases: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "a0": ("start", "overlap"),
        "d": ("space", "principal"),
    }
    formulas: ClassVar[Mapping[str, str]] = {"contrast": "s"}
    sized_by: ClassVar[Mapping[str, str]] = {"component": "rank", "restart": "restarts"}

    @field_validator("iterations", mode="before")
    @classmethod
    def _iterations(cls, value: Any) -> int:
        return whole_number(value, "iterations", 1, MOST_ITERATIONS)

    @field_validator("restarts", mode="before")
    @classmethod
    def _restarts(cls, value: Any) -> int:
        return whole_number(value, "restarts", 1, MOST_RESTARTS)

    @model_validator(mode="after")
    def _consistent(self) -> SubspaceICA:
        contrast(self)
        for check in _CHECKS:
            check(self)
        return self

    def dims(self) -> dict[str, tuple[float, ...]]:
        """Own dimensions of results: the numbers of the spikes and of the starts."""
        return {"component": tuple(range(self.rank)), "restart": tuple(range(self.restarts))}


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
            ["samples_per_dimension" if system.samples is None else "samples", "space"],
        )


def _check_batch(system: SubspaceICA) -> None:
    batch = system.batch
    allowed = {"fastica": ("all", "fresh"), "sgd": ("all",), "flow": ("all",)}[system.algorithm]
    if batch in allowed or (system.algorithm == "sgd" and isinstance(batch, int)):
        count = samples_of(system)
        if isinstance(batch, int) and count is not None and batch > count:
            raise HdicaError(
                f"batch = {batch} is not allowed (at most the number of samples, {count})",
                ["batch"],
            )
        return
    listed = " or ".join(repr(one) for one in allowed)
    more = " or a number of samples" if system.algorithm == "sgd" else ""
    raise HdicaError(
        f"batch = {batch!r} is not allowed with algorithm = {system.algorithm!r} (allowed: "
        f"{listed}{more})",
        ["batch", "algorithm"],
    )


def _check_infinite(system: SubspaceICA) -> None:
    """Infinitely many samples are those of the reduced model."""
    if samples_of(system) is not None or system.algorithm != "sgd":
        return
    if system.batch == "all":
        raise HdicaError(
            "batch = 'all' is not allowed with algorithm = 'sgd' and infinitely many samples "
            "(a number of samples a step, or samples_per_dimension or samples)",
            ["batch", "samples_per_dimension", "samples"],
        )


_USERS = {
    **dict.fromkeys(("iterations", "tolerance", "restarts"), ("fastica",)),
    "eta": ("sgd",),
    "direction": ("sgd", "flow"),
}
"""Algorithms that use a field, if not all do."""
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


_CHECKS: tuple[Callable[[SubspaceICA], None], ...] = (
    _check_count,
    _check_space,
    _check_batch,
    _check_infinite,
    _check_algorithm,
)
