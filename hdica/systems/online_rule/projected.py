"""Densities and particles of a rule of one estimate, by the family of projected rules."""

from __future__ import annotations

from collections.abc import Hashable

from hdica.ingredients.formula import parse_formula
from hdica.ingredients.schedules import make_schedule
from hdica.limits.mean_field.family import MeanField, field_of
from hdica.limits.rules.averages import FIRST
from hdica.limits.rules.overlap import overlap_averages, planes
from hdica.systems import fields, method
from hdica.systems.online_rule.system import OnlineRule
from hdica.systems.projected.density import pde
from hdica.systems.projected.entries import entries
from hdica.systems.rules.system import limit_of, start_of

_PAPER = (
    "dP/dt = -d/dx[(b xi + psi(x) - 2 h x) P] + <F^2>/2 d^2P/dx^2, b = <F v> - Q <F_u>, with 2h = "
    "-<F_u>, or what keeps the norm (Wang and Lu 2017, (6)-(10), for F)"
)
_RANGE = 4.0
"""P at the start and this factor are the first range of P."""


def field(system: OnlineRule) -> MeanField:
    """The limit of its density."""
    sample, begin = limit_of(system).sample, fields.start(system)
    update, (source,), scale = sample.update, sample.sources, float(sample.scales[0])
    laws = (update, update.numbers, source, scale, sample.noise)
    psi = parse_formula(f"-({system.entrywise})", "x", system.constants)
    rest = fields.prior(system), begin, make_schedule(1.0), psi
    if system.normalise != "none":
        return field_of(overlap_averages(*laws), *rest)
    square = begin.square
    free = planes(*laws, square / _RANGE, square * _RANGE)
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


_USES = ("hdica.limits.rules", "hdica.systems.rules", method.AVERAGES)
METHODS = (
    pde(field, _PAPER, refusal, _USES, squares=True, prepares=_prepares),
    entries(field, f"{_PAPER}, its SDE with Q and R of the limit", kept_refusal, _USES),
)
