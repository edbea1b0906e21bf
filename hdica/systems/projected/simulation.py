"""Methods at finite n: the vector of all entries, and the chain of the overlap alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from hdica.finite.projected.chain import ChainRule, run_together
from hdica.finite.projected.vector import VectorRule, run_shared
from hdica.finite.random import LANES
from hdica.finite.random.streams import Stream, digest, streams_of
from hdica.finite.record import Values
from hdica.ingredients.save import Save
from hdica.ingredients.schedules import is_observed
from hdica.process.machine import OF_FUNCTION, seconds_of_law, slowness
from hdica.systems import method, trials
from hdica.systems.fields import F, Projected, at_dimension, batch, formula, noise_law, optional
from hdica.systems.method import Array, Output, PointResult
from hdica.systems.projected.family import named

Content = Callable[[F], object]

TRAJECTORY = (
    Output("Q", ("time",), "overlap Q = xi.x/n"),
    Output("R", ("time",), "R, the mean of x phi(x)"),
)
LARGEST = Output("largest", ("time",), "share of |x|^2 on the largest entry of the estimate")
OWN = "hdica.systems.projected"
MOST_SHARED, MOST_NUMBERS = 64, 2**25
"""Points in one call of the kernel, and numbers in their estimates or in a step of a batch."""
KEEPS = frozenset({"densities", "support", "functionals"})


def reached(function: Callable[..., object], uses: tuple[str, ...], *rooms: str) -> tuple[str, ...]:
    """Folders of code behind a method: of engines, the family, a function's system and others."""
    return (*method.COMMON, *rooms, OWN, method.home_of(function), *uses)


def _alike(system: Projected, rule: VectorRule) -> Hashable:
    """What points must have in common to see one feature and one vector of noise."""
    f = rule.nonlinearity and rule.nonlinearity.expression
    phi = rule.phi.expression if rule.phi_is_called else None
    noise = rule.noise and digest(optional(system, "noise_law"))
    follows = rule.schedule.observed is not None
    return digest(system.prior), f, phi, rule.batch, rule.motion, noise, follows


