"""Noise of a step, departures from critical points and the level around a component.

At a critical point of support size k (|v_i| = 1/sqrt k on k axes) a deviation is an
Ornstein-Uhlenbeck process in x = beta eta t, of rate +2/k within the support and -1/k off it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.sources import Source
from hdica.limits.averages.expectations import averaged
from hdica.systems import method
from hdica.systems.fields import source
from hdica.systems.method import Array, Output, PointResult
from hdica.systems.tensorial_ica import system as model
from hdica.systems.tensorial_ica import transient
from hdica.systems.tensorial_ica.rule import Moments, moments_of
from hdica.systems.tensorial_ica.system import AT_LIMIT, PAPER, TAN2, TensorialICA
from hdica.systems.tensorial_ica.transient import ANY_SIGN

_WORST, _NONE = 1e-9, 1e-12
_STRETCHES = 2001  # of a schedule; the more of them the closer to either end


def second_moments(moments: Moments, v: Array) -> Array:
    """E y^6 Z_i Z_j at a unit vector ``v``, shape (d, d), y = v.Z: exact, for skewed sources too.

    6! times the coefficient of t^6 in exp(sum_l K(t v_l)) [K'(t v_i) K'(t v_j) + delta_ij
    K''(t v_i)], where K(t) = sum_n kappa_n t^n/n!.
    """
    first, pairs, alone = _pair_series(moments, v)
    joint = np.einsum("ia,ab,jb->ij", first, pairs, first) + np.diag(alone)
    return math.factorial(6) * joint


def diagonal_and_row(moments: Moments, v: Array, m: int) -> tuple[Array, Array]:
    """Diagonal and row ``m`` of :func:`second_moments`, both of shape (d,), without the rest."""
    first, pairs, alone = _pair_series(moments, v)
    half = first @ pairs
    row = half @ first[m]
    row[m] += alone[m]
    return math.factorial(6) * (np.sum(half * first, axis=1) + alone), math.factorial(6) * row


def _pair_series(moments: Moments, v: Array) -> tuple[Array, Array, Array]:
    """What E y^6 Z_i Z_j/6! is made of: f_ia P_ab f_jb, and a_i more for i = j."""
    powers = v[:, None] ** np.arange(7)
    factorials = np.array([float(math.factorial(n)) for n in range(7)])
    kappa = np.array(moments.cumulants)
    logarithm = kappa[:7] / factorials * powers.sum(axis=0)
    series = _exponential(logarithm)[::-1]
    first, second = (kappa[n : n + 7] / factorials * powers for n in (1, 2))
    pairs = np.array([[series[a + b] if a + b < 7 else 0.0 for b in range(7)] for a in range(7)])
    return first, pairs, second @ series


def _exponential(logarithm: Array) -> Array:
    """Coefficients of exp of a power series without constant term, to the same order."""
    out = np.zeros(logarithm.size)
    out[0] = 1.0
    for n in range(1, out.size):
        out[n] = sum(j * logarithm[j] * out[n - j] for j in range(1, n + 1)) / n
    return out


def noise_off_support(moments: Moments, k: int) -> float:
    """E y^6, the variance per step over eta^2 in each of the d - k directions off the support.

    15 + 15 k4/k + k6/k^2, and 10 k3^2/k for a skewed source, at v with positive entries.
    """
    k4, k6, _ = moments.cumulants[4::2]
    even = 15 + 15 * k4 / k + k6 / k**2
    return even + 10 * moments.mu3**2 * k**2 / k**3


def noise_on_support(moments: Moments, k: int) -> float:
    """Sigma_k, the variance per step over eta^2 in a tangent direction of the support, k >= 2.

    E y^6 + 15 (k4/k)(3 + k4/k) + 15 k6/k^2 + k8/k^3, the same in all k - 1 directions; zero for
    random signs and k = 2, where y or the tangent part of Z vanishes. Of a skewed source their
    mean, at v with positive entries.
    """
    if moments.symmetric:
        k4, k6, k8 = moments.cumulants[4::2]
        ratio = k4 / k
        rest = 15 * ratio * (3 + ratio) + 15 * k6 / k**2 + k8 / k**3
        total = noise_off_support(moments, k) + rest
        # Signs on two axes: y Z is no noise at all there, and rounding is none either.
        return total if total > _NONE * abs(rest) else 0.0
    v = np.full(k, k**-0.5)
    whole = second_moments(moments, v)
    return (np.trace(whole) - v @ whole @ v) / (k - 1)


def departure(moments: Moments, d: int, k: int, eta: float, x: Array) -> dict[str, Array]:
    """Deviations from a critical point of support size ``k`` (d: a maximiser, 1: a minimiser).

    The outputs of :data:`DEPARTURE`, linear in the deviation, from exactly the critical point at x
    = beta eta t, shape (T,): eta Sigma/(2 beta r) (e^(2 r x) - 1) in a direction of rate r.
    """
    unit = eta / (2 * moments.beta)
    grow, decay = 2.0 / k, -1.0 / k
    inside, outside = np.zeros((2, *x.shape))
    if k > 1:
        inside = unit * noise_on_support(moments, k) * np.expm1(2 * grow * x) / grow
    if k < d:
        outside = unit * noise_off_support(moments, k) * np.expm1(2 * decay * x) / decay
    return method.arrays(
        deviation=((k - 1) * inside + (d - k) * outside) / (d - 1),
        inside=inside,
        outside=outside,
        rate_inside=grow,
        rate_outside=decay,
    )


def median_factor(d: int) -> float:
    """Median over mean of tan^2 near a component: that of chi^2 with d - 1 degrees of freedom."""
    from scipy.stats import chi2

    return chi2.median(d - 1) / (d - 1)


def first_order_level(moments: Moments, d: int, eta: float) -> float:
    """S0 = (d - 1) eta mu6/(2 beta), the mean of tan^2 around a component as eta -> 0."""
    return (d - 1) * eta * moments.mu6 / (2 * moments.beta)


def level_under(moments: Moments, d: int, schedule: Schedule, start: float, times: Array) -> Array:
    """Mean of tan^2 near a component under any schedule, to first order, shape (T,).

    S(t + 1) = (1 - 2 beta eta) S + (d - 1) mu6 eta^2 from S(0) = ``start``, for 2 beta eta << 1:
    the start times e^(-2 x), and the noise; ``times`` increase.
    """
    at = np.floor(times)
    out, now, before = np.empty(at.shape), start, 0.0
    for i, end in enumerate(at):
        now = _level_after(moments, d, schedule, now, before, end)
        out[i], before = now, end
    return out


def _level_after(
    moments: Moments, d: int, schedule: Schedule, now: float, first: float, last: float
) -> float:
    """S after the steps first <= k < last, the schedule taken as constant on short stretches."""
    width = 2 * moments.beta
    breaks = [float(math.ceil(b)) for b in schedule.breaks]
    inner = np.geomspace(1.0, last - first + 1.0, _STRETCHES) - 1.0 if last > first else np.zeros(1)
    back = last - first - inner
    stretches = np.concatenate([np.floor(inner), np.floor(back), np.array(breaks) - first])
    marks = first + np.unique(np.clip(stretches, 0.0, last - first))
    if schedule.constant is not None:
        marks = np.array([first, last])
    x = width * transient.steps_sum(schedule, marks)
    squares = transient.steps_sum(schedule, marks, power=2)
    for dx, square in zip(np.diff(x), np.diff(squares), strict=True):
        drive = (d - 1) * moments.mu6 * square
        now = now * math.exp(-dx) + drive * (-math.expm1(-dx) / dx if dx > 0 else 1.0)
    return now


@dataclass(frozen=True)
class Stationary:
    """Mean of tan^2 around a component at a constant step size."""

    S0: float  # as eta -> 0
    S_lin: float  # with the exact moments of one step, to first order in S
    S2: float  # to second order
    error: float  # of S2, from quadrature
    median: float  # S2 times :func:`median_factor`


def stationary(source: Source, d: int, eta: float) -> Stationary:
    """Levels of tan^2 around a component: root S of b - (1 - a) S + 2 eta beta (1 + 5/(d-1)) S^2.

    a and b are averages over the recovered source alone, by quadrature (exact sums over atoms). For
    a skewed source S2 misses terms of relative order eta. Refused if eta is too large for a level.
    """
    moments = moments_of(source, order=6)
    _check_reach(source, moments, eta)
    (b, loss), (b_error, loss_error) = _balance(source, moments, d, eta)
    bend = 2 * eta * moments.beta * (1 + 5 / (d - 1))
    inside = loss * loss - 4 * bend * b
    if not (loss > 0 and inside > 0):
        raise HdicaError(
            f"eta = {eta:g} is not allowed (in dimension {d} the fluctuations around a component "
            f"of {source.label} have no stationary level: about eta * d < "
            f"{moments.beta / (2 * moments.mu6):.2g} is needed)"
        )
    root = math.sqrt(inside)
    level = 2 * b / (loss + root)
    error = (b_error + loss_error * level) / root
    if not error <= _WORST * level:
        raise HdicaError(
            f"source: the level around a component of {source.label} at eta = {eta:g} is known no "
            f"better than to {error / level:.1e} by quadrature ({_WORST:.0e} is needed)"
        )
    s0 = first_order_level(moments, d, eta)
    return Stationary(s0, b / loss, level, error, level * median_factor(d))


def _check_reach(source: Source, moments: Moments, eta: float) -> None:
    """1 + eta sgn Z^4 must not vanish: the recovered component would be stepped over."""
    law = source.law
    ends = [part.point(np.array([part.first[0], part.first[-1]])) for part in law.parts]
    atoms = [] if law.atoms is None else [law.atoms.points]
    most = np.abs(np.concatenate([*ends, *atoms])).max()
    if moments.sign < 0 and eta * most**4 >= 1:
        raise HdicaError(
            f"eta = {eta:g} is not allowed (below {most**-4:.3g}: a sample of {source.label} else "
            "throws the estimate across the equator)"
        )


def _balance(source: Source, moments: Moments, d: int, eta: float) -> tuple[Array, Array]:
    """B and 1 - a of :func:`stationary`, and their errors.

    With q = eta sgn Z^4 and h = eta sgn Z^3 the map U' = (U + h Z_k)/(1 + h Z) is expanded in U by
    H0, H1, H2, the derivatives of h/(1 + h Z) along sum_k U_k Z_k.
    """
    sign, others = moments.sign, (d + moments.mu4 - 2) / 2

    def integrand(_c: Array, _e: Array, z: Array) -> tuple[Array, Array]:
        q, h0 = eta * sign * z**4, eta * sign * z**3
        slope, over = 3 * eta * sign * z * z, 1 + q
        first = h0 / over
        second = slope / over**2
        third = 6 * eta * sign * z / over**2 - 2 * z * slope**2 / over**3
        lost = q * (2 + q) / over**2 - 2 * slope * (1 - q) / over**3
        spread = others * (2 * second**2 + 2 * first * third)
        return (d - 1) * first**2, lost - spread + 2 * (d - 1) * first * h0 / over**2

    average = averaged(integrand, parse_formula("x**3"), source, 1.0)
    return average.value, average.error


_AT = ("time",)
SAME = 1e-12


def support_of(system: TensorialICA) -> int:
    """Support size of the critical point where a system starts, or that it starts at none."""
    v = model.fixed_vector(system, "a departure")
    sizes = np.abs(v[np.abs(v) > SAME])
    if np.ptp(sizes) > SAME:
        raise HdicaError(
            f"start = {system.start!r} is not allowed for a departure (a critical point: 'axis', "
            "'maximiser' or {support: k})",
            ["start"],
        )
    return sizes.size


def _departure(system: TensorialICA, times: Array, *_: object) -> PointResult:
    k, eta = support_of(system), model.constant_eta(system)
    noise, x = moments_for_noise(system, k), transient.elapsed_of(system, times)
    return PointResult(departure(noise, system.dimension, k, eta, x))


def moments_for_noise(system: TensorialICA, k: int) -> Moments:
    """Moments with those that the noise at a critical point of support size k needs."""
    return moments_of(source(system), 8 if k > 1 else 6)


DEPARTURE = method.Limit[TensorialICA](
    name="departure",
    role=method.Role.LIMIT,
    about=method.About(
        text="variances of v about the critical point where it starts (saddle or maximiser of any "
        "support): the unstable Ornstein–Uhlenbeck process of the first stage",
        accuracy="approximate",
        equations=f"{PAPER}, initial stage: Ornstein-Uhlenbeck processes at a critical point",
        engines=AT_LIMIT,
    ),
    outputs=method.Outputs(
        (
            Output("deviation", _AT, "E |v - v(0)|^2/(d - 1)"),
            Output("inside", _AT, "variance in a tangent direction of the support"),
            Output("outside", _AT, "variance in a direction off the support"),
            Output("rate_inside", (), "growth rate within the support, in units of beta eta"),
            Output("rate_outside", (), "growth rate off the support, in units of beta eta"),
        )
    ),
    cost=method.Cost(seconds=lambda system, n, last: 1e-3),
    scope=method.Scope(
        refuses=method.refusal(lambda system: _departure(system, np.zeros(1))), ignores=ANY_SIGN
    ),
    run=_departure,
)
NODES = 25  # step sizes at which levels are solved where there are more


def _levels(system: TensorialICA, eta: Array) -> dict[str, Array]:
    """Stationary levels at step sizes, each solved once; of many, as polynomials in ln eta.

    Their ratios to eta are as smooth in eta as the moments of one step are.
    """
    sizes, place = np.unique(eta, return_inverse=True)
    solved_at, many = sizes, sizes.size > NODES
    if many:
        ends = np.log(sizes[[0, -1]])
        nodes = ends.mean() + np.ptp(ends) / 2 * np.cos(np.pi * np.arange(NODES) / (NODES - 1))
        solved_at = np.exp(nodes)
    rows = [vars(stationary(source(system), system.dimension, one)) for one in solved_at]
    levels = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    if many:
        from scipy.interpolate import BarycentricInterpolator

        for name, values in levels.items():
            ratio = BarycentricInterpolator(nodes, values / solved_at)
            levels[name] = sizes * ratio(np.log(sizes))
    return {name: values[place] for name, values in levels.items()}


def _stationary(system: TensorialICA, times: Array, *_: object) -> PointResult:
    levels = _levels(system, model.step_sizes(system).value(times))
    return PointResult({"tan2": levels["S2"], "tan2_error": levels.pop("error"), **levels})


def _first_levels(system: TensorialICA) -> dict[str, Array]:
    """The levels at the step sizes between jumps, refused where there are none."""
    eta = model.step_sizes(system)
    times = [0.0, *eta.breaks] if eta.constant is None else [0.0]
    return _levels(system, eta.value(np.array(times)))


def _levels_seconds(system: TensorialICA, n: int | None, last: float) -> float:
    """Cost model: one quadrature a step size; a schedule has as many as there are times."""
    eta = model.step_sizes(system)
    changing = eta.constant is None and not eta.breaks
    return 2e-2 * (100 if changing else 1 + len(eta.breaks))


STATIONARY = method.Limit[TensorialICA](
    name="stationary",
    role=method.Role.LIMIT,
    about=method.About(
        text="the level of tan² about a component that belongs to the step size at a time: S₀, S₂",
        accuracy="approximate",
        equations=f"{PAPER}, fluctuation stage: E tan^2 to second order at a finite step size",
        engines=AT_LIMIT,
    ),
    outputs=method.Outputs(
        (
            TAN2,
            Output("tan2_error", _AT, "error of tan2 from quadrature"),
            Output("median", _AT, "median of tan2, as of a chi-squared law"),
            Output("S0", _AT, "level to first order in eta"),
            Output("S_lin", _AT, "level with the exact moments of one step, to first order in S"),
            Output("S2", _AT, "the same to second order in S"),
        )
    ),
    cost=method.Cost(seconds=_levels_seconds),
    scope=method.Scope(refuses=method.refusal(_first_levels), ignores=ANY_SIGN | {"start"}),
    run=_stationary,
)


def _approach(system: TensorialICA, times: Array, *_: object) -> PointResult:
    """The transient's path plus the fluctuations that have built up since the start."""
    path = transient.tan2_of(
        transient.solve(transient.start_of(system), transient.elapsed_of(system, times)).v
    )
    m, schedule = moments_of(source(system), 6), model.step_sizes(system)
    built = level_under(m, system.dimension, schedule, 0.0, times)
    level = _levels(system, schedule.value(times))
    return PointResult({"tan2": path + built * level["S2"] / level["S0"]})


APPROACH = replace(
    STATIONARY,
    name="approach",
    about=replace(
        STATIONARY.about,
        text="mean of tan² from a warm start: the transient, and the fluctuations on the way",
        equations=f"{PAPER}, transient and fluctuation stages, one added to the other",
    ),
    outputs=method.Outputs((Output("tan2", _AT, "mean of tan2 near a component"),)),
    scope=method.Scope(
        refuses=method.refusal(lambda system: (transient.start_of(system), _first_levels(system))),
        ignores=ANY_SIGN,
    ),
    run=_approach,
)

METHODS = (DEPARTURE, STATIONARY, APPROACH)
