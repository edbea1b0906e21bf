"""Single runs of a simulation, as in Figure 3 of Rattray (2002)."""

from __future__ import annotations

from html import escape

import numpy as np
import xarray as xr

from hdica.analysis.reading import at_top, described, finished, grid_of, group
from hdica.analysis.steady.figure import once
from hdica.analysis.trajectories import Paths
from hdica.errors import HdicaError
from hdica.show.choose import MOST, Point, points, selected, spread
from hdica.show.finding import Finding
from hdica.show.marks import DASHES, GREY, color_of, level
from hdica.show.panel import Line, Panel
from hdica.show.terms import entries
from hdica.show.wording import listed
from hdica.show.words import (
    clock,
    count,
    measured,
    method_name,
    number,
    of_n,
    place,
    plural,
    size,
    titled,
    words,
)

OWN = {"seed", "time"}
WITHIN = (-1.05, 1.05)
"""The whole range of overlaps; a variable that leaves it has an axis of its own."""
LONG_NAMES = {
    "path": "{v} of a single run",
    "reached": "first output time at which abs({v}) of a single run is at the threshold",
    "level": "size of {v} at the top of the barrier",
}

MOST_TIMES = 1000


def paths(tree: xr.DataTree, settings: Paths) -> xr.Dataset:
    """The first runs of some grid points, as in Figure 3 of Rattray (2002).

    They are at the largest n, if there is any: ``path`` over at most six grid points, ``seed``, at
    most 1000 times, and the dimensions of the variable; NaN where a run is not done. With a
    ``threshold``: ``reached``, without ``time``, NaN where a run does not reach it. With a
    ``barrier``: ``level``, its ``summit`` over sqrt(n), over the grid points and entries that it
    has. The attribute ``cells`` tells how many grid points there are.
    """
    variable, name = settings.variable, settings.simulation
    data = group(tree, name)
    values, n = at_top(finished(data, variable))
    grid = grid_of(data)
    cells = int(np.prod([values.sizes[d] for d in grid], dtype=int))
    if settings.until is not None:
        if (values["time"] <= settings.until).sum() < 2:
            raise HdicaError(
                f"analysis.paths.until = {settings.until:g} is not allowed (at least two output "
                f"times: the second is {float(values['time'][:2][-1]):g})"
            )
        values = values.sel(time=slice(None, settings.until))
    kept = {d: spread(values.sizes[d], most) for d, most in _most(values, grid).items()}
    values = values.isel(kept).isel(seed=slice(settings.runs))
    thin = values.isel(time=spread(values.sizes["time"], MOST_TIMES))
    out = xr.Dataset({"path": thin}).reset_coords(drop=True)
    out.attrs = {"variable": variable, "simulation": name, "cells": cells}
    if n is not None:
        out.attrs["n"] = n
    if settings.threshold is not None:
        out.attrs["threshold"] = settings.threshold
        there = np.abs(values) >= settings.threshold
        out["reached"] = values["time"].where(there).min("time").reset_coords(drop=True)
    if settings.barrier:
        if n is None:
            raise HdicaError("analysis.paths.barrier is not allowed (runs without n have no √n R)")
        summit = finished(group(tree, settings.barrier), "summit")
        out.attrs["level_at_n"] = int("n" in summit.dims)
        shared = {str(d): thin[d].values for d in summit.dims if d in thin.dims}
        top = selected(summit, {**shared, "n": n}) / np.sqrt(n)
        out["level"] = top.reset_coords(drop=True)
    return described(out, LONG_NAMES, variable)


def _most(values: xr.DataArray, grid: list[str]) -> dict[str, int]:
    """How many values of each swept parameter are kept, so that at most six points are."""
    left, out = MOST, {}
    for k, d in enumerate(reversed(grid)):
        most = 3 if k == 0 and len(grid) > 1 else left
        out[d] = max(1, min(most, values.sizes[d]))
        left //= out[d]
    return out


def findings(data: xr.Dataset) -> list[Finding]:
    """When the first run reaches the threshold, entry by entry, and the tops of the barriers.

    Barriers are where the potential is highest, the lowest at each grid point first.
    """
    limit = "" if data.attrs.get("level_at_n") else " for n → ∞"
    name = size(data.attrs["variable"]) + words(f" at the top of the barrier{limit}")
    tops = [
        Finding(name, _place(data, cell), level, digits=3)
        for cell in points(data, _grid(data))
        for level in _levels(data, cell)
    ]
    return [*_first_times(data), *tops]


def _first_times(data: xr.Dataset) -> list[Finding]:
    """When the first run reaches the threshold, of every entry."""
    if "reached" not in data:
        return []
    first, steps = data["reached"].min("seed"), float(data.attrs.get("n", 1))
    reached = data["reached"].notnull().sum("seed")
    name = words("the time after which ") + size(data.attrs["variable"])
    several = " in the first run that does so" if data.sizes["seed"] > 1 else ""
    name = name + words(f" reaches {number(data.attrs['threshold'])}{several}")
    return [
        Finding(
            name,
            _place(data, cell),
            steps * float(first.sel(cell)),
            unit=words("steps" if "n" in data.attrs else ""),
            evidence=f"{int(reached.sel(cell))} of {plural(_done(data, cell), 'run')}",
        )
        for cell in points(data, [str(d) for d in first.dims])
    ]


