"""Where simulation and limit end, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import Point, evenly, points, selected
from hdica.analysis.show.sentences import N, listed
from hdica.analysis.show.words import count, measurement, method_name, number, place, symbol

TOLD = 2
"""Grid points that are told."""


def answer(data: xr.Dataset) -> Answer | None:
    """The mean at the last time beside the first limit, at a few grid points."""
    if "mean" not in data:
        return None
    last = data.isel(time=-1)
    method = str(data["simulation"].values[-1])
    here = last.sel(simulation=method)
    dims = [str(d) for d in here["mean"].dims]
    known = [p for p in points(here, dims) if np.isfinite(float(here["mean"].sel(p)))]
    if not known:
        return None
    n = here["largest_n"].values.ravel()
    size = f", {N} = {count(float(n[0]))}" if np.isfinite(n).all() else ""
    told = listed([_end(here, p) for p in evenly(known, TOLD)])
    name, time = symbol(str(data.attrs["variable"])).html, number(float(data["time"].values[-1]))
    return Answer(f"At <i>t</i> = {time} mean {name} ({method_name(method).html}{size}) is {told}.")


def _end(here: xr.Dataset, point: Point) -> str:
    value, error = float(here["mean"].sel(point)), float(here["se"].sel(point))
    text = measurement(value, error)
    if "limit_mean" in here:
        limit = float(selected(here["limit_mean"].isel(limit=0), point))
        if np.isfinite(limit):
            text += f" (limit {number(limit, 5)})"
    return text + (f" at {place(point).html}" if point else "")
