"""Online sparse PCA: the rule (1), (5), (6) of Wang and Lu 2016 and its limit (8)-(20).

C. Wang and Y. M. Lu, "Online learning for sparse PCA in high dimensions: exact dynamics and
phase transitions", ITW 2016. Its p is called n here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.polynomial import Chebyshev, Polynomial
from pydantic import BeforeValidator, Field, model_validator

from hdica.errors import HdicaError
from hdica.ingredients.plain import Array, is_number
from hdica.ingredients.schedules import Schedule, clock_of, make_signal
from hdica.ingredients.sources import make_source
from hdica.inputs.samples import with_array_held
from hdica.limits.averages.expectations import ProductsAt, normal_products
from hdica.limits.bands.bias import Rule
from hdica.limits.bands.solve import common_noise
from hdica.limits.mean_field.family import MeanField, Scaled
from hdica.limits.mean_field.moving import Moving
from hdica.limits.numerics.series import trimmed
from hdica.limits.overlap.drift import Drift
from hdica.limits.overlap.fastest import Moments
from hdica.limits.passage.chain import NormalisedChain
from hdica.limits.passage.samples import Unstable
from hdica.systems import fields
from hdica.systems.parameters import Parameters
from hdica.systems.projected.density_values import noise_of, second_of
from hdica.systems.projected.family import own_dims
from hdica.systems.projected.overlap import observing
from hdica.systems.projected.stream import check_data, columns_of
from hdica.systems.sparse_pca.rule import PCARule, proximal_refusal

SIGNAL = "signal-to-noise ratio >= 0 until the last time, a formula in `t`, or steps as `tau`"


def _number_or_text(value: Any) -> Any:
    wrong = not 0 <= value < float("inf") if is_number(value) else False
    if wrong or not (is_number(value) or isinstance(value, str | Mapping)):
        raise HdicaError(f"omega = {value!r} is not allowed (a finite number >= 0)")
    return float(value) if is_number(value) else value


Signal = Annotated[float | str | dict[str, Any], BeforeValidator(_number_or_text)]


class SparsePCA(Parameters):
    """Online sparse PCA of the spiked covariance model y = sqrt(omega/n) c xi + a.

    c is standard normal and a is normal with unit covariance; the estimate follows
    x~ = x + (tau/n) y y'x, then x = sqrt(n) eta(x~)/|eta(x~)| with eta(x) = x - phi(x)/n (Wang
    and Lu 2016, eq. (5)-(6)). Time is t = k/n. phi = 0 is Oja's method, phi = beta*sign(x) is
    OIST, phi = beta*sign(x) + gamma*x the elastic net. phi is not multiplied by tau, other than
    in :class:`hdica.OnlineICA`. With ``batch`` = m every update takes the mean of y y'x over m
    fresh samples at the same x: t counts updates, and m t n samples were seen by then. In the limit
    tau^2 becomes tau^2/m and nothing else changes.

    Raises
    ------
    HdicaError
        If a parameter is not allowed; the sentence names it and what is allowed.
    """

    tau: fields.StepSize = Field(description=fields.SIZED + fields.OBSERVED % "u²")
    omega: Signal = Field(1.0, description=SIGNAL)
    regularizer: fields.FormulaText = Field(
        "0",
        description=(
            "a formula in `x`, not multiplied by tau: `beta*sign(x)` is OIST, `beta*sign(x) "
            "+ gamma*x` the elastic net, `0` Oja's method"
        ),
    )
    prior: fields.PriorSpec = Field("dense", description=fields.PRIORS)
    start: fields.StartSpec = Field({"overlap": 0.5}, description=fields.STARTS)
    motion: fields.MotionSpec = Field(None, description=fields.MOTIONS)
    variant: Literal["linearised", "proximal"] = Field(
        "linearised",
        description=(
            "`linearised`, or `proximal`: the exact proximal operator of Φ/n (soft thresholding), "
            "with the same limit, for φ = beta*sign(x) + gamma*x"
        ),
    )
    constants: dict[str, float] = Field({}, description=fields.CONSTANTS)
    batch: fields.BatchSize = Field(1, description=fields.BATCHES)
    data: fields.DataSpec = Field(None, description=fields.DATA)
    noise_law: fields.NoiseSpec = Field("gaussian", description=fields.NOISES)

    aliases: ClassVar[Mapping[str, tuple[str, ...]]] = {**fields.ALIASES, **fields.MOVING}
    formulas: ClassVar[Mapping[str, str]] = {"tau": "t", "omega": "t", "regularizer": "x"}
    n_in_steps: ClassVar[bool] = True
    observes: ClassVar[str] = "tau"
    sized_by: ClassVar[Mapping[str, str]] = {"feature": "prior", "group": "prior", "column": "data"}

    @model_validator(mode="before")
    @classmethod
    def _arrays(cls, value: Any) -> Any:
        return with_array_held(value)

    @model_validator(mode="after")
    def _formulas(self) -> SparsePCA:
        fields.schedule(self)
        fields.check_vectors(self)
        fields.check_noise(self)
        check_data(self)
        fields.motion(self)
        signal(self)
        fields.check_real(self, "regularizer")
        steps(self)
        refusal = proximal_refusal(rule(self)) if self.variant == "proximal" else ""
        if refusal:
            raise HdicaError(refusal, ["variant", "regularizer"])
        return self

    def schedules(self) -> tuple[Schedule, ...]:
        """The step size and the strength of the signal."""
        return (fields.schedule(self), signal(self))

    def refuses_n(self, n: int) -> str:
        """Empty if there is a feature and a first estimate in n dimensions."""
        return fields.length_refusal(self, n)

    def dims(self) -> dict[str, tuple[float, ...]]:
        """Own dimensions of results: the value of xi in each group of entries, the columns."""
        return own_dims(fields.prior(self).group_values.tolist()) | columns_of(self)


def rule(system: SparsePCA) -> PCARule:
    """The update (5), as the finite-n kernels take it."""
    return PCARule(
        omega=signal(system),
        prior=fields.prior(system),
        start=fields.start(system),
        schedule=steps(system),
        regularizer=fields.formula(system, "regularizer"),
        variant=system.variant,
        batch=system.batch,
        motion=fields.motion(system),
        noise=fields.noise_law(system),
    )


def steps(system: SparsePCA) -> Schedule:
    """The step size; one that follows what is observed does so by E u^2 = 1 + omega Q^2."""

    def best(q: Array, omega: float) -> Array:
        return omega * (1 - q * q) / (1 + omega * q * q)

    return observing(system, 2, lambda: constant_omega(system), best)


def signal(system: SparsePCA) -> Schedule:
    """Signal-to-noise ratio as a function of t."""
    return fields.made_in_time(system, "omega", make_signal)


def constant_omega(system: SparsePCA) -> float:
    """omega, for what exists only if it is constant."""
    omega = signal(system).constant
    if omega is None:
        raise HdicaError(
            f"omega = {system.omega!r} is not allowed for fixed points, baselines and step "
            "sizes that follow what is observed (a constant signal)",
            ["omega"],
        )
    return omega


def mean_field(system: SparsePCA) -> MeanField:
    """The limit (8)-(11) for any phi: b = tau omega Q, g = tau^2 (1 + omega Q^2)/(2 m), B = 1."""
    omega, m = signal(system).constant, system.batch
    if omega is None:
        return _varying_field(system)
    # 1 + omega Q^2 in Chebyshev polynomials, Q^2 being (T_0 + T_2)/2.
    spread = np.array([1 + omega / 2, 0.0, omega / 2])
    return MeanField(
        prior=fields.prior(system),
        start=fields.start(system),
        schedule=fields.schedule(system),
        phi=fields.formula(system, "regularizer"),
        pull=Scaled(lambda q, tau: tau * omega * q, Chebyshev([0.0, omega]), 1),
        diffusion=Scaled(
            lambda q, tau: tau**2 * (1 + omega * q**2) / 2 / m, Chebyshev(spread / 2 / m), 2
        ),
        strength=lambda tau: 1.0,
        motion=fields.motion(system),
    )


def products(variance: float) -> ProductsAt:
    """Averages of products of the push u, by the variance 1 + omega of the sample along xi."""
    return lambda q: normal_products(variance, q)


def second(system: SparsePCA) -> Callable[[Array, float], Array]:
    """D1(Q, tau) of Oja's method: what n leaves of the drift. A linear phi is inert."""
    return second_of(products(1 + constant_omega(system)), system.batch)


