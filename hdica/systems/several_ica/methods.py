"""The ways to compute online ICA with several features: simulations at finite n, and the limit."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from hdica.finite.random import LANES
from hdica.finite.random.streams import Stream
from hdica.finite.record import Values
from hdica.ingredients.save import Save
from hdica.process.machine import slowness
from hdica.systems.fields import formula, schedule
from hdica.systems.method import (
    COMMON,
    NUMERICS,
    PROJECTED,
    About,
    Bits,
    Cost,
    Limit,
    Outputs,
    Role,
    RunAll,
    Scope,
    Simulation,
    States,
    Together,
)
from hdica.systems.outputs import ZERO, Array, Output, PointResult, padded
from hdica.systems.several_ica.limit import averages_of, limit_path
from hdica.systems.several_ica.simulation import run_chains, run_vector
from hdica.systems.several_ica.system import (
    SeveralICA,
    laws,
    limit_refusal,
    rule,
    start_overlap,
    steady_refusal,
)
from hdica.systems.trials import (
    SHARED,
    alone,
    content_of,
    in_lanes,
    on_shared_streams,
    seeded,
    with_shared_noise,
)

_PAPER = "Wang and Lu 2017, eq. (2) with phi = 0 and several features"
_DIMS = ("time", "source")
Q = Output("Q", _DIMS, "overlap Q = xi.x/n with the feature of a source")


def _vector(system: SeveralICA, times: Array, n: int, stream: Stream, save: Save) -> Values:
    return run_vector(rule(system), times, n, stream)


def _chains(content: Callable[[SeveralICA], object]) -> RunAll:
    """Chains, eight in one call of the kernel, on the streams of a content."""
    return in_lanes(
        "chain",
        lambda system, n: rule(system),
        content,
        lambda system, one: one.alike,
        LANES,
        lambda systems, rules, times, n, streams: run_chains(rules, times, n, streams),
    )


def _of_vector(m: int, n: int, last: float) -> float:
    """Seconds of a point by all coordinates."""
    return 2e-4 + slowness() * last * n * (5e-8 + 1e-9 * n * (4 + 2 * m))


_VECTOR = Simulation[SeveralICA](
    name="vector",
    role=Role.SIMULATION,
    rank=2,
    about=About(
        text="all n coordinates of the rule, features in general position",
        accuracy="exact",
        equations=f"{_PAPER}, all n coordinates",
        bits=Bits.EVERY_KIND,
        engines=(*PROJECTED, __package__),
    ),
    outputs=Outputs((Q,)),
    cost=Cost(
        seconds=lambda system, n, last: _of_vector(len(system.sources), n or 1, last),
        memory=lambda system, n: (3 + len(system.sources)) * (n or 0),
        fused=True,
    ),
    run=seeded("vector", _vector),
)
VECTOR = replace(
    _VECTOR, shared=with_shared_noise(_VECTOR, on_shared_streams("vector", _vector), 1.0)
)
_OWN = _chains(content_of)
_CHAIN = Simulation[SeveralICA](
    name="chain",
    role=Role.SIMULATION,
    rank=1,
    about=About(
        text="the overlaps alone, at a cost per step that does not depend on n",
        accuracy="exact in law",
        equations=f"{_PAPER}, reduced exactly in law to the overlaps",
        bits=Bits.EVERY_KIND,
        engines=(*PROJECTED, __package__),
    ),
    outputs=Outputs((Q,)),
    cost=Cost(
        seconds=lambda system, n, last: (
            2e-4 + slowness() * last * (n or 1) * (5e-9 + 3e-9 * len(system.sources))
        ),
        fused=True,
    ),
    run=alone(_OWN),
    together=Together(_OWN),
)
CHAIN = replace(_CHAIN, shared=with_shared_noise(_CHAIN, _chains(lambda system: SHARED), 1.0))


def _ode(
    system: SeveralICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    averages = averages_of(formula(system, "nonlinearity"), laws(system))
    path = limit_path(averages, schedule(system), start_overlap(system), times)
    return PointResult({"Q": path.q, "Q_error": path.error, "Q_control": path.control})


ODE = Limit[SeveralICA](
    name="ode",
    role=Role.LIMIT,
    rank=1,
    about=About(
        text="dQ/dt as n → ∞ for polynomial f and any number of features, with a negative control",
        accuracy="converged",
        equations="Wang and Lu 2017, the limit below (11) for several features: "
        "dQ_j/dt = -tau (<c_j f> - Q_j <u f>) - (tau^2/2) <f^2> Q_j; Dormand-Prince 8(5,3), "
        "tolerance 1e-12",
        engines=(*COMMON, NUMERICS, __package__),
    ),
    outputs=Outputs(
        (
            Q,
            Output("Q_error", _DIMS, "error of Q, from a run with 100 times coarser tolerance"),
            Output("Q_control", _DIMS, "overlap with the drift wrong by 2 % (negative control)"),
        )
    ),
    cost=Cost(seconds=lambda system, n, last: 2e-2 * (1 + len(system.sources))),
    scope=Scope(refuses=limit_refusal),
    run=_ode,
    closed=True,
)

MAX_STATES = 1024
_AT = ("fixed_point",)


def _fixed_points(
    system: SeveralICA, times: Array, n: int | None, seed: int | None, save: Save
) -> PointResult:
    from hdica.systems.several_ica.limit import steady_states

    tau = schedule(system).constant
    assert tau is not None
    result = steady_states(formula(system, "nonlinearity"), laws(system), tau)
    columns = {
        "eigenvalue": result.eigenvalue,
        "stable": (result.eigenvalue < 0).astype(float),
        "kind": (np.abs(result.q).max(axis=1) < ZERO).astype(float),
        "error": result.error,
    }
    values = padded(columns, MAX_STATES, "fixed points")
    values["Q"] = np.full((MAX_STATES, len(system.sources)), math.nan)
    values["Q"][: len(result.q)] = result.q
    return PointResult(values)


FIXED_POINTS = States[SeveralICA](
    name="fixed_points",
    role=Role.STEADY_STATES,
    rank=1,
    about=About(
        text="steady states of the overlaps that a search on every choice of features finds",
        accuracy="converged",
        equations="Wang and Lu 2017, steady states of the limit below (11) for several features: "
        "tau (<c_j f> - Q_j <u f>) + (tau^2/2) <f^2> Q_j = 0; Powell's hybrid method from "
        "starts on every choice of features",
        engines=(*COMMON, __package__),
    ),
    outputs=Outputs(
        (
            Output("Q", (*_AT, "source"), "overlap Q at the fixed point"),
            Output("eigenvalue", _AT, "largest real part of the Jacobian's eigenvalues"),
            Output("stable", _AT, "1 if stable, 0 if unstable"),
            Output("kind", _AT, "0 informative, 1 uninformative (Q = 0)"),
            Output("error", _AT, "error of Q at the fixed point"),
        ),
        coords=lambda times: {"fixed_point": np.arange(MAX_STATES)},
    ),
    cost=Cost(
        seconds=lambda system, n, last: 0.5 * len(system.sources) ** 2 * 2 ** len(system.sources)
    ),
    scope=Scope(refuses=steady_refusal, ignores=frozenset({"start"})),
    run=_fixed_points,
)

METHODS = (VECTOR, CHAIN, ODE, FIXED_POINTS)
