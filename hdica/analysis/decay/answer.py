"""How fast the distance to the target falls, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.decay.figure import distance, entries, grid_of
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import Point, evenly, points, selected
from hdica.analysis.show.sentences import listed
from hdica.analysis.show.words import method_name, number, place, with_error

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
            return Answer(f"{distance(data).html} falls as {told} over the last decade.")
    return None


def _power(data: xr.Dataset, own: str, slope: str, curve: Point, total: int) -> str:
    value = float(selected(data[slope], curve))
    error = float(selected(data["slope_se"], curve)) if slope == "slope" else np.nan
    power = with_error(value, error) if error > 0 else number(value)
    cell = {k: v for k, v in curve.items() if k in grid_of(data)}
    where = place(cell).html if cell else method_name(curve[own]).html
    return f"<i>t</i><sup>{power}</sup>" + (f" ({where})" if total > 1 else "")
