"""What the fields of online tensorial ICA mean: the source, the step sizes, the start."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator

from hdica.errors import HdicaError, suggestion
from hdica.ingredients.plain import is_number
from hdica.ingredients.quadrature import dot, numbers
from hdica.ingredients.schedules import Schedule, make_schedule
from hdica.systems.fields import schedule, source
from hdica.systems.tensorial_ica.limit.bounds import Constants
from hdica.systems.tensorial_ica.limit.moments import Moments, moments_of

Array = NDArray[np.float64]
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
EPSILON = 0.1
"""Probability with which a bound may fail, where none is given."""
BOUNDS = (*(field.name for field in fields(Constants)), "epsilon")
"""Names of the constants of the bounds."""


@dataclass(frozen=True)
class Phases:
    """A training of T samples in two phases of T/2, or in one of them alone.

    Step sizes are eta_1 = c1 d ln(T)/(beta T) and eta_2 = c2 ln(T)/(beta T) with beta =
    abs(mu_4 - 3): Theorem 7, Theorem 4 and, both together, Corollary 8 of Li and Jordan 2021.

    Parameters
    ----------
    total
        T, in steps.
    first, second
        eta_1 and eta_2, None for a phase that is not made.
    """

    total: float
    first: float | None
    second: float | None

    @property
    def half(self) -> float:
        """End of the first phase: 0 if it is not made."""
        return 0.0 if self.first is None else self.total / 2

    @property
    def end(self) -> float:
        """Last step."""
        return self.half + (0.0 if self.second is None else self.total / 2)


def _positive(given: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of a schedule, each finite and > 0."""
    for key, value in given.items():
        # t0 = 0 would be an infinite first step.
        if not is_number(value) or not (math.isfinite(value) and value > 0):
            raise HdicaError(f"schedule.{key} = {value!r} is not allowed (a finite number > 0)")
    return {key: float(value) for key, value in given.items()}


def _schedule(value: Any) -> Any:
    if value is None:
        return None
    if not isinstance(value, Mapping) or not set(value) <= _KEYS:
        raise HdicaError(
            f"schedule = {value!r} is not allowed ({suggestion(value, sorted(_KEYS), PHASES)})"
        )
    keys, length = set(value), {"T", "kappa"} & set(value)
    annealed = keys == {"anneal", "t0"}
    phases = len(length) == 1 and keys - length and keys - length <= {"c1", "c2"}
    if not annealed and not phases:
        raise HdicaError(
            f"schedule = {value!r} is not allowed ({suggestion(value, sorted(_KEYS), PHASES)})"
        )
    found = _positive(value)
    if found.get("T", LEAST_T) < LEAST_T:
        raise HdicaError(f"schedule.T = {found['T']:g} is not allowed (T >= {LEAST_T})")
    return found


def _bounds(value: Any) -> Any:
    if not isinstance(value, Mapping):
        return value
    for name, one in value.items():
        if name not in BOUNDS:
            raise HdicaError(f"bounds.{name} is not known ({suggestion(name, BOUNDS)})")
        most = 1.0 if name == "epsilon" else math.inf
        if not is_number(one) or not 0 < one < most:
            allowed = "0 < epsilon < 1" if name == "epsilon" else "a finite number > 0"
            raise HdicaError(f"bounds.{name} = {one!r} is not allowed ({allowed})")
    return dict(value)


def _start(value: Any) -> Any:
    if isinstance(value, str) and value in ("uniform", "axis", "maximiser"):
        return value
    if isinstance(value, Mapping) and len(value) == 1:
        ((key, given),) = value.items()
        if key == "angle" and is_number(given) and 0 <= given < math.pi / 2:
            return {"angle": float(given)}
        if key == "support" and is_number(given) and float(given).is_integer() and given >= 1:
            return {"support": int(given)}
        entries = numbers(given) if key == "v" and not is_number(given) else None
        if entries is not None and np.all(np.isfinite(entries)) and np.any(entries):
            return {"v": entries.tolist()}
    near = suggestion(value, ("uniform", "axis", "maximiser", "angle", "support", "v"), STARTS)
    raise HdicaError(
        f"start = {value!r} is not allowed ({near}; angles in [0, pi/2), supports >= 1)"
    )


Plan = Annotated[dict[str, float] | None, BeforeValidator(_schedule)]
Beginning = Annotated[str | dict[str, Any], BeforeValidator(_start)]
BoundConstants = Annotated[dict[str, float], BeforeValidator(_bounds)]
Mixing = Literal["identity", "random"]
Sign = Literal["known", "estimated"]


def moments(system: Any) -> Moments:
    """Moments of the source, of which the drift needs the fourth."""
    return moments_of(source(system), 4)


