"""Trajectories of several methods side by side, and where they end."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from hdica.analysis.convergence.figure import deviations
from hdica.analysis.reading import at_top, described, finished, group, numeric, offered, over
from hdica.analysis.settings import FIXED_POINT, TIME, names
from hdica.analysis.trajectories import Compare
from hdica.show.choose import Point, points, selected, selection_note, shown, spread
from hdica.show.finding import Finding, Form
from hdica.show.marks import DASHES, GREY, SYMBOLS, captioned, color_of, known, level, lines_first
from hdica.show.panel import Line, Panel, Points
from hdica.show.words import clock, leading, measured, method_name, named_at, symbol, words
from hdica.systems.method import Role
from hdica.verdict.ladder import moments

MARKERS = 16
OWN = {"simulation", "limit", "time", "fixed_point"}
RANKED = 3
"""Of so many words the one with the largest mean is named first."""

Item = Line | Points

LONG_NAMES = {
    "mean": "mean of {v} over seeds",
    "sd": "standard deviation of {v} over seeds",
    "se": "standard error of the mean of {v}",
    "count": "seeds that are done",
    "largest_n": "largest n of the simulation, NaN without",
    "limit_mean": "limit of {v}",
    "steady": "{v} at a stable steady state",
}


def compare(tree: xr.DataTree, settings: Compare) -> xr.Dataset:
    """Simulations, each at its largest n if it has any, limits, and steady states in one dataset.

    Over ``simulation``, the swept parameters and ``time``: mean, standard deviation and standard
    error over seeds; over ``limit``: the limit; over ``fixed_point``: the stable steady states.
    Each part only if a method gives it; ``n`` over ``simulation``.
    """
    variable = settings.variable
    curves = (*settings.curves, *names(settings.steady))
    groups = {name: group(tree, name) for name in curves}
    finite = [name for name, data in groups.items() if "seed" in data.dims]
    steady = [name for name, data in groups.items() if "fixed_point" in data.dims]
    limits = [name for name in curves if name not in (*finite, *steady)]
    parts = []
    if finite:
        tops = [at_top(finished(groups[m], variable)) for m in finite]
        each = [moments(v).assign(largest_n=np.nan if n is None else n) for v, n in tops]
        parts.append(over([one.reset_coords(drop=True) for one in each], "simulation", finite))
    if limits:
        each = [xr.Dataset({"limit_mean": finished(groups[m], variable)}) for m in limits]
        parts.append(over(each, "limit", limits))
    if steady:
        data = groups[steady[0]]
        parts.append(xr.Dataset({"steady": finished(data, variable).where(data["stable"] == 1)}))
    out = xr.merge([p.reset_coords(drop=True) for p in parts], join="outer")
    out.attrs = {"variable": variable, "band": settings.band}
    return described(out, LONG_NAMES, variable)


def suits(tree: xr.DataTree) -> dict[str, Any] | None:
    """Simulation and limit in one panel where there is time, but nothing is swept over numbers."""
    simulation, limit = (offered(tree, role, TIME) for role in (Role.SIMULATION, Role.LIMIT))
    curves = [name for name in (simulation, limit) if name]
    times = [tree[name].sizes.get("time", 0) for name in curves]
    if not curves or min(times) < 2 or (simulation and numeric(tree, simulation)):
        return None
    steady = offered(tree, Role.STEADY_STATES, FIXED_POINT)
    return {"curves": curves} | ({"steady": steady} if steady else {})


def findings(data: xr.Dataset) -> list[Finding]:
    """Means at the last time of the simulation with the largest n.

    Where words alone are swept the largest comes first, with its lead.
    """
    if "mean" not in data:
        return []
    last = data.isel(time=-1)
    sizes = last["largest_n"].max([d for d in last["largest_n"].dims if d != "simulation"])
    last = last.isel(simulation=int(np.argmax(sizes.fillna(0).values)))
    dims = [str(d) for d in last["mean"].dims]
    every = [_end(data, last, point) for point in points(last, dims)]
    ends = [one for one in every if np.isfinite(one.value)]
    swept = [d for d in dims if last.sizes[d] > 1]
    if len(ends) < RANKED or len(swept) != 1 or last[swept[0]].dtype.kind in "fiu":
        return ends
    second, first = sorted(ends, key=lambda one: one.value)[-2:]
    name = words("the difference between the two largest values of ") + first.quantity
    error = float(np.hypot(first.error, second.error))
    lead = Finding(name, {}, first.value - second.value, error)
    return [replace(first, form=Form.LARGEST), lead, *ends]


def _end(data: xr.Dataset, last: xr.Dataset, point: Point) -> Finding:
    """The mean at the last time, at the largest n, beside the first limit."""
    here, limit = last.sel(point), np.nan
    if "limit_mean" in last:
        limit = float(selected(last["limit_mean"].isel(limit=0), point))
    every = {"simulation": str(last["simulation"].item()), **point}
    at = {k: v for k, v in every.items() if data.sizes[k] > 1}
    at |= {"n": int(here["largest_n"])} if np.isfinite(here["largest_n"]) else {}
    name, theory = words("mean ") + symbol(str(data.attrs["variable"])), words("the limit")
    value, error = float(here["mean"]), float(here["se"])
    return Finding(
        name, {**at, "t": float(last["time"])}, value, error, predicted=limit, theory=theory
    )


def panels(data: xr.Dataset) -> list[Panel]:
    """One panel: a colour for every grid point, a marker or dash for every method."""
    grid = [str(d) for d in data.dims if d not in OWN]
    chosen = shown(data, grid)
    items: list[Item] = []
    for i, point in enumerate(chosen):
        color = color_of(i, len(chosen)) if len(chosen) > 1 else ""
        items += _curves(data, point, color) + _steady(data, point, color, first=i == 0)
    drawn = known(items)
    if not drawn:
        return []
    bars = deviations(data.attrs["band"]) if "mean" in data else ""
    marks = {
        "points": f"Markers: mean over seeds ± {bars}.",
        "solid": "Lines: limits.",
        "dot": "Dotted: stable steady states." if "steady" in data else "",
    }
    text = " ".join([*captioned(drawn, marks), *selection_note(data, grid, len(chosen))])
    panel = Panel(
        "compare",
        words("Methods side by side"),
        clock(data["time"].attrs),
        measured(str(data.attrs["variable"])),
        lines_first(drawn),
        text,
        wide=True,
    )
    return [panel]


def _curves(data: xr.Dataset, point: Point, color: str) -> list[Item]:
    """Limits as lines, simulations as markers with bars, labelled by grid point and method."""
    out: list[Item] = []
    time = data["time"].values.astype(float)
    for k, method in enumerate(data["limit"].values if "limit_mean" in data else []):
        y = selected(data["limit_mean"], point).sel(limit=method).values
        label = leading(point) + method_name(str(method))
        out.append(Line(time, y, label, color or "ink", DASHES[k % 3], bold=True))
    at = np.array(spread(len(time), MARKERS))
    for j, method in enumerate(data["simulation"].values if "mean" in data else []):
        here = {**point, "simulation": method}
        mean, sd, n = (selected(data[k], here).values for k in ("mean", "sd", "largest_n"))
        y, bar = mean[at], data.attrs["band"] * np.nan_to_num(sd[at])
        shade = color or color_of(j, data.sizes["simulation"])
        label = leading(point) + named_at(str(method), float(n))
        out.append(Points(time[at], y, label, shade, y - bar, y + bar, SYMBOLS[j % 4]))
    return out


def _steady(data: xr.Dataset, point: Point, color: str, first: bool) -> list[Item]:
    """Horizontal lines at the stable steady states with Q >= 0."""
    if "steady" not in data:
        return []
    values = selected(data["steady"], point).values.ravel()
    time = data["time"].values.astype(float)
    label = words("stable steady state")
    return [
        level(time, v, label, color or GREY, dash="dot", listed=first and k == 0)
        for k, v in enumerate(np.unique(values[np.isfinite(values) & (values >= 0)]))
    ]
