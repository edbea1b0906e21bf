"""Trajectories of several methods in one panel."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.convergence.figure import deviations
from hdica.analysis.show.choose import Point, said, selected, shown, spread
from hdica.analysis.show.marks import DASHES, GREY, SYMBOLS, captioned, color_of
from hdica.analysis.show.panel import Line, Panel, Points
from hdica.analysis.show.words import Text, clock, leading, measured, named_at, words

MARKERS = 16
OWN = {"simulation", "limit", "time", "fixed_point"}

Item = Line | Points


def compare(data: xr.Dataset) -> list[Panel]:
    """One panel: a colour for every grid point, a marker or dash for every method."""
    grid = [str(d) for d in data.dims if d not in OWN]
    chosen = shown(data, grid)
    items: list[Item] = []
    for i, point in enumerate(chosen):
        color = color_of(i, len(chosen)) if len(chosen) > 1 else ""
        items += _limits(data, point, color) + _simulations(data, point, color)
        items += _steady(data, point, color, first=i == 0)
    drawn = [item for item in items if np.isfinite(item.y).any()]
    if not drawn:
        return []
    return [
        Panel(
            "compare",
            words("Methods side by side"),
            clock(data["time"].attrs),
            measured(str(data.attrs["variable"])),
            tuple(sorted(drawn, key=lambda item: isinstance(item, Points))),
            caption=_caption(data, drawn, len(chosen), grid),
            wide=True,
        )
    ]


def _label(point: Point, method: str, n: float = np.nan) -> Text:
    """The grid point, where there are several, the method, and its n if it has any."""
    return leading(point) + named_at(method, n)


def _limits(data: xr.Dataset, point: Point, color: str) -> list[Item]:
    if "limit_mean" not in data:
        return []
    out: list[Item] = []
    for k, method in enumerate(data["limit"].values):
        here = selected(data["limit_mean"], point).sel(limit=method)
        time = here["time"].values.astype(float)
        label, dash = _label(point, str(method)), DASHES[k % 3]
        out.append(Line(time, here.values, label, color or "ink", dash, bold=True))
    return out


def _simulations(data: xr.Dataset, point: Point, color: str) -> list[Item]:
    if "mean" not in data:
        return []
    out: list[Item] = []
    for j, method in enumerate(data["simulation"].values):
        own = {"simulation": method}
        mean, sd = (selected(data[k], point).sel(own) for k in ("mean", "sd"))
        time = mean["time"].values.astype(float)
        keep = np.array(spread(len(time), MARKERS))
        y, bar = mean.values[keep], data.attrs["band"] * np.nan_to_num(sd.values[keep])
        n = float(selected(data["largest_n"], point).sel(own))
        shade, label = color or color_of(j, data.sizes["simulation"]), _label(point, str(method), n)
        out.append(Points(time[keep], y, label, shade, y - bar, y + bar, SYMBOLS[j % 4]))
    return out


def _steady(data: xr.Dataset, point: Point, color: str, first: bool) -> list[Item]:
    """Horizontal lines at the stable steady states with Q >= 0."""
    if "steady" not in data:
        return []
    values = selected(data["steady"], point).values.ravel()
    ends = data["time"].values[[0, -1]].astype(float)
    label = words("stable steady state")
    return [
        Line(ends, np.full(2, v), label, color or GREY, "dot", listed=first and k == 0)
        for k, v in enumerate(np.unique(values[np.isfinite(values) & (values >= 0)]))
    ]


def _caption(data: xr.Dataset, items: list[Item], drawn: int, grid: list[str]) -> str:
    spread = deviations(data.attrs["band"]) if "mean" in data else ""
    sentences = {
        "points": f"Markers: mean over seeds ± {spread}.",
        "solid": "Lines: limits.",
        "dot": "Dotted: stable steady states." if "steady" in data else "",
    }
    return " ".join([*captioned(items, sentences), *said(data, grid, drawn)])
