"""The ways to compute a rule of finitely many projections: chains, all coordinates, the limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.random import LANES
from hdica.finite.random.streams import Stream
from hdica.finite.record import OVERLAP, PRODUCT, Values
from hdica.finite.rules.rule import FiniteRule, placed, run_chains, run_vector
from hdica.ingredients.save import Save
from hdica.limits.rules.averages import FIRST
from hdica.limits.rules.equations import Equations, follow
from hdica.limits.rules.fluctuations import fluctuations
from hdica.limits.rules.steady import search_seconds, steady_refusal, steady_states
from hdica.limits.rules.transitions import Changes, transitions
from hdica.process.machine import slowness
from hdica.systems import fields, method, trials
from hdica.systems import system as registry
from hdica.systems.method import ZERO, Array, Output, PointResult
from hdica.systems.parameters import Parameters
from hdica.systems.rules.system import (
    Rule,
    closed_refusal,
    limit_of,
    rule_of,
    start_of,
)

S = TypeVar("S", bound=Parameters)
KEEPS = frozenset({"densities", "support", "functionals", "estimate"})
_STEP = "x + F y/sqrt(n) + psi(x)/n"
_LIMIT = (
    "dR/dt = <F v'> - lambda R - B R and dP/dt = D - B P - P B' with D = <F u'> + <u F'> + <F F'> "
    "- 2 lambda P (Saad and Solla 1995 for committees)"
)
FINITE = (*method.FINITE, "hdica.finite.rules", __package__)
LIMIT = (*method.COMMON, "hdica.limits.rules", __package__)


@dataclass(frozen=True)
class Labels:
    """The names under which a system has R, P and their cosines.

    ``rows`` has name, dimensions and words of each that it has; ``taken`` is which part of arrays
    of shape (..., K, M) and (..., K, K) they are.
    """

    rows: Mapping[str, tuple[str, tuple[str, ...], str]]
    taken: tuple[int | slice, int | slice]

    @property
    def outputs(self) -> tuple[Output, ...]:
        """Over time."""
        return tuple(Output(*row) for row in self.rows.values())

    def values(self, r: Array, p: Array, end: str = "") -> dict[str, Array]:
        """R, P and their cosines by their names, with an end."""
        whole = {"R": r, "P": p}
        if "cosine" in self.rows and not end:
            with np.errstate(invalid="ignore"):
                whole["cosine"] = cosines(r, p)
        named = {
            self.rows[name][0] + end: value[(..., *self.taken)]
            for name, value in whole.items()
            if name in self.rows
        }
        if "learned" in self.rows and not end:
            near = np.abs(whole["cosine"]).max(axis=-2) >= LEARNED
            finite = np.isfinite(whole["cosine"]).all(axis=(-2, -1))
            named["learned"] = np.where(finite, near.sum(axis=-1), np.nan)
        return named


ONE = Labels(
    {
        "R": ("Q", ("time",), "overlap Q = xi.x/n"),
        "P": ("P", ("time",), "P = |x|^2/n"),
        "cosine": ("cosine", ("time",), "cosine of the angle between estimate and feature"),
    },
    (0, 0),
)
SEVERAL = Labels(
    {
        "R": ("R", ("time", "estimate", "feature"), "overlap R_km = xi_m.x_k/n"),
        "P": ("P", ("time", "estimate", "other"), "product P_kl = x_k.x_l/n of two estimates"),
        "cosine": ("cosine", ("time", "estimate", "feature"), "cosine of estimate and feature"),
        "learned": ("learned", ("time",), "number of features that an estimate has learned"),
    },
    (slice(None), slice(None)),
)
LEARNED = 0.5
"""Cosine between a feature and an estimate from which the estimate has learned it."""


def cosines(r: Array, p: Array) -> Array:
    """Cosines between estimates and features, of the shape of R: 0 of an estimate that is 0."""
    norms = np.sqrt(np.maximum(np.diagonal(p, axis1=-2, axis2=-1), 0.0))[..., None]
    return np.divide(r, norms, out=np.zeros_like(r), where=norms > ZERO)


def simulations(labels: Labels) -> tuple[method.Simulation[Rule], ...]:
    """``chain`` and ``vector``."""

    def chains(content: Callable[[Rule], object]) -> method.RunAll[Rule]:
        def run(
            systems: list[Rule],
            rules: list[FiniteRule],
            times: Array,
            n: int,
            streams: list[Stream],
        ) -> list[Values]:
            return [_labelled(run, labels) for run in run_chains(rules, times, n, streams)]

        return trials.in_lanes(
            "chain", lambda system, n: rule_of(system), content, _alike, LANES, run
        )

    def vector(system: Rule, times: Array, n: int, stream: Stream, save: Save) -> Values:
        values, why = run_vector(rule_of(system), times, n, stream, save)
        entries = {k: v for k, v in values.items() if k not in (OVERLAP, PRODUCT)}
        return entries | labels.values(values[OVERLAP], values[PRODUCT]), why

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
        outputs=method.Outputs(labels.outputs),
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
        # Entries have a law by groups of the feature's where there is one feature with a prior.
        outputs=method.Outputs(labels.outputs, keeps=KEEPS if labels is ONE else frozenset()),
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


def particles(labels: Labels) -> method.Simulation[Rule]:
    """``particles``: entries that see each other through R and P alone, for any psi."""

    def runner(system: Rule, times: Array, n: int, stream: Stream, save: Save) -> Values:
        from hdica.limits.rules.particles import run

        rule = rule_of(system)
        features, estimates = placed(rule, n, stream("start"))
        begin = (features, estimates, times, stream("noise"))
        r, p, why = run(limit_of(system), rule.psi, *begin)
        return labels.values(r, p), why

    def refusal(system: Rule) -> str:
        return limit_of(system).sample.refusal(*start_of(system))

    return method.Simulation[Rule](
        name="particles",
        role=method.Role.SIMULATION,
        about=method.About(
            text="the limit by McKean–Vlasov particles, for any ψ and any number of estimates",
            accuracy="approximate",
            equations="dx = (b xi + A x + psi(x) - B x) dt + C dW, b = <F v'> - A R, A = <dF/du>, "
            "C C' = <F F'>; Heun's method, R and P from the particles",
            engines=(*LIMIT, *method.FINITE, "hdica.finite.rules"),
        ),
        outputs=method.Outputs(labels.outputs),
        cost=method.Cost(seconds=_particle_seconds, memory=_numbers),
        scope=method.Scope(refuses=refusal, n=method.Size.PARTICLES),
        run=trials.seeded("particles", runner),
    )


def _particle_seconds(system: Rule, n: int | None, last: float) -> float:
    k, m = _sizes(system)
    sample = limit_of(system).sample
    points = 0 if sample.is_known else sample.size(FIRST + 1)
    each = 2e-8 + 1.5e-8 * sample.update.transcendental
    entry = 1e-7 * (k + m) ** 2 * (n or 1)
    return 1e-2 + 40 * last * (1e-3 + 3 * (each * points + entry))


def _labelled(run: Values, labels: Labels) -> Values:
    """What an engine gives, by the names of a system."""
    values, diverged = run
    return labels.values(values[OVERLAP], values[PRODUCT]), diverged


def _alike(system: Rule, rule: FiniteRule) -> object:
    return rule.alike


def chain_refusal(system: Rule) -> str:
    """Empty if R and P alone are a chain, else the sentence that says why not."""
    why = closed_refusal(system)
    return why and f"method 'chain': {why}, use method 'vector'"


def _sizes(system: Rule) -> tuple[int, int]:
    r, _ = start_of(system)
    estimates, features = r.shape
    return estimates, features


def _chain_seconds(system: Rule, n: int | None, last: float) -> float:
    k, m = _sizes(system)
    update = rule_of(system).update
    step = 2e-8 * (k + m) + 4e-9 * k * k * (k + m) + 1.5e-8 * update.transcendental
    return 3e-4 + slowness() * step * last * (n or 1)


def _vector_seconds(system: Rule, n: int | None, last: float) -> float:
    k, m = _sizes(system)
    entry = 3e-10 * (3 + k * (k + m + 3))
    return 3e-4 + slowness() * (3e-7 + entry * (n or 1)) * last * (n or 1)


def _numbers(system: Rule, n: int | None, last: float) -> int:
    k, m = _sizes(system)
    return (k + m + 1) * (n or 0)


@dataclass(frozen=True)
class Limiting(Generic[S]):
    """How a system's limit is read: its equations, its start, and names for what they give."""

    labels: Labels
    equations: Callable[[S], Equations]
    start: Callable[[S], tuple[Array, Array]]
    """R and P at t = 0."""
    paper: str
    """The equations, in words and with their source."""
    engines: tuple[str, ...]
    without: Callable[[S], str] = method.always
    """Empty if R and P close the limit, else why not."""

    def refusal(self, system: S) -> str:
        """Empty if the limit of R and P exists, else the sentence that says why not."""
        return self.without(system) or self.equations(system).sample.refusal(*self.start(system))


