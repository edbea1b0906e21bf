"""Several variables over one dimension: their means, where each is half-way, and a panel each."""

from __future__ import annotations

from itertools import product

import numpy as np
import xarray as xr

from hdica.analysis.reading import at_top, described, finished, group, over
from hdica.analysis.trajectories import Curves
from hdica.show.choose import Point, points, selected, selection_note, shown
from hdica.show.finding import Finding, Form
from hdica.show.marks import GREY, color_of, level, tailed, upright
from hdica.show.panel import Array, Line, Panel, Points
from hdica.show.words import (
    EMPTY,
    Text,
    clock,
    leading,
    method_name,
    place,
    sentence,
    symbol,
    titled,
    words,
)

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
