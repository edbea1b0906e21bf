"""How far the critical value can be moved, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import Point, points
from hdica.analysis.show.sentences import among, listed
from hdica.analysis.show.words import number, place, symbol
from hdica.analysis.transition.figure import Curve, critical_name, curves, grid_of

CELLS = 3
DIGITS = 6


def answer(data: xr.Dataset) -> Answer | None:
    """The extreme of the first transition of each cell, or its ends where it is monotone."""
    found = [(p, curves(data, p)) for p in points(data, grid_of(data))]
    known = [(p, one[0]) for p, one in found if one]
    if not known:
        return None
    told = listed([_course(data, curve, p) for p, curve in known[:CELLS]])
    return Answer(
        f"The critical value {critical_name(data).html} of the {known[0][1].name.html} {told}."
    )


def _course(data: xr.Dataset, curve: Curve, cell: Point) -> str:
    """Largest or least inside the range of x, or from end to end."""
    x, at = symbol(data.attrs["x"]).html, data[data.attrs["x"]].values.astype(float)
    where = f" ({place(cell).html})" if cell else ""
    known = np.flatnonzero(np.isfinite(curve.value))
    first, last = int(known[0]), int(known[-1])
    for word, k in (("largest", np.nanargmax(curve.value)), ("least", np.nanargmin(curve.value))):
        if first < k < last:
            value = number(float(curve.value[k]), DIGITS)
            return f"is {word}{among()}, {value}, at {x} = {number(at[k], 4)}{where}"
    ends = [f"{number(float(curve.value[k]), DIGITS)} at {x} = {number(at[k], 4)}" for k in known]
    if first == last:
        return f"is {ends[0]}{where}"
    verb = "rises" if curve.value[last] > curve.value[first] else "falls"
    return f"{verb} from {ends[0]} to {ends[-1]}{where}{among()}"
