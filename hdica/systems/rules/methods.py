"""The ways to compute a rule of finitely many projections: chains, all coordinates, the limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from hdica.finite.random import LANES
from hdica.finite.random.streams import Stream
from hdica.finite.record import OVERLAP, PRODUCT, Values
from hdica.finite.rules.rule import FiniteRule, run_chains, run_vector
from hdica.ingredients.save import Save
from hdica.limits.rules.equations import follow
from hdica.process.machine import slowness
from hdica.systems import method, trials
from hdica.systems import system as registry
from hdica.systems.method import ZERO, Array, Output, PointResult
from hdica.systems.rules.system import (
    Rule,
    closed_refusal,
    limit_of,
    rule_of,
    start_of,
)

_STEP = "x + F y/sqrt(n) + psi(x)/n"
_LIMIT = (
    "dR/dt = <F v'> - lambda R - B R and dP/dt = D - B P - P B' with D = <F u'> + <u F'> + <F F'> "
    "- 2 lambda P (Saad and Solla 1995 for committees)"
)
FINITE = (*method.FINITE, "hdica.finite.rules", __package__)
LIMIT = (*method.COMMON, method.NUMERICS, "hdica.limits.rules", __package__)
ONE = {"R": ("Q", ("time",), "overlap Q = xi.x/n"), "P": ("P", ("time",), "P = |x|^2/n")}
ONE["cosine"] = ("cosine", ("time",), "cosine of the angle between estimate and feature")
SEVERAL = {
    "R": ("R", ("time", "estimate", "feature"), "overlap R_km = xi_m.x_k/n"),
    "P": ("P", ("time", "estimate", "other"), "product P_kl = x_k.x_l/n of two estimates"),
    "cosine": ("cosine", ("time", "estimate", "feature"), "cosine of estimate and feature"),
}
Names = Mapping[str, tuple[str, tuple[str, ...], str]]


def _outputs(names: Names) -> tuple[Output, ...]:
    return tuple(Output(*row) for row in names.values())


def cosines(r: Array, p: Array) -> Array:
    """Cosines between estimates and features, of the shape of R: 0 of an estimate that is 0."""
    norms = np.sqrt(np.maximum(np.diagonal(p, axis1=-2, axis2=-1), 0.0))[..., None]
    return np.divide(r, norms, out=np.zeros_like(r), where=norms > 0)


def _named(run: Values, names: Names) -> Values:
    """R, P and their cosines by the names of a class, numbers where there is one of each."""
    values, diverged = run
    r, p = values[OVERLAP], values[PRODUCT]
    with np.errstate(invalid="ignore"):
        whole = {"R": r, "P": p, "cosine": cosines(r, p)}
    return {names[name][0]: _shaped(value, names) for name, value in whole.items()}, diverged


def _shaped(value: Array, names: Names) -> Array:
    """Values over time of the shape that a class has: numbers where there is one of each."""
    return value[:, 0, 0] if names is ONE else value


def simulations(names: Names) -> tuple[method.Simulation[Rule], ...]:
    """``chain`` and ``vector``."""

    def chains(content: Callable[[Rule], object]) -> method.RunAll[Rule]:
        def run(
            systems: list[Rule],
            rules: list[FiniteRule],
            times: Array,
            n: int,
            streams: list[Stream],
        ) -> list[Values]:
            return [_named(values, names) for values in run_chains(rules, times, n, streams)]

        return trials.in_lanes(
            "chain", lambda system, n: rule_of(system), content, _alike, LANES, run
        )

    def vector(system: Rule, times: Array, n: int, stream: Stream, save: Save) -> Values:
        return _named(run_vector(rule_of(system), times, n, stream), names)

    own = chains(trials.content_of)
    chain = method.Simulation[Rule](
        name="chain",
        role=method.Role.SIMULATION,
        rank=1,
        about=method.About(
            text="the products R and P alone, at a cost per step that does not depend on n",
            accuracy="exact in law",
            equations=f"{_STEP}, reduced exactly in law to R = xi.x/n and P = x.x/n",
            bits=method.Bits.EVERY_KIND,
            engines=(*FINITE, "hdica.finite.projected"),
        ),
        outputs=method.Outputs(_outputs(names)),
        cost=method.Cost(seconds=_chain_seconds, fused=True),
        scope=method.Scope(refuses=chain_refusal),
        run=trials.alone(own),
        together=method.Together(own, lanes=LANES),
    )
    entries = method.Simulation[Rule](
        name="vector",
        role=method.Role.SIMULATION,
        rank=2,
        about=method.About(
            text="all n coordinates of the rule, with any psi",
            accuracy="exact",
            equations=f"{_STEP}, all n coordinates",
            bits=method.Bits.EVERY_KIND,
            engines=FINITE,
        ),
        outputs=method.Outputs(_outputs(names)),
        cost=method.Cost(seconds=_vector_seconds, memory=_numbers, fused=True),
        run=trials.seeded("vector", vector),
    )
    shared = chains(lambda system: trials.SHARED)
    return (
        replace(chain, shared=trials.with_shared_noise(chain, shared, 1.0)),
        replace(
            entries,
            shared=trials.with_shared_noise(
                entries, trials.on_shared_streams("vector", vector), 1.0
            ),
        ),
    )


def _alike(system: Rule, rule: FiniteRule) -> object:
    return rule.alike


def chain_refusal(system: Rule) -> str:
    """Empty if R and P alone are a chain, else the sentence that says why not."""
    why = closed_refusal(system)
    return why and f"method 'chain': {why}, use method 'vector'"


def _sizes(system: Rule) -> tuple[int, int]:
    r, _ = start_of(system)
    return r.shape


def _chain_seconds(system: Rule, n: int | None, last: float) -> float:
    k, m = _sizes(system)
    update = rule_of(system).update
    step = 2e-8 * (k + m) + 4e-9 * k * k * (k + m) + 1.5e-8 * update.transcendental
    return 3e-4 + slowness() * step * last * (n or 1)


def _vector_seconds(system: Rule, n: int | None, last: float) -> float:
    k, m = _sizes(system)
    entry = 3e-10 * (3 + k * (k + m + 3))
    return 3e-4 + slowness() * (3e-7 + entry * (n or 1)) * last * (n or 1)


def _numbers(system: Rule, n: int | None) -> int:
    k, m = _sizes(system)
    return (k + m + 1) * (n or 0)


def ode(names: Names) -> method.Limit[Rule]:
    """``ode``: R and P as n -> infinity."""

    def run(system: Rule, times: Array) -> PointResult:
        r, p = start_of(system)
        path = follow(limit_of(system), r, p, times)
        features = r.shape[1]
        columns = {"": path.state, "_error": path.error, "_control": path.control}
        values: dict[str, Array] = {}
        for end, state in columns.items():
            parts = {"R": state[..., :features], "P": state[..., features:]}
            if not end:
                parts["cosine"] = cosines(parts["R"], parts["P"])
            for name, value in parts.items():
                values[names[name][0] + end] = _shaped(value, names)
        return PointResult(values)

    outputs = list(_outputs(names))
    for name in ("R", "P"):
        own, dims, words = names[name]
        short = words.partition(" = ")[0]
        outputs.append(Output(f"{own}_error", dims, f"error of the {short}"))
        outputs.append(
            Output(f"{own}_control", dims, f"{short} with rates wrong by 2 % (negative control)")
        )
    return method.Limit[Rule](
        name="ode",
        role=method.Role.LIMIT,
        rank=1,
        about=method.About(
            text="R and P as n → ∞, where psi is linear, with a negative control",
            accuracy="converged",
            equations=f"{_LIMIT}; averages in closed form, by Gauss rules cut where F switches, or "
            "by replicates of Sobol points",
            engines=LIMIT,
        ),
        outputs=method.Outputs(tuple(outputs)),
        cost=method.Cost(seconds=_ode_seconds),
        scope=method.Scope(refuses=limit_refusal),
        run=lambda system, times, n, seed, save: run(system, times),
        closed=True,
    )


def limit_refusal(system: Rule) -> str:
    """Empty if the limit of R and P exists, else the sentence that says why not."""
    return closed_refusal(system) or limit_of(system).sample.refusal(*start_of(system))


def _ode_seconds(system: Rule, n: int | None, last: float) -> float:
    return limit_of(system).sample.seconds


def stays(name: str) -> registry.Notes[Rule]:
    """Why nothing is learned, by the overlaps of this name."""

    def note(system: Rule, values: Mapping[str, NDArray[np.float64]], times: Array) -> str:
        """Why nothing is learned from overlaps of 0."""
        if np.abs(values[name]).max() > ZERO:
            return ""
        return (
            "the start has overlap 0 with every feature, and the limit stays there for ever on "
            "this scale of time (t = k/n): begin with an overlap"
        )

    return registry.Notes(note)


PAPERS = tuple(map(registry.work, ("Saad and Solla 1995", "Wang, Mattingly and Lu 2017")))
TAU = registry.Control("tau", 1e-4, 10.0, step=True)
COSINE = registry.Symbol("cos θ", r"$\cos\theta$", "cos θ")
