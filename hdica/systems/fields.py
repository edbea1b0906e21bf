"""Fields that systems share: their checks, and the objects behind them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula, parse_formula
from hdica.ingredients.grammar import constants_used
from hdica.ingredients.motions import Motion, make_motion
from hdica.ingredients.priors import Prior, make_prior
from hdica.ingredients.schedules import Schedule, make_schedule
from hdica.ingredients.sources import Source, make_source
from hdica.ingredients.starts import Start, make_start
from hdica.systems.axes import is_number

Spec = str | dict[str, Any]


def _no_bool(value: Any) -> Any:
    if isinstance(value, bool):
        raise HdicaError(f"tau = {value} is not allowed (a step size is a finite number > 0)")
    return value


def _rate(value: Any) -> Any:
    if isinstance(value, bool):
        raise HdicaError(f"{value} is not allowed (a step size is a finite number > 0)")
    return value


def _text(value: Any) -> Any:
    return repr(value) if is_number(value) else value


def _made_by(make: Callable[[Any], object]) -> AfterValidator:
    """A value stays as it is, if something can be made of it."""

    def check(value: Any) -> Any:
        make(value)
        return value

    return AfterValidator(check)


StepSize = Annotated[float | str | dict[str, Any], BeforeValidator(_no_bool)]
Rate = Annotated[float | str | dict[str, Any] | None, BeforeValidator(_rate)]
"""A step size that may be given in another way instead."""
FormulaText = Annotated[str, BeforeValidator(_text)]
SourceSpec = Annotated[Spec, _made_by(make_source)]
PriorSpec = Annotated[Spec, _made_by(make_prior)]
StartSpec = Annotated[dict[str, Any], _made_by(make_start)]
MotionSpec = Annotated[dict[str, Any] | None, _made_by(make_motion)]

SCHEDULE = (
    "step size > 0, a formula in `t` (`0.1/(1 + t/50)`), or "
    "`{steps: {times: [10], values: [0.1, 0.05]}}`"
)
LAWS = (
    "`rademacher`, `uniform`, `laplace`, `gaussian`, `{bernoulli_gaussian: p}`, `{student: nu}`, "
    "`{chi2: k}`, `{scipy: name, ...}`, `{discrete: {values, weights}}`"
)
PRIORS = (
    "`dense`, `gaussian`, `{sparse: rho}`, `{sparse_sign: rho}`, `{bernoulli_gaussian: rho}`, "
    "`{atoms, weights}`"
)
STARTS = (
    "`{overlap: Q0}` (Q fluctuates about Q0 by O(n^-1/2)), `{overlap: Q0, exact: true}` (it does "
    "not), or `{normal: {mean, var}}`"
)
MOTIONS = (
    "none, or how the feature moves: `{exchange: delta}` (each entry changes places at the rate "
    "delta), `{jumps: {times: [50], share: 0.5}}`, or both"
)
CONSTANTS = "numbers used by name in the formulas: `{beta: 0.2}`"
"""What fields that several systems have may hold, for the manual."""
ALIASES: dict[str, tuple[str, ...]] = {"Q0": ("start", "overlap"), "rho": ("prior", "sparse")}
MOVING: dict[str, tuple[str, ...]] = {"exchange": ("motion", "exchange")}
"""Short names of systems with a feature that moves."""


def formula(system: Any, name: str) -> Formula:
    """The formula behind the field ``name``, a function of x."""
    try:
        return parse_formula(getattr(system, name), "x", system.constants)
    except HdicaError as exc:
        exc.fields = _fields(system, name, "x")
        raise


def _fields(system: Any, name: str, variable: str) -> tuple[str, ...]:
    """The field of a formula, and those of the named numbers that it uses."""
    text = getattr(system, name)
    used = constants_used(text, variable) if isinstance(text, str) else ()
    return (name, *(f"constants.{constant}" for constant in sorted(used)))


def check_real(system: Any, name: str) -> None:
    """Refuse a formula that is not a real number everywhere."""
    bad = formula(system, name).undefined_at
    if bad is not None:
        raise HdicaError(
            f"{name} = {getattr(system, name)!r} is not allowed (it is infinite or no real "
            f"number at x = {bad:.6g}; allowed are functions that are finite at every real x)",
            _fields(system, name, "x"),
        )


def schedule(system: Any, name: str = "tau") -> Schedule:
    """Step size as a function of t = k/n; ``name`` is the field that gives it."""
    return made_in_time(system, name, make_schedule)


def made_in_time(
    system: Any, name: str, make: Callable[[Any, dict[str, float], str], Schedule]
) -> Schedule:
    """What ``make`` makes of a field that may be a formula in t."""
    try:
        return make(getattr(system, name), system.constants, name)
    except HdicaError as exc:
        exc.fields = _fields(system, name, "t")
        raise


def constant_tau(system: Any) -> float:
    """The step size, for what exists only if it is constant."""
    tau = schedule(system).constant
    if tau is None:
        raise HdicaError(
            f"tau = {system.tau!r} is not allowed for fixed points (a constant step size)"
        )
    return tau


def source(system: Any) -> Source:
    """Law of the latent variable."""
    return make_source(system.source)


def prior(system: Any) -> Prior:
    """Law of the entries of the feature."""
    return make_prior(system.prior)


def motion(system: Any) -> Motion:
    """How the feature moves; of a system without such a field: not at all."""
    found = make_motion(getattr(system, "motion", None))
    if found.moves and prior(system).group_values.size == 1:
        raise HdicaError(
            f"motion = {system.motion!r} is not allowed with prior = {system.prior!r} (equal "
            "entries that change places change nothing: take another prior, such as 'gaussian', "
            "{'sparse': 0.3} or {'sparse_sign': 0.3})",
            ["motion", "prior"],
        )
    return found


def start(system: Any) -> Start:
    """Law of the estimate at t = 0."""
    return make_start(system.start)


def closed_refusal(system: Any) -> str:
    """Empty if the regularizer lets the overlap alone close the limit, else why it does not."""
    if formula(system, "regularizer").slope_if_linear is None:
        return (
            "the overlap alone does not close the limit for the regularizer "
            f"{system.regularizer!r} (allowed: 0 and beta*x)"
        )
    return ""


def with_parameter(system: Any, key: str, value: float) -> Any:
    """The same system with one scalar parameter changed.

    The key is a field (``"tau"``), an alias (``"rho"``) or the name of a constant of the formulas.
    """
    cls = type(system)
    if key in system.constants:
        path: tuple[str, ...] = ("constants", key)
    else:
        path = cls.aliases.get(key, (key,))
    content = system.model_dump(mode="python")
    top, *rest = path
    inside = content.get(top)
    if rest:
        varies = isinstance(inside, dict) and is_number(inside.get(rest[0]))
    else:
        varies = is_number(inside)
    if not varies or top == "start":
        numbers = [k for k in cls.model_fields if is_number(content[k])]
        prior_of = content.get("prior")
        shape = ["rho"] if isinstance(prior_of, dict) and "sparse" in prior_of else []
        known = [*numbers, *shape, *system.constants]
        allowed = f"allowed: {', '.join(known)}" if known else "no parameter is a plain number"
        raise HdicaError(f"parameter = {key!r} is not known ({allowed})")
    content[top] = {**inside, rest[0]: value} if rest else value
    return cls(**content)
