"""Power laws on doubly logarithmic axes, and what is measured over what is predicted."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.exponents.compute import fits, parameters
from hdica.show.choose import Point, selection_note, shown
from hdica.show.marks import bars, color_of, interval, level, lines_first, positive, tailed
from hdica.show.panel import Line, Panel, Points
from hdica.show.words import EMPTY, Text, axis, joined, method_name, place, symbol, words

APART = 0.012
"""How far points of neighbouring colours are moved apart, as a share of the axis."""
WIDE = 5
"""Ratios to theory that differ by more have a logarithmic axis: else it had a single tick."""


def exponents(data: xr.Dataset) -> list[Panel]:
    """For every fit the data with the law, and the ratio to theory if there is one."""
    out = []
    for tail, point in tailed(fits(data)):
        here = data.sel(point)
        rest = {k: v for k, v in point.items() if k != "simulation"}
        named = joined(method_name(point["simulation"]) if tail else EMPTY, place(rest))
        end = " · " + named if named else EMPTY
        if bool(here["value"].notnull().any()):
            out.append(_law(here, "Power law" + end, tail))
            if "ratio" in here and bool(here["ratio"].notnull().any()):
                out.append(_ratio(here, "Measured over predicted" + end, tail))
    return out


def _law(here: xr.Dataset, title: Text, tail: str) -> Panel:
    x, curves = _curves(here)
    quantity = f"{here.attrs['statistic']} of " + symbol(str(here.attrs["variable"]))
    items: list[Line | Points] = []
    for k, curve in enumerate(curves):
        items += _curve(here.sel(curve), x, place(curve) or quantity, color_of(k, len(curves)))
    return Panel(
        f"exponents{tail}",
        title,
        axis(x),
        quantity,
        lines_first(items),
        _caption(here, x, len(curves)),
        log_x=True,
        log_y=True,
    )


def _curves(here: xr.Dataset) -> tuple[str, list[Point]]:
    """The parameter with most values, and values of the others that are drawn."""
    x = max(parameters(here), key=lambda name: here.sizes[name])
    return x, shown(here, [name for name in parameters(here) if name != x])


def _curve(here: xr.Dataset, x: str, label: Text, color: str) -> list[Line | Points]:
    """Data of one colour, the fitted law through them, and theory."""
    seen, ordered = here.isel({x: np.flatnonzero(here["value"].values > 0)}), here.sortby(x)
    if not seen.sizes[x]:
        return []
    at, filled = seen[x].values.astype(float), seen["used"].values > 0
    out: list[Line | Points] = [*bars(at, interval(seen, "value"), label, color, filled=filled)]
    for name, dash in (("fitted", "solid"), ("predicted", "dash")):
        if name in ordered and bool(ordered[name].notnull().any()):
            along, y = ordered[x].values.astype(float), ordered[name].values
            out.append(Line(along, y, label, color, dash, listed=False))
    return out


def _caption(here: xr.Dataset, x: str, drawn: int) -> str:
    statistic = here.attrs["statistic"].capitalize()
    parts = [f"{statistic} over seeds with 95 % intervals, and the fitted power law."]
    if "predicted" in here and bool(here["predicted"].notnull().any()):
        parts.append("Dashed: theory.")
    if bool(((here["used"] == 0) & here["value"].notnull()).any()):
        parts.append("Open: not in the fit.")
    parts += selection_note(here, [name for name in parameters(here) if name != x], drawn)
    return " ".join(parts)


def _ratio(here: xr.Dataset, title: Text, tail: str) -> Panel:
    x, curves = _curves(here)
    at = here[x].values.astype(float)
    items: list[Line | Points] = [level(at, 1.0, words("theory"), "ink", listed=False)]
    width = np.log(at.max() / at.min())
    for k, curve in enumerate(curves):
        ratio, low, high = interval(here.sel(curve), "ratio")
        if np.isfinite(ratio).any():
            moved = at * np.exp(APART * width * (k - (len(curves) - 1) / 2))
            label = place(curve) or words("measured / predicted")
            items.append(Points(moved, ratio, label, color_of(k, len(curves)), low, high))
    ends = positive(end.ravel() for end in interval(here, "ratio"))
    return Panel(
        f"ratios{tail}",
        title,
        axis(x),
        symbol(str(here.attrs["variable"])) + " measured / predicted",
        tuple(items),
        "Ratio to theory with 95 % intervals"
        + ("; series are moved apart a little." if len(curves) > 1 else "."),
        log_x=True,
        log_y=ends is not None and ends[1] / ends[0] > WIDE,
    )
