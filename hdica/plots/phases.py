"""Phase diagrams: where runs, or the limit, end over two parameters."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

from hdica.analysis.phase import Phase
from hdica.analysis.phase.compute import phase as analysis
from hdica.analysis.phase.figure import phase as figures
from hdica.analysis.reading import at_end
from hdica.errors import HdicaError, suggestion
from hdica.plots import trajectories
from hdica.plots.source import NUMERIC, Source, at, matching, tree_of
from hdica.show.panel import Heat, Panel, edges
from hdica.show.terms import entries, starts
from hdica.show.words import axis, method_name, place, size, words

LEAST = 3
"""Values of each parameter from which on a map says more than curves do."""
SHOWN = ("overlap", "success", "decaying")


def holds(source: Source) -> bool:
    """Whether it has an order parameter over a grid of two parameters."""
    if not trajectories.holds(source):
        return False
    long = [d for d in source.numeric if source.data.sizes[d] >= LEAST]
    plain = not entries() & set(source.data[source.variable()].dims)
    return len(long) >= 2 and plain


def panel(
    source: Source,
    x: str | None = None,
    y: str | None = None,
    limit: xr.Dataset | None = None,
    states: xr.Dataset | None = None,
    critical: xr.Dataset | None = None,
    show: str = "overlap",
    success: float = 0.5,
    variable: str | None = None,
    n: int | None = None,
) -> Panel:
    """A map over two parameters, with steady states and critical values on top.

    ``states`` and ``critical`` are what ``fixed_points`` and ``critical`` give over ``x``; ``n`` is
    the largest one unless it is chosen.
    """
    if show not in SHOWN:
        raise HdicaError(f"show = {show!r} is not allowed ({suggestion(show, SHOWN)})")
    if n is not None:
        source = _at(source, n)
    across, up = _axes(source, x, y)
    name = source.variable(variable)
    if "seed" not in source.data[name].dims:
        if show != SHOWN[0]:
            raise HdicaError(f"show = {show!r} is not allowed (without seeds: {SHOWN[0]})")
        return _alone(source, across, up, name)
    added = {"states": matching(states, "states"), "transitions": matching(critical, "critical")}
    at_x = {across: source.data[across].values.tolist()}
    groups = {source.method: source} | {
        key: replace(one, data=at(one.data, at_x, key))
        for key, one in added.items()
        if one is not None
    }
    theory = matching(limit, "limit")
    if theory is not None:
        groups[theory.method] = theory
    settings = Phase(
        simulation=source.method,
        x=across,
        y=up,
        variable=name,
        limit=None if theory is None else theory.method,
        success=success,
    )
    panels = figures(analysis(tree_of(groups), settings))
    able = [one for one in panels if one.key.startswith(f"phase_{show}")]
    if not able:
        raise HdicaError(f"show = {show!r}: there is nothing to draw (no run is so)")
    return replace(able[0], key="phase")


def _at(source: Source, n: int) -> Source:
    """The source at one of its n."""
    sizes = source.data["n"].values.tolist() if "n" in source.data.dims else []
    if n not in sizes:
        listed = ", ".join(map(str, sizes)) or "none"
        raise HdicaError(f"n = {n!r} is not allowed (allowed: {listed})")
    return replace(source, data=source.data.sel(n=[n]))


def _axes(source: Source, x: str | None, y: str | None) -> tuple[str, str]:
    """The two parameters: the start goes up unless it is said otherwise."""
    for key, given in (("x", x), ("y", y)):
        if given is not None and given not in source.numeric:
            near = suggestion(given, source.numeric, what=NUMERIC)
            raise HdicaError(f"{key} = {given!r} is not allowed ({near})")
    free = [d for d in source.numeric if d not in (x, y) and source.data.sizes[d] > 1]
    ordered = sorted(free, key=lambda d: d in starts())
    if len(ordered) + (x is not None) + (y is not None) < 2 or (x is not None and x == y):
        raise HdicaError("phase: two swept parameters with numbers are needed")
    across = x if x is not None else ordered.pop(0)
    up = y if y is not None else ordered.pop(0)
    more = [d for d in source.grid if d not in (across, up) and source.data.sizes[d] > 1]
    if more:
        raise HdicaError(f"phase: choose one value of {', '.join(more)} (.sel)")
    return across, up


def _alone(source: Source, x: str, y: str, name: str) -> Panel:
    """The end of the limit."""
    end = abs(at_end(source.data, name))
    end = end.squeeze([d for d in end.dims if d not in (x, y)], drop=True).transpose(y, x)
    at_x, at_y = source.data[x].values.astype(float), source.data[y].values.astype(float)
    top = max(1.0, float(np.nanmax(end.values))) if bool(end.notnull().any()) else 1.0
    label = size(name) + words(", ") + method_name(source.method)
    ends = [edges(at, False) for at in (at_x, at_y)]
    return Panel(
        "phase",
        place({"snapshot": float(source.data["time"].values[-1])}),
        axis(x),
        axis(y),
        (Heat(at_x, at_y, end.values, label, high=top),),
        x_range=(float(ends[0][0]), float(ends[0][-1])),
        y_range=(float(ends[1][0]), float(ends[1][-1])),
    )
