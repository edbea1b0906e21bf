"""Fields that systems share: their checks, and the objects behind them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Hashable, Mapping
from functools import lru_cache
from typing import Annotated, Any, Protocol, TypeVar

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator

from hdica.errors import HdicaError, suggestion
from hdica.ingredients.formula import Formula, parse_formula
from hdica.ingredients.functions import word_for
from hdica.ingredients.grammar import constants_used, read_expression
from hdica.ingredients.plain import is_number, is_vector, vector_of
from hdica.ingredients.priors import Prior, make_prior, vector_prior, wrong_length
from hdica.ingredients.schedules import Motion, Schedule, make_motion, make_observed, make_schedule
from hdica.ingredients.sources import Source, make_source
from hdica.ingredients.starts import NOT_NORMAL, Start, make_start, vector_start
from hdica.inputs.data_input import Reads
from hdica.inputs.samples import SAMPLES, samples_input, vector_input
from hdica.systems.method import Array
from hdica.systems.parameters import constants_of
from hdica.systems.space import in_one_spelling

Spec = str | dict[str, Any]
S = TypeVar("S")


class HasFormulas(Protocol):
    """A system with formulas, which may use numbers by name."""

    @property
    def constants(self) -> Mapping[str, float]: ...  # noqa: D102


class HasSource(Protocol):
    """A system with a latent variable."""

    @property
    def source(self) -> Spec: ...  # noqa: D102


class HasEntries(Protocol):
    """A system with a feature and a first estimate."""

    @property
    def prior(self) -> Spec: ...  # noqa: D102
    @property
    def start(self) -> Mapping[str, Any]: ...  # noqa: D102


class Projected(HasFormulas, HasEntries, Protocol):
    """A system with the fields that all rules of the projected family have."""

    @property
    def regularizer(self) -> str: ...  # noqa: D102

    def schedules(self) -> tuple[Schedule, ...]: ...  # noqa: D102


class Pushed(Projected, HasSource, Protocol):
    """A system of the family whose samples have a latent variable."""


F = TypeVar("F", bound=Projected)
G = TypeVar("G", bound=Pushed)


def optional(system: object, name: str) -> Any:
    """A field that not every system has, None where there is none."""
    return getattr(system, name, None)


V = TypeVar("V")


def _no_bool(name: str) -> BeforeValidator:
    def check(value: V) -> V:
        if isinstance(value, bool):
            raise HdicaError(f"{name}{value} is not allowed (a step size is a finite number > 0)")
        return value

    return BeforeValidator(check)


def _text(value: object) -> object:
    if callable(value):
        return word_for(value)
    return repr(value) if is_number(value) else value


def _made_by(make: Callable[[Any], object]) -> AfterValidator:
    """A value stays as it is, if something can be made of it."""

    def check(value: V) -> V:
        make(value)
        return value

    return AfterValidator(check)


def _batch(value: object) -> int:
    if not is_number(value) or not 1 <= value <= MOST_SAMPLES or value != int(value):
        raise HdicaError(
            f"batch = {value!r} is not allowed (a whole number from 1 to {MOST_SAMPLES})", ["batch"]
        )
    return int(value)


StepSize = Annotated[float | str | dict[str, Any], _no_bool("tau = ")]
MaybeStepSize = Annotated[float | str | dict[str, Any] | None, _no_bool("tau = ")]
Rate = Annotated[float | str | dict[str, Any] | None, _no_bool("")]
"""A step size that may be given in another way instead."""
FormulaText = Annotated[str, BeforeValidator(_text)]
SourceSpec = Annotated[Spec, _made_by(make_source)]
BatchSize = Annotated[int, BeforeValidator(_batch)]


def law_of_noise(spec: Spec) -> Source | None:
    """Law of the entries of the noise, None for the normal one."""
    if spec == "gaussian":
        return None
    try:
        return make_source(spec)
    except HdicaError as exc:
        raise HdicaError(str(exc).replace("source:", "noise_law:", 1)) from None


def prior_of(spec: Spec) -> Prior:
    """Law of the entries of a feature, of a field that says it."""
    return _of_vector(vector_prior, canonical(spec)) if is_vector(spec) else make_prior(spec)


def _start_of(spec: Mapping[str, Any]) -> Start:
    return _of_vector(vector_start, canonical(spec)) if is_vector(spec) else make_start(spec)


@lru_cache(maxsize=32)
def _of_vector(make: Callable[[Array], S], text: str) -> S:
    return make(vector_of(json.loads(text)))


def canonical(spec: object) -> str:
    """A normal form as a text by which it is remembered."""
    return json.dumps(spec, sort_keys=True)


def _named_vector(name: str) -> BeforeValidator:
    return BeforeValidator(lambda value: vector_input(value, name))


NoiseSpec = Annotated[Spec, _made_by(law_of_noise)]
PriorSpec = Annotated[Spec, _named_vector("prior"), _made_by(prior_of), Reads()]
StartSpec = Annotated[dict[str, Any], _named_vector("start"), _made_by(_start_of), Reads()]
DataSpec = Annotated[
    dict[str, Any] | None,
    BeforeValidator(lambda value: None if value is None else samples_input(value)),
    Reads(),
]
MotionSpec = Annotated[dict[str, Any] | None, _made_by(make_motion)]

SCHEDULE = (
    "step size > 0 until the last time, a formula in `t` (`0.1/(1 + t/50)`), or "
    "`{steps: {times: [10], values: [0.1, 0.05]}}`"
)
SIZED = SCHEDULE.replace("(`0.1/(1 + t/50)`)", "(`0.1/(1 + t/50)`), for simulations in `n` too")
LAWS = (
    "`rademacher`, `uniform`, `laplace`, `gaussian`, `{bernoulli_gaussian: p}`, `{student: nu}`, "
    "`{chi2: k}`, `{beta: a}`, `{scipy: name, ...}` (`{scipy: poisson, mu: 3}`), "
    "`{discrete: {values, weights}}`, `{mixture: {weights, means, sds}}` (normal), "
    "`{sum: [{law, weight}]}` (or `{sum: {uniform: 1, laplace: 0.5}}`)"
)
NOISES = (
    "for method `vector`: law of the independent entries of the noise, as that of a source. Limits "
    "do not depend on it where the feature has many entries; the escape from Q = 0 does"
)
PRIORS = (
    "`dense`, `gaussian`, `{sparse: rho}`, `{sparse_sign: rho}`, `{bernoulli_gaussian: rho}`, "
    "`{atoms, weights}`, `{slab: law, rho: rho}` (a share rho follows a law of a source), "
    "`{scipy: name, ...}`, `{mixture: ...}`; with `iid: true` entries are drawn one by one; "
    "`{vector: xi.npy}` or a list: the feature itself"
)
STARTS = (
    "`{overlap: Q0}` (Q fluctuates about Q0 by O(n^-1/2)), `{overlap: Q0, exact: true}` (it does "
    "not), `{normal: {mean, var}}`, or `{vector: x.npy}` or a list: the estimate itself"
)
MOST_SAMPLES = 1_000_000
BATCHES = (
    "samples m over which each update averages its push, all at the same x; limits are those of a "
    "fixed m, good to order m/n at finite n"
)
DATA = f"for the methods `stream` and `blind`: {SAMPLES}"
MOTIONS = (
    "none, or how the feature moves: `{exchange: delta}` (each entry changes places at the rate "
    "delta), `{jumps: {times: [50], share: 0.5}}`, or both"
)
OBSERVED = (
    "; or `{observed: {rate: 0.1, least: 0.3}}`: the best step size of the limit at the overlap "
    "that a running average of %s shows, u = x·y/√n, which forgets at the rate per unit of time; "
    "abs(Q) is not taken for less than `least` (default 0)"
)
CONSTANTS = "numbers used by name in the formulas: `{beta: 0.2}`"
"""What fields that several systems have may hold, for the manual."""
_WHOLE = frozenset({"batch"})
"""Fields that are whole numbers, which no search can vary continuously."""
ALIASES: dict[str, tuple[str, ...]] = {"Q0": ("start", "overlap"), "rho": ("prior", "sparse")}
MOVING: dict[str, tuple[str, ...]] = {"exchange": ("motion", "exchange")}
"""Short names of systems with a feature that moves."""


def formula(system: HasFormulas, name: str) -> Formula:
    """The formula behind the field ``name``, a function of x."""
    try:
        return parse_formula(getattr(system, name), "x", system.constants)
    except HdicaError as exc:
        raise HdicaError(f"{name}: {exc}", _fields(system, name, "x")) from exc


def _fields(system: object, name: str, variable: str) -> tuple[str, ...]:
    """The field of a formula, and those of the named numbers that it uses."""
    text = getattr(system, name)
    used = constants_used(text, variable) if isinstance(text, str) else ()
    return (name, *(f"constants.{constant}" for constant in sorted(used)))


def check_real(system: HasFormulas, name: str) -> None:
    """Refuse a formula that is not a real number everywhere."""
    bad = formula(system, name).undefined_at
    if bad is not None:
        raise HdicaError(
            f"{name} = {getattr(system, name)!r} is not allowed (it is infinite or no real "
            f"number at x = {bad:.6g}; allowed are functions that are finite at every real x)",
            _fields(system, name, "x"),
        )


def schedule(system: HasFormulas, name: str = "tau") -> Schedule:
    """Step size as a function of t = k/n; ``name`` is the field that gives it.

    One that depends on n is what remains of it as n -> infinity, or, where nothing does and limits
    refuse it, its value at an n in the middle.
    """
    if not uses_n(system, name):
        makes = make_observed if optional(system, "observes") == name else make_schedule
        return made_in_time(system, name, makes)

    def make(text: str, constants: Mapping[str, float], name: str) -> Schedule:
        remains, _ = as_n_grows(text, name, tuple(sorted(constants.items())))
        if remains:
            return make_schedule(remains, constants, name)
        return make_schedule(text, {**constants, "n": SOME_N}, name)

    return made_in_time(system, name, make)


SOME_N = 100.0
_N = re.compile(r"(?<![\w.])n(?!\w)")


def uses_n(system: HasFormulas, name: str = "tau") -> bool:
    """Whether a step size is a formula in n, which is none of the constants."""
    text = getattr(system, name, None) if optional(system, "n_in_steps") else None
    return isinstance(text, str) and "n" not in system.constants and bool(_N.search(text))


@lru_cache(maxsize=256)
def as_n_grows(text: str, name: str, constants: tuple[tuple[str, float], ...]) -> tuple[str, str]:
    """What remains of a formula in n as n -> infinity, or why a limit in t = k/n has none."""
    import sympy as sp

    expression, (t, n) = read_expression(text, ("t", "n"), dict(constants))
    many = sp.Symbol("n", positive=True)
    try:
        limit = sp.limit(expression.subs(n, many), many, sp.oo)
    except (NotImplementedError, ValueError, TypeError):
        limit = sp.nan
    if limit == 0:
        what = "vanishes as n -> infinity, and nothing happens before t is of the order of 1/tau"
    elif limit.is_infinite:
        what = "grows with n beyond all bounds"
    elif limit.free_symbols - {t} or limit.has(sp.nan, sp.AccumBounds, sp.Limit):
        what = "has no limit as n -> infinity that is known"
    else:
        try:
            return parse_formula(str(limit), "t", dict(constants)).text, ""
        except HdicaError:
            what = "has no limit as n -> infinity that is known"
    return "", f"{name} = {text!r} is not allowed for limits in t = k/n (it {what})"


def n_refusal(system: HasFormulas, name: str = "tau") -> str:
    """Empty if something remains of the step size as n -> infinity, else that nothing does."""
    if not uses_n(system, name):
        return ""
    return as_n_grows(getattr(system, name), name, tuple(sorted(system.constants.items())))[1]


def signal_varies(system: Projected) -> bool:
    """Whether a schedule other than that of the step size changes with time."""
    return any(one.constant is None for one in system.schedules()[1:])


def made_in_time(
    system: HasFormulas,
    name: str,
    make: Callable[[Any, Mapping[str, float], str], Schedule],
) -> Schedule:
    """What ``make`` makes of a field that may be a formula in t."""
    try:
        return make(getattr(system, name), system.constants, name)
    except HdicaError as exc:
        exc.fields = _fields(system, name, "t")
        raise


def at_dimension(system: S, n: int) -> S:
    """The system with a step size that does not depend on n: tau = nu/n where nu is given."""
    nu, changed = optional(system, "nu"), dict[str, Any]()
    assert isinstance(system, BaseModel)
    if any(uses_n(system, name) for name in ("tau", "nu")):  # type: ignore[arg-type]
        changed["constants"] = {**constants_of(system), "n": float(n)}
    if nu is not None and "tau" in type(system).model_fields:
        changed |= {"tau": _over(nu, n), "nu": None}
    return system.model_copy(update=changed) if changed else system


def _over(rate: float | Spec, n: int) -> float | Spec:
    """A step size over n, in the form in which it is given."""
    if isinstance(rate, str):
        return f"({rate})/{n}"
    if isinstance(rate, dict):
        steps = rate["steps"]
        return {"steps": {**steps, "values": [_over(value, n) for value in steps["values"]]}}
    return rate / n


def constant_tau(system: HasFormulas) -> float:
    """The step size, for what exists only if it is constant."""
    tau = schedule(system).constant
    if tau is None:
        raise HdicaError(
            f"tau = {optional(system, 'tau')!r}"
            " is not allowed for fixed points (a constant step size)"
        )
    return tau


def source(system: HasSource) -> Source:
    """Law of the latent variable."""
    return make_source(system.source)


def averages_close(system: HasFormulas) -> bool:
    """Whether averages over the source are in closed form: f is a polynomial, or there is none."""
    f = optional(system, "nonlinearity")
    return f is None or formula(system, "nonlinearity").coefficients is not None


_AVERAGES = {"drift": 0.35, "noise": 0.45, "second": 2.0}
"""Seconds until averages that are in no closed form are prepared."""


def averages(*parts: str) -> Callable[[HasFormulas], dict[Hashable, float]]:
    """What a process prepares for a system: averages for its ``parts``, for every f and source."""

    def prepares(system: HasFormulas) -> dict[Hashable, float]:
        if averages_close(system):
            return {}
        law = optional(system, "source") or optional(system, "sources")
        own = (optional(system, "nonlinearity"), json.dumps([law, system.constants]))
        return {(part, *own): _AVERAGES[part] for part in parts}

    return prepares


def batch(system: object) -> int:
    """Samples that an update takes, 1 where a system has no such field."""
    return int(getattr(system, "batch", 1))


def noise_law(system: object) -> Source | None:
    """Law of the entries of the noise; None where it is normal, as in all but a few systems."""
    return law_of_noise(getattr(system, "noise_law", "gaussian"))


def noise_refusal(system: object, what: str) -> str:
    """Empty if the noise is normal, else that something is that of normal noise alone."""
    if noise_law(system) is None:
        return ""
    return (
        f"noise_law = {optional(system, 'noise_law')!r} is not allowed for {what} ('gaussian'; "
        "method 'vector' draws any, without a batch)"
    )


def check_bias(system: object) -> None:
    """Refuse what n leaves of a limit where the fourth cumulant of the noise adds as much to it."""
    if any(uses_n(system, name) for name in ("tau", "nu")):  # type: ignore[arg-type]
        raise HdicaError(
            f"bias = True is not allowed for tau = {optional(system, 'tau')!r} (what n leaves of "
            "the mean is known of step sizes that do not depend on n)"
        )
    refusal = noise_refusal(system, "a bias of order 1/n")
    if refusal:
        raise HdicaError(refusal, ["noise_law"])


def check_noise(system: object) -> None:
    """Refuse a batch, whose sum of samples is drawn as a whole, where the noise is not normal."""
    if batch(system) > 1:
        refusal = noise_refusal(system, f"batch = {batch(system)}")
        if refusal:
            raise HdicaError(refusal, ["noise_law", "batch"])


def prior(system: HasEntries) -> Prior:
    """Law of the entries of the feature."""
    return prior_of(system.prior)


def motion(system: HasEntries) -> Motion:
    """How the feature moves; of a system without such a field: not at all."""
    given = optional(system, "motion")
    moves = make_motion(given)
    if moves.moves and np.unique(prior(system).nodes.points).size == 1:
        raise HdicaError(
            f"motion = {given!r} is not allowed with prior = {system.prior!r} (equal "
            "entries that change places change nothing: take another prior, such as 'gaussian', "
            "{'sparse': 0.3} or {'sparse_sign': 0.3})",
            ["motion", "prior"],
        )
    return moves


def resting_refusal(system: HasEntries, what: str) -> str:
    """Empty if the feature stays, else that something exists only for one that does."""
    if not motion(system).moves:
        return ""
    return (
        f"motion = {optional(system, 'motion')!r} is not allowed for {what} (a feature that stays)"
    )


def start(system: HasEntries) -> Start:
    """Law of the estimate at t = 0: ``law_of_start`` of a system whose start is of its own kind."""
    return optional(system, "law_of_start") or _start_of(system.start)


def length_refusal(system: HasEntries, n: int) -> str:
    """Empty unless the feature or the first estimate is a vector of another length than n."""
    for name, length in (("prior", prior(system).length), ("start", start(system).length)):
        refusal = "" if length is None else wrong_length(name, length, n)
        if refusal:
            return refusal
    return ""


def vector_refusal(system: HasEntries) -> str:
    """Empty unless the first estimate is a vector, else why densities cannot begin with it."""
    return "" if start(system).length is None else f"start {NOT_NORMAL}"


def check_vectors(system: HasEntries) -> None:
    """Refuse vectors that do not fit each other, and one that knows a feature that is drawn."""
    length, law = start(system).length, prior(system)
    if length is None:
        return
    wrong = ""
    if law.length not in (None, length):
        wrong = f" of {length} entries is not allowed with prior = one of {law.length} (as many)"
    elif law.random:
        wrong = (
            f" is not allowed with prior {law.label}, whose entries are drawn anew for each seed "
            "(give the feature as a vector, or entries in exact numbers)"
        )
    if wrong:
        raise HdicaError(f"start = a vector{wrong}", ["start"])


def closed_refusal(system: Projected) -> str:
    """Empty if the regularizer lets the overlap alone close the limit, else why it does not."""
    if formula(system, "regularizer").slope_if_linear is None:
        return (
            "the overlap alone does not close the limit for the regularizer "
            f"{system.regularizer!r} (allowed: 0 and beta*x)"
        )
    return ""


def with_parameter(system: S, key: str, value: float) -> S:
    """The same system with one scalar parameter changed.

    The key is a field (``"tau"``), an alias (``"rho"``) or the name of a constant of the formulas.
    """
    cls: Any = type(system)
    constants = constants_of(system)
    key = in_one_spelling(key, cls, {"constants": constants})
    if key in constants:
        path: tuple[str, ...] = ("constants", key)
    else:
        path = getattr(cls, "aliases", {}).get(key, (key,))
    assert isinstance(system, BaseModel)
    content = system.model_dump(mode="python")
    top, *rest = path
    inside = content.get(top)
    if rest:
        varies = isinstance(inside, dict) and is_number(inside.get(rest[0]))
    else:
        varies = is_number(inside) and top not in _WHOLE
    if not varies or top == "start":
        numbers = [k for k in cls.model_fields if is_number(content[k]) and k not in _WHOLE]
        law = content.get("prior")
        shape = ["rho"] if isinstance(law, dict) and "sparse" in law else []
        names = [*numbers, *shape, *constants]
        allowed = suggestion(key, names) if names else "no parameter is a plain number"
        if key == "tau" and (nu := content.get("nu")) is not None:
            raise HdicaError(f"parameter = 'tau' is not allowed with nu = {nu!r} (give tau)")
        if top in cls.model_fields and not rest and isinstance(inside, str):
            raise HdicaError(
                f"parameter = {key!r} is not allowed with {key} = {inside!r}"
                " (that is no plain number: give one)"
            )
        raise HdicaError(f"parameter = {key!r} is not known ({allowed})")
    content[top] = {**content[top], rest[0]: value} if rest else value
    return cls(**content)
