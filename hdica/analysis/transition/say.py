"""What the critical values say as another parameter varies."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.show.choose import evenly, points
from hdica.analysis.show.sentences import among
from hdica.analysis.show.words import number, place, symbol
from hdica.analysis.transition.figure import critical_name, curves, grid_of

CELLS = 3
DIGITS = 6


def transition(data: xr.Dataset) -> list[str]:
    """One sentence a transition and grid point: its ends and its extremes."""
    x, at = symbol(data.attrs["x"]).html, data[data.attrs["x"]].values.astype(float)
    out = []
    for cell in evenly(points(data, grid_of(data)), CELLS):
        lead = f"At {place(cell).html} the" if cell else "The"
        for curve in curves(data, cell):
            value = curve.value
            known = np.flatnonzero(np.isfinite(value))
            first, last = known[0], known[-1]
            text = f"{lead} {curve.name.html} lies at {critical_name(data).html} = "
            text += f"{number(value[first], DIGITS)} for {x} = {number(at[first], 4)}"
            if last != first:
                text += f" and at {number(value[last], DIGITS)} for {x} = {number(at[last], 4)}"
            for word, k in (("largest", np.nanargmax(value)), ("least", np.nanargmin(value))):
                if first < k < last:
                    text += (
                        f"; it is {word}{among()}, {number(value[k], DIGITS)}, at {x} = "
                        f"{number(at[k], 4)}"
                    )
            out.append(text + ".")
    return out
