"""What the learning curves say."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.decay.figure import distance, entries, grid_of
from hdica.analysis.show.choose import Point, evenly, points, selected
from hdica.analysis.show.sentences import N, listed
from hdica.analysis.show.words import count, measurement, method_name, number, place, symbol

CELLS = 3


def decay(data: xr.Dataset) -> list[str]:
    """Slopes over the last decade, and what t (mean - target) comes to, method by method."""
    out = []
    for cell in evenly(points(data, grid_of(data)), CELLS):
        for entry in entries(data):
            point = {**cell, **entry}
            named = {**cell, **(entry if len(entries(data)) > 1 else {})}
            lead = f"At {place(named).html}: " if named else ""
            out += [lead + text for text in (_slopes(data, point), _scaled(data, point)) if text]
    return out


def _simulations(data: xr.Dataset) -> list[str]:
    return [str(m) for m in data["simulation"].values] if "gap" in data else []


def _limits(data: xr.Dataset) -> list[str]:
    return [str(m) for m in data["limit"].values] if "limit_gap" in data else []


def _values(data: xr.Dataset, point: Point, name: str) -> list[str]:
    """One variable of every method, with standard errors of simulations."""
    parts = []
    for method in _simulations(data):
        here = {**point, "simulation": method}
        value, error = (float(selected(data[k], here)) for k in (name, f"{name}_se"))
        n = float(selected(data["largest_n"], here))
        if np.isfinite(value):
            size = f", {N} = {count(n)}" if np.isfinite(n) else ""
            own = f"{method_name(method).html}{size}"
            parts.append(f"{measurement(value, error)} ({own})")
    for method in _limits(data):
        value = float(selected(data[f"limit_{name}"], {**point, "limit": method}))
        if np.isfinite(value):
            parts.append(f"{number(value, 4)} ({method_name(method).html})")
    return parts


def _slopes(data: xr.Dataset, point: Point) -> str:
    parts = _values(data, point, "slope")
    if not parts:
        return ""
    return (
        f"{distance(data).html} falls as <i>t<sup>a</sup></i> over the last decade with "
        f"<i>a</i> = {listed(parts)}."
    )


def _scaled(data: xr.Dataset, point: Point) -> str:
    """The product at the last time, and how far simulations are from the first limit."""
    parts = _values(data, point, "scaled")
    if not parts:
        return ""
    last, target = data["time"].values[-1], number(data.attrs["target"])
    name = symbol(str(data.attrs["variable"])).html
    product = f"<i>t</i> (mean {name} − {target})" if data.attrs["target"] else f"<i>t</i> {name}"
    text = f"{product} at <i>t</i> = {number(last)} is {listed(parts)}"
    far = [t for m in _simulations(data) for t in _apart(data, {**point, "simulation": m})]
    return f"{text}{'; ' + listed(far) if far else ''}."


def _apart(data: xr.Dataset, point: Point) -> list[str]:
    """Distance of a simulation to every limit in standard errors."""
    value, error = (float(selected(data[k], point)) for k in ("scaled", "scaled_se"))
    out = []
    for method in _limits(data):
        limit = float(selected(data["limit_scaled"], {**point, "limit": method}))
        if np.isfinite(value - limit) and error > 0:
            score = number(abs(value - limit) / error, 2)
            names = f"{method_name(point['simulation']).html} and {method_name(method).html}"
            out.append(f"{names} are {score} standard errors apart")
    return out
