"""Learning curves on doubly logarithmic axes."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis import terms
from hdica.analysis.show.choose import Point, points, said, selected, shown
from hdica.analysis.show.marks import DASHES, SYMBOLS, color_of
from hdica.analysis.show.panel import Line, Panel, Points
from hdica.analysis.show.words import (
    Text,
    clock,
    leading,
    method_name,
    named_at,
    number,
    place,
    symbol,
    words,
)

Array = NDArray[np.float64]
MARKERS = 24
OWN = {"simulation", "limit", "time"}

Item = Line | Points


def decay(data: xr.Dataset) -> list[Panel]:
    """One panel a grid point: distance to the target against time, a colour an entry."""
    grid = grid_of(data)
    cells = shown(data, grid)
    out = []
    for k, cell in enumerate(cells):
        items = _items(data, cell)
        if items:
            out.append(
                Panel(
                    f"decay_{k + 1}" if len(cells) > 1 else "decay",
                    place(cell) if cell else words("Learning curves"),
                    clock(data["time"].attrs),
                    distance(data),
                    tuple(items),
                    caption=_caption(data, len(cells), grid),
                    log_x=True,
                    log_y=True,
                    y_range=_range(items),
                )
            )
    return out


def grid_of(data: xr.Dataset) -> list[str]:
    """Swept parameters; an entry of the diagonal is none."""
    return [str(d) for d in data.dims if d not in OWN and d not in terms.entries()]


def distance(data: xr.Dataset) -> Text:
    """The distance to the target as it is written."""
    name = symbol(str(data.attrs["variable"]))
    if data.attrs["target"] == 0:
        if all(p.low >= 0 for p in terms.order_parameters(str(data.attrs["variable"]))):
            return words("mean ") + name
        return words("|mean ") + name + words("|")
    return words(f"|{number(data.attrs['target'])} − mean ") + name + words("|")


def entries(data: xr.Dataset) -> list[Point]:
    """Entries of the diagonal, or the variable itself."""
    return points(data, [str(d) for d in data.dims if d in terms.entries()])


def _items(data: xr.Dataset, cell: Point) -> list[Item]:
    """Limits as lines, below simulations as markers."""
    every = entries(data)
    out: list[Item] = []
    for i, entry in enumerate(every):
        lead = leading(entry if len(every) > 1 else {})
        for k, method in enumerate(data["limit"].values if "limit_gap" in data else []):
            color = color_of(i, len(every)) if len(every) > 1 else "ink"
            y = selected(data["limit_gap"], {**cell, **entry, "limit": method})
            out.append(_line(y, lead + method_name(method), color, DASHES[k % 3]))
    for i, entry in enumerate(every):
        lead = leading(entry if len(every) > 1 else {})
        for k, method in enumerate(data["simulation"].values if "gap" in data else []):
            point = {**cell, **entry, "simulation": method}
            label = lead + named_at(str(method), float(selected(data["largest_n"], point)))
            color = color_of(i if len(every) > 1 else k, max(len(every), 6))
            gap, se = (selected(data[name], point) for name in ("gap", "gap_se"))
            out.append(_markers(gap, se, label, color, SYMBOLS[k % 4]))
    return [item for item in out if np.isfinite(item.y).any()]


def _line(gap: xr.DataArray, label: Text, color: str, dash: str) -> Line:
    time, y = gap["time"].values.astype(float), np.abs(gap.values)
    keep = (time > 0) & (y > 0)
    return Line(time[keep], y[keep], label, color, dash, bold=True)


def _markers(gap: xr.DataArray, se: xr.DataArray, label: Text, color: str, mark: str) -> Points:
    """Distances with standard errors, at times even on a logarithmic axis."""
    time, y = gap["time"].values.astype(float), np.abs(gap.values)
    keep = np.flatnonzero((time > 0) & (y > 0))
    if len(keep) > MARKERS:
        wanted = np.geomspace(time[keep[0]], time[keep[-1]], MARKERS)
        keep = keep[np.unique(np.abs(np.log(time[keep])[:, None] - np.log(wanted)).argmin(0))]
    y, bar = y[keep], np.nan_to_num(se.values[keep])
    low = np.maximum(y - bar, y * 1e-3)  # to below the axis, not to a false end
    return Points(time[keep], y, label, color, low, y + bar, mark)


def _range(items: list[Item]) -> tuple[float, float]:
    """Limits of the axis; lower ends of bars may be cut."""
    y = np.concatenate([item.y for item in items])
    y = y[np.isfinite(y)]
    return float(y.min() / 2), float(y.max() * 1.6)


def _caption(data: xr.Dataset, drawn: int, grid: list[str]) -> str:
    parts = []
    if "gap" in data:
        parts.append("Markers: distance of the mean over seeds from the target ± standard error.")
    if "limit_gap" in data:
        parts.append("Lines: limits.")
    matrices = (p.dims for p in terms.order_parameters(str(data.attrs["variable"])))
    pair = next((dims for dims in matrices if dims and dims[-1] in data.dims), None)
    if pair is not None:
        both = ", ".join(f"{dim} <i>i</i>" for dim in pair)
        parts.append(f"Of the matrix the diagonal is shown: {both}.")
    parts += said(data, grid, drawn)
    return " ".join(parts)
