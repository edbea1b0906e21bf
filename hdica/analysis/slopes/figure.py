"""Change along a parameter, where points share their noise."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.show.choose import Point, at_last_n, shown
from hdica.analysis.show.marks import SYMBOLS, color_of
from hdica.analysis.show.panel import Panel, Points
from hdica.analysis.show.sentences import size_of
from hdica.analysis.show.words import leading, method_name, number, symbol, words
from hdica.analysis.slopes.compute import parameters_of

DRAWN = 3
"""Grid points in a panel: intervals of more would hide each other."""


def slopes(data: xr.Dataset) -> list[Panel]:
    """A panel for each parameter: slope between neighbours at the last n, for some points."""
    found = [_panel(at_last_n(data), name) for name in parameters_of(data)]
    return [panel for panel in found if panel.items]


def _panel(top: xr.Dataset, name: str) -> Panel:
    quantity, x = symbol(str(top.attrs["variable"])), symbol(name)
    own = ("simulation", f"{name}_between")
    others = [str(d) for d in top[f"slope_{name}"].dims if d not in own]
    total = int(np.prod([top.sizes[d] for d in others], dtype=int))
    chosen = shown(top, others, DRAWN)
    some = f" {len(chosen)} of {total} grid points, chosen evenly." if len(chosen) < total else ""
    at = f" ({size_of(top)})" if size_of(top) else ""
    return Panel(
        f"slopes_{name}",
        words("Change along ") + x,
        x,
        words("Δ") + quantity + words("/Δ") + x,
        tuple(_points(top, name, chosen)),
        caption=f"Mean over seeds of the change of {quantity.html} from one value to the next at "
        f"<i>t</i> = {number(top.attrs['time'])}, with 95 % intervals over seeds, whose noise "
        f"both values share{at}.{some}",
        wide=len(parameters_of(top)) == 1,
    )


def _points(top: xr.Dataset, name: str, chosen: list[Point]) -> list[Points]:
    """A colour for every grid point, a marker for every method."""
    x, out = top[f"{name}_between"].values.astype(float), []
    for i, point in enumerate(chosen):
        lead = leading(point)
        for j, method in enumerate(top["simulation"].values):
            here = top.sel({"simulation": method, **point})
            y, low, high = (here[f"slope_{name}{k}"].values for k in ("", "_low", "_high"))
            if np.isfinite(y).any():
                label, mark = lead + method_name(method), SYMBOLS[j % 4]
                color = color_of(i, len(chosen))
                out.append(Points(x, y, label, color, low, high, mark, joined=True))
    return out
