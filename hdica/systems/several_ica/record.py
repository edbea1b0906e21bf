"""Online ICA with several features as the rest of hdica knows it, and its methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hdica.finite.random import LANES
from hdica.finite.random.streams import Stream
from hdica.finite.record import OVERLAP, Values
from hdica.finite.rules.rule import run_vector
from hdica.ingredients.save import Save
from hdica.process.machine import OF_FUNCTION, seconds_of_law, slowness
from hdica.systems import fields, method, trials
from hdica.systems import system as registry
from hdica.systems.method import Array, Output
from hdica.systems.rules.methods import LIMIT, Labels, Limiting, fixed_points, ode, stays
from hdica.systems.several_ica import system as several
from hdica.systems.several_ica.system import SeveralICA

_PAPER = "Wang and Lu 2017, eq. (2) with phi = 0 and several features"
_DIMS = ("time", "source")
Q = Output("Q", _DIMS, "overlap Q = xi.x/n with the feature of a source")


def _vector(system: SeveralICA, times: Array, n: int, stream: Stream, save: Save) -> Values:
    rule = several.all_coordinates(fields.at_dimension(system, n))
    values, why = run_vector(rule, times, n, stream)
    return {Q.name: values[OVERLAP][:, 0]}, why


def _chains(content: Callable[[SeveralICA], object]) -> method.RunAll:
    """Chains, eight in one call of the kernel, on the streams of a content."""
    return trials.in_lanes(
        "chain",
        lambda system, n: several.rule(fields.at_dimension(system, n)),
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
        engines=(*method.FINITE, "hdica.finite.rules", __package__),
    ),
    outputs=method.Outputs((Q,)),
    cost=method.Cost(
        seconds=lambda system, n, last: (
            2e-4
            + slowness() * last * (n or 1) * (6e-7 + 6e-10 * (n or 1) * (3 + len(system.sources)))
        ),
        memory=lambda system, n, last: (3 + len(system.sources)) * (n or 0),
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
            2e-4
            + slowness()
            * last
            * (n or 1)
            * (
                2e-9
                + sum(9e-9 + seconds_of_law(source) for source in system.sources)
                + OF_FUNCTION * fields.formula(system, "nonlinearity").transcendental
            )
        ),
        fused=True,
    ),
    run=trials.alone(_OWN),
    together=method.Together(_OWN),
)
CHAIN = replace(
    _CHAIN, shared=trials.with_shared_noise(_CHAIN, _chains(lambda system: trials.SHARED), 1.0)
)


_LIMIT = Limiting(
    Labels({"R": (Q.name, Q.dims, Q.long_name)}, (0, slice(None))),
    several.equations,
    several.start,
    "Wang and Lu 2017, the limit below (11) for several features: dQ_j/dt = -tau (<c_j f> - Q_j "
    "<u f>) - (tau^2/2) <f^2> Q_j",
    (*LIMIT, __package__),
    fields.n_refusal,
)
METHODS = (VECTOR, CHAIN, ode(_LIMIT), fixed_points(_LIMIT))


__all__ = ["SYSTEM", "SeveralICA"]


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
    notes=stays("Q"),
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