def beyond(system: SparsePCA) -> Rule:
    """What bands and bias take of the rule (5)-(6), whose eta acts on what the sample has moved."""
    spread = lambda q: products(1 + constant_omega(system))(q)  # noqa: E731
    other = "" if system.variant == "linearised" else f"variant = {system.variant!r}"
    return Rule(spread, noise(system), moved=True, batch=system.batch, unlike=other)


def noise(system: SparsePCA) -> Callable[[Array, Array], Array]:
    """The noise of a sample that all entries share, by Q and the step size of the mean field.

    Where omega varies that is the time 1 + t.
    """
    tau, omega, m = fields.schedule(system), signal(system), system.batch
    if omega.constant is not None:
        return noise_of(products(1 + omega.constant), m)

    def varying(q: Array, clock: Array) -> Array:
        t = np.asarray(clock) - 1.0
        seen = normal_products(1 + np.asarray(omega.value(t)), np.asarray(q))
        return common_noise(seen, q, np.asarray(tau.value(t)), m)

    return varying


def _varying_field(system: SparsePCA) -> MeanField:
    """The same where omega varies: the time is in place of the step size."""
    tau, omega, m = fields.schedule(system), signal(system), system.batch

    def pull(q: float, clock: float) -> float:
        t = np.array(clock - 1.0)
        return float(tau.value(t) * omega.value(t)) * q

    def diffusion(q: float, clock: float) -> float:
        t = np.array(clock - 1.0)
        return float(tau.value(t)) ** 2 * (1 + float(omega.value(t)) * q**2) / 2 / m

    return MeanField(
        prior=fields.prior(system),
        start=fields.start(system),
        schedule=clock_of(tau, omega),
        phi=fields.formula(system, "regularizer"),
        pull=pull,
        diffusion=diffusion,
        strength=lambda clock: 1.0,
        motion=fields.motion(system),
        follows=(tau, Schedule(lambda t: 1 + omega.value(t), None, omega.breaks)),
    )


