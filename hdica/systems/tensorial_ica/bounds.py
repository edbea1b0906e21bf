"""The bounds of Li and Jordan (2021), with the constants that their signs hide, and predictions.

Theorems 4 and 7, Corollary 8 and Lemmas 3, 5 and 6 bound tan of the angle to the component with
high probability, up to constants and, where a tilde stands, logarithms: both are the user's here.
With every bound comes what the fluctuations of the rule predict at the same step size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from hdica.errors import HdicaError
from hdica.finite.record import steps_of
from hdica.systems.fields import source
from hdica.systems.method import About, Cost, Outputs, Role, Scope, refusal
from hdica.systems.outputs import Array, Output, PointResult
from hdica.systems.tensorial_ica.fluctuation import first_order_level, second_moments_beside
from hdica.systems.tensorial_ica.moments import Moments, moments_of, orlicz_bound
from hdica.systems.tensorial_ica.system import (
    HERE,
    ONES,
    PAPER,
    Constants,
    TensorialICA,
    bound_constants,
    first_vector,
    step_sizes,
)
from hdica.systems.tensorial_ica.transient import ODE, tan2_of

TAN_WARM = 1 / math.sqrt(3)
"""Largest tangent of a warm start (the region D_warm)."""
TAN_WARM_AUXILIARY = 1 / math.sqrt(2)
"""Largest tangent on the way from there (D_warm-aux), on which v_1^2 - v_k^2 >= 1/3."""


@dataclass(frozen=True)
class Condition:
    """A scaling condition ``left`` >= ``right``: what it asks for, and whether it holds."""

    text: str
    left: float
    right: float

    @property
    def holds(self) -> bool:
        """Whether it is met."""
        return self.left >= self.right


@dataclass(frozen=True, eq=False)
class Bound:
    """A bound on a tangent (Lemma 5: on a deviation), and the root mean square predicted.

    ``value`` and ``predicted`` have the shape of the times asked for, () where there is one.
    """

    value: Array
    predicted: Array
    eta: float
    conditions: tuple[Condition, ...]

    @property
    def applies(self) -> bool:
        """Whether all conditions are met."""
        return all(condition.holds for condition in self.conditions)


def theorem_4(
    moments: Moments, b: float, d: int, steps: float, tan0: float, constants: Constants = ONES
) -> Bound:
    """Theorem 4, from a warm start: B^4/beta sqrt(d ln^2 T/T), eta2 ~ ln T/(beta T), T ``steps``.

    The slide asks for a start within 1/sqrt 2; Lemma 3, on which it rests, needs 1/sqrt 3.
    """
    _checked(d, steps)
    log = math.log(steps)
    eta = constants.step_two * log / (moments.beta * steps)
    value = constants.rate * b**4 / moments.beta * math.sqrt(d * log**2 / steps)
    conditions = (
        Condition("T >= d", steps, constants.scaling * d),
        Condition("1/sqrt 3 >= tan of the start", TAN_WARM, tan0),
    )
    return Bound(np.array(value), _predicted(moments, d, eta), eta, conditions)


def theorem_7(
    moments: Moments, b: float, d: int, steps: float, epsilon: float, constants: Constants = ONES
) -> Bound:
    """Theorem 7: from a uniform start, B^4/beta sqrt(d^4 ln^2 T/T), eta1 ~ d ln T/(beta T)."""
    _checked(d, steps, epsilon)
    log = math.log(steps)
    eta = constants.step_one * d * log / (moments.beta * steps)
    value = constants.rate * b**4 / moments.beta * math.sqrt(d**4 * log**2 / steps)
    conditions = _uniform_conditions(d, steps, epsilon, 3, constants)
    return Bound(np.array(value), _predicted(moments, d, eta), eta, conditions)


def corollary_8(
    moments: Moments, b: float, d: int, steps: float, epsilon: float, constants: Constants = ONES
) -> Bound:
    """Corollary 8: two phases from a uniform start, B^4/beta sqrt(d ln^2 T/T); eta is eta2."""
    _checked(d, steps, epsilon)
    log = math.log(steps)
    eta = constants.step_two * log / (moments.beta * steps)
    value = constants.rate * b**4 / moments.beta * math.sqrt(d * log**2 / steps)
    conditions = _uniform_conditions(d, steps, epsilon, 4, constants)
    return Bound(np.array(value), _predicted(moments, d, eta), eta, conditions)


def _uniform_conditions(
    d: int, steps: float, epsilon: float, power: int, constants: Constants
) -> tuple[Condition, ...]:
    return (
        Condition("d >= ln(1/epsilon)", float(d), constants.dimension * math.log(1 / epsilon)),
        Condition(
            f"T >= d^{power}/epsilon^2", steps, constants.scaling * float(d) ** power / epsilon**2
        ),
    )


def lemma_3(
    moments: Moments,
    b: float,
    d: int,
    eta: float,
    times: Array,
    tan0: float,
    log: float | None = None,
    constants: Constants = ONES,
) -> Bound:
    """Lemma 3: tan0 (1 - eta beta/3)^t + B^4/sqrt(beta) sqrt(d eta) from a warm start.

    ``log`` is the logarithm LOG of its condition, which the slide does not define: ln(1/eta) if
    None.
    """
    _checked_step(d, eta, moments.beta / 3)
    t = np.asarray(times, dtype=float)
    decay = np.exp(t * math.log1p(-eta * moments.beta / 3))
    noise = constants.noise * b**4 / math.sqrt(moments.beta) * math.sqrt(d * eta)
    power = (math.log(1 / eta) if log is None else log) ** 9
    need = constants.scaling * b**8 / moments.beta * d * power
    conditions = (
        Condition("1/eta >= B^8 d LOG^9/beta", 1 / eta, need),
        Condition("1/sqrt 3 >= tan of the start", TAN_WARM, tan0),
    )
    x = moments.beta * eta * t
    square = tan0**2 * np.exp(-2 * x) - first_order_level(moments, d, eta) * np.expm1(-2 * x)
    return Bound(constants.exponential * tan0 * decay + noise, np.sqrt(square), eta, conditions)


def lemma_5(
    moments: Moments, v0: Array, eta: float, steps: float, constants: Constants = ONES
) -> Bound:
    """Lemma 5: sup_t |U_k(t) - U_k(0) prod_s (1 - eta beta (v_1^2 - v_k^2))| <= eta sqrt T.

    ``predicted`` is the mean of that supremum for every k, shape (d - 1,), as of a Brownian motion:
    sqrt(pi/2 Var) eta sqrt T with the variance of y^3 (Z_k - U_k Z_1)/v_1, for beta eta T << 1;
    later it stays below. Axis 1 is the nearest one.
    """
    v = np.asarray(v0, dtype=float)
    _checked_step(v.size, eta)
    m = int(np.argmax(np.abs(v)))
    tan, (squares, cross) = v / v[m], second_moments_beside(moments, v, m)
    square = (squares - 2 * tan * cross + tan**2 * cross[m]) / v[m] ** 2
    mean = moments.beta * (v[m] ** 2 - v**2) * tan
    others = np.delete(square - mean**2, m)
    unit = eta * math.sqrt(steps)
    size = math.sqrt(max(0.0, 1 - v[m] ** 2)) / abs(float(v[m]))
    conditions = (Condition("1/sqrt 2 >= tan of the start", TAN_WARM_AUXILIARY, size),)
    predicted = np.sqrt(math.pi / 2 * others) * unit
    return Bound(np.array(constants.vessel * unit), predicted, eta, conditions)


def lemma_6(
    moments: Moments,
    b: float,
    d: int,
    eta: float,
    times: Array,
    epsilon: float,
    constants: Constants = ONES,
) -> Bound:
    """Lemma 6: sqrt(beta d/(B^8 eta)) (1 - eta beta/(2 d))^t + B^4/sqrt(beta) sqrt(d^3 eta)."""
    _checked_step(d, eta, moments.beta / (2 * d))
    _checked(d, 2.0, epsilon)
    t = np.asarray(times, dtype=float)
    first = math.sqrt(moments.beta * d / (b**8 * eta))
    decay = np.exp(t * math.log1p(-eta * moments.beta / (2 * d)))
    noise = constants.noise * b**4 / math.sqrt(moments.beta) * math.sqrt(float(d) ** 3 * eta)
    need = constants.scaling * b**8 / moments.beta * float(d) ** 2 / epsilon**2
    conditions = (Condition("1/eta >= B^8 d^2/(beta epsilon^2)", 1 / eta, need),)
    predicted = np.broadcast_to(_predicted(moments, d, eta), t.shape)
    return Bound(constants.exponential * first * decay + noise, predicted, eta, conditions)


def _predicted(moments: Moments, d: int, eta: float) -> Array:
    """sqrt(S0), the root mean square of tan around a component."""
    return np.array(math.sqrt(first_order_level(moments, d, eta)))


def _checked(d: int, steps: float, epsilon: float = 0.5) -> None:
    if d < 2:
        raise HdicaError(f"dimension = {d} is not allowed (at least 2)")
    if not 1 < steps < math.inf:
        raise HdicaError(f"steps = {steps} is not allowed (a finite number above 1)")
    if not 0 < epsilon < 1:
        raise HdicaError(f"epsilon = {epsilon} is not allowed (a probability between 0 and 1)")


def _checked_step(d: int, eta: float, rate: float = 1.0) -> None:
    """Refuse a step size of 1 or more, and one at which the factor 1 - eta rate is not positive."""
    _checked(d, 2.0)
    most = min(1.0, 1 / rate)
    if not 0 < eta < most:
        raise HdicaError(f"eta = {eta} is not allowed (between 0 and {most:.3g})")


_AT = ("time",)
ABOUT = {
    "lemma_3": "bound on the tangent from a warm start",
    "lemma_5": "bound on the deviation from the centre of the vessel until t",
    "lemma_6": "bound on the tangent from a uniform start",
    "theorem_4": "bound on the tangent after T = t samples from a warm start",
    "theorem_7": "bound on the tangent after T = t samples from a uniform start",
    "corollary_8": "bound on the tangent after T = t samples in two phases",
}
_HOLDS = "1 where its scaling conditions hold"


@dataclass(frozen=True)
class _Problem:
    """What the bounds of one system are made of; no step size or start where they need none."""

    moments: Moments
    b: float
    d: int
    eta: float | None
    v0: Array | None
    epsilon: float
    constants: Constants

    @property
    def tan0(self) -> float:
        """Tangent of the start."""
        return math.nan if self.v0 is None else math.sqrt(float(tan2_of(self.v0)))

    def lemmas(self, step: float) -> dict[str, Bound]:
        """The bounds at a step size after so many steps."""
        if self.eta is None:
            return {}
        law, at, c = (self.moments, self.b, self.d, self.eta), np.array(step), self.constants
        bounds = {"lemma_6": lemma_6(*law, at, self.epsilon, c)}
        if self.v0 is not None:
            bounds["lemma_3"] = lemma_3(*law, at, self.tan0, constants=c)
            bounds["lemma_5"] = lemma_5(self.moments, self.v0, self.eta, step, c)
        return bounds

    def theorems(self, total: float) -> dict[str, Bound]:
        """The bounds of trainings of so many samples."""
        if total < 2:
            return {}
        law, c = (self.moments, self.b, self.d, total), self.constants
        return {
            "theorem_7": theorem_7(*law, self.epsilon, c),
            "corollary_8": corollary_8(*law, self.epsilon, c),
            "theorem_4": theorem_4(*law, self.tan0, c),
        }


def _problem(system: TensorialICA) -> _Problem:
    """Everything but the time; refused where B is infinite."""
    (constants, epsilon), law = bound_constants(system), source(system)
    moments, b = moments_of(law, 6), orlicz_bound(law)
    v0, eta = first_vector(system), step_sizes(system).constant
    return _Problem(moments, b, system.dimension, eta, v0, epsilon, constants)


def _bounds(system: TensorialICA, times: Array, *_: object) -> PointResult:
    problem = _problem(system)
    values = {output.name: np.full(times.shape, math.nan) for output in OUTPUTS}
    for place, step in enumerate(steps_of(times, 1).astype(float).tolist()):
        for name, bound in (problem.lemmas(step) | problem.theorems(step)).items():
            values[name][place] = float(bound.value)
            values[f"{name}_holds"][place] = float(bound.applies)
            values[f"{name}_predicted"][place] = float(np.mean(bound.predicted))
    return PointResult(values)


OUTPUTS = tuple(
    output
    for name, words in ABOUT.items()
    for output in (
        Output(name, _AT, words),
        Output(f"{name}_holds", _AT, f"{words}: {_HOLDS}"),
        Output(f"{name}_predicted", _AT, f"{words}: the value that the noise leads to instead"),
    )
)
BOUNDS = replace(
    ODE,
    name="bounds",
    role=Role.OTHER,
    rank=None,
    about=About(
        text=(
            "Theorems 4 and 7, Corollary 8, Lemmas 3, 5 and 6 with your constants, and predictions"
        ),
        accuracy="exact",
        equations=f"{PAPER}, Theorems 4 and 7, Corollary 8, Lemmas 3, 5 and 6",
        engines=("hdica.finite", *HERE),
    ),
    outputs=Outputs(OUTPUTS),
    cost=Cost(seconds=lambda system, n, last: 0.1 + 2e-5 * system.dimension),
    scope=Scope(
        refuses=refusal(lambda system: _problem(system).lemmas(1.0)),
        ignores=frozenset({"mixing", "sign"}),
    ),
    run=_bounds,
    closed=False,
)
METHODS = (BOUNDS,)
