"""Single runs, as in Figure 3 of Rattray (2002)."""

from __future__ import annotations

from html import escape

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.convergence.figure import color_of
from hdica.analysis.show.choose import Point, points
from hdica.analysis.show.panel import Line, Panel
from hdica.analysis.show.words import EMPTY, Text, count, measured, place, symbol, words

Array = NDArray[np.float64]
GREY = "#888888"
DASHES = ("solid", "dash", "dot")
OWN = {"seed", "time", "projection", "source"}
WITHIN = (-1.05, 1.05)
"""Overlaps; other variables have an axis of their own."""


def paths(data: xr.Dataset) -> list[Panel]:
    """One panel a grid point, one line a run and entry: colour by source, dash by projection."""
    cells = points(data, [str(d) for d in data["path"].dims if d not in OWN])
    out = []
    for k, cell in enumerate(cells):
        here = data["path"].sel(cell)
        lines = _lines(here)
        if not lines:
            continue
        n = symbol("n") + words(f" = {count(data.attrs['n'])}")
        out.append(
            Panel(
                f"paths_{k + 1}",
                n + (words(" · ") + place(cell) if cell else EMPTY),
                symbol("t"),
                measured(str(data.attrs["variable"])),
                (*_thresholds(data), *lines),
                caption=_caption(data, here, len(cells)),
                y_range=_range(lines),
            )
        )
    return out


def _lines(here: xr.DataArray) -> list[Line]:
    """Every entry of every run that is done; each entry once in the legend."""
    time, out, seen = here["time"].values.astype(float), list[Line](), set[str]()
    sources = _values(here, "source")
    projections = _values(here, "projection")
    for seed in here["seed"].values:
        for i, projection in enumerate(projections):
            for j, source in enumerate(sources):
                point: Point = {"seed": seed, "projection": projection, "source": source}
                y = here.sel({k: v for k, v in point.items() if v is not None}).values
                if not np.isfinite(y).any():
                    continue
                label = _label(projection, source, len(projections), len(sources))
                listed = bool(label) and label.plain not in seen
                seen.add(label.plain)
                color = color_of(j, len(sources))
                out.append(Line(time, y, label, color, DASHES[i % 3], listed=listed))
    return out


def _range(lines: list[Line]) -> tuple[float, float] | None:
    """The whole range of overlaps, unless a run leaves it."""
    largest = max(float(np.nanmax(np.abs(line.y))) for line in lines)
    return WITHIN if largest <= WITHIN[1] else None


def _values(here: xr.DataArray, dim: str) -> list[float | None]:
    """Coordinates along a dimension that the variable may lack."""
    return [float(v) for v in here[dim].values] if dim in here.dims else [None]


def _label(projection: float | None, source: float | None, rows: int, columns: int) -> Text:
    """Projection and source, each where there are several."""
    named = {"projection": (projection, rows), "source": (source, columns)}
    return place({k: v for k, (v, many) in named.items() if many > 1})


def _thresholds(data: xr.Dataset) -> list[Line]:
    """Lines at the threshold of either sign."""
    if "threshold" not in data.attrs:
        return []
    ends, value = data["time"].values[[0, -1]].astype(float), float(data.attrs["threshold"])
    label = words("threshold")
    return [
        Line(ends, np.full(2, sign * value), label, GREY, "dash", listed=sign > 0)
        for sign in (1.0, -1.0)
    ]


def _caption(data: xr.Dataset, here: xr.DataArray, cells: int) -> str:
    known = here.notnull().any([d for d in here.dims if d != "seed"])
    text = f"{int(known.sum())} runs ({escape(str(data.attrs['simulation']))})"
    if "source" in here.dims and here["source"].size > 1:
        text += "; colour by source"
    if "projection" in here.dims and here["projection"].size > 1:
        text += "; dash by projection"
    text += "."
    lost = int((~known).sum())
    if lost:
        text += f" {lost} more diverged or are not done."
    if cells < data.attrs["cells"]:
        text += f" {cells} of {data.attrs['cells']} grid points, chosen evenly."
    return text