def ode(limit: Limiting[S]) -> method.Limit[S]:
    """``ode``: R and P as n -> infinity."""
    labels = limit.labels

    def run(system: S, times: Array, save: Save) -> PointResult:
        equations, (r, p) = limit.equations(system), limit.start(system)
        columns, features = dict[str, Array](), r.shape[1]
        if save.bias:
            fields.check_bias(system)
        if save.bands or save.bias:
            spread = fluctuations(equations, r, p, times, save.bias)
            columns |= {"_sd": spread.deviation} if save.bands else {}
            columns |= {"_bias": spread.bias} if save.bias else {}
        path = follow(equations, r, p, times)
        columns |= {"": path.state, "_error": path.error, "_control": path.control}
        values: dict[str, Array] = {}
        for end, state in columns.items():
            values |= labels.values(state[..., :features], state[..., features:], end)
        return PointResult(values)

    outputs = list(labels.outputs)
    own = [Output(*row) for key, row in labels.rows.items() if key in ("R", "P")]
    for name, dims, words in ((one.name, one.dims, one.long_name) for one in own):
        short = words.partition(" = ")[0]
        outputs.append(Output(f"{name}_error", dims, f"error of the {short}"))
        outputs.append(
            Output(f"{name}_control", dims, f"{short} with rates wrong by 2 % (negative control)")
        )
    return method.Limit[S](
        name="ode",
        role=method.Role.LIMIT,
        rank=1,
        about=method.About(
            text="the overlaps as n → ∞, where ψ is linear, with a negative control",
            accuracy="converged",
            equations=f"{limit.paper}; averages in closed form, by Gauss rules cut where F "
            "switches, or by replicates of Sobol points",
            engines=(*limit.engines, method.NUMERICS),
        ),
        outputs=method.Outputs(
            tuple(outputs),
            bands=tuple(map(method.band_of, own)),
            bias=tuple(map(method.bias_of, own)),
        ),
        cost=method.Cost(seconds=lambda system, n, last: limit.equations(system).sample.seconds),
        scope=method.Scope(refuses=limit.refusal),
        run=lambda system, times, n, seed, save: run(system, times, save),
        closed=True,
    )


