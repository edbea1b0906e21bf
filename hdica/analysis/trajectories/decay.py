"""Learning curves on doubly logarithmic axes: how the distance to a target falls with time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from hdica.analysis.reading import at_top, described, finished, group, over
from hdica.analysis.trajectories import Decay
from hdica.show import terms
from hdica.show.choose import Point, points, selected, selection_note, shown
from hdica.show.finding import Finding, Form
from hdica.show.marks import DASHES, SYMBOLS, color_of
from hdica.show.panel import Line, Panel, Points
from hdica.show.words import (
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
from hdica.verdict.ladder import moments
from hdica.verdict.resample import jackknife_error

LONG_NAMES = {
    "gap": "mean of {v} over seeds minus its target",
    "gap_se": "standard error of the mean of {v}",
    "count": "seeds that are done",
    "largest_n": "largest n of the simulation, NaN without",
    "slope": "d log |mean of {v} - target| / d log t over the last decade",
    "slope_se": "standard error of the slope, over seeds",
    "limit_gap": "limit of {v} minus its target",
    "limit_slope": "d log |limit of {v} - target| / d log t over the last decade",
}

DECADE = 10.0
"""Slopes are fitted from the last time over this to the last time."""

ABOVE = 3.0
"""... and only where the distance is so many standard errors."""

LEAST_TIMES = 3

MARKERS = 24
OWN = {"simulation", "limit", "time"}

Item = Line | Points


def decay(tree: xr.DataTree, settings: Decay) -> xr.Dataset:
    """Distance of means and of limits to a target over time, with slopes.

    Over ``simulation`` (each at its largest n, if it has any), the swept parameters, columns for a
    matrix, and ``time``: mean minus target with its standard error; over ``limit`` the same of the
    limits; without ``time``: slopes over the last decade of time, with standard errors over seeds.
    A slope is NaN where fewer than three times are in the decade or the distance is not three
    standard errors at all of them.
    """
    variable, target = settings.variable, settings.target
    groups = {name: group(tree, name) for name in settings.curves}
    finite = [name for name, data in groups.items() if "seed" in data.dims]
    limits = [name for name in groups if name not in finite]
    parts = []
    if finite:
        each = [_simulated(finished(groups[m], variable), target) for m in finite]
        parts.append(over(each, "simulation", finite))
    if limits:
        parts.append(over([_limit(groups[m], variable, target) for m in limits], "limit", limits))
    out = xr.merge([p.reset_coords(drop=True) for p in parts], join="outer")
    if finite:
        out["count"] = out["count"].fillna(0).astype(int)
    out.attrs = {"variable": variable, "target": target}
    return described(out, LONG_NAMES, variable)


def diagonal(values: xr.DataArray) -> xr.DataArray:
    """Entries of equal row and column of a matrix, over its columns; anything else as it is."""
    matrix = terms.matrix_over(values.dims)
    if matrix is None or len(matrix.dims) != 2:
        return values
    row, column = matrix.dims
    both = [i for i in values[column].values if i in values[row].values]
    index = xr.DataArray(both, dims="entry")
    result = values.sel({row: index, column: index}).drop_vars(matrix.dims)
    return result.rename(entry=column).assign_coords({column: both})


def _simulated(values: xr.DataArray, target: float) -> xr.Dataset:
    """Mean over seeds, at the largest n if there is any, with errors."""
    values, n = at_top(values)
    gap = diagonal(values).reset_coords(drop=True) - target
    of_gap = moments(gap)
    mean, se, count = of_gap["mean"], of_gap["se"], of_gap["count"]
    slope = _slope(mean, se)
    # One seed fewer at a time: neighbouring times share seeds, which residuals would not show.
    left = count - gap.notnull()
    without = (gap.sum("seed") - gap.fillna(0.0)) / left.where(left > 0)
    slope_se = jackknife_error(_slope(without, xr.zeros_like(without)), count)
    out = {"gap": mean, "gap_se": se, "count": count}
    out |= {"largest_n": xr.DataArray(np.nan if n is None else n), "slope": slope}
    return xr.Dataset(out | {"slope_se": slope_se.where(slope.notnull())}).reset_coords(drop=True)


def _limit(data: xr.Dataset, variable: str, target: float) -> xr.Dataset:
    """One limit; a method with n and without seeds is shown at its largest n."""
    values = finished(data, variable).isel(n=-1, drop=True, missing_dims="ignore")
    gap = diagonal(values).reset_coords(drop=True) - target
    return xr.Dataset({"limit_gap": gap, "limit_slope": _slope(gap, xr.zeros_like(gap))})


def _slope(gap: xr.DataArray, se: xr.DataArray) -> xr.DataArray:
    """Least-squares slope of log abs(gap) on log t over the last decade of time."""
    time = gap["time"].values.astype(float)
    chosen = np.flatnonzero((time > 0) & (time >= time[-1] / DECADE * (1 - 1e-9)))
    if len(chosen) < LEAST_TIMES:
        return gap.isel(time=-1, drop=True) * np.nan
    gap, se = gap.isel(time=chosen), se.isel(time=chosen)
    log_t = np.log(time[chosen])
    lever = log_t - log_t.mean()
    weights = xr.DataArray(lever / (lever @ lever), dims="time")
    size = abs(gap).drop_vars("time")
    clear = ((size > ABOVE * se.drop_vars("time").fillna(0.0)) & (size > 0)).all("time")
    log_size = xr.apply_ufunc(np.log, size.where(size > 0))
    return (log_size * weights).sum("time", skipna=False).where(clear)


def findings(data: xr.Dataset) -> list[Finding]:
    """Of every curve the power of time over the last decade and the distance at the last time."""
    time, distance = symbol("snapshot"), _distance(data)
    over_decade = distance + words(" over the last decade of ") + time
    end, ends = {"t": float(data["time"][-1])}, _curves(data.isel(time=-1), "gap")
    powers = _curves(data, "slope")
    return [
        *(Finding(over_decade, *one, form=Form.POWER, base=time) for one in powers),
        *(Finding(distance, {**at, **end}, abs(gap), error) for at, gap, error in ends),
    ]


def _curves(data: xr.Dataset, name: str) -> Iterator[tuple[Point, float, float]]:
    """Place of every curve and a number with its error: simulations, then limits, at each cell."""
    simulations = data["simulation"].values.tolist() if name in data else []
    limits = data["limit"].values.tolist() if f"limit_{name}" in data else []
    several = len(simulations) + len(limits) > 1
    for cell in points(data, [str(d) for d in data.dims if d not in OWN]):
        at = {k: v for k, v in cell.items() if data.sizes[k] > 1 or k not in terms.entries()}
        for method in simulations:
            here = {**cell, "simulation": method}
            value, error, n = (
                float(selected(data[k], here)) for k in (name, f"{name}_se", "largest_n")
            )
            method_at = {"simulation": method} if several else {}
            size = {"n": int(n)} if np.isfinite(n) else {}
            yield {**at, **method_at, **size}, value, error
        for limit in limits:
            value = float(selected(data[f"limit_{name}"], {**cell, "limit": limit}))
            yield {**at, **({"limit": limit} if several else {})}, value, np.nan


def panels(data: xr.Dataset) -> list[Panel]:
    """One panel a grid point: distance to the target against time, a colour an entry."""
    # An entry of the diagonal is no swept parameter.
    grid = [str(d) for d in data.dims if d not in OWN and d not in terms.entries()]
    cells = shown(data, grid)
    out = []
    for k, cell in enumerate(cells):
        items = _items(data, cell)
        if not items:
            continue
        y = np.concatenate([item.y for item in items])
        y = y[np.isfinite(y)]
        out.append(
            Panel(
                f"decay_{k + 1}" if len(cells) > 1 else "decay",
                place(cell) if cell else words("Learning curves"),
                clock(data["time"].attrs),
                _distance(data),
                tuple(items),
                caption=_caption(data, len(cells), grid),
                log_x=True,
                log_y=True,
                y_range=(float(y.min() / 2), float(y.max() * 1.6)),  # lower ends may be cut
            )
        )
    return out


def _distance(data: xr.Dataset) -> Text:
    """The distance to the target as it is written."""
    name = symbol(str(data.attrs["variable"]))
    if data.attrs["target"] == 0:
        if all(p.low >= 0 for p in terms.order_parameters(str(data.attrs["variable"]))):
            return words("mean ") + name
        return words("|mean ") + name + words("|")
    return words(f"|{number(data.attrs['target'])} − mean ") + name + words("|")


def _items(data: xr.Dataset, cell: Point) -> list[Item]:
    """Limits as lines, below simulations as markers."""
    every = points(data, [str(d) for d in data.dims if d in terms.entries()])
    several = len(every) > 1
    lines, marks = list[Item](), list[Item]()
    for i, entry in enumerate(every):
        lead = leading(entry if several else {})
        for k, method in enumerate(data["limit"].values if "limit_gap" in data else []):
            color = color_of(i, len(every)) if several else "ink"
            gap = selected(data["limit_gap"], {**cell, **entry, "limit": method})
            time, y = gap["time"].values.astype(float), np.abs(gap.values)
            at, label = (time > 0) & (y > 0), lead + method_name(method)
            lines.append(Line(time[at], y[at], label, color, DASHES[k % 3], bold=True))
        for k, method in enumerate(data["simulation"].values if "gap" in data else []):
            point = {**cell, **entry, "simulation": method}
            label = lead + named_at(str(method), float(selected(data["largest_n"], point)))
            color = color_of(i if several else k, max(len(every), 6))
            gap, se = (selected(data[name], point) for name in ("gap", "gap_se"))
            marks.append(_markers(gap, se, label, color, SYMBOLS[k % 4]))
    return [item for item in (*lines, *marks) if np.isfinite(item.y).any()]


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
    parts += selection_note(data, grid, drawn)
    return " ".join(parts)
