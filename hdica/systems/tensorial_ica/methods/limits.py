"""What online tensorial ICA does as eta -> 0: the transient, departures, the stationary level."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.save import Save
from hdica.systems.fields import source
from hdica.systems.method import About, Cost, Limit, Outputs, Role, Scope, refusal
from hdica.systems.outputs import Array, Output, PointResult
from hdica.systems.tensorial_ica.fields import (
    constant_eta,
    given_vector,
    moments,
    step_sizes,
)
from hdica.systems.tensorial_ica.limit import fluctuation, transient
from hdica.systems.tensorial_ica.limit.two_phase import TwoPhase, two_phase
from hdica.systems.tensorial_ica.methods.training import trained
from hdica.systems.tensorial_ica.methods.trajectories import HERE, PAPER, TAN2, V
from hdica.systems.tensorial_ica.system import TensorialICA

_AT = ("time",)
ANY_SIGN = frozenset({"mixing", "bounds", "sign"})
WRONG = 1.02
"""Rate of the negative control."""
SAME = 1e-12


def _start(system: TensorialICA) -> Array:
    return given_vector(system, "the transient")


def elapsed(system: TensorialICA, times: Array) -> Array:
    """Beta times the sum of the step sizes until each time."""
    return transient.elapsed(step_sizes(system), moments(system).beta, times)


def _ode(
    system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    v0, at = _start(system), elapsed(system, times)
    found = transient.solve(v0, at)
    tan2 = transient.tan2_of(found.v)
    # |d tan2| <= 2 (1 + tan2)^(3/2) |dv| for every entry that is missed.
    steep = 2 * (1 + tan2) ** 1.5 * math.sqrt(system.dimension)
    return PointResult(
        {
            "v": found.v,
            "tan2": tan2,
            "tan2_error": steep * found.error,
            "tan2_control": transient.tan2_of(transient.solve(v0, WRONG * at).v),
        }
    )


ODE = Limit[TensorialICA](
    name="ode",
    role=Role.LIMIT,
    rank=1,
    about=About(
        text="v as η → 0 at fixed βηt, from any start that is not random, in closed form",
        accuracy="converged",
        equations=f"{PAPER}, transient stage: dv_k/d(eta t) = beta (v_k^3 - v_k sum v_i^4)",
        engines=HERE,
    ),
    outputs=Outputs(
        (
            TAN2,
            V,
            Output("tan2_error", _AT, "error of tan2, from the root of the closed form"),
            Output("tan2_control", _AT, "tan2 with the rate wrong by 2 % (negative control)"),
        )
    ),
    cost=Cost(seconds=lambda system, n, last: 2e-3 + 1e-5 * system.dimension),
    scope=Scope(refuses=refusal(_start), ignores=ANY_SIGN),
    run=_ode,
    closed=True,
)


def support(system: TensorialICA) -> int:
    """Support size of the critical point where a system starts, or that it starts at none."""
    v = given_vector(system, "a departure")
    sizes = np.abs(v[np.abs(v) > SAME])
    if np.ptp(sizes) > SAME:
        raise HdicaError(
            f"start = {system.start!r} is not allowed for a departure (a critical point: 'axis', "
            "'maximiser' or {support: k})",
            ["start"],
        )
    return int(sizes.size)


def _departing(system: TensorialICA) -> None:
    moments_for_noise(system, support(system))
    constant_eta(system)


def _departure(
    system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    k, eta = support(system), constant_eta(system)
    found = fluctuation.departure(
        moments_for_noise(system, k), system.dimension, k, eta, elapsed(system, times)
    )
    return PointResult(
        {
            "inside": found.inside,
            "outside": found.outside,
            "deviation": found.total / (system.dimension - 1),
            "rate_inside": np.asarray(found.rate_inside),
            "rate_outside": np.asarray(found.rate_outside),
        }
    )


def moments_for_noise(system: TensorialICA, k: int) -> fluctuation.Moments:
    """Moments with those that the noise at a critical point of support size k needs."""
    return fluctuation.moments_of(source(system), 8 if k > 1 else 6)


DEPARTURE = Limit[TensorialICA](
    name="departure",
    role=Role.LIMIT,
    about=About(
        text="variances of v about the critical point where it starts (saddle or maximiser of any "
        "support): the unstable Ornstein–Uhlenbeck process of the first stage",
        accuracy="approximate",
        equations=f"{PAPER}, initial stage: Ornstein-Uhlenbeck processes at a critical point",
        engines=HERE,
    ),
    outputs=Outputs(
        (
            Output("deviation", _AT, "E |v - v(0)|^2/(d - 1)"),
            Output("inside", _AT, "variance in a tangent direction of the support"),
            Output("outside", _AT, "variance in a direction off the support"),
            Output("rate_inside", (), "growth rate within the support, in units of beta eta"),
            Output("rate_outside", (), "growth rate off the support, in units of beta eta"),
        )
    ),
    cost=Cost(seconds=lambda system, n, last: 1e-3),
    scope=Scope(refuses=refusal(_departing), ignores=ANY_SIGN),
    run=_departure,
)

NODES = 25
"""Step sizes at which levels are solved where there are more."""
LEVELS = ("S0", "S_lin", "S2", "median", "error")


def _levels(system: TensorialICA, eta: Array) -> dict[str, Array]:
    """Stationary levels at step sizes, each solved once; of many, as polynomials in ln eta.

    Their ratios to eta are as smooth in eta as the moments of one step are.
    """
    sizes, place = np.unique(eta, return_inverse=True)
    if sizes.size <= NODES:
        return {name: values[place] for name, values in _solved(system, sizes).items()}
    from scipy.interpolate import BarycentricInterpolator

    ends = np.log(sizes[[0, -1]])
    nodes = ends.mean() + np.ptp(ends) / 2 * np.cos(np.pi * np.arange(NODES) / (NODES - 1))
    found = {}
    for name, values in _solved(system, np.exp(nodes)).items():
        ratio = BarycentricInterpolator(nodes, values / np.exp(nodes))
        found[name] = (sizes * ratio(np.log(sizes)))[place]
    return found


def _solved(system: TensorialICA, sizes: Array) -> dict[str, Array]:
    found = [fluctuation.stationary(source(system), system.dimension, float(one)) for one in sizes]
    return {name: np.array([getattr(one, name) for one in found]) for name in LEVELS}


def _stationary(
    system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    found = _levels(system, step_sizes(system).value(np.asarray(times, dtype=float)))
    return PointResult({"tan2": found["S2"], "tan2_error": found.pop("error"), **found})


def _level_exists(system: TensorialICA) -> None:
    given = step_sizes(system)
    at = np.array([0.0, *given.breaks]) if given.constant is None else np.zeros(1)
    _levels(system, given.value(at))


def _levels_seconds(system: TensorialICA, n: int | None, last: float) -> float:
    """Cost model: one quadrature a step size; a schedule has as many as there are times."""
    given = step_sizes(system)
    changing = given.constant is None and not given.breaks
    return 2e-2 * (100 if changing else 1 + len(given.breaks))


STATIONARY = replace(
    ODE,
    name="stationary",
    rank=None,
    about=replace(
        ODE.about,
        text="the level of tan² about a component that belongs to the step size at a time: S₀, S₂",
        accuracy="approximate",
        equations=f"{PAPER}, fluctuation stage: E tan^2 to second order at a finite step size",
    ),
    outputs=Outputs(
        (
            TAN2,
            Output("tan2_error", _AT, "error of tan2 from quadrature"),
            Output("median", _AT, "median of tan2, as of a chi-squared law"),
            Output("S0", _AT, "level to first order in eta"),
            Output("S_lin", _AT, "level with the exact moments of one step, to first order in S"),
            Output("S2", _AT, "the same to second order in S"),
        )
    ),
    cost=Cost(seconds=_levels_seconds),
    scope=Scope(refuses=refusal(_level_exists), ignores=ANY_SIGN | {"start"}),
    run=_stationary,
    closed=False,
)


def _approach(
    system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    """The transient's path plus the fluctuations that have built up since the start."""
    path = _ode(system, times, n, seed, save).values["tan2"]
    known = fluctuation.moments_of(source(system), 6)
    schedule = step_sizes(system)
    built = fluctuation.level_under(known, system.dimension, schedule, 0.0, times)
    level = _levels(system, schedule.value(np.asarray(times, dtype=float)))
    return PointResult({"tan2": path + built * level["S2"] / level["S0"]})


