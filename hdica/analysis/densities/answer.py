"""Where the entries given the feature lie, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.densities.figure import group_label
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import Point, evenly, points, selected
from hdica.analysis.show.sentences import N, listed
from hdica.analysis.show.words import count, measurement, number, place

TOLD = 3
"""Grid points that are told."""


def answer(data: xr.Dataset) -> Answer | None:
    """The mean entry of the last group at the last snapshot, beside the limit's."""
    if not data.sizes["snapshot"]:
        return None
    last = data.isel(snapshot=-1)
    grid = [str(d) for d in last["limit_center"].dims if d != "feature"]
    cells = [(c, _group(last, c)) for c in points(last, grid)]
    known = [(c, group) for c, group in cells if group >= 0]
    if not known:
        return None
    told = listed([_told(last, c, group) for c, group in evenly(known, TOLD)])
    group = group_label(last.sel(known[0][0]).isel(feature=known[0][1])).html
    given = f" given {group}" if group else ""
    time = float(last["snapshot"])
    when = f"At <i>t</i> = {number(time)}" if np.isfinite(time) else "In the steady state"
    size = f" ({N} = {count(float(data.attrs['n']))})" if data.attrs["n"] else ""
    return Answer(f"{when} the mean entry{given}{size} is {told}.")


def _group(last: xr.Dataset, cell: Point) -> int:
    """The last group of which the limit is known, -1 without any."""
    known = np.flatnonzero(np.isfinite(selected(last["limit_center"], cell).values))
    return int(known[-1]) if len(known) else -1


def _told(last: xr.Dataset, cell: Point, group: int) -> str:
    """The mean of the histogram with its error, and that of the limit."""
    here = last.sel(cell).isel(feature=group)
    limit = number(float(here["limit_center"]), 4)
    where = f" at {place(cell).html}" if cell else ""
    value = float(here["mean"]) if "mean" in here else np.nan
    if not np.isfinite(value):
        return f"{limit} in the limit{where}"
    return f"{measurement(value, float(here['mean_se']))} (limit {limit}){where}"
