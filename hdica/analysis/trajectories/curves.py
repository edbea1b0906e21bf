"""Variables of one method, or one variable of several methods, side by side."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import xarray as xr

from hdica.analysis.convergence.figure import deviations
from hdica.analysis.reading import at_top, described, finished, group, numeric, offered, over
from hdica.analysis.settings import FIXED_POINT, TIME, names
from hdica.analysis.trajectories import Compare, Curves
from hdica.show.choose import Point, points, selected, selection_note, shown, spread
from hdica.show.finding import Finding, Form
from hdica.show.marks import (
    DASHES,
    GREY,
    SYMBOLS,
    captioned,
    color_of,
    known,
    level,
    lines_first,
    tailed,
    upright,
)
from hdica.show.panel import Array, Line, Panel, Points
from hdica.show.words import (
    EMPTY,
    Text,
    clock,
    leading,
    measured,
    method_name,
    named_at,
    place,
    sentence,
    symbol,
    titled,
    words,
)
from hdica.systems.method import Role
from hdica.verdict.ladder import moments

LONG_NAMES = {
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
    every = [at_top(finished(data, name))[0].reset_coords(drop=True) for name in variables]
    every = [values if "seed" in values.dims else values.expand_dims(seed=[0]) for values in every]
    means = []
    for values in every:
        count = values.notnull().all(settings.over).sum("seed")
        one = {"mean": values.mean("seed"), "se": _error(values, count), "count": count}
        means.append(xr.Dataset(one))
    out = over(means, "variable", variables, ["count"])
    if settings.rises:
        out = out.merge(_rises(every, settings))
    if settings.theory is not None:
        known, nothing = group(tree, settings.theory), xr.full_like(out["mean"][0], np.nan)
        has = [name in known and settings.over in known[name].dims for name in variables]
        parts = [
            finished(known, name) if there else nothing
            for name, there in zip(variables, has, strict=True)
        ]
        alike = xr.broadcast(*(one.reset_coords(drop=True) for one in parts))
        out["theory"] = xr.concat(alike, dim=out["variable"])
    meaning = [str(data[name].attrs.get("long_name", name)) for name in variables]
    out["meaning"] = ("variable", meaning)
    # By another name, so that every analysis of a store may call its time as it likes.
    out["at"] = (settings.over, data[settings.over].values.astype(float))
    about = data[settings.over].attrs
    out.attrs = {
        "method": settings.method,
        "theory": settings.theory or "",
        "over": settings.over,
        "over_name": str(about.get("long_name", settings.over)),
        "over_units": str(about.get("units", "")),
        "log": int(settings.log),
    }
    return described(out.reset_coords(drop=True), LONG_NAMES)


def _error(values: xr.DataArray, count: xr.DataArray) -> xr.DataArray:
    """Standard error of the mean over seeds; NaN for one seed."""
    some = values.sizes["seed"] > 1
    spread = values.std("seed", ddof=1) if some else values.mean("seed") * np.nan
    return spread / np.sqrt(count.where(count > 0))


def half_way(at: Array, values: Array) -> float:
    """First coordinate at which values are half-way from the first to the last; NaN if unknown."""
    middle = (values[0] + values[-1]) / 2
    beyond = values >= middle if values[-1] >= values[0] else values <= middle
    return float(at[int(beyond.argmax())]) if beyond.any() and values[0] != values[-1] else np.nan


def _rises(every: list[xr.DataArray], settings: Curves) -> xr.Dataset:
    """Where each variable is half-way, and in how many seeds before all others."""
    core, parts = [[settings.over]] * 2, []
    for values in every:
        at = values[settings.over].astype(float).drop_attrs()
        one = xr.apply_ufunc(half_way, at, values, input_core_dims=core, vectorize=True)
        parts.append(xr.Dataset({"rise": one}))
    rises = over(parts, "variable", settings.variables)["rise"]
    earliest = (rises == rises.min("variable")).where(rises.notnull().all("variable"))
    error = _error(rises, rises.notnull().sum("seed"))
    return xr.Dataset(
        {"rise": rises.mean("seed"), "rise_se": error, "first": earliest.mean("seed")}
    )


def findings(data: xr.Dataset) -> list[Finding]:
    """Which variable is half-way first and where each is; else where each is largest."""
    cells = points(data, grid_of(data))
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
        first = words("the share of runs in which ") + symbol(names[int(share.argmax())])
        first += words(" is half-way to its last value before the others")
        out.append(Finding(first, {}, 100 * float(share.max()), unit=words("%"), digits=3))
    what = "the time" if data.attrs["over"] == "time" else f"the {data.attrs['over']}"
    units = str(data.attrs["over_units"])
    unit = words(units) if units not in ("", "1") else EMPTY
    for name in ordered:
        where = words(f"{what} at which ") + symbol(name) + words(" is half-way to its last value")
        for cell in known:
            at = {**cell, "variable": name}
            value, error = (float(selected(data[k], at)) for k in ("rise", "rise_se"))
            out.append(Finding(where, cell, value, error, unit=unit))
    return out


def _largest(data: xr.Dataset, cells: list[Point]) -> list[Finding]:
    """Maxima of variables that are above both ends of the range by more than rounding."""
    axis, out = "t" if data.attrs["over"] == "time" else str(data.attrs["over"]), []
    for name, cell in product(data["variable"].values.tolist(), cells):
        mean, se = (selected(data[k], {**cell, "variable": name}).values for k in ("mean", "se"))
        top = int(np.argmax(mean)) if np.isfinite(mean).all() else 0
        if mean[top] > max(mean[0], mean[-1]) + ROUNDING * abs(mean[top]):
            at = {**cell, axis: float(data["at"].values[top])}
            value, error = float(mean[top]), float(se[top])
            out.append(Finding(symbol(name), at, value, error, form=Form.LARGEST))
    return out


def panels(data: xr.Dataset) -> list[Panel]:
    """Every variable over the dimension, a colour a grid point; rescaled, a panel a grid point."""
    cells, over_ = shown(data, grid_of(data)), data.attrs["over"]
    first, last = (data["mean"].isel({over_: end}, drop=True) for end in (0, -1))
    data = data.assign(scaled=(data["mean"] - first) / (last - first))
    if data.attrs["log"]:  # such an axis shows no 0
        data = data.isel({over_: data["at"].values > 0})
    out = [_panel(data.sel(variable=name), str(name), cells) for name in data["variable"].values]
    if "rise" in data:
        known = [cell for cell in cells if bool(selected(data["rise"], cell).notnull().all())]
        out += [_together(data, cell, tail) for tail, cell in tailed(known)]
    return [panel for panel in out if panel.items]


def grid_of(data: xr.Dataset) -> list[str]:
    """Swept parameters."""
    return [str(d) for d in data["count"].dims if d != "variable"]


def _axis(data: xr.Dataset) -> Text:
    """The dimension as the label of an axis."""
    if data.attrs["over"] == "time":
        return clock({"units": data.attrs["over_units"]})
    return symbol(str(data.attrs["over"]))


def _panel(here: xr.Dataset, name: str, cells: list[Point]) -> Panel:
    at, method = here["at"].values, method_name(here.attrs["method"])
    items: list[Line | Points] = []
    for k, cell in enumerate(cells):
        mean, se = (selected(here[key], cell).values for key in ("mean", "se"))
        if np.isfinite(mean).any():
            bar, color = np.nan_to_num(se), color_of(k, len(cells))
            label = place(cell) if cell else method
            items.append(Points(at, mean, label, color, mean - bar, mean + bar, joined=True))
    theory = _theory_lines(here, cells)
    text = [
        f"Mean over seeds ± standard error ({method.html}).",
        *(["Dashed: theory."] if theory else []),
        *selection_note(here, grid_of(here), len(cells)),
    ]
    return Panel(
        f"curves_{name}",
        words(sentence(str(here["meaning"].item()))),
        _axis(here),
        symbol(name),
        (*theory, *items),
        caption=" ".join(text),
        log_x=bool(here.attrs["log"]),
    )


def _theory_lines(here: xr.Dataset, cells: list[Point]) -> list[Line]:
    """Theory, once where it is the same at all grid points."""
    if "theory" not in here:
        return []
    theory = [selected(here["theory"], cell).values for cell in cells]
    alike = all(np.array_equal(y, theory[0], equal_nan=True) for y in theory)
    label = words("theory: ") + method_name(here.attrs["theory"])
    looks = [(leading(cell) + label, color_of(k, len(cells))) for k, cell in enumerate(cells)]
    return [
        Line(here["at"].values, y, *look, "dash")
        for y, look in zip(theory, [(label, "ink")] if alike else looks, strict=False)
        if np.isfinite(y).any()
    ]


def _together(data: xr.Dataset, cell: Point, tail: str) -> Panel:
    """All variables at a grid point, each from 0 at its first value to 1 at its last."""
    at, names = data["at"].values, data["variable"].values.tolist()
    half_way = level(at, 0.5, words("half-way"), GREY, dash="dot", listed=False)
    items: list[Line | Points] = [half_way]
    for k, name in enumerate(names):
        here = {**cell, "variable": name}
        scaled, rise = (selected(data[key], here).values for key in ("scaled", "rise"))
        label, color = symbol(name), color_of(k, max(len(names), 2))
        items.append(Points(at, scaled, label, color, joined=True))
        if rise > 0 or not data.attrs["log"]:
            items.append(upright(float(rise), label, color, "dot", listed=False))
    return Panel(
        f"curves_together{tail}",
        titled(words("From the first value to the last"), cell),
        _axis(data),
        words("(value − first)/(last − first)"),
        tuple(items),
        caption="Each variable on a scale of its own; dotted: where it is half-way.",
        log_x=bool(data.attrs["log"]),
    )


MARKERS = 16
OWN = {"simulation", "limit", "time", "fixed_point"}
RANKED = 3
"""Of so many words the one with the largest mean is named first."""

Item = Line | Points

OF_METHODS = {
    "mean": "mean of {v} over seeds",
    "sd": "standard deviation of {v} over seeds",
    "se": "standard error of the mean of {v}",
    "count": "seeds that are done",
    "largest_n": "largest n of the simulation, NaN without",
    "limit_mean": "limit of {v}",
    "steady": "{v} at a stable steady state",
}


def compare(tree: xr.DataTree, settings: Compare) -> xr.Dataset:
    """Simulations, each at its largest n if it has any, limits, and steady states in one dataset.

    Over ``simulation``, the swept parameters and ``time``: mean, standard deviation and standard
    error over seeds; over ``limit``: the limit; over ``fixed_point``: the stable steady states.
    Each part only if a method gives it; ``n`` over ``simulation``.
    """
    variable = settings.variable
    curves = (*settings.curves, *names(settings.steady))
    groups = {name: group(tree, name) for name in curves}
    finite = [name for name, data in groups.items() if "seed" in data.dims]
    steady = [name for name, data in groups.items() if "fixed_point" in data.dims]
    limits = [name for name in curves if name not in (*finite, *steady)]
    parts = []
    if finite:
        tops = [at_top(finished(groups[m], variable)) for m in finite]
        each = [moments(v).assign(largest_n=np.nan if n is None else n) for v, n in tops]
        parts.append(over([one.reset_coords(drop=True) for one in each], "simulation", finite))
    if limits:
        each = [xr.Dataset({"limit_mean": finished(groups[m], variable)}) for m in limits]
        parts.append(over(each, "limit", limits))
    if steady:
        data = groups[steady[0]]
        parts.append(xr.Dataset({"steady": finished(data, variable).where(data["stable"] == 1)}))
    out = xr.merge([p.reset_coords(drop=True) for p in parts], join="outer")
    out.attrs = {"variable": variable, "band": settings.band}
    return described(out, OF_METHODS, variable)


def compare_suits(tree: xr.DataTree) -> dict[str, Any] | None:
    """Simulation and limit in one panel where there is time, but nothing is swept over numbers."""
    simulation, limit = (offered(tree, role, TIME) for role in (Role.SIMULATION, Role.LIMIT))
    curves = [name for name in (simulation, limit) if name]
    times = [tree[name].sizes.get("time", 0) for name in curves]
    if not curves or min(times) < 2 or (simulation and numeric(tree, simulation)):
        return None
    steady = offered(tree, Role.STEADY_STATES, FIXED_POINT)
    return {"curves": curves} | ({"steady": steady} if steady else {})


def compare_findings(data: xr.Dataset) -> list[Finding]:
    """Means at the last time of the simulation with the largest n.

    Where words alone are swept the largest comes first, with its lead.
    """
    if "mean" not in data:
        return []
    last = data.isel(time=-1)
    sizes = last["largest_n"].max([d for d in last["largest_n"].dims if d != "simulation"])
    last = last.isel(simulation=int(np.argmax(sizes.fillna(0).values)))
    dims = [str(d) for d in last["mean"].dims]
    every = [_end(data, last, point) for point in points(last, dims)]
    ends = [one for one in every if np.isfinite(one.value)]
    swept = [d for d in dims if last.sizes[d] > 1]
    if len(ends) < RANKED or len(swept) != 1 or last[swept[0]].dtype.kind in "fiu":
        return ends
    second, first = sorted(ends, key=lambda one: one.value)[-2:]
    name = words("the difference between the two largest values of ") + first.quantity
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
    name, theory = words("mean ") + symbol(str(data.attrs["variable"])), words("the limit")
    value, error = float(here["mean"]), float(here["se"])
    return Finding(
        name, {**at, "t": float(last["time"])}, value, error, predicted=limit, theory=theory
    )


def compare_panels(data: xr.Dataset) -> list[Panel]:
    """One panel: a colour for every grid point, a marker or dash for every method."""
    grid = [str(d) for d in data.dims if d not in OWN]
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
    text = " ".join([*captioned(drawn, marks), *selection_note(data, grid, len(chosen))])
    panel = Panel(
        "compare",
        words("Methods side by side"),
        clock(data["time"].attrs),
        measured(str(data.attrs["variable"])),
        lines_first(drawn),
        text,
        wide=True,
    )
    return [panel]


def _curves(data: xr.Dataset, point: Point, color: str) -> list[Item]:
    """Limits as lines, simulations as markers with bars, labelled by grid point and method."""
    out: list[Item] = []
    time = data["time"].values.astype(float)
    for k, method in enumerate(data["limit"].values if "limit_mean" in data else []):
        y = selected(data["limit_mean"], point).sel(limit=method).values
        label = leading(point) + method_name(str(method))
        out.append(Line(time, y, label, color or "ink", DASHES[k % 3], bold=True))
    at = np.array(spread(len(time), MARKERS))
    for j, method in enumerate(data["simulation"].values if "mean" in data else []):
        here = {**point, "simulation": method}
        mean, sd, n = (selected(data[k], here).values for k in ("mean", "sd", "largest_n"))
        y, bar = mean[at], data.attrs["band"] * np.nan_to_num(sd[at])
        shade = color or color_of(j, data.sizes["simulation"])
        label = leading(point) + named_at(str(method), float(n))
        out.append(Points(time[at], y, label, shade, y - bar, y + bar, SYMBOLS[j % 4]))
    return out


def _steady(data: xr.Dataset, point: Point, color: str, first: bool) -> list[Item]:
    """Horizontal lines at the stable steady states with Q >= 0."""
    if "steady" not in data:
        return []
    values = selected(data["steady"], point).values.ravel()
    time = data["time"].values.astype(float)
    label = words("stable steady state")
    return [
        level(time, v, label, color or GREY, dash="dot", listed=first and k == 0)
        for k, v in enumerate(np.unique(values[np.isfinite(values) & (values >= 0)]))
    ]
