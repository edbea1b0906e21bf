"""Which figure suits a result, by what it holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from typing import Any

from hdica.errors import HdicaError, suggestion
from hdica.plots import (
    branches,
    densities,
    dependence,
    escapes,
    phases,
    potentials,
    trajectories,
    transitions,
)
from hdica.plots.source import Source
from hdica.show.panel import Panel


@dataclass(frozen=True)
class Kind:
    """A kind of figure.

    Parameters
    ----------
    name
        Of the method of ``.plot`` that draws it.
    holds
        ``holds(source) -> bool``: whether a result has what it shows.
    panel
        ``panel(source, ...) -> Panel``.
    """

    name: str
    holds: Callable[[Source], bool]
    panel: Callable[..., Panel]


KINDS = (
    Kind("branches", branches.holds, branches.panel),
    Kind("critical", transitions.holds, transitions.panel),
    Kind("escapes", escapes.holds, escapes.panel),
    Kind("densities", densities.holds, densities.panel),
    Kind("potentials", potentials.holds, potentials.panel),
    Kind("phase", phases.holds, phases.panel),
    Kind("trajectories", trajectories.holds, trajectories.panel),
    Kind("dependence", dependence.holds, dependence.panel),
)
"""In the order in which they are tried: what was asked for on purpose comes first."""


def kinds_of(source: Source) -> list[Kind]:
    """All figures of a result, the one that is meant first."""
    return [kind for kind in KINDS if kind.holds(source)]


def kind_of(source: Source) -> Kind:
    """The figure that suits a result."""
    found = kinds_of(source)
    if not found:
        known = ", ".join(str(k) for k in source.data.data_vars) or "nothing"
        raise HdicaError(f"plot: no figure suits this result (it holds {known})")
    return found[0]


def named(source: Source, name: str) -> Kind:
    """A kind of figure, if the result has what it shows."""
    kind = next(kind for kind in KINDS if kind.name == name)
    if not kind.holds(source):
        able = ", ".join(one.name for one in kinds_of(source)) or "none"
        raise HdicaError(f"plot.{name}: this result has nothing of it (it has: {able})")
    return kind


def panel_of(kind: Kind, source: Source, asked: dict[str, Any]) -> Panel:
    """The panel of a kind, with options that are checked."""
    allowed = list(signature(kind.panel).parameters)[1:]
    for key in asked:
        if key not in allowed:
            raise HdicaError(
                f"plot: {key} is no option of {kind.name} ({suggestion(key, allowed)})"
            )
    return kind.panel(source, **asked)