MAX_STATES = 1024


def fixed_points(limit: Limiting[S]) -> method.States[S]:
    """``fixed_points``: steady states of R and P, and their stability."""

    def run(system: S) -> PointResult:
        states = steady_states(limit.equations(system))
        columns = {
            "eigenvalue": states.eigenvalue,
            "stable": (states.eigenvalue < 0).astype(float),
            "kind": (np.abs(states.r).max(axis=(1, 2), initial=0.0) < ZERO).astype(float),
            "error": states.error,
        }
        values = method.padded(columns, MAX_STATES, "fixed points")
        for name, value in limit.labels.values(states.r, states.p).items():
            values[name] = np.full((MAX_STATES, *value.shape[1:]), np.nan)
            values[name][: len(value)] = value
        return PointResult(values)

    def refusal(system: S) -> str:
        return limit.refusal(system) or steady_refusal(limit.equations(system))

    at = ("fixed_point",)
    own = (Output(o.name, (*at, *o.dims[1:]), o.long_name) for o in limit.labels.outputs)
    return method.States[S](
        name="fixed_points",
        role=method.Role.STEADY_STATES,
        rank=1,
        about=method.About(
            text="steady states of the overlaps that a search from random starts finds, and "
            "whether they are stable",
            accuracy="converged",
            equations=f"{limit.paper}, set to 0; Powell's hybrid method from random starts, twice "
            "as many until they find no other state",
            engines=limit.engines,
        ),
        outputs=method.Outputs(
            (
                *own,
                Output("eigenvalue", at, "largest real part of the Jacobian's eigenvalues"),
                Output("stable", at, "1 if stable, 0 if unstable"),
                Output("kind", at, "0 informative, 1 uninformative (all overlaps 0), 2 condensed"),
                Output("error", at, "error of the largest number of the fixed point"),
            ),
            coords=lambda times: {"fixed_point": np.arange(MAX_STATES)},
        ),
        cost=method.Cost(seconds=lambda system, n, last: search_seconds(limit.equations(system))),
        scope=method.Scope(refuses=refusal, ignores=frozenset({"start"})),
        run=lambda system, times, n, seed, save: run(system),
    )


