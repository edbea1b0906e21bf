"""Densities and particles of a rule that keeps |x|^2 = n, by the family of projected rules."""

from __future__ import annotations

from hdica.ingredients.formula import parse_formula
from hdica.ingredients.schedules import make_schedule
from hdica.limits.mean_field.family import MeanField, field_of
from hdica.limits.rules.overlap import overlap_averages
from hdica.systems import fields, method
from hdica.systems.online_rule.system import OnlineRule
from hdica.systems.projected.density import pde
from hdica.systems.projected.entries import entries, particles
from hdica.systems.rules.system import limit_of, start_of

_PAPER = (
    "dP/dt = -d/dx[(b xi + psi(x) - 2 h x) P] + <F^2>/2 d^2P/dx^2, b = <F v> - Q <F_u> "
    "(Wang and Lu 2017, (6)-(10), for F)"
)


def field(system: OnlineRule) -> MeanField:
    """The limit of its density."""
    sample = limit_of(system).sample
    update, (source,) = sample.update, sample.sources
    means = overlap_averages(update, update.numbers, source, float(sample.scales[0]), sample.noise)
    psi = parse_formula(f"-({system.entrywise})", "x", system.constants)
    return field_of(means, fields.prior(system), fields.start(system), make_schedule(1.0), psi)


def refusal(system: OnlineRule) -> str:
    """Empty if its density is one of the family, else the sentence that says why not."""
    update = limit_of(system).sample
    if system.normalise == "none":
        return (
            "normalise = 'none' is not allowed for densities (a rule that keeps the norm: 'norm'; "
            "method 'vector' takes any)"
        )
    if update.update.t in set().union(*(one.free_symbols for one in update.update.expressions)):
        return f"update = {system.update!r} is not allowed for densities (one without t)"
    return update.refusal(*start_of(system)) or method.refusal(field)(system)


_USES = ("hdica.limits.rules", "hdica.systems.rules", method.AVERAGES)
METHODS = (
    pde(field, _PAPER, refusal, _USES),
    particles(field, f"{_PAPER}, its SDE, self-consistent", refusal, _USES),
    entries(field, f"{_PAPER}, its SDE with Q and R of the limit", refusal, _USES),
)
