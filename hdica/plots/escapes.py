"""Escape times: survival of the runs and of theory, and mean times over a parameter."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import xarray as xr

from hdica.analysis.escape import MEANS, Escape
from hdica.analysis.escape.compute import escape as analysis
from hdica.analysis.escape.figure import escape as figures
from hdica.errors import HdicaError, suggestion
from hdica.plots.numbers import SEEN
from hdica.plots.source import NUMERIC, Source, matching, tree_of
from hdica.show.panel import Panel
from hdica.show.words import EMPTY

ALONE = "point"
"""A parameter of one value, for what was not swept."""

ASYMPTOTIC = ("kramers", "printed")
"""Formulas for n -> infinity."""


def holds(source: Source) -> bool:
    """Whether it has escape times: of runs, or of theory."""
    return _runs(source) or _theory(source)


def _runs(source: Source) -> bool:
    return any(f"{event}{SEEN}" in source.data for event in MEANS)


def _theory(source: Source) -> bool:
    return MEANS["first"] in source.data and "survival" in source.data


def panel(
    source: Source,
    limit: xr.Dataset | None = None,
    x: str | None = None,
    event: Any = "first",
    show: str = "auto",
) -> Panel:
    """Mean escape time over a swept parameter, or else the share that has not escaped in time.

    Runs that ended before they escaped count as longer; the mean supposes a constant rate.
    """
    if event not in MEANS:
        raise HdicaError(f"event = {event!r} is not allowed ({suggestion(event, MEANS)})")
    swept = x or (source.numeric[0] if source.numeric else ALONE)
    if x is not None and x not in source.numeric:
        raise HdicaError(
            f"x = {x!r} is not allowed ({suggestion(x, source.numeric, what=NUMERIC)})"
        )
    theory = matching(limit, "limit")
    found = analysis(*_asked(source, theory, swept, event))
    kinds = {"mean": "escape_mean", "survival": "escape_survival"}
    if show not in ("auto", *kinds):
        raise HdicaError(f"show = {show!r} is not allowed ({suggestion(show, ['auto', *kinds])})")
    wanted = kinds["survival" if swept == ALONE else "mean"] if show == "auto" else kinds[show]
    able = [one for one in figures(found) if one.key.startswith(wanted)]
    if not able:
        raise HdicaError(f"{source.method}: there is no {wanted.replace('_', ' ')} to draw")
    title = EMPTY if swept == ALONE else able[0].title
    return replace(able[0], key="escapes", title=title)


def _asked(source: Source, theory: Source | None, x: str, event: Any) -> tuple[Any, Any]:
    """The groups of a store, and the settings of the analysis."""
    groups = {}
    for one in (source, theory):
        if one is not None:
            data = one.sized()
            data = data.expand_dims({x: [0.0]}) if x == ALONE else data
            # Formulas for n -> infinity belong to the theory that has no n.
            data = data.drop_vars(ASYMPTOTIC if "n" in data.dims else (), errors="ignore")
            groups[one.method] = Source(data, one.record)
    runs = tuple(k for k, one in groups.items() if _runs(one))
    limits = tuple(k for k, one in groups.items() if k not in runs)
    settings = Escape(x=x, simulation=runs, limits=limits, event=event)
    return tree_of(groups), settings
