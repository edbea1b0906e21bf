"""Online ICA with several features as the rest of hdica knows it, and its methods."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hdica.finite.random import LANES
from hdica.finite.random.streams import Stream
from hdica.finite.record import Values
from hdica.ingredients.save import Save
from hdica.process.machine import slowness
from hdica.systems import method, trials
from hdica.systems import system as registry
from hdica.systems.fields import formula, schedule
from hdica.systems.method import ZERO, Array, Output, PointResult, padded
from hdica.systems.several_ica import system as several
from hdica.systems.several_ica.limit import averages_of, limit_path, steady_states
from hdica.systems.several_ica.system import SeveralICA

_PAPER = "Wang and Lu 2017, eq. (2) with phi = 0 and several features"
_DIMS = ("time", "source")
Q = Output("Q", _DIMS, "overlap Q = xi.x/n with the feature of a source")


def _vector(system: SeveralICA, times: Array, n: int, stream: Stream, save: Save) -> Values:
    return several.run_vector(several.rule(system), times, n, stream)


def _chains(content: Callable[[SeveralICA], object]) -> method.RunAll:
    """Chains, eight in one call of the kernel, on the streams of a content."""
    return trials.in_lanes(
        "chain",
        lambda system, n: several.rule(system),
        content,
        lambda system, one: one.alike,
        LANES,
        lambda systems, rules, times, n, streams: several.run_chains(rules, times, n, streams),
    )


_VECTOR = method.Simulation[SeveralICA](
    name="vector",
    role=method.Role.SIMULATION,
    rank=2,
    about=method.About(
        text="all n coordinates of the rule, features in general position",
        accuracy="exact",
        equations=f"{_PAPER}, all n coordinates",
        bits=method.Bits.EVERY_KIND,
        engines=(*method.PROJECTED, __package__),
    ),
    outputs=method.Outputs((Q,)),
    cost=method.Cost(
        seconds=lambda system, n, last: (
            2e-4
            + slowness()
            * last
            * (n or 1)
            * (5e-8 + 1e-9 * (n or 1) * (4 + 2 * len(system.sources)))
        ),
        memory=lambda system, n: (3 + len(system.sources)) * (n or 0),
        fused=True,
    ),
    run=trials.seeded("vector", _vector),
)
VECTOR = replace(
    _VECTOR,
    shared=trials.with_shared_noise(_VECTOR, trials.on_shared_streams("vector", _vector), 1.0),
)
_OWN = _chains(trials.content_of)
_CHAIN = method.Simulation[SeveralICA](
    name="chain",
    role=method.Role.SIMULATION,
    rank=1,
    about=method.About(
        text="the overlaps alone, at a cost per step that does not depend on n",
        accuracy="exact in law",
        equations=f"{_PAPER}, reduced exactly in law to the overlaps",
        bits=method.Bits.EVERY_KIND,
        engines=(*method.PROJECTED, __package__),
    ),
    outputs=method.Outputs((Q,)),
    cost=method.Cost(
        seconds=lambda system, n, last: (
            2e-4 + slowness() * last * (n or 1) * (5e-9 + 3e-9 * len(system.sources))
        ),
        fused=True,
    ),
    run=trials.alone(_OWN),
    together=method.Together(_OWN),
)
CHAIN = replace(
    _CHAIN, shared=trials.with_shared_noise(_CHAIN, _chains(lambda system: trials.SHARED), 1.0)
)


def _ode(system: SeveralICA, times: Array) -> PointResult:
    averages = averages_of(formula(system, "nonlinearity"), several.laws(system))
    path = limit_path(averages, schedule(system), several.start_overlap(system), times)
    return PointResult({"Q": path.q, "Q_error": path.error, "Q_control": path.control})


ODE = method.Limit[SeveralICA](
    name="ode",
    role=method.Role.LIMIT,
    rank=1,
    about=method.About(
        text="dQ/dt as n → ∞ for polynomial f and any number of features, with a negative control",
        accuracy="converged",
        equations="Wang and Lu 2017, the limit below (11) for several features: "
        "dQ_j/dt = -tau (<c_j f> - Q_j <u f>) - (tau^2/2) <f^2> Q_j; Dormand-Prince 8(5,3), "
        "tolerance 1e-12",
        engines=(*method.COMMON, method.NUMERICS, __package__),
    ),
    outputs=method.Outputs(
        (
            Q,
            Output("Q_error", _DIMS, "error of Q, from a run with 100 times coarser tolerance"),
            Output("Q_control", _DIMS, "overlap with the drift wrong by 2 % (negative control)"),
        )
    ),
    cost=method.Cost(seconds=lambda system, n, last: 2e-2 * (1 + len(system.sources))),
    scope=method.Scope(refuses=several.limit_refusal),
    run=lambda system, times, n, seed, save: _ode(system, times),
    closed=True,
)

MAX_STATES = 1024
_AT = ("fixed_point",)


def _fixed_points(system: SeveralICA) -> PointResult:
    tau = schedule(system).constant
    assert tau is not None
    result = steady_states(formula(system, "nonlinearity"), several.laws(system), tau)
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


FIXED_POINTS = method.States[SeveralICA](
    name="fixed_points",
    role=method.Role.STEADY_STATES,
    rank=1,
    about=method.About(
        text="steady states of the overlaps that a search on every choice of features finds",
        accuracy="converged",
        equations="Wang and Lu 2017, steady states of the limit below (11) for several features: "
        "tau (<c_j f> - Q_j <u f>) + (tau^2/2) <f^2> Q_j = 0; Powell's hybrid method from "
        "starts on every choice of features",
        engines=(*method.COMMON, __package__),
    ),
    outputs=method.Outputs(
        (
            Output("Q", (*_AT, "source"), "overlap Q at the fixed point"),
            Output("eigenvalue", _AT, "largest real part of the Jacobian's eigenvalues"),
            Output("stable", _AT, "1 if stable, 0 if unstable"),
            Output("kind", _AT, "0 informative, 1 uninformative (Q = 0)"),
            Output("error", _AT, "error of Q at the fixed point"),
        ),
        coords=lambda times: {"fixed_point": np.arange(MAX_STATES)},
    ),
    cost=method.Cost(
        seconds=lambda system, n, last: 0.5 * len(system.sources) ** 2 * 2 ** len(system.sources)
    ),
    scope=method.Scope(refuses=several.steady_refusal, ignores=frozenset({"start"})),
    run=lambda system, times, n, seed, save: _fixed_points(system),
)

METHODS = (VECTOR, CHAIN, ODE, FIXED_POINTS)


__all__ = ["SYSTEM", "SeveralICA"]


def _stays(
    system: SeveralICA, values: Mapping[str, NDArray[np.float64]], times: NDArray[np.float64]
) -> str:
    """Why nothing is learned from overlaps of 0."""
    if np.abs(values["Q"]).max() > ZERO:
        return ""
    return (
        "the start has overlap 0 with every feature, and the limit stays there for ever on this "
        "scale of time (t = k/n): begin with an overlap"
    )


SYSTEM = registry.System(
    parameters=SeveralICA,
    title="Online ICA with several features",
    short="online ICA with several features",
    papers=(registry.work("Wang and Lu 2017"),),
    order_parameters=(
        registry.OrderParameter(
            "Q", "overlap Q = xi.x/n with the feature of a source", ("source",), even=True
        ),
    ),
    controls=(registry.Control("tau", 1e-4, 10.0, step=True),),
    dimensions=(registry.Dimension("source", "source j, and its feature", entries=True, first=1),),
    symbols={
        "Q": registry.Symbol("<i>Q</i>", "$Q$", "Q"),
        "tau_c": registry.Symbol("τ<sub>c</sub>", r"$\tau_\mathrm{c}$", "τ_c"),
        **registry.in_words(ode="ODE"),
    },
    methods=METHODS,
    notes=registry.Notes(_stays),
    horizon=40.0,
    examples=(
        {"tau": 0.05, "sources": ["uniform", "rademacher"], "start": {"Q1": 0.5, "Q2": 0.4}},
        {
            "tau": 0.03,
            "sources": ["rademacher", "laplace", {"chi2": 4}],
            "start": {"overlap": [0.5, 0.3, -0.2]},
        },
    ),
)