def phases(system: Any) -> Phases | None:
    """The training in phases, None for any other step size."""
    given = system.schedule
    if given is None or "anneal" in given:
        return None
    total = given["T"] if "T" in given else given["kappa"] * system.dimension**3
    if "kappa" in given and total < math.inf:
        total = math.floor(total)
    if total < LEAST_T:
        raise HdicaError(
            f"schedule.kappa = {given['kappa']:g} with dimension = {system.dimension} is not "
            f"allowed (T = kappa d^3 >= {LEAST_T})",
            ["schedule.kappa", "dimension"],
        )
    unit = math.log(total) / (moments(system).beta * total)
    first = given["c1"] * system.dimension * unit if "c1" in given else None
    second = given["c2"] * unit if "c2" in given else None
    _check_sizes(system, [one for one in (first, second) if one is not None])
    return Phases(total, first, second)


def _check_sizes(system: Any, found: list[float]) -> None:
    """Refuse a schedule whose step sizes overflow, or vanish by underflow."""
    if not all(0 < eta < math.inf for eta in found):
        raise HdicaError(
            f"schedule = {system.schedule!r} is not allowed (its step sizes are "
            f"{', '.join(f'{eta:g}' for eta in found)}: finite numbers > 0 are needed)",
            ["schedule"],
        )


def step_sizes(system: Any) -> Schedule:
    """Eta as a function of the step."""
    if system.eta is not None:
        return schedule(system, "eta")
    training = phases(system)
    if training is None:
        numerator = system.schedule["anneal"] / moments(system).beta
        later = system.schedule["t0"]
        _check_sizes(system, [numerator / later])
        return Schedule(lambda t: numerator / (np.asarray(t, dtype=float) + later), None)
    if training.first is None or training.second is None:
        return make_schedule(training.first or training.second, name="eta")
    values = [training.first, training.second]
    return make_schedule({"steps": {"times": [training.half], "values": values}}, name="eta")


def constant_eta(system: Any) -> float:
    """The step size, for what exists only if it is constant."""
    fixed = step_sizes(system).constant
    if fixed is None:
        name = "eta" if system.schedule is None else "schedule"
        raise HdicaError(
            f"{name} = {getattr(system, name)!r} is not allowed here (a constant step size)", [name]
        )
    return fixed


def _spread(d: int, angle: float) -> Array:
    """A unit vector at an angle to the first axis, the rest spread evenly over the others."""
    v = np.full(d, math.sin(angle) / math.sqrt(d - 1))
    v[0] = math.cos(angle)
    return v


def _on_support(d: int, k: int) -> Array:
    v = np.zeros(d)
    v[:k] = 1 / math.sqrt(k)
    return v


def first_vector(system: Any) -> Array | None:
    """V at t = 0, shape (d,), with norm 1; None for a random start."""
    d, given = system.dimension, system.start
    if given == "uniform":
        return None
    if isinstance(given, str):
        return _on_support(d, 1 if given == "axis" else d)
    ((key, value),) = given.items()
    if key == "angle":
        return _spread(d, value)
    if key == "support":
        return _on_support(d, value)
    v = np.array(value, dtype=float)
    # Scaled first, so that no square overflows.
    v /= np.abs(v).max()
    return np.asarray(v / math.sqrt(dot(v, v)))


def given_vector(system: Any, what: str) -> Array:
    """V at t = 0, for what needs a start that is not random."""
    v = first_vector(system)
    if v is None:
        raise HdicaError(
            f"start = 'uniform' is not allowed for {what}, whose start is not random (allowed: "
            f"{STARTS.removeprefix(repr('uniform') + ', ')})",
            ["start"],
        )
    return v


def starter(system: Any) -> Callable[[np.random.Generator], Array]:
    """What draws v(0) from the stream of the start."""
    fixed, d = first_vector(system), system.dimension

    def start(rng: np.random.Generator) -> Array:
        if fixed is not None:
            return fixed.copy()
        v = rng.standard_normal(d)
        return np.asarray(v / math.sqrt(dot(v, v)))

    return start


def bound_constants(system: Any) -> tuple[Constants, float]:
    """Constants of the bounds, and the probability with which they may fail."""
    given = dict(system.bounds)
    epsilon = given.pop("epsilon", EPSILON)
    return Constants(**given), epsilon


def check_start(system: Any) -> None:
    """Refuse a start that has another number of components than the system."""
    given, d = system.start, system.dimension
    if not isinstance(given, Mapping):
        return
    if len(given.get("v", range(d))) != d:
        raise HdicaError(
            f"start.v with {len(given['v'])} numbers is not allowed (one a component: {d})",
            ["start", "dimension"],
        )
    if given.get("support", 1) > d:
        raise HdicaError(
            f"start.support = {given['support']} is not allowed (at most dimension = {d})",
            ["start", "dimension"],
        )
