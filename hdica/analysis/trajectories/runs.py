"""One method: several of its variables side by side, and single runs of it."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from itertools import product

import numpy as np
import xarray as xr

from hdica.analysis import reading
from hdica.analysis.convergence.figure import baselines
from hdica.analysis.reading import at_top, described, finished, grid_of, group, over
from hdica.analysis.steady.figure import once
from hdica.analysis.trajectories import Curves, Paths
from hdica.errors import HdicaError
from hdica.show.choose import (
    MOST,
    Point,
    cells_of,
    dims_of,
    has_values,
    numbers,
    points,
    points_in,
    positions,
    selected,
    selection_note,
    shown,
    spread,
)
from hdica.show.finding import Finding, Form, named
from hdica.show.marks import DASHES, GREY, color_of, colored, level, tailed, time_axes, upright
from hdica.show.panel import Array, Item, Line, Panel, Points
from hdica.show.terms import entries
from hdica.show.wording import listed
from hdica.show.words import (
    EMPTY,
    Text,
    clock,
    count,
    leading,
    method_name,
    number,
    of_n,
    place,
    plural,
    sentence,
    size,
    symbol,
    titled,
    words,
)
from hdica.verdict.ladder import moments

OF_CURVES = {
    "mean": "mean over seeds of each variable",
    "se": "standard error of this mean",
    "count": "seeds that are done",
    "rise": "mean over seeds of where each variable is half-way from its first to its last value",
    "rise_se": "standard error of this mean",
    "first": "share of seeds in which no other variable is half-way before this one",
    "theory": "each variable by theory",
    "meaning": "what the variable is",
    "at": "what the variables are functions of",
}
ROUNDING = 1e-9


def curves(tree: xr.DataTree, settings: Curves) -> xr.Dataset:
    """Means over ``variable``, the swept parameters and the dimension that is named.

    Of the method at its largest n, if it has any. ``mean``, ``se`` and ``count`` over seeds (a
    method without them counts as one); with ``rises`` in addition ``rise``, the first coordinate
    at which a variable has come half-way from its first value to its last, with its standard error,
    and ``first``, the share of seeds in which no other variable is there before; with theory
    ``theory``, NaN where it has no such variable.
    """
    data, variables = group(tree, settings.method), settings.variables
    every, means = {}, {}
    for name in variables:
        values = at_top(finished(data, name))[0]
        every[name] = values if "seed" in values.dims else values.expand_dims(seed=[0])
        means[name] = moments(every[name], settings.over)[["mean", "se", "count"]]
    out = over(means, "variable", "count")
    if settings.rises:
        out = out.merge(_rises(every, settings.over))
    if settings.theory is not None:
        known, like = group(tree, settings.theory), out["mean"].isel(variable=0, drop=True)
        parts = [
            finished(known, name)
            if name in known and settings.over in known[name].dims
            else xr.full_like(like, np.nan)
            for name in variables
        ]
        out["theory"] = xr.concat(xr.broadcast(*parts), dim=out["variable"])
    meaning = [str(data[name].attrs.get("long_name", name)) for name in variables]
    out["meaning"] = ("variable", meaning)
    # By another name, so that every analysis of a store may call its time as it likes.
    out["at"] = (settings.over, data[settings.over].values.astype(float))
    out.attrs = {
        "method": settings.method,
        "theory": settings.theory or "",
        "over": settings.over,
        "over_units": str(data[settings.over].attrs.get("units", "")),
        "log": int(settings.log),
    }
    return described(out, OF_CURVES)


def half_way(at: Array, values: Array) -> float:
    """First coordinate at which values are half-way from the first to the last; NaN if unknown."""
    middle = (values[0] + values[-1]) / 2
    beyond = values >= middle if values[-1] >= values[0] else values <= middle
    return float(at[int(beyond.argmax())]) if beyond.any() and values[0] != values[-1] else np.nan


def _rises(every: Mapping[str, xr.DataArray], dim: str) -> xr.Dataset:
    """Where each variable is half-way, and in how many seeds before all others."""
    core, parts = [[dim]] * 2, {}
    for name, values in every.items():
        at = values[dim].astype(float).drop_attrs()
        one = xr.apply_ufunc(half_way, at, values, input_core_dims=core, vectorize=True)
        parts[name] = xr.Dataset({"rise": one})
    rises = over(parts, "variable")["rise"]
    earliest = (rises == rises.min("variable")).where(rises.notnull().all("variable"))
    out = moments(rises)[["mean", "se"]].rename(mean="rise", se="rise_se")
    return out.assign(first=earliest.mean("seed"))


def curves_findings(data: xr.Dataset) -> list[Finding]:
    """Which variable is half-way first and where each is; else where each is largest."""
    cells = points(data, _grid_of_curves(data))
    names = [str(name) for name in data["variable"].values]
    if "rise" not in data:
        return _largest(data, cells)
    known = [c for c in cells if bool(selected(data["rise"], c).notnull().all())]
    if not known:
        return []
    rise = data["rise"].mean([d for d in data["rise"].dims if d != "variable"])
    ordered = sorted(names, key=lambda name: float(rise.sel(variable=name)))
    out = []
    if len(names) > 1:
        share = np.mean([selected(data["first"], cell).values for cell in known], axis=0)
        first = "the share of runs in which " + symbol(names[int(share.argmax())])
        first += " is half-way to its last value before the others"
        out.append(Finding(first, {}, 100 * float(share.max()), unit=words("%"), digits=3))
    what = "the time" if data.attrs["over"] == "time" else f"the {data.attrs['over']}"
    units = str(data.attrs["over_units"])
    unit = words(units) if units not in ("", "1") else EMPTY
    for name in ordered:
        where = f"{what} at which " + symbol(name) + " is half-way to its last value"
        for cell in known:
            at = {**cell, "variable": name}
            value, error = numbers(data, at, "rise", "rise_se")
            out.append(Finding(where, cell, value, error, unit=unit))
    return out


def _largest(data: xr.Dataset, cells: list[Point]) -> list[Finding]:
    """Maxima of variables that are above both ends of the range by more than rounding."""
    axis, out = "t" if data.attrs["over"] == "time" else data.attrs["over"], []
    for name, cell in product(data["variable"].values.tolist(), cells):
        mean, se = (selected(data[k], {**cell, "variable": name}).values for k in ("mean", "se"))
        top = int(np.argmax(mean)) if np.isfinite(mean).all() else 0
        if mean[top] > max(mean[0], mean[-1]) + ROUNDING * abs(mean[top]):
            at = {**cell, axis: float(data["at"].values[top])}
            value, error = float(mean[top]), float(se[top])
            out.append(Finding(symbol(name), at, value, error, form=Form.LARGEST))
    return out


def curves_panels(data: xr.Dataset) -> list[Panel]:
    """Every variable over the dimension, a colour a grid point; rescaled, a panel a grid point."""
    cells, over_ = shown(data, _grid_of_curves(data)), data.attrs["over"]
    first, last = (data["mean"].isel({over_: end}, drop=True) for end in (0, -1))
    data = data.assign(scaled=(data["mean"] - first) / (last - first))
    if data.attrs["log"]:  # such an axis shows no 0
        data = data.isel({over_: data["at"].values > 0})
    out = [_curve(data.sel(variable=name), str(name), cells) for name in data["variable"].values]
    if "rise" in data:
        known = [cell for cell in cells if bool(selected(data["rise"], cell).notnull().all())]
        out += [_rescaled(data, cell, tail) for tail, cell in tailed(known)]
    return [panel for panel in out if panel.items]


def _grid_of_curves(data: xr.Dataset) -> list[str]:
    return dims_of(data["count"], "variable")


def _axis(data: xr.Dataset) -> Text:
    if data.attrs["over"] == "time":
        return clock({"units": data.attrs["over_units"]})
    return symbol(data.attrs["over"])


def _curve(here: xr.Dataset, name: str, cells: list[Point]) -> Panel:
    at, method = here["at"].values, method_name(here.attrs["method"])
    items: list[Item] = []
    for color, cell in colored(cells):
        mean, se = (selected(here[key], cell).values for key in ("mean", "se"))
        if np.isfinite(mean).any():
            bar, label = np.nan_to_num(se), place(cell) if cell else method
            items.append(Points(at, mean, label, color, mean - bar, mean + bar, joined=True))
    theory = _theory_lines(here, cells)
    text = [
        f"Mean over seeds ± standard error ({method.html}).",
        *(["Dashed: theory."] if theory else []),
        *selection_note(here, _grid_of_curves(here), len(cells)),
    ]
    labels = words(sentence(str(here["meaning"].item()))), _axis(here), symbol(name)
    log, drawn = bool(here.attrs["log"]), (*theory, *items)
    return Panel(f"curves_{name}", *labels, drawn, " ".join(text), log_x=log)


def _theory_lines(here: xr.Dataset, cells: list[Point]) -> list[Line]:
    """Theory, once where it is the same at all grid points."""
    if "theory" not in here:
        return []
    theory = [selected(here["theory"], cell).values for cell in cells]
    alike = all(np.array_equal(y, theory[0], equal_nan=True) for y in theory)
    label = "theory: " + method_name(here.attrs["theory"])
    looks = [(leading(cell) + label, color) for color, cell in colored(cells)]
    return [
        Line(here["at"].values, y, *look, "dash")
        for y, look in zip(theory, [(label, "ink")] if alike else looks, strict=False)
        if np.isfinite(y).any()
    ]


def _rescaled(data: xr.Dataset, cell: Point, tail: str) -> Panel:
    """All variables at a grid point, each from 0 at its first value to 1 at its last."""
    at, names = data["at"].values, data["variable"].values.tolist()
    half_way = level(at, 0.5, words("half-way"), GREY, dash="dot", listed=False)
    items: list[Item] = [half_way]
    for k, name in enumerate(names):
        here = {**cell, "variable": name}
        scaled, rise = (selected(data[key], here).values for key in ("scaled", "rise"))
        label, color = symbol(name), color_of(k, max(len(names), 2))
        items.append(Points(at, scaled, label, color, joined=True))
        if rise > 0 or not data.attrs["log"]:
            items.append(upright(float(rise), label, color, "dot", listed=False))
    title, y = words("From the first value to the last"), words("(value − first)/(last − first)")
    text = "Each variable on a scale of its own; dotted: where it is half-way."
    labels, log = (titled(title, cell), _axis(data), y), bool(data.attrs["log"])
    return Panel(f"curves_together{tail}", *labels, tuple(items), text, log_x=log)


WITHIN = (-1.05, 1.05)
"""The whole range of overlaps; a variable that leaves it has an axis of its own."""
OF_PATHS = {
    "path": "{v} of a single run",
    "reached": "first output time at which abs({v}) of a single run is at the threshold",
    "level": "size of {v} at the top of the barrier",
}

MOST_TIMES = 1000


def paths(tree: xr.DataTree, settings: Paths) -> xr.Dataset:
    """The first runs of some grid points, as in Figure 3 of Rattray (2002).

    At the largest n, if there is any: ``path`` over at most six grid points, ``seed``, at most 1000
    times, and the dimensions of the variable; with a ``threshold``: ``reached``, when a run reaches
    it; with a ``barrier``: ``level``, its ``summit`` over sqrt(n). The attribute ``cells`` tells
    how many grid points there are.
    """
    variable, name = settings.variable, settings.simulation
    data = group(tree, name)
    values, n = at_top(finished(data, variable))
    grid = grid_of(data)
    cells = points_in(values, grid)
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
    out = xr.Dataset({"path": thin})
    out.attrs = {"variable": variable, "simulation": name, "cells": cells}
    if n is not None:
        out.attrs["n"] = n
    if settings.threshold is not None:
        out.attrs["threshold"] = settings.threshold
        there = np.abs(values) >= settings.threshold
        out["reached"] = values["time"].where(there).min("time")
    if settings.barrier:
        if n is None:
            raise HdicaError("analysis.paths.barrier is not allowed (runs without n have no √n R)")
        summit = finished(group(tree, settings.barrier), "summit")
        out.attrs["level_at_n"] = int("n" in summit.dims)
        shared = {str(d): thin[d].values for d in summit.dims if d in thin.dims}
        top = selected(summit, {**shared, "n": n}) / np.sqrt(n)
        out["level"] = top.reset_coords(drop=True)
    out = xr.merge([out, reading.baselines(tree, settings.baselines, variable)], join="left")
    return described(out, OF_PATHS | reading.OF_BASELINES, variable)


def _most(values: xr.DataArray, grid: list[str]) -> dict[str, int]:
    """How many values of each swept parameter are kept, so that at most six points are."""
    left, out = MOST, {}
    for k, d in enumerate(reversed(grid)):
        most = 3 if k == 0 and len(grid) > 1 else left
        out[d] = max(1, min(most, values.sizes[d]))
        left //= out[d]
    return out


def paths_findings(data: xr.Dataset) -> list[Finding]:
    """When the first run reaches the threshold, entry by entry, and the tops of the barriers.

    Barriers are where the potential is highest, the lowest at each grid point first.
    """
    limit = "" if data.attrs.get("level_at_n") else " for n → ∞"
    name = size(data.attrs["variable"]) + f" at the top of the barrier{limit}"
    tops = [
        Finding(name, _place(data, cell), level, digits=3)
        for cell in _cells(data)
        for level in _levels(data, cell)
    ]
    return [*_first_times(data), *tops]


def _first_times(data: xr.Dataset) -> list[Finding]:
    """When the first run reaches the threshold, of every entry."""
    if "reached" not in data:
        return []
    first, steps = data["reached"].min("seed"), float(data.attrs.get("n", 1))
    reached = data["reached"].notnull().sum("seed")
    name = "the time after which " + size(data.attrs["variable"])
    several = " in the first run that does so" if data.sizes["seed"] > 1 else ""
    name, out = name + f" reaches {number(data.attrs['threshold'])}{several}", []
    unit = words("steps" if "n" in data.attrs else "")
    for cell in cells_of(first):
        value, many = steps * float(first.sel(cell)), plural(_done(data, cell), "run")
        evidence = f"{int(reached.sel(cell))} of {many}"
        out.append(Finding(name, _place(data, cell), value, unit=unit, evidence=evidence))
    return out


def _place(data: xr.Dataset, cell: Point) -> Point:
    """Grid point, entry of a matrix if it has several, and n."""
    return named(data, cell) | ({"n": int(data.attrs["n"])} if "n" in data.attrs else {})


def _done(data: xr.Dataset, cell: Point) -> int:
    known = data["path"].sel(cell).notnull()
    return int(known.any([d for d in known.dims if d != "seed"]).sum())


def paths_notes(data: xr.Dataset) -> list[str]:
    """Where no run reaches the threshold."""
    if "reached" not in data:
        return []
    cells = [cell for cell in _cells(data) if _done(data, cell)]
    never = [cell for cell in cells if not has_values(data["reached"].sel(cell))]
    if not never:
        return []
    last = float(data["time"][-1]) * float(data.attrs.get("n", 1))
    end = f"{count(last)} steps" if "n" in data.attrs else f"<i>t</i> = {number(last)}"
    where = f" at {listed([place(cell).html for cell in never])}" if any(never) else ""
    level = f"{size(data.attrs['variable']).html} = {number(data.attrs['threshold'])}"
    return [f"No run reaches {level} within {end}{where}."]


def paths_panels(data: xr.Dataset) -> list[Panel]:
    """One panel a grid point, one line a run and entry: colour by column, dash by row."""
    cells = _cells(data)
    out = []
    for k, cell in enumerate(cells):
        lines = _lines(data["path"].sel(cell))
        if not lines:
            continue
        single = place(cell) or words("Single runs")
        title = titled(of_n(data.attrs["n"]), cell) if "n" in data.attrs else single
        labels = title, *time_axes(data)
        more, note = baselines(data, [cell])
        drawn, text = (*_marked(data, cell), *once(lines), *more), _caption(data, cell, len(cells))
        largest = max(float(np.nanmax(np.abs(line.y))) for line in lines)
        ends = WITHIN if largest <= WITHIN[1] else None
        out.append(Panel(f"paths_{k + 1}", *labels, drawn, text + note, y_range=ends))
    return out


def _cells(data: xr.Dataset) -> list[Point]:
    return cells_of(data["path"], "seed", "time", *entries())


def _lines(here: xr.DataArray) -> list[Line]:
    """Every entry of every run that is done; each entry once in the legend."""
    time, out = positions(here, "time"), list[Line]()
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
    time = positions(data, "time")
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