def _place(data: xr.Dataset, cell: Point) -> Point:
    """Grid point, entry of a matrix if it has several, and n."""
    at = {k: v for k, v in cell.items() if data.sizes[k] > 1 or k not in entries()}
    return at | ({"n": int(data.attrs["n"])} if "n" in data.attrs else {})


def _done(data: xr.Dataset, cell: Point) -> int:
    """How many runs of a cell are done."""
    known = data["path"].sel(cell).notnull()
    return int(known.any([d for d in known.dims if d != "seed"]).sum())


def notes(data: xr.Dataset) -> list[str]:
    """Where no run reaches the threshold."""
    if "reached" not in data:
        return []
    cells = [cell for cell in points(data, _grid(data)) if _done(data, cell)]
    never = [cell for cell in cells if not bool(data["reached"].sel(cell).notnull().any())]
    if not never:
        return []
    last = float(data["time"][-1]) * float(data.attrs.get("n", 1))
    end = f"{count(last)} steps" if "n" in data.attrs else f"<i>t</i> = {number(last)}"
    where = f" at {listed([place(cell).html for cell in never])}" if any(never) else ""
    level = f"{size(data.attrs['variable']).html} = {number(data.attrs['threshold'])}"
    return [f"No run reaches {level} within {end}{where}."]


def panels(data: xr.Dataset) -> list[Panel]:
    """One panel a grid point, one line a run and entry: colour by column, dash by row."""
    cells = points(data, _grid(data))
    out = []
    for k, cell in enumerate(cells):
        lines = _lines(data["path"].sel(cell))
        if not lines:
            continue
        single = place(cell) or words("Single runs")
        largest = max(float(np.nanmax(np.abs(line.y))) for line in lines)
        out.append(
            Panel(
                f"paths_{k + 1}",
                titled(of_n(data.attrs["n"]), cell) if "n" in data.attrs else single,
                clock(data["time"].attrs),
                measured(str(data.attrs["variable"])),
                (*_marked(data, cell), *once(lines)),
                caption=_caption(data, cell, len(cells)),
                y_range=WITHIN if largest <= WITHIN[1] else None,
            )
        )
    return out


def _grid(data: xr.Dataset) -> list[str]:
    """Swept parameters of the runs."""
    return [str(d) for d in data["path"].dims if d not in OWN | entries()]


def _lines(here: xr.DataArray) -> list[Line]:
    """Every entry of every run that is done; each entry once in the legend."""
    time, out = here["time"].values.astype(float), list[Line]()
    row, column = _pair(here)
    rows, columns = (points(here.to_dataset(name="path"), axis) for axis in (row, column))
    swept = [d for d in (*row, *column) if here.sizes[d] > 1]
    for seed in here["seed"].values:
        for i, j in np.ndindex(len(rows), len(columns)):
            entry = {**rows[i], **columns[j]}
            y = here.sel({"seed": seed, **entry}).values
            if np.isfinite(y).any():
                label, color = place({d: float(entry[d]) for d in swept}), color_of(j, len(columns))
                out.append(Line(time, y, label, color, DASHES[i % 3], listed=bool(label)))
    return out


def _pair(here: xr.DataArray) -> tuple[list[str], list[str]]:
    """Dimensions of rows and of columns of a matrix, at most one each."""
    own = [str(d) for d in here.dims if d in entries()]
    return own[:-1], own[-1:]


def _marked(data: xr.Dataset, cell: Point) -> list[Line]:
    """Lines at the threshold and at the tops of the barriers, of either sign."""
    marks = []
    if "threshold" in data.attrs:
        dash = "dot" if "level" in data else "dash"
        marks.append((float(data.attrs["threshold"]), words("threshold"), GREY, dash))
    for top in _levels(data, cell):
        marks.append((top, words(f"top of the barrier, ±{number(top)}"), "ink", "dash"))
    time = data["time"].values.astype(float)
    return [
        level(time, sign * value, label, color, dash=dash, listed=sign > 0)
        for value, label, color, dash in marks
        for sign in (1.0, -1.0)
    ]


def _levels(data: xr.Dataset, cell: Point) -> list[float]:
    """Sizes at which the entries of a grid point have their barriers, the least first."""
    if "level" not in data:
        return []
    values = selected(data["level"], cell).values
    return sorted(set(values[np.isfinite(values)].tolist()))


def _caption(data: xr.Dataset, cell: Point, cells: int) -> str:
    done = _done(data, cell)
    text = f"{plural(done, 'run')} ({method_name(data.attrs['simulation']).html})"
    row, column = _pair(data["path"].sel(cell))
    for what, axis in (("colour", column), ("dash", row)):
        text += "".join(f"; {what} by {escape(d)}" for d in axis if data.sizes[d] > 1)
    text += "."
    if lost := data.sizes["seed"] - done:
        text += f" {lost} more diverged or are not done."
    if cells < data.attrs["cells"]:
        text += f" {cells} of {data.attrs['cells']} grid points, chosen evenly."
    return text
