"""Densities and particles of a rule of one estimate, by the family of projected rules."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.formula import parse_formula
from hdica.ingredients.schedules import make_schedule
from hdica.limits.mean_field.family import MeanField, field_of
from hdica.limits.rules.averages import FIRST
from hdica.limits.rules.overlap import overlap_averages, planes
from hdica.limits.rules.transitions import Changes
from hdica.systems import fields, method
from hdica.systems.method import PointResult
from hdica.systems.online_rule import descent
from hdica.systems.online_rule.system import OnlineRule
from hdica.systems.projected import steady
from hdica.systems.projected.density import pde
from hdica.systems.projected.entries import entries
from hdica.systems.rules import methods as rules
from hdica.systems.rules.methods import MAX_STATES, ONE, TAU, methods
from hdica.systems.rules.system import closed_refusal, limit_of, start_of

_PAPER = (
    "dP/dt = -d/dx[(b xi + psi(x) - 2 h x) P] + <F^2>/2 d^2P/dx^2, b = <F v> - Q <F_u>, with 2h = "
    "-<F_u>, or what keeps the norm (Wang and Lu 2017, (6)-(10), for F)"
)
_RANGE = 4.0
"""P at the start and this factor are the first range of P."""


def field(system: OnlineRule) -> MeanField:
    """The limit of its density.

    Of an update that is tau times one without it the averages are those of the latter.
    """
    sample, begin = limit_of(system).sample, fields.start(system)
    update, (source,), scale = sample.update, sample.sources, float(sample.scales[0])
    laws = source, scale, sample.noise
    psi = parse_formula(f"-({system.entrywise})", "x", system.constants)
    rest = fields.prior(system), begin, make_schedule(1.0), psi
    if system.normalise != "none":
        unit, tau = update.over(TAU.name) or (update, 1.0)
        return field_of(overlap_averages(unit, unit.numbers, *laws).times(tau), *rest)
    square = begin.square
    free = planes(update, update.numbers, *laws, square / _RANGE, square * _RANGE)
    return MeanField(*rest, _of_both, _of_both, lambda tau: 1.0, planes=free)


def _of_both(q: float, tau: float) -> float:
    raise AssertionError("b and g of a rule that leaves the norm free are functions of Q and P")


def refusal(system: OnlineRule) -> str:
    """Empty if it has a density, else the sentence that says why not."""
    sample = limit_of(system).sample
    if sample.update.t in sample.update.expressions[0].free_symbols:
        return f"update = {system.update!r} is not allowed for densities (one without t)"
    return sample.refusal(*start_of(system)) or method.refusal(field)(system)


def kept_refusal(system: OnlineRule) -> str:
    """Empty if it has a density and keeps the norm, else the sentence that says why not."""
    if system.normalise == "none":
        return (
            "normalise = 'none' is not allowed for entries (a rule that keeps the norm: 'norm'; "
            "method 'pde' has the density, 'vector' all coordinates)"
        )
    return refusal(system)


def _prepares(system: OnlineRule) -> dict[Hashable, float]:
    """Seconds of the averages, for every Q or for every Q and P."""
    sample = limit_of(system).sample
    points = sample.size(FIRST if sample.is_known else FIRST + 2)
    each = 2e-8 + 1.5e-8 * sample.update.transcendental
    places = 200 if system.normalise != "none" else 600
    own = fields.canonical(system.model_dump(mode="json", exclude={"prior", "start", "entrywise"}))
    return {("averages", own): places * (1e-4 + each * points)}


def _states_refusal(system: OnlineRule) -> str:
    """Empty if the steady states of a density are searched for, else why not."""
    if system.normalise == "none":
        lead = closed_refusal(system) or "normalise = 'none' is not allowed for branches"
        return f"{lead}; steady states of densities are those of a rule that keeps the norm, 'norm'"
    return refusal(system)


def _varied_refusal(system: OnlineRule) -> str:
    """The refusal of a rule with a plain number for the constant that varies."""
    from hdica.limits.mean_field.steady.states import vanishes

    try:
        one = fields.with_parameter(system, TAU.name, 1.0)
        why = _states_refusal(one)
    except HdicaError as exc:
        return str(exc)
    if why or not vanishes(field(one)):
        return why
    return (
        f"update = {system.update!r} is not allowed for branches and transitions (an F that is not "
        "0 wherever the estimate is the feature, beside which steady states are no densities)"
    )


def _of_density(system: OnlineRule, *_: object) -> PointResult:
    """Steady states of the density, by the names of those of the overlap."""
    from hdica.limits.mean_field.steady.states import steady_states

    states = steady_states(field(system))
    columns = {
        "Q": states.q,
        "P": np.ones(states.q.size),
        "cosine": states.q,
        "eigenvalue": states.growth,
        "stable": np.asarray(states.stable, dtype=float),
        "kind": method.codes(states.kind, method.STATE_KINDS),
        "error": states.error,
    }
    return PointResult(method.padded(columns, MAX_STATES, "fixed points"))


def changes(system: OnlineRule, parameter: str, ends: tuple[float, float]) -> Changes:
    """Where steady states change as a parameter varies, of the overlap alone or of the density."""
    if not closed_refusal(system):
        return rules.changes(system, parameter, ends)
    why = _states_refusal(system)
    if why:
        raise HdicaError(why)
    every = steady.find_transitions(field, system, parameter, ends)
    return Changes(every.value, every.q, every.kind, every.error)


def _either(
    linear: method.States[OnlineRule],
    other: method.Run[OnlineRule],
    refuses: method.Refuses[OnlineRule],
    uses: tuple[str, ...],
) -> method.States[OnlineRule]:
    """A method of the overlaps alone where they close the limit, and of the density elsewhere."""

    def run(system: OnlineRule, *rest: Any) -> PointResult:
        return other(system, *rest) if closed_refusal(system) else linear.run(system, *rest)

    def refused(system: OnlineRule) -> str:
        return refuses(system) if closed_refusal(system) else linear.scope.refuses(system)

    engines = dict.fromkeys((*linear.about.engines, *uses, *_USES, __package__))
    about = replace(linear.about, engines=tuple(engines))
    return replace(linear, run=run, about=about, scope=replace(linear.scope, refuses=refused))


_USES = ("hdica.limits.rules", "hdica.systems.rules", method.AVERAGES)
_VARIED, _BRANCHES = (
    make(field, TAU, _PAPER, uses=_USES) for make in (steady.critical, steady.branch_points)
)
_SEARCH = (method.NUMERICS, method.MEAN_FIELD, f"{method.MEAN_FIELD}.steady")
_ON_DENSITIES = {
    "fixed_points": (_of_density, _states_refusal, _SEARCH),
    "critical": (_VARIED.run, _varied_refusal, steady.CONTINUED),
}
_SPECIAL = {"chain": descent.chain, "vector": descent.vector}


def _own(one: method.Method[OnlineRule]) -> method.Method[OnlineRule]:
    """A method of rules, as one of a single estimate and feature has it."""
    if isinstance(one, method.States):
        return _either(one, *_ON_DENSITIES[one.name])
    if isinstance(one, method.Simulation) and one.name in _SPECIAL:
        return _SPECIAL[one.name](one)
    return one


METHODS = (
    *map(_own, methods(ONE)),
    pde(field, _PAPER, refusal, _USES, squares=True, prepares=_prepares),
    entries(field, f"{_PAPER}, its SDE with Q and R of the limit", kept_refusal, _USES),
    replace(_BRANCHES, scope=replace(_BRANCHES.scope, refuses=_varied_refusal)),
)
