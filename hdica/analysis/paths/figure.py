"""Single runs, as in Figure 3 of Rattray (2002)."""

from __future__ import annotations

from html import escape

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.show.choose import Point, points, selected
from hdica.analysis.show.marks import DASHES, GREY, color_of
from hdica.analysis.show.panel import Line, Panel
from hdica.analysis.show.words import (
    Text,
    clock,
    measured,
    method_name,
    number,
    of_n,
    place,
    plural,
    titled,
    words,
)
from hdica.analysis.terms import entries

Array = NDArray[np.float64]
OWN = {"seed", "time"}
WITHIN = (-1.05, 1.05)
"""Overlaps; other variables have an axis of their own."""


def paths(data: xr.Dataset) -> list[Panel]:
    """One panel a grid point, one line a run and entry: colour by column, dash by row."""
    cells = points(data, grid_of(data))
    out = []
    for k, cell in enumerate(cells):
        here = data["path"].sel(cell)
        lines = _lines(here)
        if not lines:
            continue
        out.append(
            Panel(
                f"paths_{k + 1}",
                _title(data, cell),
                clock(data["time"].attrs),
                measured(str(data.attrs["variable"])),
                (*_thresholds(data), *_barriers(data, cell), *lines),
                caption=_caption(data, here, len(cells)),
                y_range=_range(lines),
            )
        )
    return out


def grid_of(data: xr.Dataset) -> list[str]:
    """Swept parameters of the runs."""
    return [str(d) for d in data["path"].dims if d not in OWN | entries()]


def _title(data: xr.Dataset, cell: Point) -> Text:
    """The dimension, if there is any, and the grid point."""
    if "n" in data.attrs:
        return titled(of_n(data.attrs["n"]), cell)
    return place(cell) or words("Single runs")


def _lines(here: xr.DataArray) -> list[Line]:
    """Every entry of every run that is done; each entry once in the legend."""
    time, out, seen = here["time"].values.astype(float), list[Line](), set[str]()
    row, column = _pair(here)
    rows, columns = (points(here.to_dataset(name="path"), axis) for axis in (row, column))
    told = [d for d in (*row, *column) if here.sizes[d] > 1]
    for seed in here["seed"].values:
        for i, j in np.ndindex(len(rows), len(columns)):
            entry = {**rows[i], **columns[j]}
            y = here.sel({"seed": seed, **entry}).values
            if not np.isfinite(y).any():
                continue
            label = place({d: float(entry[d]) for d in told})
            listed = bool(label) and label.plain not in seen
            seen.add(label.plain)
            color = color_of(j, len(columns))
            out.append(Line(time, y, label, color, DASHES[i % 3], listed=listed))
    return out


def _pair(here: xr.DataArray) -> tuple[list[str], list[str]]:
    """Dimensions of rows and of columns of a matrix, at most one each."""
    own = [str(d) for d in here.dims if d in entries()]
    return own[:-1], own[-1:]


def _range(lines: list[Line]) -> tuple[float, float] | None:
    """The whole range of overlaps, unless a run leaves it."""
    largest = max(float(np.nanmax(np.abs(line.y))) for line in lines)
    return WITHIN if largest <= WITHIN[1] else None


def _thresholds(data: xr.Dataset) -> list[Line]:
    """Lines at the threshold of either sign."""
    if "threshold" not in data.attrs:
        return []
    ends, value = data["time"].values[[0, -1]].astype(float), float(data.attrs["threshold"])
    label = words("threshold")
    dash = "dot" if "level" in data else "dash"
    return [
        Line(ends, np.full(2, sign * value), label, GREY, dash, listed=sign > 0)
        for sign in (1.0, -1.0)
    ]


def levels(data: xr.Dataset, cell: Point) -> list[float]:
    """Sizes at which the entries of a grid point have their barriers, the least first."""
    if "level" not in data:
        return []
    values = selected(data["level"], cell).values
    return sorted(set(values[np.isfinite(values)].tolist()))


def _barriers(data: xr.Dataset, cell: Point) -> list[Line]:
    """Dashed lines at the tops of the barriers, of either sign."""
    ends = data["time"].values[[0, -1]].astype(float)
    return [
        Line(
            ends,
            np.full(2, sign * level),
            words(f"top of the barrier, ±{number(level)}"),
            "ink",
            "dash",
            listed=sign > 0,
        )
        for level in levels(data, cell)
        for sign in (1.0, -1.0)
    ]


def _caption(data: xr.Dataset, here: xr.DataArray, cells: int) -> str:
    known = here.notnull().any([d for d in here.dims if d != "seed"])
    text = f"{plural(int(known.sum()), 'run')} ({method_name(data.attrs['simulation']).html})"
    row, column = _pair(here)
    for what, axis in (("colour", column), ("dash", row)):
        text += "".join(f"; {what} by {escape(d)}" for d in axis if here.sizes[d] > 1)
    text += "."
    lost = int((~known).sum())
    if lost:
        text += f" {lost} more diverged or are not done."
    if cells < data.attrs["cells"]:
        text += f" {cells} of {data.attrs['cells']} grid points, chosen evenly."
    return text
