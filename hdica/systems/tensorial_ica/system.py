"""Online tensorial ICA: the rule (ICA) of Li and Jordan 2021.

C. J. Li and M. I. Jordan, "Stochastic approximation for online tensorial independent component
analysis", COLT 2021 (arXiv:2012.14415). Its time is the step, and its dimension a field.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field, field_validator, model_validator

from hdica.errors import HdicaError, speaking_of
from hdica.ingredients.schedules import Schedule
from hdica.systems.fields import CONSTANTS, LAWS, SCHEDULE, Rate, SourceSpec, source
from hdica.systems.parameters import Parameters
from hdica.systems.tensorial_ica.fields import (
    BOUNDS,
    EPSILON,
    Beginning,
    BoundConstants,
    Mixing,
    Plan,
    Sign,
    check_start,
    moments,
    starter,
    step_sizes,
)
from hdica.systems.tensorial_ica.finite.rule import TensorialRule

MOST = 10**6
"""Largest dimension: a point holds some vectors of it."""


class TensorialICA(Parameters):
    """Online tensorial ICA: one of d non-Gaussian sources Z, all mixed by an orthonormal A.

    The estimate u on the unit sphere follows u <- Pi[u + eta sign(mu_4 - 3) (u.X)^3 X] with
    X = A Z and Pi u = u/|u| (Li and Jordan 2021, (ICA)); v = A'u is what is followed, in which the
    components to be found are the axes. Time is the step, and beta = abs(mu_4 - 3).

    Raises
    ------
    HdicaError
        If a parameter is not allowed; the sentence names it and what is allowed.
    """

    dimension: int = Field(ge=2, le=MOST, description="number of sources d")
    source: SourceSpec = Field("uniform", description=f"law of the sources, with μ₄ ≠ 3: {LAWS}")
    eta: Rate = Field(
        None,
        description=f"step size, this or `schedule` is required: {SCHEDULE}, where `t` is the step",
    )
    schedule: Plan = Field(
        None,
        description=(
            "`{T, c1, c2}`: c1 d ln(T)/(βT) for T/2 steps, then c2 ln(T)/(βT) (Corollary 8); "
            "`{T, c1}` or `{T, c2}` for one alone (Theorems 7 and 4), `kappa` in place of `T` for "
            "T = κd³; or `{anneal: c, t0}` for c/(β(t + t0))"
        ),
    )
    mixing: Mixing = Field(
        "identity",
        description="`identity` or `random` (from the Haar measure), for `observed` alone",
    )
    start: Beginning = Field(
        "uniform",
        description=(
            "`uniform` on the sphere, `axis` (a component), `maximiser` (all entries d^-1/2), "
            "`{angle: radians}` from the first axis, `{support: k}` (k entries k^-1/2) or `{v}`"
        ),
    )
    sign: Sign = Field(
        "known", description="sign of μ₄ − 3, `known` or `estimated` from the samples so far"
    )
    bounds: BoundConstants = Field(
        {},
        description=(
            f"constants of the bounds ({', '.join(BOUNDS)}): 1 if not given, ε {EPSILON:g}"
        ),
    )
    constants: dict[str, float] = Field({}, description=CONSTANTS)

    aliases: ClassVar[Mapping[str, tuple[str, ...]]] = {
        **{key: ("schedule", key) for key in ("T", "kappa", "c1", "c2")},
        "angle": ("start", "angle"),
    }
    formulas: ClassVar[Mapping[str, str]] = {"eta": "t"}
    sized_by: ClassVar[Mapping[str, str]] = {"component": "dimension"}

    @field_validator("dimension", mode="before")
    @classmethod
    def _whole(cls, value: Any) -> Any:
        if isinstance(value, bool):
            raise HdicaError(f"dimension = {value} is not allowed (a whole number >= 2)")
        return value

    @model_validator(mode="after")
    def _consistent(self) -> TensorialICA:
        if (self.eta is None) == (self.schedule is None):
            shown = "none of them" if self.eta is None else "eta and schedule"
            raise HdicaError(
                f"eta, schedule: {shown} is not allowed (exactly one of them)", ["eta", "schedule"]
            )
        with speaking_of("source"):
            moments(self)
        check_start(self)
        step_sizes(self)
        return self

    def schedules(self) -> tuple[Schedule, ...]:
        """The step size."""
        return (step_sizes(self),)

    def dims(self) -> dict[str, tuple[float, ...]]:
        """Own dimensions of results: the numbers of the components."""
        return {"component": tuple(range(self.dimension))}


def rule(system: TensorialICA) -> TensorialRule:
    """The update (ICA), as the finite-d kernels take it."""
    return TensorialRule(
        dimension=system.dimension,
        source=source(system),
        sign=moments(system).sign if system.sign == "known" else None,
        schedule=step_sizes(system),
        start=starter(system),
    )
