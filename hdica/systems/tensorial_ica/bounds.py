"""The bounds of Li and Jordan (2021), with the constants that their signs hide, and predictions.

Theorems 4 and 7, Corollary 8 and Lemmas 3, 5 and 6 bound tan of the angle to the component with
high probability, up to constants and, where a tilde stands, logarithms: both are the user's here.
With every bound comes what the fluctuations of the rule predict at the same step size.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from hdica.errors import HdicaError
from hdica.finite.record import steps_of
from hdica.ingredients.laws import Part, part_edges
from hdica.ingredients.quadrature import panel_nodes
from hdica.ingredients.sources import Source
from hdica.systems import method
from hdica.systems.fields import source
from hdica.systems.method import Array, Output, PointResult
from hdica.systems.tensorial_ica import system as model
from hdica.systems.tensorial_ica.fluctuation import diagonal_and_row, first_order_level
from hdica.systems.tensorial_ica.rule import Moments, moments_of
from hdica.systems.tensorial_ica.system import AT_LIMIT, ONES, PAPER, Constants, TensorialICA
from hdica.systems.tensorial_ica.transient import tan2_of

TAN_WARM = 1 / math.sqrt(3)  # largest tangent of a warm start (the region D_warm)
TAN_WARM_AUXILIARY = 1 / math.sqrt(2)
"""Largest tangent on the way from there (D_warm-aux), on which v_1^2 - v_k^2 >= 1/3."""


@dataclass(frozen=True, eq=False)
class Bound:
    """A bound on a tangent (Lemma 5: on a deviation), and the root mean square predicted.

    ``value`` and ``predicted`` have the shape of the times asked for, () where there is one.
    """

    value: Array
    predicted: Array
    eta: float
    conditions: tuple[tuple[float, float], ...]  # both sides of left >= right

    @property
    def applies(self) -> bool:
        """Whether all scaling conditions are met."""
        return all(left >= right for left, right in self.conditions)


def theorem_4(
    moments: Moments, b: float, d: int, steps: float, tan0: float, constants: Constants = ONES
) -> Bound:
    """Theorem 4, from a warm start: B^4/beta sqrt(d ln^2 T/T), eta2 ~ ln T/(beta T), T ``steps``.

    The slide asks for a start within 1/sqrt 2; Lemma 3, on which it rests, needs 1/sqrt 3.
    """
    log = math.log(steps)
    eta = constants.step_two * log / (moments.beta * steps)
    value = constants.rate * b**4 / moments.beta * math.sqrt(d * log**2 / steps)
    conditions = (steps, constants.scaling * d), (TAN_WARM, tan0)
    return Bound(np.array(value), _predicted(moments, d, eta), eta, conditions)


def theorem_7(
    moments: Moments, b: float, d: int, steps: float, epsilon: float, constants: Constants = ONES
) -> Bound:
    """Theorem 7: from a uniform start, B^4/beta sqrt(d^4 ln^2 T/T), eta1 ~ d ln T/(beta T)."""
    log = math.log(steps)
    eta = constants.step_one * d * log / (moments.beta * steps)
    value = constants.rate * b**4 / moments.beta * math.sqrt(d**4 * log**2 / steps)
    conditions = _uniform_conditions(d, steps, epsilon, 3, constants)
    return Bound(np.array(value), _predicted(moments, d, eta), eta, conditions)


def corollary_8(
    moments: Moments, b: float, d: int, steps: float, epsilon: float, constants: Constants = ONES
) -> Bound:
    """Corollary 8: two phases from a uniform start, B^4/beta sqrt(d ln^2 T/T); eta is eta2."""
    end = theorem_4(moments, b, d, steps, 0.0, constants)
    return replace(end, conditions=_uniform_conditions(d, steps, epsilon, 4, constants))


def _uniform_conditions(
    d: int, steps: float, epsilon: float, power: int, constants: Constants
) -> tuple[tuple[float, float], ...]:
    """D >= ln(1/epsilon), T >= d^power/epsilon^2."""
    least = constants.scaling * float(d) ** power / epsilon**2
    return (float(d), constants.dimension * math.log(1 / epsilon)), (steps, least)


def lemma_3(
    moments: Moments,
    b: float,
    d: int,
    eta: float,
    times: Array,
    tan0: float,
    constants: Constants = ONES,
) -> Bound:
    """Lemma 3: tan0 (1 - eta beta/3)^t + B^4/sqrt(beta) sqrt(d eta) from a warm start.

    LOG of its condition 1/eta >= B^8 d LOG^9/beta, which the slide does not define, is ln(1/eta).
    """
    _check_step(eta, moments.beta / 3)
    decay = np.exp(times * math.log1p(-eta * moments.beta / 3))
    noise = constants.noise * b**4 / math.sqrt(moments.beta) * math.sqrt(d * eta)
    need = constants.scaling * b**8 / moments.beta * d * math.log(1 / eta) ** 9
    conditions = (1 / eta, need), (TAN_WARM, tan0)
    x = moments.beta * eta * times
    square = tan0**2 * np.exp(-2 * x) - first_order_level(moments, d, eta) * np.expm1(-2 * x)
    return Bound(constants.exponential * tan0 * decay + noise, np.sqrt(square), eta, conditions)


def lemma_5(
    moments: Moments, v: Array, eta: float, steps: float, constants: Constants = ONES
) -> Bound:
    """Lemma 5: sup_t |U_k(t) - U_k(0) prod_s (1 - eta beta (v_1^2 - v_k^2))| <= eta sqrt T.

    ``predicted`` is the mean of that supremum for every k, shape (d - 1,), as of a Brownian motion:
    sqrt(pi/2 Var) eta sqrt T with the variance of y^3 (Z_k - U_k Z_1)/v_1, for beta eta T << 1;
    later it stays below. Axis 1 is the nearest one.
    """
    _check_step(eta)
    m = int(np.argmax(np.abs(v)))
    tan, (squares, cross) = v / v[m], diagonal_and_row(moments, v, m)
    square = (squares - 2 * tan * cross + tan**2 * cross[m]) / v[m] ** 2
    mean = moments.beta * (v[m] ** 2 - v**2) * tan
    others = np.delete(square - mean**2, m)
    unit = eta * math.sqrt(steps)
    size = math.sqrt(max(0.0, 1 - v[m] ** 2)) / abs(v[m])
    predicted = np.sqrt(math.pi / 2 * others) * unit
    value = np.array(constants.vessel * unit)
    return Bound(value, predicted, eta, ((TAN_WARM_AUXILIARY, size),))


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
    _check_step(eta, moments.beta / (2 * d))
    first = math.sqrt(moments.beta * d / (b**8 * eta))
    decay = np.exp(times * math.log1p(-eta * moments.beta / (2 * d)))
    noise = constants.noise * b**4 / math.sqrt(moments.beta) * math.sqrt(float(d) ** 3 * eta)
    need = constants.scaling * b**8 / moments.beta * float(d) ** 2 / epsilon**2
    predicted = np.broadcast_to(_predicted(moments, d, eta), times.shape)
    return Bound(constants.exponential * first * decay + noise, predicted, eta, ((1 / eta, need),))


def _predicted(moments: Moments, d: int, eta: float) -> Array:
    """sqrt(S0), the root mean square of tan around a component."""
    return np.array(math.sqrt(first_order_level(moments, d, eta)))


def _check_step(eta: float, rate: float = 1.0) -> None:
    """Refuse a step size of 1 or more, and one at which the factor 1 - eta rate is not positive."""
    most = min(1.0, 1 / rate)
    if not 0 < eta < most:
        raise HdicaError(f"eta = {eta} is not allowed (between 0 and {most:.3g})")


_FAR, _STILL, _NORMAL_POWER, _LARGEST, _NODES = 1e-60, 1e-6, 1.95, 1e6, 24


def _tail(part: Part, t: Array, norm: float) -> float:
    """Integral of exp(c^2/norm^2) beyond the last of three places, 0 where the law ends there.

    The mass falls like a normal one, that per |c| with minus the slope of its logarithm.
    """
    from scipy.special import erfcx

    c, mass = np.abs(part.point(t)), part.mass(t)
    gaps = np.diff(c)
    if mass[-1] > _FAR or mass[-1] == 0.0 or gaps[1] < _STILL * c[-1]:
        return 0.0
    slopes = -np.diff(np.log(mass)) / gaps
    middle = (c[1:] + c[:-1]) / 2
    power = 1 + math.log(slopes[1] / slopes[0]) / math.log(middle[1] / middle[0])
    per_c = mass[-1] * abs(t[2] - t[1]) / gaps[1]
    excess = slopes[1] * c[-1] / middle[1] / (2 * c[-1]) - norm**-2
    if power < _NORMAL_POWER or excess <= 0:
        return math.inf
    at_end = math.log(per_c) + (c[-1] / norm) ** 2
    width = math.sqrt(math.pi / excess) / 2 * erfcx(c[-1] * math.sqrt(excess))
    return math.exp(at_end) * width if at_end < 700 else math.inf


def _mean_exponential(source: Source, norm: float) -> float:
    """E exp(Z^2/norm^2), inf where tails are heavier than Gaussian or too close to it."""
    law, total = source.law, 0.0
    if law.endless:  # on whole numbers no law of SciPy falls as fast as a normal one
        return math.inf
    with np.errstate(over="ignore", invalid="ignore"):
        if law.atoms is not None:
            total += np.sum(law.atoms.weights * np.exp((law.atoms.points / norm) ** 2))
        for part in law.parts:
            edges = part_edges(part)
            fine = np.interp(np.arange(8 * edges.size - 7) / 8, np.arange(edges.size), edges)
            t, w = panel_nodes(fine, _NODES)
            total += np.sum(np.exp((part.point(t) / norm) ** 2) * part.mass(t) * w)
            if part.width:
                total += 0.0 if norm**2 > 2 * part.width**2 else math.inf
            else:
                step = (edges[-1] - edges[0]) / 50
                total += sum(
                    _tail(part, np.array([end - 2 * turn, end - turn, end]), norm)
                    for end, turn in ((edges[0], -step), (edges[-1], step))
                )
    return total if math.isfinite(total) else math.inf


@lru_cache(maxsize=64)
def psi2_norm(source: Source) -> float:
    """Orlicz norm, the c with E exp(Z^2/c^2) = 2; refused for tails heavier than Gaussian."""
    from scipy.optimize import brentq

    def excess(norm: float) -> float:
        return min(_mean_exponential(source, norm), 1e3) - 2

    low = math.log(2) ** -0.5 * (1 - 1e-12)  # by Jensen's inequality, of unit variance
    high = 1.5
    while high < _LARGEST and excess(high) > 0:
        high *= 1.5
    if excess(high) > 0:
        raise HdicaError(
            f"source: {source.label} has no finite psi_2 norm (its tails are heavier than "
            "Gaussian), which the bounds of the paper need; the predictions hold nevertheless"
        )
    return brentq(excess, low, high, xtol=1e-14)


def orlicz_bound(source: Source) -> float:
    """The least B with psi_2 norm of Z <= sqrt(3/8) B, of which that of u.X then is at most B."""
    return math.sqrt(8 / 3) * psi2_norm(source)


_AT = ("time",)
ABOUT = {
    "lemma_3": "bound on the tangent from a warm start",
    "lemma_5": "bound on the deviation from the centre of the vessel until t",
    "lemma_6": "bound on the tangent from a uniform start",
    "theorem_4": "bound on the tangent after T = t samples from a warm start",
    "theorem_7": "bound on the tangent after T = t samples from a uniform start",
    "corollary_8": "bound on the tangent after T = t samples in two phases",
}


def _bounds_of(system: TensorialICA) -> Callable[[float], dict[str, Bound]]:
    """Bounds after so many steps, and of a training of as many; refused where B is infinite."""
    given, law = {"epsilon": model.EPSILON} | system.bounds, source(system)
    epsilon = given.pop("epsilon")
    constants = Constants(**given)
    moments, b, d = moments_of(law, 6), orlicz_bound(law), system.dimension
    v0, eta = model.first_vector(system), model.step_sizes(system).constant
    tan0 = math.nan if v0 is None else math.sqrt(tan2_of(v0))

    def after(step: float) -> dict[str, Bound]:
        bounds, at = {}, np.array(step)
        if eta is not None:
            bounds["lemma_6"] = lemma_6(moments, b, d, eta, at, epsilon, constants)
            if v0 is not None:
                bounds["lemma_3"] = lemma_3(moments, b, d, eta, at, tan0, constants)
                bounds["lemma_5"] = lemma_5(moments, v0, eta, step, constants)
        if step >= 2:
            bounds["theorem_7"] = theorem_7(moments, b, d, step, epsilon, constants)
            bounds["corollary_8"] = corollary_8(moments, b, d, step, epsilon, constants)
            bounds["theorem_4"] = theorem_4(moments, b, d, step, tan0, constants)
        return bounds

    return after


def _bounds(system: TensorialICA, times: Array, *_: object) -> PointResult:
    bounds = _bounds_of(system)
    values = {output.name: np.full(times.shape, math.nan) for output in OUTPUTS}
    for place, step in enumerate(steps_of(times, 1).astype(float).tolist()):
        for name, bound in bounds(step).items():
            values[name][place] = bound.value
            values[f"{name}_holds"][place] = bound.applies
            values[f"{name}_predicted"][place] = np.mean(bound.predicted)
    return PointResult(values)


OUTPUTS = tuple(
    output
    for name, words in ABOUT.items()
    for output in (
        Output(name, _AT, words),
        Output(f"{name}_holds", _AT, f"{words}: 1 where its scaling conditions hold"),
        Output(f"{name}_predicted", _AT, f"{words}: the value that the noise leads to instead"),
    )
)
BOUNDS = method.Limit[TensorialICA](
    name="bounds",
    role=method.Role.OTHER,
    about=method.About(
        text=(
            "Theorems 4 and 7, Corollary 8, Lemmas 3, 5 and 6 with your constants, and predictions"
        ),
        accuracy="exact",
        equations=f"{PAPER}, Theorems 4 and 7, Corollary 8, Lemmas 3, 5 and 6",
        engines=("hdica.finite", *AT_LIMIT),
    ),
    outputs=method.Outputs(OUTPUTS),
    cost=method.Cost(seconds=lambda system, n, last: 0.1 + 2e-5 * system.dimension),
    scope=method.Scope(
        refuses=method.refusal(lambda system: _bounds_of(system)(1.0)),
        ignores=frozenset({"mixing", "sign"}),
    ),
    run=_bounds,
)
METHODS = (BOUNDS,)
