"""How fast the distance to the target falls, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.decay.figure import distance, entries, grid_of
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import Point, evenly, points, selected
from hdica.analysis.show.sentences import listed
from hdica.analysis.show.words import capital, measurement, method_name, number, place, with_error

TOLD = 3
"""Curves whose powers are told."""


def answer(data: xr.Dataset) -> Answer | None:
    """Powers of time over the last decade: of the first simulation, or else of the first limit."""
    entry = entries(data)[0]
    for own, slope in (("simulation", "slope"), ("limit", "limit_slope")):
        if slope not in data:
            continue
        methods = [str(m) for m in data[own].values]
        cells = points(data, grid_of(data))
        curves = [{own: m, **c, **entry} for c in cells for m in methods[: 1 if cells[0] else TOLD]]
        found = [c for c in curves if np.isfinite(float(selected(data[slope], c)))]
        if found:
            told = listed([_power(data, own, slope, c, len(found)) for c in evenly(found, TOLD)])
            name = capital(distance(data).html)
            end = _end(data, entry) if cells == [{}] else ""
            return Answer(f"{name} falls as {told} over the last decade{end}.")
    return None


def _end(data: xr.Dataset, entry: Point) -> str:
    """Where the curves are at the last time, with standard errors, if there are several."""
    parts = []
    for own, gap in (("simulation", "gap"), ("limit", "limit_gap")):
        for method in data[own].values if gap in data else ():
            last = {**entry, own: method}
            value = abs(float(selected(data[gap], last).isel(time=-1)))
            error = 0.0
            if own == "simulation":
                error = float(selected(data["gap_se"], last).isel(time=-1))
            if np.isfinite(value):
                parts.append(f"{measurement(value, error)} ({method_name(method).html})")
    time = number(float(data["time"].values[-1]))
    return f"; at <i>t</i> = {time} it is {listed(parts)}" if len(parts) > 1 else ""


def _power(data: xr.Dataset, own: str, slope: str, curve: Point, total: int) -> str:
    value = float(selected(data[slope], curve))
    error = float(selected(data["slope_se"], curve)) if slope == "slope" else np.nan
    power = with_error(value, error) if error > 0 else number(value)
    cell = {k: v for k, v in curve.items() if k in grid_of(data)}
    where = place(cell).html if cell else method_name(curve[own]).html
    return f"<i>t</i><sup>{power}</sup>" + (f" ({where})" if total > 1 else "")
