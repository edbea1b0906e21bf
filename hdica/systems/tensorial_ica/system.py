"""Online tensorial ICA: the rule (ICA) of Li and Jordan 2021, and what its fields mean.

C. J. Li and M. I. Jordan, "Stochastic approximation for online tensorial independent component
analysis", COLT 2021 (arXiv:2012.14415). Its time is the step, and its dimension a field.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import BeforeValidator, Field, field_validator, model_validator

from hdica.errors import HdicaError, speaking_of, suggestion
from hdica.ingredients.plain import is_number
from hdica.ingredients.quadrature import numbers
from hdica.ingredients.schedules import Schedule, make_schedule
from hdica.systems.fields import CONSTANTS, LAWS, SCHEDULE, Rate, SourceSpec, schedule, source
from hdica.systems.method import AVERAGES, COMMON, FINITE, Array, Output
from hdica.systems.parameters import Parameters
from hdica.systems.tensorial_ica.rule import Moments, TensorialRule, moments_of, unit

PAPER = "Li and Jordan 2021"
HOME = "hdica.systems.tensorial_ica"
AT_LIMIT = (*COMMON, AVERAGES, HOME)
AT_FINITE = (*FINITE, *AT_LIMIT)
TAN2 = Output("tan2", ("time",), "squared tangent of the angle to the nearest axis")
PATH = (
    TAN2,
    Output("nearest", ("time",), "number of the nearest component"),
    Output("update_sign", ("time",), "sign of the update"),
)
V = Output("v", ("time", "component"), "entry of v = A'u, overlap with a component")
U = Output("u", ("time", "component"), "entry of the estimate u")


@dataclass(frozen=True)
class Constants:
    """Constants of the bounds, which the paper leaves unnamed, all 1 if not given."""

    exponential: float = 1.0  # factor of the first term of Lemmas 3 and 6
    noise: float = 1.0  # of the second
    vessel: float = 1.0  # of eta sqrt T in Lemma 5
    rate: float = 1.0  # of the bounds of Theorems 4 and 7 and Corollary 8
    step_one: float = 1.0  # of eta1 = d ln T/(beta T)
    step_two: float = 1.0  # of eta2 = ln T/(beta T)
    scaling: float = 1.0  # of the right side of every scaling condition
    dimension: float = 1.0  # of ln(1/epsilon) in d >= ln(1/epsilon)


ONES = Constants()
STARTS = (
    "'uniform', 'axis', 'maximiser', {angle: radians}, {support: k} or {v: [...]} with one number "
    "a component"
)
PHASES = (
    "{T, c1, c2}, {T, c1} or {T, c2}, with kappa in place of T for T = kappa d^3; or {anneal: c, "
    "t0: t0}"
)
_KEYS = frozenset({"T", "kappa", "c1", "c2", "anneal", "t0"})
LEAST_T = 3
EPSILON = 0.1  # with which a bound may fail, where none is given
BOUNDS = (*(field.name for field in fields(Constants)), "epsilon")


@dataclass(frozen=True)
class Phases:
    """A training of T samples in two phases of T/2, or in one of them alone.

    Step sizes are eta_1 = c1 d ln(T)/(beta T) and eta_2 = c2 ln(T)/(beta T) with beta =
    abs(mu_4 - 3): Theorem 7, Theorem 4 and, both together, Corollary 8 of Li and Jordan 2021.
    """

    total: float  # T, in steps
    first: float | None  # eta_1, None for a phase that is not made
    second: float | None  # eta_2

    @property
    def half(self) -> float:
        """End of the first phase: 0 if it is not made."""
        return 0.0 if self.first is None else self.total / 2

    @property
    def end(self) -> float:
        """Last step."""
        return self.half + (0.0 if self.second is None else self.total / 2)


def _schedule(value: object) -> dict[str, float] | None:
    """Numbers of a schedule, each finite and > 0: t0 = 0 would be an infinite first step."""
    if value is None:
        return None
    keys = set(value) if isinstance(value, Mapping) else {""}
    length = {"T", "kappa"} & keys
    phases = len(length) == 1 and keys - length and keys - length <= {"c1", "c2"}
    if not isinstance(value, Mapping) or not (phases or keys == {"anneal", "t0"}):
        near = suggestion(value, sorted(_KEYS), PHASES)
        raise HdicaError(f"schedule = {value!r} is not allowed ({near})")
    for key, number in value.items():
        if not is_number(number) or not (math.isfinite(number) and number > 0):
            raise HdicaError(f"schedule.{key} = {number!r} is not allowed (a finite number > 0)")
    if value.get("T", LEAST_T) < LEAST_T:
        raise HdicaError(f"schedule.T = {value['T']:g} is not allowed (T >= {LEAST_T})")
    return {key: float(number) for key, number in value.items()}


def _bounds(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    for name, number in value.items():
        if name not in BOUNDS:
            raise HdicaError(f"bounds.{name} is not known ({suggestion(name, BOUNDS)})")
        most = 1.0 if name == "epsilon" else math.inf
        if not is_number(number) or not 0 < number < most:
            allowed = "0 < epsilon < 1" if name == "epsilon" else "a finite number > 0"
            raise HdicaError(f"bounds.{name} = {number!r} is not allowed ({allowed})")
    return dict(value)


def _start(value: object) -> object:
    if isinstance(value, str) and value in ("uniform", "axis", "maximiser"):
        return value
    if isinstance(value, Mapping) and len(value) == 1:
        ((key, inner),) = value.items()
        if key == "angle" and is_number(inner) and 0 <= inner < math.pi / 2:
            return {"angle": float(inner)}
        if key == "support" and is_number(inner) and float(inner).is_integer() and inner >= 1:
            return {"support": int(inner)}
        entries = numbers(inner) if key == "v" and not is_number(inner) else None
        if entries is not None and np.all(np.isfinite(entries)) and np.any(entries):
            return {"v": entries.tolist()}
    near = suggestion(value, ("uniform", "axis", "maximiser", "angle", "support", "v"), STARTS)
    raise HdicaError(
        f"start = {value!r} is not allowed ({near}; angles in [0, pi/2), supports >= 1)"
    )


def moments(system: TensorialICA) -> Moments:
    """Moments of the source, of which the drift needs the fourth."""
    return moments_of(source(system), 4)


def phases(system: TensorialICA) -> Phases | None:
    """The training in phases, None for any other step size."""
    plan = system.schedule
    if plan is None or "anneal" in plan:
        return None
    total = plan["T"] if "T" in plan else plan["kappa"] * system.dimension**3
    if "kappa" in plan and total < math.inf:
        total = math.floor(total)
    if total < LEAST_T:
        raise HdicaError(
            f"schedule.kappa = {plan['kappa']:g} with dimension = {system.dimension} is not "
            f"allowed (T = kappa d^3 >= {LEAST_T})",
            ["schedule.kappa", "dimension"],
        )
    unit = math.log(total) / (moments(system).beta * total)
    first = plan["c1"] * system.dimension * unit if "c1" in plan else None
    second = plan["c2"] * unit if "c2" in plan else None
    check_finite(system, *[eta for eta in (first, second) if eta is not None])
    return Phases(total, first, second)


def check_finite(system: TensorialICA, *sizes: float) -> None:
    """Refuse a schedule whose step sizes overflow, or vanish by underflow."""
    if not all(0 < eta < math.inf for eta in sizes):
        shown = ", ".join(f"{eta:g}" for eta in sizes)
        raise HdicaError(
            f"schedule = {system.schedule!r} is not allowed (its step sizes are {shown}: finite "
            "numbers > 0 are needed)",
            ["schedule"],
        )


def step_sizes(system: TensorialICA) -> Schedule:
    """Eta as a function of the step."""
    if system.eta is not None:
        return schedule(system, "eta")
    training = phases(system)
    if training is None:
        plan = system.schedule or {}
        numerator, later = plan["anneal"] / moments(system).beta, plan["t0"]
        check_finite(system, numerator / later)
        return Schedule(lambda t: numerator / (t + later), None)
    if training.first is None or training.second is None:
        return make_schedule(training.first or training.second, name="eta")
    values = [training.first, training.second]
    return make_schedule({"steps": {"times": [training.half], "values": values}}, name="eta")


def constant_eta(system: TensorialICA) -> float:
    """The step size, for what exists only if it is constant."""
    fixed = step_sizes(system).constant
    if fixed is None:
        name = "eta" if system.schedule is None else "schedule"
        raise HdicaError(
            f"{name} = {getattr(system, name)!r} is not allowed here (a constant step size)", [name]
        )
    return fixed


def first_vector(system: TensorialICA) -> Array | None:
    """V at t = 0, shape (d,), with norm 1; None for a random start."""
    d, start = system.dimension, system.start
    if start == "uniform":
        return None
    key, value = (start, 1) if isinstance(start, str) else next(iter(start.items()))
    if key == "angle":
        v = np.full(d, math.sin(value) / math.sqrt(d - 1))
        v[0] = math.cos(value)
        return v
    if key == "v":
        v = np.array(value, dtype=float)
        # Scaled first, so that no square overflows.
        v /= np.abs(v).max()
        return unit(v)
    k, v = d if key == "maximiser" else value, np.zeros(d)
    v[:k] = 1 / math.sqrt(k)
    return v


def fixed_vector(system: TensorialICA, what: str) -> Array:
    """V at t = 0, for what needs a start that is not random."""
    v = first_vector(system)
    if v is None:
        raise HdicaError(
            f"start = 'uniform' is not allowed for {what}, whose start is not random (allowed: "
            f"{STARTS.removeprefix(repr('uniform') + ', ')})",
            ["start"],
        )
    return v


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

    dimension: int = Field(ge=2, le=10**6, description="number of sources d")
    source: SourceSpec = Field("uniform", description=f"law of the sources, with μ₄ ≠ 3: {LAWS}")
    eta: Rate = Field(
        None,
        description=f"step size, this or `schedule` is required: {SCHEDULE}, where `t` is the step",
    )
    schedule: Annotated[dict[str, float] | None, BeforeValidator(_schedule)] = Field(
        None,
        description=(
            "`{T, c1, c2}`: c1 d ln(T)/(βT) for T/2 steps, then c2 ln(T)/(βT) (Corollary 8); "
            "`{T, c1}` or `{T, c2}` for one alone (Theorems 7 and 4), `kappa` in place of `T` for "
            "T = κd³; or `{anneal: c, t0}` for c/(β(t + t0))"
        ),
    )
    mixing: Literal["identity", "random"] = Field(
        "identity",
        description="`identity` or `random` (from the Haar measure), for `observed` alone",
    )
    start: Annotated[str | dict[str, Any], BeforeValidator(_start)] = Field(
        "uniform",
        description=(
            "`uniform` on the sphere, `axis` (a component), `maximiser` (all entries d^-1/2), "
            "`{angle: radians}` from the first axis, `{support: k}` (k entries k^-1/2) or `{v}`"
        ),
    )
    sign: Literal["known", "estimated"] = Field(
        "known", description="sign of μ₄ − 3, `known` or `estimated` from the samples so far"
    )
    bounds: Annotated[dict[str, float], BeforeValidator(_bounds)] = Field(
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
    def _whole(cls, value: object) -> object:
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
        start = self.start if isinstance(self.start, Mapping) else {}
        if len(start.get("v", range(self.dimension))) != self.dimension:
            raise HdicaError(
                f"start.v with {len(start['v'])} numbers is not allowed (one a component: "
                f"{self.dimension})",
                ["start", "dimension"],
            )
        if start.get("support", 1) > self.dimension:
            raise HdicaError(
                f"start.support = {start['support']} is not allowed (at most dimension = "
                f"{self.dimension})",
                ["start", "dimension"],
            )
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
    fixed, d = first_vector(system), system.dimension

    def start(rng: np.random.Generator) -> Array:
        if fixed is not None:
            return fixed.copy()
        return unit(rng.standard_normal(d))

    sign = moments(system).sign if system.sign == "known" else None
    return TensorialRule(d, source(system), sign, step_sizes(system), start)


def trained(system: TensorialICA) -> Phases:
    """The training of a system, or the sentence that it has none."""
    training = phases(system)
    if training is None:
        raise HdicaError(
            "a training needs its number of samples (schedule: {T, c1, c2}, with kappa for T "
            "or without c1 or c2)",
            ["schedule"],
        )
    return training