def _shared_vector(rule_of: Callable[[F], VectorRule]) -> method.RunAll[F]:
    """Points that share noise: one seed's, with one feature, in one call of the kernel."""

    def together(
        points: Sequence[method.Trial], times: Array, n: int | None, save: Save
    ) -> list[PointResult]:
        assert n is not None
        rules = trials.each(lambda system: rule_of(at_dimension(system, n)), points)
        streams = streams_of(trials.SHARED, "vector", n)
        keys = [(seed, _alike(s, r)) for (s, seed), r in zip(points, rules, strict=True)]

        def compute(group: list[int]) -> list[Values]:
            stream = streams(points[group[0]][1] or 0)
            saves = [trials.saved_for(save, points[k][0]) for k in group]
            runs = run_shared([rules[k] for k in group], times, n, stream, saves)
            return [named(values) for values in runs]

        room = max([n, *(2 * rule.batch for rule in rules)])
        return trials.in_groups(keys, max(1, min(MOST_SHARED, MOST_NUMBERS // room)), compute)

    return together


_OF_STEP, _OF_ENTRY = 3e-5, 4e-9
"""Seconds that noise of another law takes more than the normal one, of a step and of an entry."""


def _of_samples(system: Projected, n: int | None, last: float) -> float:
    """Seconds for components, and for noise that no kernel draws: a normal step has its own figure.

    Those of a sample's f(u) and c are beyond those of a cubic f and a sign.
    """
    m = batch(system)
    more = slowness() * (3e-8 * m if m > 1 else 4e-9 * is_observed(optional(system, "tau")))
    f = getattr(system, "nonlinearity", None)
    functions = 0 if f is None else formula(system, "nonlinearity").transcendental
    each = seconds_of_law(optional(system, "source")) + OF_FUNCTION * functions
    noise = 0.0
    if noise_law(system) is not None:
        noise = _OF_STEP + (_OF_ENTRY + seconds_of_law(optional(system, "noise_law"))) * (n or 1)
    return (more + m * each + noise) * last * (n or 1)


def vector(
    rule_of: Callable[[F], VectorRule],
    equations: str,
    uses: tuple[str, ...] = (),
    ignores: frozenset[str] = frozenset(),
) -> method.Simulation[F]:
    """Method ``vector``: every entry of the estimate, by the rule as the kernels take it.

    ``equations`` is what is computed, ``ignores`` are fields on which it does not depend.
    """

    def run(system: F, times: Array, n: int, stream: Stream, save: Save) -> Values:
        return named(run_shared([rule_of(at_dimension(system, n))], times, n, stream, [save])[0])

    own = method.Simulation[F](
        name="vector",
        role=method.Role.SIMULATION,
        rank=2,
        about=method.About(
            text="the full n-vector rule, any φ, prior, start, step-size schedule; histograms "
            "and support recovery",
            accuracy="exact",
            equations=f"{equations}, all n coordinates",
            bits=method.Bits.EVERY_KIND,
            engines=(*method.PROJECTED, OWN, method.home_of(rule_of), *uses),
        ),
        outputs=method.Outputs((*TRAJECTORY, LARGEST), keeps=KEEPS | {"estimate"}),
        cost=method.Cost(
            seconds=lambda system, n, last: (
                slowness() * (2e-4 + (8e-10 * (n or 1) * last + 5e-8) * (n or 1))
                + _of_samples(system, n, last)
            ),
            memory=lambda system, n, last: 2 * (n or 0),
            fused=True,
        ),
        scope=method.Scope(ignores=ignores),
        run=trials.seeded("vector", run, ignores),
    )
    return replace(own, shared=trials.with_shared_noise(own, _shared_vector(rule_of), 0.4))


def _chains(rule_of: Callable[[F], ChainRule], content: Content[F]) -> method.RunAll[F]:
    """Chains, eight in one call of the kernel."""
    return trials.in_lanes(
        "chain",
        lambda system, n: rule_of(at_dimension(system, n)),
        content,
        lambda system, rule: rule.called,
        LANES,
        lambda systems, rules, times, n, streams: [
            named(one) for one in run_together(rules, times, n, streams)
        ],
    )


def chain(
    rule_of: Callable[[F], ChainRule],
    refuses: Callable[[F], str],
    equations: str,
    uses: tuple[str, ...] = (),
    ignores: frozenset[str] = frozenset(),
) -> method.Simulation[F]:
    """Method ``chain``: the overlap alone, exact in law at a cost that does not depend on n.

    ``rule_of`` is the rule as the kernel of chains takes it, ``refuses`` empty where the reduction
    is exact; ``equations`` and ``ignores`` as for :func:`vector`.
    """
    together = _chains(rule_of, lambda system: trials.content_of(system, ignores))
    own = method.Simulation[F](
        name="chain",
        role=method.Role.SIMULATION,
        rank=1,
        about=method.About(
            text="the overlap alone, at a cost per step that does not depend on n (φ = 0 or βx)",
            accuracy="exact in law",
            equations=f"{equations}, reduced exactly in law to the overlap",
            bits=method.Bits.EVERY_KIND,
            engines=(*method.PROJECTED, OWN, method.home_of(rule_of), *uses),
        ),
        outputs=method.Outputs(TRAJECTORY),
        cost=method.Cost(
            seconds=lambda system, n, last: (
                1.5e-4 + slowness() * 7e-9 * last * (n or 1) + _of_samples(system, n, last)
            ),
            fused=True,
        ),
        scope=method.Scope(refuses=refuses, ignores=ignores),
        run=trials.alone(together),
        together=method.Together(together, lanes=LANES),
    )
    shared = _chains(rule_of, lambda system: trials.SHARED)
    return replace(own, shared=trials.with_shared_noise(own, shared, 1.0))
