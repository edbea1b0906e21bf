"""Online ICA: the rule (1)-(2) of Wang and Lu 2017 and its limit (6)-(14).

C. Wang and Y. M. Lu, "The scaling limit of high-dimensional online independent component
analysis", NIPS 2017.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, ClassVar, Literal

from pydantic import Field, field_validator, model_validator

from hdica.errors import HdicaError
from hdica.ingredients.formula import Formula, parse_formula
from hdica.ingredients.plain import Array, is_number
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.sources import Source
from hdica.inputs.samples import with_array_held
from hdica.limits.averages.expectations import averages, check_finite
from hdica.limits.bands.bias import Rule
from hdica.limits.mean_field.family import MeanField
from hdica.limits.mean_field.moving import Moving, moving_of
from hdica.limits.overlap.drift import Drift
from hdica.limits.overlap.fastest import Moments
from hdica.limits.overlap.nonlinear import drift_of
from hdica.systems import fields
from hdica.systems.parameters import Parameters
from hdica.systems.projected import pushed
from hdica.systems.projected.family import ProjectedRule, chain_refusal, own_dims
from hdica.systems.projected.learning import learned_sign, negated
from hdica.systems.projected.overlap import observing
from hdica.systems.projected.stream import check_data, columns_of

UNITS = ("tau", "nu")
IGNORED = frozenset({"threshold"})
"""Fields that matter to escape times alone."""


class OnlineICA(Parameters):
    """Online ICA with one feature: y = xi c/sqrt(n) + a, a normal with covariance I - xi xi'/n.

    With another ``noise_law`` a = (I - xi xi'/n) z, where the entries of z follow it.

    The estimate follows x <- x - (tau/sqrt n) f(y.x/sqrt n) y - (tau/n) phi(x), then
    |x|^2 = n (Wang and Lu 2017, eq. (1)-(2)); time is t = k/n. With ``batch`` = m every update
    takes the mean of f(y.x/sqrt n) y over m fresh samples at the same x: t counts updates, and
    m t n samples were seen by then. In the limit G is what it was and Lambda is Lambda/m, so that
    all is as for single samples of step size tau/m at the time m t.

    Raises
    ------
    HdicaError
        If a parameter is not allowed; the sentence names it and what is allowed.
    """

    tau: fields.MaybeStepSize = Field(
        None,
        description=f"the step size τ: τ or ν is required: {fields.SIZED}{fields.OBSERVED % 'u⁴'}. "
        "Limits need τ",
    )
    source: fields.SourceSpec = Field("uniform", description=fields.LAWS)
    nonlinearity: fields.FormulaText = Field(
        "x**3",
        description=(
            "f, a formula in `x`: `tanh(x)`, `x**3 - 3*x`; `x**3` learns sub-Gaussian sources "
            "(fourth moment below 3), `-x**3` super-Gaussian ones"
        ),
    )
    regularizer: fields.FormulaText = Field(
        "0", description="φ of each entry, a formula in `x` and constants: `beta*sign(x)`"
    )
    prior: fields.PriorSpec = Field("dense", description=fields.PRIORS)
    start: fields.StartSpec = Field({"overlap": 0.5}, description=fields.STARTS)
    motion: fields.MotionSpec = Field(None, description=fields.MOTIONS)
    constants: dict[str, float] = Field({}, description=fields.CONSTANTS)
    batch: fields.BatchSize = Field(1, description=fields.BATCHES)
    sign: Literal["given", "auto"] = Field(
        "given",
        description=(
            "`given`: f as it is; `auto`: f or -f, whichever learns the source from the side of "
            "the start (of two, that with the larger critical step size): see `chosen` of results"
        ),
    )
    data: fields.DataSpec = Field(None, description=fields.DATA)
    noise_law: fields.NoiseSpec = Field("gaussian", description=fields.NOISES)
    nu: fields.Rate = Field(
        None,
        description="ν = nτ, likewise: the scale on which noise leads away from Q = 0, in n³ steps",
    )
    threshold: float = Field(
        0.8, description="size of Q at which the feature counts as found, for escape times alone"
    )

    aliases: ClassVar[Mapping[str, tuple[str, ...]]] = {**fields.ALIASES, **fields.MOVING}
    formulas: ClassVar[Mapping[str, str]] = {
        "tau": "t",
        "nu": "t",
        "nonlinearity": "x",
        "regularizer": "x",
    }
    n_in_steps: ClassVar[bool] = True
    observes: ClassVar[str] = "tau"
    sized_by: ClassVar[Mapping[str, str]] = {"feature": "prior", "group": "prior", "column": "data"}

    @model_validator(mode="before")
    @classmethod
    def _arrays(cls, value: Any) -> Any:
        return with_array_held(value)

    @field_validator("threshold", mode="before")
    @classmethod
    def _inside(cls, value: Any) -> Any:
        if not is_number(value) or not 0 < value < 1:
            raise HdicaError(f"threshold = {value!r} is not allowed (0 < threshold < 1)")
        return float(value)

    @model_validator(mode="after")
    def _formulas(self) -> OnlineICA:
        fields.schedule(self, step_unit(self))
        fields.check_vectors(self)
        fields.check_noise(self)
        check_data(self)
        fields.motion(self)
        for name in ("nonlinearity", "regularizer"):
            fields.check_real(self, name)
        if fields.formula(self, "nonlinearity").is_zero:
            text = "nonlinearity = 0 is not allowed (nothing would be learned)"
            raise HdicaError(text, ["nonlinearity"])
        learned_text(self)
        if self.tau is not None:
            steps(self)
        return self

    def schedules(self) -> tuple[Schedule, ...]:
        """The step size."""
        return (fields.schedule(self, step_unit(self)),)

    def refuses_n(self, n: int) -> str:
        """Empty if there is a feature and a first estimate in n dimensions."""
        return fields.length_refusal(self, n)

    def dims(self) -> dict[str, tuple[float, ...]]:
        """Own dimensions of results: the value of xi in each group of entries, the columns."""
        return own_dims(fields.prior(self).group_values.tolist()) | columns_of(self)


def learned_text(system: OnlineICA) -> str:
    """The nonlinearity with its sign, as its user would write it."""
    text = system.nonlinearity
    if system.sign == "given":
        return text
    begin = fields.start(system).overlap(fields.prior(system))
    try:
        sign = learned_sign(fields.formula(system, "nonlinearity"), fields.source(system), begin)
    except HdicaError as exc:
        named = ["sign", "nonlinearity", "source"]
        raise HdicaError(f"sign = 'auto' is not allowed ({exc})", named) from None
    return text if sign > 0 else negated(text)


def sided_refusal(system: OnlineICA) -> str:
    """Empty unless the sign of f goes with the side of the start, for what knows no start."""
    if system.sign == "given" or fields.formula(system, "nonlinearity").is_odd:
        return ""
    return (
        f"sign = 'auto' is not allowed for steady states with nonlinearity = "
        f"{system.nonlinearity!r}, which is not odd (the sign goes with the side of the start, "
        "which they do not know: give it in the nonlinearity)"
    )


def learned(system: OnlineICA) -> Formula:
    """F of the rule: the nonlinearity with its sign."""
    if system.sign == "given":
        return fields.formula(system, "nonlinearity")
    return parse_formula(learned_text(system), "x", system.constants)


def chosen(system: OnlineICA) -> str:
    """Which sign was chosen, empty where it was given."""
    if system.sign == "given":
        return ""
    law = fields.source(system)
    return f"nonlinearity = {learned_text(system)!r} (sign = 'auto', for {law.label})"


def rule(system: OnlineICA) -> ProjectedRule:
    """The update (2), as the finite-n kernels take it."""
    return replace(pushed.pushed_rule(system, learned(system)), schedule=steps(system))


def steps(system: OnlineICA) -> Schedule:
    """The step size; one that follows what is observed does so by E u^4 = 3 + kappa4 Q^4."""
    law = fields.source(system)
    return observing(system, 4, lambda: law.moment(4) - 3.0, lambda q, _: drift(system).best(q))


def step_unit(system: OnlineICA) -> str:
    """Which of ``"tau"`` and ``"nu"`` is given."""
    units = [name for name in UNITS if getattr(system, name) is not None]
    if not units:
        raise HdicaError("tau is missing (a step size: tau, or nu = n tau in its place)", ["tau"])
    if len(units) > 1:
        raise HdicaError(
            "tau and nu are not allowed together (exactly one of them: tau is the step size of "
            "(1), and nu = n tau)",
            UNITS,
        )
    return units[0]


def limit_refusal(system: OnlineICA) -> str:
    """Empty if the overlap alone closes the limit, else the sentence that says why not."""
    return fields.closed_refusal(system) or without_limit(system)


@lru_cache(maxsize=256)
def infinite_averages(f: Formula, law: Source) -> str:
    """Empty if the averages of f and a source are finite, else the sentence that says so.

    For all overlaps they are found when first used: whoever checks a study need not wait.
    """
    try:
        check_finite(f, law)
    except HdicaError as exc:
        return str(exc)
    return ""


def without_limit(system: OnlineICA) -> str:
    """Empty if the limit exists for any phi, else the sentence that says why not."""
    if step_unit(system) == "nu":
        return (
            "nu is not allowed for limits in t = k/n (give tau: at a fixed nu = n tau the step "
            "size vanishes as n -> infinity, and nothing happens before t is of order n^2)"
        )
    return infinite_averages(learned(system), fields.source(system))


def drift(system: OnlineICA) -> Drift:
    """Drift of Q for phi = 0 or beta x: dQ/dt = (Q^2 - 1) G(Q) - Q Lambda(Q)/2.

    G = tau (<c f(u)> - Q <f'(u)>) has the sign opposite to the printed (11), as (12) and (14)
    need; Lambda = tau^2 <f(u)^2> is (9), divided by the batch. A linear phi is inert, because
    |x|^2 = n.
    """
    refusal = limit_refusal(system)
    if refusal:
        raise HdicaError(refusal)
    return drift_of(learned(system), fields.source(system)).of_batch(system.batch)


def overlap(system: OnlineICA) -> Moments:
    """The drift for any step size, of a feature that stays, and what n leaves of it."""
    one = system.model_copy(update={"tau": 1.0, "nu": None})
    return Moments(drift(one), second(one))


def moving(system: OnlineICA) -> Moving | None:
    """The limit of Q where xi moves; None where it does not."""
    if not fields.motion(system).moves:
        return None
    return moving_of(mean_field(system), drift(system))


def mean_field(system: OnlineICA) -> MeanField:
    """The limit (6)-(10) for any phi: b = -G(Q), g = Lambda(Q)/2, B = tau.

    Gamma = x [Q G + tau R - Lambda/2] - xi G - tau phi(x) is (10), with the sign of G corrected.
    """
    return pushed.pushed_field(system, averages(learned(system), fields.source(system)))


def beyond(system: OnlineICA) -> Rule:
    """What bands and bias take of the rule (1)-(2)."""
    return pushed.pushed_beyond(system, learned(system))


def second(system: OnlineICA) -> Callable[[Array, float], Array]:
    """D1(Q, tau) of phi = 0 or beta x: what n leaves of the drift (:mod:`.second_order`)."""
    return pushed.pushed_second(system, learned(system), drift(system))


def passage_refusal(system: OnlineICA) -> str:
    """Empty if first passages of the chain can be followed, else the sentence that says why not."""
    if system.batch != 1:
        return (
            f"batch = {system.batch} is not allowed for first passages (1: a batch follows method "
            "'chain')"
        )
    if chain_refusal(fields.formula(system, "regularizer")):
        return (
            "first passages are those of the overlap alone, which is a chain only for the "
            f"regularizers 0 and beta*x, not for {system.regularizer!r} (use method 'vector')"
        )
    what = "first passages"
    return fields.resting_refusal(system, what) or fields.noise_refusal(system, what)