def _both(system: TensorialICA) -> None:
    _start(system)
    _level_exists(system)


APPROACH = replace(
    STATIONARY,
    name="approach",
    about=replace(
        STATIONARY.about,
        text="mean of tan² from a warm start: the transient, and the fluctuations on the way",
        equations=f"{PAPER}, transient and fluctuation stages, one added to the other",
    ),
    outputs=Outputs((Output("tan2", _AT, "mean of tan2 near a component"),)),
    scope=Scope(refuses=refusal(_both), ignores=ANY_SIGN),
    run=_approach,
)


def _prediction(system: TensorialICA) -> TwoPhase:
    training = trained(system)
    length, left = training.total / 2, math.nan
    if training.first is None:
        v0 = given_vector(system, "the second phase alone")
        last = elapsed(system, np.array([training.end]))
        left = float(transient.tan2_of(transient.solve(v0, last).v)[0])
    given = source(system), system.dimension, length, training.first, training.second
    return two_phase(*given, left=left)


def _two_phase(
    system: TensorialICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    found = _prediction(system)
    values = {
        "tan2": found.end_median,
        "half": found.half_median,
        "mean": found.end,
        "warm": found.warm,
        "drag": found.drag,
    }
    return PointResult({name: np.asarray(value) for name, value in values.items()})


def _predictable(system: TensorialICA) -> None:
    training = trained(system)
    if training.first is None:
        given_vector(system, "the second phase alone")
    fluctuation.moments_of(source(system), 6)
    if training.second is not None:
        fluctuation.stationary(source(system), system.dimension, training.second)


TWO_PHASE = replace(
    ODE,
    name="two_phase",
    rank=None,
    about=replace(
        ODE.about,
        text="the median of tan² at the ends of a training, where its first phase succeeds",
        accuracy="approximate",
        equations=f"{PAPER}, Corollary 8, with the stationary level in place of its bound",
    ),
    outputs=Outputs(
        (
            Output("tan2", (), "median of tan2 at the end of the second phase"),
            Output("half", (), "median of tan2 at the end of the first phase"),
            Output("mean", (), "mean of tan2 at the end of the second phase"),
            Output("warm", (), "share of uniform starts that have the time for the first phase"),
            Output("drag", (), "eta_1 d^2/beta, below about 1 where noise lets the first succeed"),
        )
    ),
    cost=Cost(seconds=lambda system, n, last: 3e-2),
    scope=replace(ODE.scope, refuses=refusal(_predictable)),
    run=_two_phase,
    closed=False,
)

METHODS = (ODE, DEPARTURE, STATIONARY, APPROACH, TWO_PHASE)
