"""A panel for each variable in its own units, and all of them from first to last value."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.show.choose import Point, points, said, selected, shown
from hdica.analysis.show.marks import GREY, color_of
from hdica.analysis.show.panel import Line, Panel, Points
from hdica.analysis.show.words import (
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

Array = NDArray[np.float64]


def curves(data: xr.Dataset) -> list[Panel]:
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


def over(data: xr.Dataset) -> Text:
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
    items = [*_theory(here, cells, at, keep), *items]
    return Panel(
        f"curves_{name}",
        words(sentence(str(here["meaning"].item()))),
        over(here),
        symbol(name),
        tuple(items),
        caption=" ".join(
            [
                f"Mean over seeds ± standard error ({method_name(here.attrs['method']).html}).",
                *(["Dashed: theory."] if any(isinstance(item, Line) for item in items) else []),
                *said(here, grid_of(here), len(cells)),
            ]
        ),
        log_x=bool(here.attrs["log"]),
    )


def _theory(here: xr.Dataset, cells: list[Point], at: Array, keep: NDArray[np.bool_]) -> list[Line]:
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
    items: list[Line | Points] = []
    names = data["variable"].values.tolist()
    for k, name in enumerate(names):
        mean = selected(data["mean"], {**cell, "variable": name}).values
        rise = float(selected(data["rise"], {**cell, "variable": name}))
        color = color_of(k, max(len(names), 2))
        scaled = (mean - mean[0]) / (mean[-1] - mean[0])
        label = symbol(name)
        items.append(Points(at[keep], scaled[keep], label, color, joined=True))
        if rise > 0 or not data.attrs["log"]:
            span = np.array([0.0, 1.0])
            items.append(Line(np.full(2, rise), span, label, color, "dot", listed=False))
    half = np.full(2, 0.5)
    ends = at[keep][[0, -1]]
    line = Line(ends, half, words("half-way"), GREY, "dot", listed=False)
    return Panel(
        f"curves_together{tail}",
        titled(words("From the first value to the last"), cell),
        over(data),
        words("(value − first)/(last − first)"),
        (line, *items),
        caption="Each variable on a scale of its own; dotted: where it is half-way.",
        log_x=bool(data.attrs["log"]),
    )


def cells_of(data: xr.Dataset) -> list[Point]:
    """Every grid point."""
    return points(data, grid_of(data))