def step_noise(system: SparsePCA) -> Callable[[float, float], float]:
    """Variance of a step of Q times n^2 for any tau and omega, a function of Q and 1 + t.

    The formula of :func:`drift`, with V_k/m^(k - 1) for a batch.
    """
    sizes, signals, m = fields.schedule(system), signal(system), system.batch

    def noise(q: float, clock: float) -> float:
        t = np.array(clock - 1.0)
        tau, omega = float(sizes.value(t)) / m, float(signals.value(t))
        s, rest = 1 + omega * q**2, 1 - q**2
        c, w = omega * q * rest, rest * (1 + omega * rest)
        one = tau**2 * (s * w + c * c) - 2 * q * tau**3 * s * c + q**2 * tau**4 * s**2 / 2
        return m * one

    return noise


def moving(system: SparsePCA) -> Moving | None:
    """The limit of Q where omega varies or xi moves; None where neither does."""
    still = not fields.motion(system).moves
    if still and signal(system).constant is not None:
        return None
    # A field whose step size is the time, whatever varies: the noise is a function of it.
    return Moving(_varying_field(system), step_noise(system))


def drift(system: SparsePCA) -> Drift:
    """Drift of Q for Oja's method: dQ/dt = tau omega Q (1 - Q^2) - tau^2 Q (1 + omega Q^2)/2.

    The variance of a step (central limit theorem about the limit) is, with s = 1 + omega Q^2,
    c = Q omega (1 - Q^2) and W = (1 - Q^2)(1 + omega - omega Q^2),
    tau^2 (s W + c^2) - 2 Q tau^3 s c + Q^2 tau^4 s^2/2. A linear phi is inert.
    """
    refusal = fields.closed_refusal(system)
    if refusal:
        raise HdicaError(refusal)
    omega, q = constant_omega(system), Polynomial([0.0, 1.0])
    s, rest = 1 + omega * q**2, 1 - q**2
    c, w = omega * q * rest, rest * (1 + omega * rest)
    noise = (s * w + c * c, -2 * q * s * c, q**2 * s**2 / 2)
    learning, loss = omega * q * rest, -q * s / 2
    first, second, *others = (trimmed(p.convert(kind=Chebyshev)) for p in (learning, loss, *noise))
    one = Drift(first, second, lambda: (others[0], others[1], others[2]))
    return one.of_batch(system.batch)


def overlap(system: SparsePCA) -> Moments:
    """The drift of a feature that stays, and what n leaves of it."""
    return Moments(drift(system), second(system))


def unstable(system: SparsePCA) -> Unstable:
    """Q = 0 of Oja's method, which the limit leaves, and the chain of the overlap.

    The sample has the variance 1 + omega along the feature, and F = tau u.
    """
    moments = overlap(system)
    if constant_omega(system) == 0:
        raise HdicaError("omega = 0 is not allowed for samples (nothing leads away from Q = 0)")
    plain = fields.formula(system, "regularizer").is_zero and system.batch == 1
    if not plain or fields.noise_law(system) is not None:
        raise HdicaError(
            "start = 'random' is not allowed with a regularizer, a batch or another noise_law (the "
            "chain of Oja's method alone is followed from Q = 0: give an overlap)"
        )
    normal, scale = make_source("gaussian"), math.sqrt(1 + constant_omega(system))

    def chain(n: int, tau: float, level: float) -> NormalisedChain:
        return NormalisedChain(np.negative, normal, tau, n, level, even=True, scale=scale)

    return Unstable(moments.drift, chain)


def oja_overlap(q0: float, tau: float, omega: float, times: Array) -> Array:
    """Q(t) of Oja's method at a constant tau, in closed form (Wang and Lu 2016, eq. (14))."""
    grow = tau * (omega - tau / 2)
    damp = tau * omega * (1 + tau / 2)
    t = np.asarray(times, dtype=float)
    # Q^2 = Q0^2 e^{2 a t}/(1 + Q0^2 damp (e^{2 a t} - 1)/a), written so that a -> 0 is no case.
    with np.errstate(over="ignore", invalid="ignore"):
        if grow > 0:
            decay = np.exp(-2 * grow * t)
            square = q0**2 / (decay + q0**2 * damp * -np.expm1(-2 * grow * t) / grow)
        else:
            grown = np.expm1(2 * grow * t) / grow if grow < 0 else 2 * t
            square = q0**2 * np.exp(2 * grow * t) / (1 + q0**2 * damp * grown)
    return np.asarray(np.copysign(np.sqrt(square), q0))