def changes(system: Rule, parameter: str, ends: tuple[float, float]) -> Changes:
    """Where the steady states of one estimate and one feature change as a parameter varies."""
    # Before the search, so that a parameter that is none is refused as such.
    fields.with_parameter(system, parameter, ends[1])
    return transitions(
        lambda value: limit_of(fields.with_parameter(system, parameter, value)), *ends
    )


MAX_TRANSITIONS = 12


def critical(refuses: Callable[[Rule], str]) -> method.States[Rule]:
    """``critical``: transitions of the steady states in the constant ``tau``."""
    at = ("transition",)

    def run(system: Rule) -> PointResult:
        every = changes(system, TAU.name, (TAU.low, TAU.high))
        kind = method.codes(every.kind, method.TRANSITION_KINDS)
        columns = {"value": every.value, "Q": every.q, "kind": kind, "error": every.error}
        return PointResult(method.padded(columns, MAX_TRANSITIONS, "transitions"))

    def refusal(system: Rule) -> str:
        try:
            return refuses(fields.with_parameter(system, TAU.name, 1.0))
        except HdicaError as exc:
            return str(exc)

    return method.States[Rule](
        name="critical",
        role=method.Role.TRANSITIONS,
        rank=1,
        about=method.About(
            text="values of tau at which steady states merge, meet Q = 0 or diverge",
            accuracy="converged",
            equations=f"{_LIMIT}; states over a scan of tau, and where they change: folds, where "
            "the determinant of the Jacobian vanishes too, and zeros of its eigenvalue at Q = 0",
            engines=LIMIT,
        ),
        outputs=method.Outputs(
            (
                Output("value", at, "critical value of tau"),
                Output("Q", at, "overlap at the transition"),
                Output("kind", at, "0 fold, 1 transcritical, 2 junction, 3 divergence, 4 hopf"),
                Output("error", at, "error of the critical value"),
            ),
            coords=lambda times: {"transition": np.arange(MAX_TRANSITIONS)},
        ),
        cost=method.Cost(seconds=lambda system, n, last: 10.0),
        scope=method.Scope(refuses=refusal, ignores=frozenset({TAU.name, "start"})),
        run=lambda system, times, n, seed, save: run(system),
        varies=TAU.name,
    )


def methods(labels: Labels) -> tuple[method.Method[Rule], ...]:
    """All methods of a rule, by the names of its numbers."""
    limit = Limiting(labels, limit_of, start_of, _LIMIT, LIMIT, closed_refusal)
    states = fixed_points(limit)
    one = (critical(states.scope.refuses),) if labels is ONE else ()
    return (*simulations(labels), ode(limit), particles(labels), states, *one)


def stays(name: str) -> registry.Notes[S]:
    """Why nothing is learned, by the overlaps of this name."""

    def note(system: S, values: Mapping[str, NDArray[np.float64]], times: Array) -> str:
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
