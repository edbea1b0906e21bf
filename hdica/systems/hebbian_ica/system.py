"""Hebbian ICA: the rule (13) of Rattray 2002 and its simulation at finite n.

M. Rattray, "Stochastic trapping in a solvable model of on-line independent component analysis",
Neural Computation 14 (2002). Its N is called n here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from typing import Any, ClassVar

import numpy as np
from pydantic import Field, ValidationInfo, field_validator, model_validator

from hdica.errors import HdicaError, speaking_of
from hdica.ingredients.plain import is_number
from hdica.ingredients.schedules import Schedule
from hdica.limits.averages.trap import Array
from hdica.systems.fields import (
    CONSTANTS,
    LAWS,
    SCHEDULE,
    FormulaText,
    Rate,
    SourceSpec,
    check_real,
    formula,
)
from hdica.systems.hebbian_ica.fields import (
    Batch,
    Beginning,
    Moving,
    Sigma,
    check_start,
    given_rate,
    in_unit,
    make_motion,
    sign_steps,
    sources,
    start_overlap,
    unplain,
)
from hdica.systems.hebbian_ica.rule import HebbianRule
from hdica.systems.parameters import Parameters


class HebbianICA(Parameters):
    """Hebbian ICA: K projections of data x = A_s s + A_n g with M sources s and n - M normals g.

    The weights follow W <- W + eta x phi(y)' Sigma + alpha W (I - W'W) with y = W'x (Rattray
    2002, eq. (13), Sigma on the right); the overlaps are R = W'A_s, shape (K, M), and Q = W'W.
    Time is t = k/n.

    Raises
    ------
    HdicaError
        If a parameter is not allowed; the sentence names it and what is allowed.
    """

    sources: list[SourceSpec] = Field(
        ["uniform"],
        min_length=1,
        description=f"a list of laws, one a source: {LAWS}",
    )
    projections: int = Field(1, ge=1, description="number of projections K")
    nonlinearity: FormulaText = Field("x**3", description="a formula in `x`")
    sigma: Sigma = Field(
        "stability",
        description=(
            "signs of the update, a list of +1 and -1; or the rule that decides them: "
            "`stability` (eq. 14) or `escape` (eq. 23), each for the source that a "
            "projection starts nearest to, `adaptive` (a running mean of "
            "y f(y) − f′(y)); or `{steps: {times: [10], values: [[1], [-1]]}}`"
        ),
    )
    mu: Rate = Field(
        None,
        description=f"μ = nη, one of the four is required: {SCHEDULE}. The limit `ode` needs it",
    )
    eta: Rate = Field(None, description="the step size η, likewise")
    nu: Rate = Field(None, description="ν = n²η, likewise: escape times as n → ∞ need it")
    nu2: Rate = Field(
        None,
        description=(
            "ν₂ = n^(3/2) η, likewise: escape times of skewed sources in n² steps need it, with a "
            "nonlinearity that is not odd"
        ),
    )
    alpha: float = Field(
        0.5, description="strength of the orthogonalisation, in (0, 2); limits hold below 1"
    )
    batch: Batch = Field(
        1,
        description=(
            "samples whose mean makes an update, or `full` for their average (the limit `ode` "
            "alone); t = k/n counts updates"
        ),
    )
    motion: Moving = Field(
        None,
        description=(
            "none, or how the sources move: `{drift: rate}` (R decays as exp(−rate t)), "
            "`{jumps: {times: [50], share: 0.5}}` (R becomes (1 − share) R), or both"
        ),
    )
    start: Beginning = Field(
        "random",
        description=(
            "`{overlap: R0}` with a number or a matrix (rows are projections), `zero`, or `random` "
            "with R of order n^-1/2; W'W = I always"
        ),
    )
    threshold: float = Field(
        0.8,
        description="size of R_ij at which a source counts as found, for escape times alone",
    )
    constants: dict[str, float] = Field(
        {},
        description=(
            f"{CONSTANTS}; `{{mu: mu0/(t + 100)}}` with `mu0` in the grid sweeps an annealed rate"
        ),
    )

    aliases: ClassVar[Mapping[str, tuple[str, ...]]] = {"R0": ("start", "overlap")}
    formulas: ClassVar[Mapping[str, str]] = {
        "mu": "t",
        "eta": "t",
        "nu": "t",
        "nu2": "t",
        "nonlinearity": "x",
    }
    sized_by: ClassVar[Mapping[str, str]] = {
        "projection": "projections",
        "other": "projections",
        "source": "sources",
        "row": "projections",
        "column": "sources",
    }

    @field_validator("alpha", "threshold", mode="before")
    @classmethod
    def _inside(cls, value: Any, info: ValidationInfo) -> Any:
        name, most = info.field_name, 2 if info.field_name == "alpha" else 1
        if not is_number(value) or not 0 < value < most:
            raise HdicaError(f"{name} = {value!r} is not allowed (0 < {name} < {most})")
        return float(value)

    @model_validator(mode="after")
    def _consistent(self) -> HebbianICA:
        given_rate(self)
        check_real(self, "nonlinearity")
        if formula(self, "nonlinearity").is_zero:
            text = "nonlinearity = 0 is not allowed (nothing would be learned)"
            raise HdicaError(text, ["nonlinearity"])
        with speaking_of("start"):
            check_start(self)
        if self.sigma != "adaptive":
            with speaking_of("sigma"):
                sign_steps(self)
        return self

    def schedules(self) -> tuple[Schedule, ...]:
        """The step size."""
        return (given_rate(self),)

    def dims(self) -> dict[str, tuple[float, ...]]:
        """Own dimensions of results: projections and sources, once more for Q and eigenmatrices."""
        projections: tuple[float, ...] = tuple(range(self.projections))
        numbers: tuple[float, ...] = tuple(range(len(self.sources)))
        own = {"projection": projections, "other": projections, "source": numbers}
        return own | {"row": projections, "column": numbers}


def overlaps_held(system: HebbianICA, n: int | None = None) -> int:
    """Numbers of R and of two K x K matrices beside it, which a run of the overlaps has."""
    return system.projections * (len(system.sources) + 2 * system.projections)


def modes_held(system: HebbianICA, n: int | None = None) -> int:
    """Numbers of a matrix between all entries of R."""
    return int((system.projections * len(system.sources)) ** 2)


def rule(system: HebbianICA) -> HebbianRule:
    """The update (13), as the finite-n kernels take it."""
    if system.batch == "full":
        raise HdicaError(sampled_refusal(system))
    adaptive, listed = system.sigma == "adaptive", isinstance(system.sigma, dict)
    return HebbianRule(
        sources=sources(system),
        projections=system.projections,
        nonlinearity=formula(system, "nonlinearity"),
        signs=None if adaptive else sign_steps(system)[1][0],
        step_size=cache(partial(in_unit, "eta", system)),
        alpha=system.alpha,
        start=start_overlap(system),
        batch=int(system.batch),
        sign_path=partial(_signs_at, *sign_steps(system)) if listed else None,
        motion=make_motion(system.motion),
    )


def _signs_at(jumps: Array, values: Array, times: Array) -> Array:
    """Signs at times of shape (T,), shape (K, T): from a jump on those after it."""
    return np.asarray(values[np.searchsorted(jumps, times, side="right")].T)


def sampled_refusal(system: HebbianICA) -> str:
    """Empty if a simulation can draw what an update needs, else the sentence that says why not."""
    if system.batch == "full":
        return (
            "batch = 'full' is not allowed at finite n (the number of samples of an update; "
            "the average over all of them is that of the limit, method 'ode')"
        )
    return ""


def plain_refusal(system: HebbianICA, what: str) -> str:
    """Empty for fixed signs, single samples and sources that stay, else why ``what`` needs them."""
    field = unplain(system)
    if not field:
        return ""
    return (
        f"{what} needs fixed signs, single samples and sources that stay ({field} is not allowed: "
        "methods 'vector', 'chain' and 'ode' follow it)"
    )


def batched_refusal(system: HebbianICA, what: str) -> str:
    """Empty for fixed signs, batches of a number and sources that stay, else why not."""
    field = unplain(system, batches=True)
    if not field:
        return ""
    return (
        f"{what} needs fixed signs, single samples or batches of a given number and sources that "
        f"stay ({field} is not allowed: the method 'ode' follows it)"
    )


def passage_refusal(system: HebbianICA) -> str:
    """Empty if first passages of the chain can be followed, else the sentence that says why not."""
    return plain_refusal(system, "a first passage of the chain")
