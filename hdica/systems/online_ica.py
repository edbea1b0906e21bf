"""Online ICA: the rule (1)-(2) of Wang and Lu 2017 and its limit (6)-(14).

C. Wang and Y. M. Lu, "The scaling limit of high-dimensional online independent component
analysis", NIPS 2017.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
from numpy.polynomial import Chebyshev
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from hdica.errors import HdicaError, from_validation
from hdica.finite.rule import Rule
from hdica.ingredients.formula import Formula, parse_formula
from hdica.ingredients.priors import Prior, make_prior
from hdica.ingredients.schedules import Schedule, make_schedule
from hdica.ingredients.sources import Source, make_source
from hdica.ingredients.starts import Start, make_start
from hdica.limits.expectations import average, averages
from hdica.limits.overlap import Drift
from hdica.limits.series import adaptive, interpolate, trimmed

Array = NDArray[np.float64]
Spec = str | dict[str, Any]


class OnlineICA(BaseModel):
    """Online ICA with one feature: y = xi c/sqrt(n) + a, a normal with covariance I - xi xi'/n.

    The estimate follows x <- x - (tau/sqrt n) f(y.x/sqrt n) y - (tau/n) phi(x), then
    |x|^2 = n (Wang and Lu 2017, eq. (1)-(2)); time is t = k/n.

    Parameters
    ----------
    tau
        Step size: a number > 0, a formula in t, or ``{"steps": {"times", "values"}}``.
    source
        Law of c, standardised to mean 0 and variance 1: see
        :func:`hdica.ingredients.sources.make_source`. With f = +x^3 the feature is found for
        sub-Gaussian sources (fourth moment below 3), with f = -x^3 for super-Gaussian ones.
    nonlinearity
        f, a formula in x.
    regularizer
        phi, a formula in x, applied to each entry of the estimate.
    prior
        Law of the entries of the feature: see :func:`hdica.ingredients.priors.make_prior`.
    start
        Law of the estimate at t = 0: see :func:`hdica.ingredients.starts.make_start`.
    constants
        Numbers for named constants in the formulas.

    Raises
    ------
    HdicaError
        If a parameter is not allowed; the sentence names it and what is allowed.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    tau: float | str | dict[str, Any] = Field(description="step size tau > 0, or a schedule in t")
    source: Spec = Field("uniform", description="law of the latent variable c")
    nonlinearity: str = Field("x**3", description="f of the update, a formula in x")
    regularizer: str = Field("0", description="phi of the update, a formula in x")
    prior: Spec = Field("dense", description="law of the entries of the feature")
    start: dict[str, Any] = Field({"overlap": 0.5}, description="law of the estimate at t = 0")
    constants: dict[str, float] = Field({}, description="named numbers used in the formulas")

    aliases: ClassVar[dict[str, tuple[str, ...]]] = {
        "Q0": ("start", "overlap"),
        "rho": ("prior", "sparse"),
    }
    formulas: ClassVar[dict[str, str]] = {"tau": "t", "nonlinearity": "x", "regularizer": "x"}

    def __init__(self, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as exc:
            raise from_validation(exc, "OnlineICA", type(self).model_fields) from None

    @field_validator("source", "prior", "start", mode="after")
    @classmethod
    def _known(cls, value: Any, info: Any) -> Any:
        makers: dict[str, Any] = {"source": make_source, "prior": make_prior, "start": make_start}
        makers[info.field_name](value)
        return value

    @field_validator("tau", mode="before")
    @classmethod
    def _no_bool(cls, value: Any) -> Any:
        if isinstance(value, bool):
            raise HdicaError(f"tau = {value} is not allowed (a step size is a finite number > 0)")
        return value

    @field_validator("regularizer", "nonlinearity", mode="before")
    @classmethod
    def _text(cls, value: Any) -> Any:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return repr(value) if number else value

    @model_validator(mode="after")
    def _formulas(self) -> OnlineICA:
        make_schedule(self.tau, self.constants)
        for name in ("nonlinearity", "regularizer"):
            bad = formula(self, name).undefined_at
            if bad is not None:
                raise HdicaError(
                    f"{name} = {getattr(self, name)!r} is not allowed (it is no real number "
                    f"at x = {bad:g}; allowed are functions of every real x)"
                )
        if formula(self, "nonlinearity").is_zero:
            raise HdicaError("nonlinearity = 0 is not allowed (nothing would be learned)")
        return self


def formula(system: OnlineICA, name: str) -> Formula:
    """The formula behind ``"nonlinearity"`` or ``"regularizer"``."""
    return parse_formula(getattr(system, name), "x", system.constants)


def schedule(system: OnlineICA) -> Schedule:
    """Step size as a function of t = k/n."""
    return make_schedule(system.tau, system.constants)


def source(system: OnlineICA) -> Source:
    """Law of the latent variable."""
    return make_source(system.source)


def prior(system: OnlineICA) -> Prior:
    """Law of the entries of the feature."""
    return make_prior(system.prior)


def start(system: OnlineICA) -> Start:
    """Law of the estimate at t = 0."""
    return make_start(system.start)


def rule(system: OnlineICA) -> Rule:
    """The update (2), as the finite-n kernels take it."""
    return Rule(
        source(system),
        prior(system),
        start(system),
        schedule(system),
        formula(system, "nonlinearity"),
        formula(system, "regularizer"),
    )


def limit_refusal(system: OnlineICA) -> str:
    """Empty if the overlap alone closes the limit, else the sentence that says why not."""
    if formula(system, "regularizer").slope_if_linear is None:
        return (
            f"the overlap alone does not close the limit for the regularizer "
            f"{system.regularizer!r} (allowed: 0 and beta*x)"
        )
    try:
        averages(formula(system, "nonlinearity"), source(system))
    except HdicaError as exc:
        return str(exc)
    return ""


def drift(system: OnlineICA) -> Drift:
    """Drift of Q for phi = 0 or beta x: dQ/dt = (Q^2 - 1) G(Q) - Q Lambda(Q)/2.

    G = tau (<c f(u)> - Q <f'(u)>) has the sign opposite to the printed (11), as (12) and (14)
    need; Lambda = tau^2 <f(u)^2> is (9). A linear phi is inert, because |x|^2 = n.

    Raises
    ------
    HdicaError
        If an average is infinite, or phi is not linear.
    """
    refusal = limit_refusal(system)
    if refusal:
        raise HdicaError(refusal)
    return _drift(formula(system, "nonlinearity"), source(system))


@lru_cache(maxsize=64)
def _drift(f: Formula, law: Source) -> Drift:
    mean = averages(f, law)
    q = Chebyshev([0.0, 1.0])
    learning = trimmed((q * q - 1) * mean.gain)
    loss = trimmed(-0.5 * q * mean.power)
    return Drift(learning, loss, _noise(f, law))


def _noise(f: Formula, law: Source) -> tuple[Chebyshev, Chebyshev, Chebyshev] | None:
    """Variance of a step of Q times n^2: Var[tau f (c - Q u) + Q tau^2 f^2/2], by powers of tau.

    Second order of the expansion of (2) after normalisation; it drives the fluctuations of
    order n^-1/2 about the limit.
    """

    def mean(power: int, steps: int) -> Chebyshev:
        def at(q: float) -> float:
            return average(lambda c, u: f.value(u) ** power * (c - q * u) ** steps, f, law, q)

        if f.coefficients is not None:
            return interpolate(at, 8 * f.coefficients.size)  # a polynomial of lower degree
        return adaptive(at, 1e-9)[0]

    q = Chebyshev([0.0, 1.0])
    try:
        first, second, fourth = mean(1, 1), mean(2, 0), mean(4, 0)
        v2 = mean(2, 2) - first * first
        v3 = q * (mean(3, 1) - first * second)
    except HdicaError:
        return None
    v4 = 0.25 * q * q * (fourth - second * second)
    v2, v3, v4 = (trimmed(v, 1e-14) for v in (v2, v3, v4))
    return v2, v3, v4
