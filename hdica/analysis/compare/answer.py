"""Where simulation and limit end, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import Point, evenly, points, selected
from hdica.analysis.show.sentences import N, among, listed
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
    told = _ranked(here, known) or listed([_end(here, p) for p in evenly(known, TOLD)])
    name, time = symbol(str(data.attrs["variable"])).html, number(float(data["time"].values[-1]))
    return Answer(f"At <i>t</i> = {time} mean {name} ({method_name(method).html}{size}) is {told}.")


def _ranked(here: xr.Dataset, known: list[Point]) -> str:
    """Which of several words has the largest mean, by how much, and which the smallest.

    Words have no ends of which to tell; empty unless they are all that is swept.
    """
    if len(known) <= TOLD or any(len(p) != 1 or not _word(p) for p in known):
        return ""
    order = sorted(known, key=lambda p: -float(here["mean"].sel(p)))
    first, second, last = order[0], order[1], order[-1]
    gap = float(here["mean"].sel(first) - here["mean"].sel(second))
    error = float(np.hypot(here["se"].sel(first), here["se"].sel(second)))
    return (
        f"largest{among()}, {_end(here, first)}, by {measurement(gap, error)} before the next, at "
        f"{place(second).html}, and smallest, {_end(here, last)}"
    )


def _word(point: Point) -> bool:
    return all(isinstance(value, str) for value in point.values())


def _end(here: xr.Dataset, point: Point) -> str:
    value, error = float(here["mean"].sel(point)), float(here["se"].sel(point))
    text = measurement(value, error)
    if "limit_mean" in here:
        limit = float(selected(here["limit_mean"].isel(limit=0), point))
        if np.isfinite(limit):
            text += f" (limit {number(limit, 5)})"
    # Of what has one value alone, a reader need not be told which.
    swept = {k: v for k, v in point.items() if here.sizes[k] > 1}
    return text + (f" at {place(swept).html}" if swept else "")
