"""One variable of several methods: side by side, and how its distance to a target falls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.convergence.figure import deviations
from hdica.analysis.reading import at_top, described, finished, groups, numeric, offered, over
from hdica.analysis.settings import Suiting, names
from hdica.analysis.trajectories import Compare, Decay
from hdica.show import terms
from hdica.show.choose import (
    Point,
    cells_of,
    dims_of,
    numbers,
    points,
    positions,
    selected,
    selection_note,
    shown,
    spread,
)
from hdica.show.finding import Finding, Form, named
from hdica.show.marks import (
    DASHES,
    GREY,
    SYMBOLS,
    captioned,
    color_of,
    known,
    level,
    lines_first,
    time_axes,
)
from hdica.show.panel import Array, Line, Panel, Points
from hdica.show.wording import remarks
from hdica.show.words import Text, leading, method_name, named_at, number, place, symbol, words
from hdica.systems.method import Role
from hdica.verdict.ladder import moments
from hdica.verdict.resample import jackknife_error

Item = Line | Points
Places = NDArray[np.intp]
OWN = {"simulation", "limit", "time", "fixed_point"}
"""Dimensions that are no swept parameter."""
SHARED = {
    "count": "seeds that are done",
    "largest_n": "largest n of the simulation, NaN without",
}


def _by_method(
    every: Mapping[str, xr.Dataset],
    simulated: Callable[[xr.Dataset], xr.Dataset],
    limited: Callable[[xr.Dataset], xr.Dataset],
) -> list[xr.Dataset]:
    """What there is of simulations, over ``simulation``, and of limits, over ``limit``."""
    kinds: dict[str, dict[str, xr.Dataset]] = {"simulation": {}, "limit": {}}
    for name, data in every.items():
        seeds = "seed" in data.dims
        kinds["simulation" if seeds else "limit"][name] = (simulated if seeds else limited)(data)
    return [over(parts, dim) for dim, parts in kinds.items() if parts]


def _at_times(
    time: Array, y: Array, error: Array, keep: Places, label: Text, color: str, k: int, least: float
) -> Points:
    """Markers of the k-th method at some times, with bars that end above a share of the value."""
    y, bar = y[keep], np.nan_to_num(error[keep])
    low = np.maximum(y - bar, y * least) if least else y - bar
    return Points(time[keep], y, label, color, low, y + bar, SYMBOLS[k % 4])


OF_METHODS = {
    "mean": "mean of {v} over seeds",
    "sd": "standard deviation of {v} over seeds",
    "se": "standard error of the mean of {v}",
    **SHARED,
    "limit_mean": "limit of {v}",
    "steady": "{v} at a stable steady state",
}
MARKERS = 16
RANKED = 3
"""Of so many words the one with the largest mean is named first."""


def compare(tree: xr.DataTree, settings: Compare) -> xr.Dataset:
    """Simulations, each at its largest n if it has any, limits, and steady states in one dataset.

    Over ``simulation``, the swept parameters and ``time``: mean, standard deviation and standard
    error over seeds; over ``limit``: the limit; over ``fixed_point``: the stable steady states.
    Each part only if a method gives it; ``n`` over ``simulation``.
    """
    variable = settings.variable
    every = groups(tree, (*settings.curves, *names(settings.steady)))
    steady = [data for data in every.values() if "fixed_point" in data.dims]

    def simulated(data: xr.Dataset) -> xr.Dataset:
        values, n = at_top(finished(data, variable))
        return moments(values).assign(largest_n=np.nan if n is None else n)

    def limited(data: xr.Dataset) -> xr.Dataset:
        return xr.Dataset({"limit_mean": finished(data, variable)})

    moving = {name: data for name, data in every.items() if "fixed_point" not in data.dims}
    parts = _by_method(moving, simulated, limited)
    if steady:
        stable = finished(steady[0], variable).where(steady[0]["stable"] == 1)
        parts.append(xr.Dataset({"steady": stable}))
    out = xr.merge(parts, join="outer")
    out.attrs = {"variable": variable, "band": settings.band}
    return described(out, OF_METHODS, variable)


def compare_suits(tree: xr.DataTree) -> Suiting:
    """Simulation and limit in one panel where there is time, but nothing is swept over numbers."""
    simulation, limit = (offered(tree, role, "time") for role in (Role.SIMULATION, Role.LIMIT))
    curves = [name for name in (simulation, limit) if name]
    times = [tree[name].sizes.get("time", 0) for name in curves]
    if not curves or min(times) < 2 or (simulation and numeric(tree, simulation)):
        return None
    return {"curves": curves, "steady": offered(tree, Role.STEADY_STATES, "fixed_point")}


def compare_findings(data: xr.Dataset) -> list[Finding]:
    """Means at the last time at the largest n; of words alone the largest first, with its lead."""
    if "mean" not in data:
        return []
    last = data.isel(time=-1)
    sizes = last["largest_n"].max([d for d in last["largest_n"].dims if d != "simulation"])
    last = last.isel(simulation=int(np.argmax(sizes.fillna(0).values)))
    every = [_end(data, last, point) for point in cells_of(last["mean"])]
    ends = [one for one in every if np.isfinite(one.value)]
    swept = [d for d in dims_of(last["mean"]) if last.sizes[d] > 1]
    if len(ends) < RANKED or len(swept) != 1 or last[swept[0]].dtype.kind in "fiu":
        return ends
    second, first = sorted(ends, key=lambda one: one.value)[-2:]
    name = "the difference between the two largest values of " + first.quantity
    error = float(np.hypot(first.error, second.error))
    lead = Finding(name, {}, first.value - second.value, error)
    return [replace(first, form=Form.LARGEST), lead, *ends]


def _end(data: xr.Dataset, last: xr.Dataset, point: Point) -> Finding:
    """The mean at the last time, at the largest n, beside the first limit."""
    here, limit = last.sel(point), np.nan
    if "limit_mean" in last:
        limit = float(selected(last["limit_mean"].isel(limit=0), point))
    every = {"simulation": str(last["simulation"].item()), **point}
    at = {k: v for k, v in every.items() if data.sizes[k] > 1}
    at |= {"n": int(here["largest_n"])} if np.isfinite(here["largest_n"]) else {}
    at["t"] = float(last["time"])
    name, theory = "mean " + symbol(data.attrs["variable"]), words("the limit")
    value, error = numbers(here, {}, "mean", "se")
    return Finding(name, at, value, error, predicted=limit, theory=theory)


def compare_panels(data: xr.Dataset) -> list[Panel]:
    """One panel: a colour for every grid point, a marker or dash for every method."""
    grid = dims_of(data, *OWN)
    chosen = shown(data, grid)
    items: list[Item] = []
    for i, point in enumerate(chosen):
        color = color_of(i, len(chosen)) if len(chosen) > 1 else ""
        items += _curves(data, point, color) + _steady(data, point, color, first=i == 0)
    drawn = known(items)
    if not drawn:
        return []
    bars = deviations(data.attrs["band"]) if "mean" in data else ""
    marks = {
        "points": f"Markers: mean over seeds ± {bars}.",
        "solid": "Lines: limits.",
        "dot": "Dotted: stable steady states." if "steady" in data else "",
    }
    methods = {name for dim in ("simulation", "limit") if dim in data for name in data[dim].values}
    text = [*captioned(drawn, marks), *selection_note(data, grid, len(chosen)), *remarks(methods)]
    labels = words("Methods side by side"), *time_axes(data)
    return [Panel("compare", *labels, lines_first(drawn), " ".join(text), wide=True)]


def _curves(data: xr.Dataset, point: Point, color: str) -> list[Item]:
    """Limits as lines, simulations as markers with bars, labelled by grid point and method."""
    out: list[Item] = []
    time = positions(data, "time")
    for k, method in enumerate(data["limit"].values if "limit_mean" in data else []):
        y = selected(data["limit_mean"], point).sel(limit=method).values
        label = leading(point) + method_name(str(method))
        out.append(Line(time, y, label, color or "ink", DASHES[k % 3], bold=True))
    at = np.array(spread(len(time), MARKERS))
    for j, method in enumerate(data["simulation"].values if "mean" in data else []):
        here = {**point, "simulation": method}
        mean, sd, n = (selected(data[k], here).values for k in ("mean", "sd", "largest_n"))
        shade, bar = color or color_of(j, data.sizes["simulation"]), data.attrs["band"] * sd
        label = leading(point) + named_at(str(method), float(n))
        out.append(_at_times(time, mean, bar, at, label, shade, j, 0.0))
    return out


def _steady(data: xr.Dataset, point: Point, color: str, first: bool) -> list[Item]:
    """Horizontal lines at the stable steady states with Q >= 0."""
    if "steady" not in data:
        return []
    values = selected(data["steady"], point).values.ravel()
    time, label = positions(data, "time"), words("stable steady state")
    return [
        level(time, v, label, color or GREY, dash="dot", listed=first and k == 0)
        for k, v in enumerate(np.unique(values[np.isfinite(values) & (values >= 0)]))
    ]


OF_DECAY = {
    "gap": "mean of {v} over seeds minus its target",
    "gap_se": "standard error of the mean of {v}",
    **SHARED,
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
MOST = 24
"""Markers of a learning curve."""
LOW = 1e-3
"""Bars end at this share of the distance: below the axis, not at a false end."""


def decay(tree: xr.DataTree, settings: Decay) -> xr.Dataset:
    """Distance of means and of limits to a target over time, with slopes.

    Over ``simulation`` (each at its largest n, if it has any), the swept parameters, columns for a
    matrix, and ``time``: mean minus target with its standard error; over ``limit`` the same of the
    limits; without ``time``: slopes over the last decade of time, with standard errors over seeds.
    A slope is NaN where fewer than three times are in the decade or the distance is not three
    standard errors at all of them.
    """
    variable, target = settings.variable, settings.target

    def limited(data: xr.Dataset) -> xr.Dataset:  # with n and without seeds at its largest n
        values = finished(data, variable).isel(n=-1, drop=True, missing_dims="ignore")
        gap = diagonal(values) - target
        return xr.Dataset({"limit_gap": gap, "limit_slope": _slope(gap, xr.zeros_like(gap))})

    every = groups(tree, settings.curves)
    parts = _by_method(every, lambda d: _distances(finished(d, variable), target), limited)
    out = xr.merge(parts, join="outer")
    if "count" in out:
        out["count"] = out["count"].fillna(0).astype(int)
    out.attrs = {"variable": variable, "target": target}
    return described(out, OF_DECAY, variable)


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


def _distances(values: xr.DataArray, target: float) -> xr.Dataset:
    """Mean over seeds, at the largest n if there is any, with errors."""
    values, n = at_top(values)
    gap = diagonal(values) - target
    out = moments(gap)[["mean", "se", "count"]].rename(mean="gap", se="gap_se")
    slope, count = _slope(out["gap"], out["gap_se"]), out["count"]
    # One seed fewer at a time: neighbouring times share seeds, which residuals would not show.
    left = count - gap.notnull()
    without = (gap.sum("seed") - gap.fillna(0.0)) / left.where(left > 0)
    slope_se = jackknife_error(_slope(without, xr.zeros_like(without)), count)
    out = out.assign(largest_n=np.nan if n is None else n, slope=slope)
    return out.assign(slope_se=slope_se.where(slope.notnull()))


def _slope(gap: xr.DataArray, se: xr.DataArray) -> xr.DataArray:
    """Least-squares slope of log abs(gap) on log t over the last decade of time."""
    time = positions(gap, "time")
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


def decay_findings(data: xr.Dataset) -> list[Finding]:
    """Of every curve the power of time over the last decade and the distance at the last time."""
    time, distance = symbol("snapshot"), _distance(data)
    name, end = distance + " over the last decade of " + time, {"t": float(data["time"][-1])}
    powers, ends = _numbers(data, "slope"), _numbers(data.isel(time=-1), "gap")
    return [
        *(Finding(name, *one, form=Form.POWER, base=time) for one in powers),
        *(Finding(distance, {**at, **end}, abs(gap), error) for at, gap, error in ends),
    ]


def _numbers(data: xr.Dataset, name: str) -> Iterator[tuple[Point, float, float]]:
    """Place of every curve and a number with its error: simulations, then limits, at each cell."""
    simulations = data["simulation"].values.tolist() if name in data else []
    limits = data["limit"].values.tolist() if f"limit_{name}" in data else []
    several = len(simulations) + len(limits) > 1
    for cell in cells_of(data, *OWN):
        at = named(data, cell)
        for method in simulations:
            here = {**cell, "simulation": method}
            value, error, n = numbers(data, here, name, f"{name}_se", "largest_n")
            method_at = {"simulation": method} if several else {}
            size = {"n": int(n)} if np.isfinite(n) else {}
            yield {**at, **method_at, **size}, value, error
        for limit in limits:
            value = float(selected(data[f"limit_{name}"], {**cell, "limit": limit}))
            yield {**at, **({"limit": limit} if several else {})}, value, np.nan


def decay_panels(data: xr.Dataset) -> list[Panel]:
    """One panel a grid point: distance to the target against time, a colour an entry."""
    # An entry of the diagonal is no swept parameter.
    grid = dims_of(data, *OWN, *terms.entries())
    cells, out = shown(data, grid), []
    for k, cell in enumerate(cells):
        if not (items := _items(data, cell)):
            continue
        y = np.concatenate([item.y for item in items])
        y = y[np.isfinite(y)]
        key = f"decay_{k + 1}" if len(cells) > 1 else "decay"
        title = place(cell) if cell else words("Learning curves")
        labels = title, time_axes(data)[0], _distance(data)
        text = " ".join([*_caption(data), *selection_note(data, grid, len(cells))])
        ends = float(y.min() / 2), float(y.max() * 1.6)  # lower ends may be cut
        out.append(Panel(key, *labels, tuple(items), text, True, True, y_range=ends))
    return out


def _distance(data: xr.Dataset) -> Text:
    """The distance to the target as it is written."""
    variable = data.attrs["variable"]
    if data.attrs["target"] != 0:
        return f"|{number(data.attrs['target'])} − mean " + symbol(variable) + "|"
    if all(p.low >= 0 for p in terms.order_parameters(variable)):
        return "mean " + symbol(variable)
    return "|mean " + symbol(variable) + "|"


def _items(data: xr.Dataset, cell: Point) -> list[Item]:
    """Limits as lines, below simulations as markers."""
    every = points(data, [str(d) for d in data.dims if d in terms.entries()])
    several, items = len(every) > 1, list[Item]()
    for i, entry in enumerate(every):
        lead = leading(entry if several else {})
        for k, method in enumerate(data["limit"].values if "limit_gap" in data else []):
            color = color_of(i, len(every)) if several else "ink"
            gap = selected(data["limit_gap"], {**cell, **entry, "limit": method})
            time, y = positions(gap, "time"), np.abs(gap.values)
            at, label = (time > 0) & (y > 0), lead + method_name(method)
            items.append(Line(time[at], y[at], label, color, DASHES[k % 3], bold=True))
        for k, method in enumerate(data["simulation"].values if "gap" in data else []):
            point = {**cell, **entry, "simulation": method}
            label = lead + named_at(str(method), float(selected(data["largest_n"], point)))
            color = color_of(i if several else k, max(len(every), 6))
            gap, se = (selected(data[name], point) for name in ("gap", "gap_se"))
            time, y = positions(gap, "time"), np.abs(gap.values)
            items.append(_at_times(time, y, se.values, _thinned(time, y), label, color, k, LOW))
    return known(lines_first(items))


def _thinned(time: Array, y: Array) -> Places:
    """Indices of times even on a logarithmic axis."""
    keep = np.flatnonzero((time > 0) & (y > 0))
    if len(keep) <= MOST:
        return keep
    wanted = np.geomspace(time[keep[0]], time[keep[-1]], MOST)
    return keep[np.unique(np.abs(np.log(time[keep])[:, None] - np.log(wanted)).argmin(0))]


def _caption(data: xr.Dataset) -> list[str]:
    parts = []
    if "gap" in data:
        parts.append("Markers: distance of the mean over seeds from the target ± standard error.")
    if "limit_gap" in data:
        parts.append("Lines: limits.")
    matrices = (p.dims for p in terms.order_parameters(data.attrs["variable"]))
    pair = next((dims for dims in matrices if dims and dims[-1] in data.dims), None)
    if pair is not None:
        both = ", ".join(f"{dim} <i>i</i>" for dim in pair)
        parts.append(f"Of the matrix the diagonal is shown: {both}.")
    return parts
