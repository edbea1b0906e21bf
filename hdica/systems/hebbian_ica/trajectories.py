"""How points of Hebbian ICA are computed: simulations at finite n, and the limit (17)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from hdica.errors import HdicaError
from hdica.finite.random import LANES
from hdica.finite.random.streams import Stream
from hdica.finite.record import Values
from hdica.ingredients.save import NOTHING, Save
from hdica.process.machine import OF_FUNCTION, seconds_of_law, slowness
from hdica.systems import method, trials
from hdica.systems.fields import averages, formula
from hdica.systems.hebbian_ica import ode, rule
from hdica.systems.hebbian_ica import system as hebbian
from hdica.systems.hebbian_ica.escapes import ENGINES, IGNORED, PAPER
from hdica.systems.hebbian_ica.fields import STILL, make_motion
from hdica.systems.hebbian_ica.fluctuations import check_noise, solve_bias, solve_fluctuations
from hdica.systems.hebbian_ica.optimum import field_of, limit_refusal
from hdica.systems.hebbian_ica.system import HebbianICA
from hdica.systems.method import Array, Output, PointResult

_R = ("time", "projection", "source")
OVERLAPS = (
    Output("R", _R, "overlap R = W'A_s of projection and source"),
    Output("Q", ("time", "projection", "other"), "overlap Q = W'W of two projections"),
    Output("sigma", ("time", "projection"), "sign of the update of a projection"),
)


def _with_signs(system: HebbianICA, values: Values) -> Values:
    """The same with the signs, if they stay."""
    arrays, diverged = values
    if "sigma" in arrays:
        return values
    return arrays | {"sigma": np.tile(hebbian.signs(system), (len(arrays["R"]), 1))}, diverged


def _vector(system: HebbianICA, times: Array, n: int, stream: Stream, save: Save) -> Values:
    problem = hebbian.rule(system)
    run = rule.run_varied_vector if problem.varied else rule.run_vector
    return _with_signs(system, run(problem, times, n, stream))


def _side_by_side(
    systems: Sequence[HebbianICA],
    rules: Sequence[rule.HebbianRule],
    times: Array,
    n: int,
    streams: Sequence[Stream],
) -> list[Values]:
    if rules[0].alike is None:
        pairs = zip(rules, streams, strict=True)
        results = [rule.run_varied_chain(one, times, n, stream) for one, stream in pairs]
    else:
        results = rule.run_chains(rules, times, n, streams)
    return [_with_signs(*pair) for pair in zip(systems, results, strict=True)]


def _chains(content: Callable[[HebbianICA], object]) -> method.RunAll:
    """Chains, eight in one call of the kernel, on the streams of a content."""
    return trials.in_lanes(
        "chain",
        lambda system, n: hebbian.rule(system),
        content,
        lambda system, one: one.alike,
        LANES,
        _side_by_side,
    )


def _path(system: HebbianICA, times: Array) -> ode.Path:
    """The limit of the system from its start, which is R = 0 if it is random."""
    if not hebbian.unplain(system):
        return ode.solve(field_of(system), hebbian.mu_of(system), _begin(system), times)
    problem = ode.Problem(
        phi=formula(system, "nonlinearity"),
        sources=hebbian.sources(system),
        schedule=hebbian.mu_of(system),
        start=_begin(system),
        batch=hebbian.samples(system),
        motion=make_motion(system.motion) or STILL,
    )
    if system.sigma == "adaptive":
        return ode.solve_adaptive(problem, times)[0]
    return ode.solve_steps(problem, *hebbian.sign_steps(system), times)


def _begin(system: HebbianICA) -> Array:
    begin = hebbian.start_overlap(system)
    return np.zeros(system.shape) if begin is None else begin


def _ode(
    system: HebbianICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    path = _path(system, times)
    values = {"R": path.r, "R_error": path.error, "R_control": path.control}
    if not (save.bands or save.bias):
        return PointResult(values)
    refused = _clt_refusal(system)
    if refused:
        raise HdicaError(refused)
    # The entries of a random start are normal from the start.
    r0, random = _begin(system), hebbian.start_overlap(system) is None
    first = np.eye(r0.size).reshape(*r0.shape, *r0.shape) if random else None
    limit = field_of(system), hebbian.mu_of(system)
    if save.bands:
        values["R_sd"] = solve_fluctuations(*limit, r0, times, first).spread
    if save.bias:
        values["R_bias"] = solve_bias(*limit, system.alpha, r0, times, first)
    return PointResult(values)


def _start_signs(system: HebbianICA) -> None:
    """Refuse adaptive signs that noise chooses at the start."""
    if system.sigma == "adaptive":
        phi = formula(system, "nonlinearity")
        ode.check_start(phi, _begin(system), ode.gain(phi, hebbian.sources(system)))


def _seconds(
    each_step: Callable[[int, int, int], float], varied: Callable[[int, int, int, int], float]
) -> Callable[[HebbianICA, int | None, float], float]:
    """Seconds of a point: of the usual rule, or of the plain loops that do whatever else."""

    def seconds(system: HebbianICA, n: int | None, last: float) -> float:
        each = each_step(*system.shape, n or 1)
        if hebbian.unplain(system) and system.batch != "full":
            each = varied(*system.shape, n or 1, int(system.batch))
        functions = formula(system, "nonlinearity").transcendental
        each += OF_FUNCTION * system.projections * functions
        each += sum(map(seconds_of_law, system.sources))
        return 2e-4 + slowness() * last * (n or 1) * each

    return seconds


_VECTOR = method.Simulation[HebbianICA](
    name="vector",
    role=method.Role.SIMULATION,
    rank=2,
    about=method.About(
        text="the full K vectors of the rule, any signs, batches and motion, step sizes η, μ = nη "
        "or ν = n²η, any schedule",
        accuracy="exact",
        equations=f"{PAPER}, eq. (13) with Sigma on the right, all n coordinates",
        bits=method.Bits.EVERY_KIND,
        engines=(*method.PROJECTED, *ENGINES),
    ),
    outputs=method.Outputs(OVERLAPS),
    cost=method.Cost(
        seconds=_seconds(
            lambda k, m, n: 5e-8 + 1e-9 * n * (k * k + k + 1),
            lambda k, m, n, b: 2e-7 + 1.5e-9 * n * (k * k + k + b * (2 * k + 2)),
        ),
        memory=lambda system, n, last: 2 * system.projections * (n or 0),
        fused=True,
    ),
    scope=method.Scope(refuses=hebbian.sampled_refusal, ignores=IGNORED),
    run=trials.seeded("vector", _vector, IGNORED),
)
VECTOR = replace(
    _VECTOR,
    shared=trials.with_shared_noise(_VECTOR, trials.on_shared_streams("vector", _vector), 1.0),
)
_OWN = _chains(lambda system: trials.content_of(system, IGNORED))
_CHAIN = replace(
    _VECTOR,
    name="chain",
    rank=1,
    about=replace(
        _VECTOR.about,
        text="R and Q alone, at a cost per step that does not depend on n",
        accuracy="exact in law",
        equations=f"{PAPER}, eq. (13), reduced exactly in law to R and a factor of I - RR'",
    ),
    cost=replace(
        _VECTOR.cost,
        seconds=_seconds(
            lambda k, m, n: 3.5e-9 * (1 + k * (k + m)),
            lambda k, m, n, b: 1.5e-7 * (1 + k) + 3e-8 * b * (k + m),
        ),
        memory=lambda system, n, last: LANES * hebbian.numbers_of_overlaps(system),
    ),
    run=trials.alone(_OWN),
    together=method.Together(_OWN),
)
CHAIN = replace(
    _CHAIN, shared=trials.with_shared_noise(_CHAIN, _chains(lambda system: trials.SHARED), 1.0)
)
BIAS = Output("R_bias", _R, "limit of n times (mean of runs - limit), after the first steps")
SPREAD = Output("R_sd", _R, "limit of sqrt(n) times the standard deviation")
ODE = method.Limit[HebbianICA](
    name="ode",
    role=method.Role.LIMIT,
    rank=1,
    about=method.About(
        text="dR/dt as n → ∞ at fixed μ, any K, M, f, with its error and a negative control",
        accuracy="converged",
        equations=f"{PAPER}, eq. (17) with Sigma where (13) puts it; Dormand-Prince 8(5,3)",
        engines=(*ENGINES, method.OVERLAP),
    ),
    outputs=method.Outputs(
        (
            OVERLAPS[0],
            Output("R_error", _R, "error of R, from a run with 100 times finer tolerance"),
            Output("R_control", _R, "overlap with the drift wrong by 2 % (negative control)"),
        ),
        bands=(SPREAD,),
        bias=(BIAS,),
    ),
    cost=method.Cost(
        seconds=lambda system, n, last: 2e-2,
        prepares=averages("drift"),
        memory=hebbian.numbers_of_overlaps,
    ),
    scope=method.Scope(
        refuses=lambda system: limit_refusal(system) or method.refusal(_start_signs)(system),
        ignores=IGNORED,
    ),
    run=_ode,
    closed=True,
)


def _check_noise(system: HebbianICA) -> None:
    """Refuse fluctuations that are infinite or cannot be computed."""
    check_noise(formula(system, "nonlinearity"), hebbian.sources(system))


def _clt_refusal(system: HebbianICA) -> str:
    plain = hebbian.plain_refusal(system, "a central limit theorem")
    return limit_refusal(system) or plain or method.refusal(_check_noise)(system)


_BANDS = replace(NOTHING, bands=True)
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
    outputs=method.Outputs((*ODE.outputs.always, SPREAD)),
    cost=replace(
        ODE.cost,
        seconds=lambda system, n, last: 0.15 * float(np.prod(system.shape)) ** 2.5,
        memory=hebbian.numbers_of_modes,
    ),
    scope=replace(ODE.scope, refuses=_clt_refusal),
    run=lambda system, times, n, seed, save: _ode(system, times, n, seed, _BANDS),
)

METHODS = (VECTOR, CHAIN, ODE, CLT)
