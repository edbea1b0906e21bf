"""Several variables over one dimension: their means, where each is half-way, and a panel each."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.curves import Curves
from hdica.analysis.describe import described
from hdica.analysis.reading import at_top, finished, group, over
from hdica.show.choose import Point, points, selected, selection_note, shown
from hdica.show.finding import Finding, Form
from hdica.show.marks import GREY, color_of, level, upright
from hdica.show.panel import Line, Panel, Points
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
Array = NDArray[np.float64]
ROUNDING = 1e-9


def curves(tree: xr.DataTree, settings: Curves) -> xr.Dataset:
    """Means over ``variable``, the swept parameters and the dimension that is named.

    Of the method at its largest n, if it has any. ``mean``, ``se`` and ``count`` over seeds (a
    method without them counts as one); with ``rises`` in addition ``rise``, the first coordinate
    at which a variable has come half-way from its first value to its last, with its standard error,
    and ``first``, the share of seeds in which no other variable is there before; with theory
    ``theory``, NaN where it has no such variable.
    """
    data = group(tree, settings.method)
    every = [at_top(finished(data, name))[0].reset_coords(drop=True) for name in settings.variables]
    every = [values if "seed" in values.dims else values.expand_dims(seed=[0]) for values in every]
    out = over([_means(values) for values in every], "variable", settings.variables, ["count"])
    if settings.rises:
        out = out.merge(_rises(every, settings))
    if settings.theory is not None:
        out["theory"] = _theory(group(tree, settings.theory), settings, out["mean"])
    meaning = [str(data[name].attrs.get("long_name", name)) for name in settings.variables]
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


def _means(values: xr.DataArray) -> xr.Dataset:
    count = values.notnull().all(str(values.dims[-1])).sum("seed")
    return xr.Dataset({"mean": values.mean("seed"), "se": _error(values, count), "count": count})


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
    core = [[settings.over]]
    parts = []
    for values in every:
        at = values[settings.over].astype(float).drop_attrs()
        one = xr.apply_ufunc(half_way, at, values, input_core_dims=core * 2, vectorize=True)
        parts.append(xr.Dataset({"rise": one}))
    found = over(parts, "variable", settings.variables)["rise"]
    earliest = (found == found.min("variable")).where(found.notnull().all("variable"))
    error = _error(found, found.notnull().sum("seed"))
    rises = {"rise": found.mean("seed"), "rise_se": error, "first": earliest.mean("seed")}
    return xr.Dataset(rises)


def _theory(data: xr.Dataset, settings: Curves, like: xr.DataArray) -> xr.DataArray:
    """Variables of the theory where it has them over the same dimension."""
    nothing = xr.full_like(like.isel(variable=0, drop=True), np.nan)
    parts = [
        finished(data, name).reset_coords(drop=True)
        if name in data and settings.over in data[name].dims
        else nothing
        for name in settings.variables
    ]
    return xr.concat(xr.broadcast(*parts), dim=like["variable"])


def findings(data: xr.Dataset) -> list[Finding]:
    """Which variable is half-way first and where each is; else where each is largest."""
    cells = points(data, grid_of(data))
    names = [str(name) for name in data["variable"].values]
    if "rise" not in data:
        return [one for name in names for c in cells for one in _largest(data, name, c)]
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


def _largest(data: xr.Dataset, name: str, cell: Point) -> list[Finding]:
    """The maximum of a variable, if it is above both ends of the range by more than rounding."""
    mean, se = (selected(data[k], {**cell, "variable": name}).values for k in ("mean", "se"))
    top = int(np.argmax(mean)) if np.isfinite(mean).all() else 0
    if not mean[top] > max(mean[0], mean[-1]) + ROUNDING * abs(mean[top]):
        return []
    axis = "t" if data.attrs["over"] == "time" else str(data.attrs["over"])
    at = {**cell, axis: float(data["at"].values[top])}
    return [Finding(symbol(name), at, float(mean[top]), float(se[top]), form=Form.LARGEST)]


def panels(data: xr.Dataset) -> list[Panel]:
    """Every variable over the dimension, a colour a grid point; rescaled, a panel a grid point."""
    cells = shown(data, grid_of(data))
    out = [_panel(data.sel(variable=name), str(name), cells) for name in data["variable"].values]
    if "rise" in data:
        known = [cell for cell in cells if bool(selected(data["rise"], cell).notnull().all())]
        many = len(known) > 1
        out += [_together(data, cell, f"_{k + 1}" if many else "") for k, cell in enumerate(known)]
    return [panel for panel in out if panel.items]


def grid_of(data: xr.Dataset) -> list[str]:
    """Swept parameters."""
    return [str(d) for d in data["count"].dims if d != "variable"]


def _axis(data: xr.Dataset) -> Text:
    """The dimension as the label of an axis."""
    if data.attrs["over"] == "time":
        return clock({"units": data.attrs["over_units"]})
    return symbol(str(data.attrs["over"]))


def _seen(data: xr.Dataset) -> tuple[Array, NDArray[np.bool_]]:
    """Coordinates, and which of them the axis can show."""
    at = data["at"].values
    return at, at > 0 if data.attrs["log"] else np.ones(len(at), dtype=bool)


def _panel(here: xr.Dataset, name: str, cells: list[Point]) -> Panel:
    at, keep = _seen(here)
    items: list[Line | Points] = []
    for k, cell in enumerate(cells):
        mean, se = (selected(here[key], cell).values[keep] for key in ("mean", "se"))
        if not np.isfinite(mean).any():
            continue
        bar = np.nan_to_num(se)
        label = place(cell) if cell else method_name(here.attrs["method"])
        color = color_of(k, len(cells))
        items.append(Points(at[keep], mean, label, color, mean - bar, mean + bar, joined=True))
    items = [*_theory_lines(here, cells, at, keep), *items]
    return Panel(
        f"curves_{name}",
        words(sentence(str(here["meaning"].item()))),
        _axis(here),
        symbol(name),
        tuple(items),
        caption=" ".join(
            [
                f"Mean over seeds ± standard error ({method_name(here.attrs['method']).html}).",
                *(["Dashed: theory."] if any(isinstance(item, Line) for item in items) else []),
                *selection_note(here, grid_of(here), len(cells)),
            ]
        ),
        log_x=bool(here.attrs["log"]),
    )


def _theory_lines(
    here: xr.Dataset, cells: list[Point], at: Array, keep: NDArray[np.bool_]
) -> list[Line]:
    """Theory, once where it is the same at all grid points."""
    if "theory" not in here:
        return []
    found = [selected(here["theory"], cell).values for cell in cells]
    alike = all(np.array_equal(y, found[0], equal_nan=True) for y in found)
    out = []
    for k, y in enumerate(found[:1] if alike else found):
        color = "ink" if alike else color_of(k, len(cells))
        label = words("theory: ") + method_name(here.attrs["theory"])
        label = label if alike else leading(cells[k]) + label
        if np.isfinite(y[keep]).any():
            out.append(Line(at[keep], y[keep], label, color, "dash"))
    return out


def _together(data: xr.Dataset, cell: Point, tail: str) -> Panel:
    """All variables at a grid point, each from 0 at its first value to 1 at its last."""
    at, keep = _seen(data)
    half_way = level(at[keep], 0.5, words("half-way"), GREY, dash="dot", listed=False)
    items: list[Line | Points] = [half_way]
    names = data["variable"].values.tolist()
    for k, name in enumerate(names):
        mean, rise = (selected(data[key], {**cell, "variable": name}) for key in ("mean", "rise"))
        label, color = symbol(name), color_of(k, max(len(names), 2))
        scaled = ((mean - mean[0]) / (mean[-1] - mean[0])).values
        items.append(Points(at[keep], scaled[keep], label, color, joined=True))
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
