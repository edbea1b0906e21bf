"""Rules x <- x - tau f(u) y/sqrt(n) that keep the norm, by the kernels of the projected family.

They draw the random numbers of the system of that family that has them, too, and so have its bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import import_module

import numpy as np
import sympy as sp

from hdica.errors import HdicaError
from hdica.finite.projected.chain import run_together
from hdica.finite.projected.vector import run_shared
from hdica.finite.random import LANES
from hdica.finite.random.streams import Stream, streams_of
from hdica.finite.record import OVERLAP, Values
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.save import NOTHING, Save
from hdica.ingredients.schedules import make_schedule
from hdica.ingredients.sources import make_source
from hdica.ingredients.update import Update
from hdica.systems import fields, method, trials
from hdica.systems.method import Array, PointResult
from hdica.systems.online_rule.system import OnlineRule
from hdica.systems.parameters import Parameters
from hdica.systems.projected.family import ProjectedRule
from hdica.systems.projected.simulation import OWN
from hdica.systems.rules.methods import ONE, TAU
from hdica.systems.rules.system import start_of, update_of
from hdica.systems.system import DESCENT


@dataclass(frozen=True, eq=False)
class Descent:
    """Such a rule as the kernels take it, and the same problem as one of that system.

    Its fields choose the random streams, and nothing of it computes.
    """

    rule: ProjectedRule
    twin: Parameters


@lru_cache(maxsize=256)
def _nonlinearity(update: Update) -> str:
    """f(x) of an update -tau f(u), as text; empty of another."""
    of_one, x = update.over(TAU.name), sp.Symbol("x", real=True)
    if of_one is None:
        return ""
    unit, (expression,) = of_one[0], of_one[0].expressions
    if expression.free_symbols - set(unit.constants) != set(unit.u):
        return ""
    f = -expression.subs(unit.u[0], x)
    return str(sp.expand(f) if f.is_polynomial(x) else f)


def descent(system: OnlineRule) -> Descent | None:
    """The rule if it is of that kind."""
    still = fields.formula(system, "entrywise").is_zero and system.spike is None
    if system.normalise != "norm" or not still:
        return None
    update = update_of(system)
    # The same for all values of the constants.
    f = _nonlinearity(replace(update, numbers=(1.0,) * len(update.numbers)))
    if not f:
        return None
    r, _ = start_of(system)
    tau = system.constants[TAU.name]
    constants = {name: value for name, value in system.constants.items() if name != TAU.name}
    try:
        twin: Parameters = import_module(DESCENT).SYSTEM.parameters(
            tau=tau,
            nonlinearity=f,
            source=system.source,
            prior=system.prior,
            start={"overlap": float(r[0, 0]), "exact": True},
            constants=constants,
        )
    except HdicaError:  # as a formula that can be given only in an update
        return None
    rule = ProjectedRule(
        source=make_source(system.source),
        prior=fields.prior(system),
        start=system.law_of_start,
        schedule=make_schedule(tau),
        push=parse_formula(f, "x", constants),
        regularizer=parse_formula("0", "x", {}),
    )
    return Descent(rule, twin)


def special(system: OnlineRule) -> Parameters | None:
    """The same problem as one of that system, if the rule is of that kind."""
    one = descent(system)
    return None if one is None else one.twin


def _labelled(run: Values) -> Values:
    """What an engine gives, by the names of the system."""
    values, diverged = run
    q = values[OVERLAP][:, None, None]
    return ONE.values(q, np.where(np.isnan(q), np.nan, 1.0)), diverged


_CHAINS: method.RunAll[Descent] = trials.in_lanes(
    "chain",
    lambda one, n: one.rule.chain,
    lambda one: trials.content_of(one.twin),
    lambda one, rule: rule.called,
    LANES,
    lambda some, rules, times, n, streams: [
        _labelled(one) for one in run_together(rules, times, n, streams)
    ],
)


def chain(own: method.Simulation[OnlineRule]) -> method.Simulation[OnlineRule]:
    """Method ``chain`` with the kernels of the family where the rule is of its kind."""
    assert own.together is not None
    elsewhere = own.together.compute

    def compute(
        points: Sequence[method.Trial[OnlineRule]], times: Array, n: int | None, save: Save
    ) -> list[PointResult]:
        pairs = list(zip(trials.each(descent, points), points, strict=True))
        special = [(one, seed) for one, (_, seed) in pairs if one is not None]
        others = [point for one, point in pairs if one is None]
        ours = iter(_CHAINS(special, times, n, save) if special else ())
        rest = iter(elsewhere(others, times, n, save) if others else ())
        return [next(rest if one is None else ours) for one, _ in pairs]

    together = replace(own.together, compute=compute)
    return replace(own, about=_about(own), run=trials.alone(compute), together=together)


def _about(own: method.Simulation[OnlineRule]) -> method.About:
    uses = (*own.about.engines, *method.PROJECTED, OWN, __package__)
    return replace(own.about, engines=tuple(dict.fromkeys(uses)))


def vector(own: method.Simulation[OnlineRule]) -> method.Simulation[OnlineRule]:
    """Method ``vector``, likewise."""

    def run(
        system: OnlineRule, times: Array, n: int | None, seed: int | None, save: Save
    ) -> PointResult:
        one = descent(system)
        if one is None or n is None or seed is None:
            return own.run(system, times, n, seed, save)
        stream: Stream = streams_of(trials.content_of(one.twin), own.name, n)(seed)
        (values,) = run_shared([one.rule.vector], times, n, stream, [NOTHING])
        return PointResult(*_labelled(values))

    return replace(own, about=_about(own), run=run)
