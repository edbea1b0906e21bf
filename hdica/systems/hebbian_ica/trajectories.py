"""How points of Hebbian ICA are computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hdica.errors import HdicaError
from hdica.finite.random import LANES
from hdica.finite.random.streams import Stream
from hdica.finite.record import Values
from hdica.ingredients.save import NOTHING, Save
from hdica.process.machine import slowness
from hdica.systems.fields import averages, formula
from hdica.systems.hebbian_ica.adaptive import check_start, gain, solve_adaptive
from hdica.systems.hebbian_ica.escapes import HOME, IGNORED, PAPER
from hdica.systems.hebbian_ica.fields import (
    STILL,
    make_motion,
    mu_of,
    samples,
    sign_steps,
    signs,
    sources,
    start_overlap,
    unplain,
)
from hdica.systems.hebbian_ica.fluctuations import check_noise, solve_bias, solve_fluctuations
from hdica.systems.hebbian_ica.ode import Path, Problem, solve, solve_steps
from hdica.systems.hebbian_ica.optimum import field_of, limit_refusal
from hdica.systems.hebbian_ica.rule import HebbianRule, run_chains, run_vector
from hdica.systems.hebbian_ica.system import (
    HebbianICA,
    modes_held,
    overlaps_held,
    plain_refusal,
    rule,
    sampled_refusal,
)
from hdica.systems.hebbian_ica.varied import run_varied_chain, run_varied_vector
from hdica.systems.method import (
    AVERAGES,
    COMMON,
    NUMERICS,
    OVERLAP,
    PROJECTED,
    About,
    Bits,
    Cost,
    Limit,
    Outputs,
    Refuses,
    Role,
    RunAll,
    Scope,
    Simulation,
    Together,
    refusal,
)
from hdica.systems.outputs import Array, Output, PointResult
from hdica.systems.trials import (
    SHARED,
    alone,
    content_of,
    in_lanes,
    on_shared_streams,
    seeded,
    with_shared_noise,
)

_R = ("time", "projection", "source")
OVERLAPS = (
    Output("R", _R, "overlap R = W'A_s of projection and source"),
    Output("Q", ("time", "projection", "other"), "overlap Q = W'W of two projections"),
    Output("sigma", ("time", "projection"), "sign of the update of a projection"),
)


def _with_signs(system: HebbianICA, values: dict[str, Array]) -> dict[str, Array]:
    """The same with the signs, if they stay."""
    if "sigma" in values:
        return values
    return values | {"sigma": np.tile(signs(system), (len(values["R"]), 1))}


def _vector(system: HebbianICA, times: Array, n: int, stream: Stream, save: Save) -> Values:
    problem = rule(system)
    run = run_varied_vector if problem.varied else run_vector
    values, diverged = run(problem, times, n, stream)
    return _with_signs(system, values), diverged


def _side_by_side(
    systems: Sequence[HebbianICA],
    rules: Sequence[HebbianRule],
    times: Array,
    n: int,
    streams: Sequence[Stream],
) -> list[Values]:
    if rules[0].alike is None:
        pairs = zip(rules, streams, strict=True)
        results = [run_varied_chain(one, times, n, stream) for one, stream in pairs]
    else:
        results = run_chains(rules, times, n, streams)
    return [
        (_with_signs(system, values), diverged)
        for system, (values, diverged) in zip(systems, results, strict=True)
    ]


def _chains(content: Callable[[HebbianICA], object]) -> RunAll:
    """Chains, eight in one call of the kernel, on the streams of a content."""
    return in_lanes(
        "chain",
        lambda system, n: rule(system),
        content,
        lambda system, one: one.alike,
        LANES,
        _side_by_side,
    )


def _path(system: HebbianICA, times: Array) -> Path:
    """The limit of the system from its start, which is R = 0 if it is random."""
    r0 = _begin(system)
    if not unplain(system):
        return solve(field_of(system), mu_of(system), r0, times)
    problem = Problem(
        phi=formula(system, "nonlinearity"),
        sources=sources(system),
        schedule=mu_of(system),
        start=r0,
        batch=samples(system),
        motion=make_motion(system.motion) or STILL,
    )
    if system.sigma == "adaptive":
        return solve_adaptive(problem, times)[0]
    return solve_steps(problem, *sign_steps(system), times)


def _begin(system: HebbianICA) -> Array:
    begin = start_overlap(system)
    return np.zeros((system.projections, len(system.sources))) if begin is None else begin


def _ode(
    system: HebbianICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    path = _path(system, times)
    values = {"R": path.r, "R_error": path.error, "R_control": path.control}
    if save.bands:
        values |= _bands(system, times)
    if save.bias:
        values |= _bias(system, times)
    return PointResult(values)


def _spread_at_start(system: HebbianICA) -> Array | None:
    """N Cov(R) at t = 0: the entries of a random start are normal from the start."""
    refused = _clt_refusal(system)
    if refused:
        raise HdicaError(refused)
    begin, r0 = start_overlap(system), _begin(system)
    return np.eye(r0.size).reshape(*r0.shape, *r0.shape) if begin is None else None


def _bands(system: HebbianICA, times: Array) -> dict[str, Array]:
    first, r0 = _spread_at_start(system), _begin(system)
    return {"R_sd": solve_fluctuations(field_of(system), mu_of(system), r0, times, first).spread}


def _bias(system: HebbianICA, times: Array) -> dict[str, Array]:
    first, alpha = _spread_at_start(system), system.alpha
    begin = _begin(system)
    return {"R_bias": solve_bias(field_of(system), mu_of(system), alpha, begin, times, first)}


def _undecided(system: HebbianICA) -> None:
    """Refuse a start at which noise chooses adaptive signs."""
    if system.sigma == "adaptive":
        phi = formula(system, "nonlinearity")
        check_start(phi, _begin(system), gain(phi, sources(system)))


_decided: Refuses[HebbianICA] = refusal(_undecided)


def _seconds(
    each_step: Callable[[int, int, int], float], varied: Callable[[int, int, int, int], float]
) -> Callable[[Any, int | None, float], float]:
    """Seconds of a point: of the usual rule, or of the plain loops that do whatever else."""

    def seconds(system: HebbianICA, n: int | None, last: float) -> float:
        count, (k, m) = n or 1, (system.projections, len(system.sources))
        each = each_step(k, m, count)
        if unplain(system) and system.batch != "full":
            each = varied(k, m, count, int(system.batch))
        return 2e-4 + slowness() * last * count * each

    return seconds


_VECTOR = Simulation[HebbianICA](
    name="vector",
    role=Role.SIMULATION,
    rank=2,
    about=About(
        text="the full K vectors of the rule, any signs, batches and motion, step sizes η, μ = nη "
        "or ν = n²η, any schedule",
        accuracy="exact",
        equations=f"{PAPER}, eq. (13) with Sigma on the right, all n coordinates",
        bits=Bits.EVERY_KIND,
        engines=(*PROJECTED, AVERAGES, HOME),
    ),
    outputs=Outputs(OVERLAPS),
    cost=Cost(
        seconds=_seconds(
            lambda k, m, n: 5e-8 + 1e-9 * n * (k * k + k + 1),
            lambda k, m, n, b: 2e-7 + 1.5e-9 * n * (k * k + k + b * (2 * k + 2)),
        ),
        memory=lambda system, n: 2 * system.projections * (n or 0),
        fused=True,
    ),
    scope=Scope(refuses=sampled_refusal, ignores=IGNORED),
    run=seeded("vector", _vector, IGNORED),
)
VECTOR = replace(
    _VECTOR, shared=with_shared_noise(_VECTOR, on_shared_streams("vector", _vector), 1.0)
)
_OWN = _chains(lambda system: content_of(system, IGNORED))
_CHAIN = Simulation[HebbianICA](
    name="chain",
    role=Role.SIMULATION,
    rank=1,
    about=About(
        text="R and Q alone, at a cost per step that does not depend on n",
        accuracy="exact in law",
        equations=f"{PAPER}, eq. (13), reduced exactly in law to R and a factor of I - RR'",
        bits=Bits.EVERY_KIND,
        engines=(*PROJECTED, AVERAGES, HOME),
    ),
    outputs=Outputs(OVERLAPS),
    cost=Cost(
        seconds=_seconds(
            lambda k, m, n: 2.7e-9 * (1 + k * (k + m)),
            lambda k, m, n, b: 1.5e-7 * (1 + k) + 3e-8 * b * (k + m),
        ),
        memory=lambda system, n: LANES * overlaps_held(system),
        fused=True,
    ),
    scope=Scope(refuses=sampled_refusal, ignores=IGNORED),
    run=alone(_OWN),
    together=Together(_OWN),
)
CHAIN = replace(_CHAIN, shared=with_shared_noise(_CHAIN, _chains(lambda system: SHARED), 1.0))
BIAS = Output("R_bias", _R, "limit of n times (mean of runs - limit), after the first steps")
SPREAD = Output("R_sd", _R, "limit of sqrt(n) times the standard deviation")
ODE = Limit[HebbianICA](
    name="ode",
    role=Role.LIMIT,
    rank=1,
    about=About(
        text="dR/dt as n → ∞ at fixed μ, any K, M, f, with its error and a negative control",
        accuracy="converged",
        equations=f"{PAPER}, eq. (17) with Sigma where (13) puts it; Dormand-Prince 8(5,3)",
        engines=(*COMMON, AVERAGES, NUMERICS, OVERLAP, HOME),
    ),
    outputs=Outputs(
        (
            OVERLAPS[0],
            Output("R_error", _R, "error of R, from a run with 100 times finer tolerance"),
            Output("R_control", _R, "overlap with the drift wrong by 2 % (negative control)"),
        ),
        bands=(SPREAD,),
        bias=(BIAS,),
    ),
    cost=Cost(
        seconds=lambda system, n, last: 2e-2, prepares=averages("drift"), memory=overlaps_held
    ),
    scope=Scope(refuses=lambda system: limit_refusal(system) or _decided(system), ignores=IGNORED),
    run=_ode,
    closed=True,
)


def _clt_refusal(system: HebbianICA) -> str:
    plain = plain_refusal(system, "a central limit theorem")
    return limit_refusal(system) or plain or _without_noise(system)


_without_noise: Refuses[HebbianICA] = refusal(
    lambda system: check_noise(formula(system, "nonlinearity"), sources(system))
)
"""Empty if the fluctuations are finite and can be computed, else why not."""


def _clt(
    system: HebbianICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    """The limit and its fluctuations."""
    limit = _ode(system, times, n, seed, NOTHING)
    return PointResult(limit.values | _bands(system, times))


CLT = replace(
    ODE,
    name="clt",
    rank=None,
    about=replace(
        ODE.about,
        text="the same with the limit of √n sd(R), for smooth f",
        equations=(
            f"{ODE.about.equations}; central limit theorem with the noise of one step of (13)"
        ),
    ),
    outputs=Outputs((*ODE.outputs.always, SPREAD)),
    cost=replace(
        ODE.cost,
        seconds=lambda system, n, last: 0.15 * (system.projections * len(system.sources)) ** 2.5,
        memory=modes_held,
    ),
    scope=replace(ODE.scope, refuses=_clt_refusal),
    run=_clt,
)

METHODS = (VECTOR, CHAIN, ODE, CLT)
