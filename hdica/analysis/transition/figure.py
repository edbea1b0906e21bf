"""Critical values as another parameter varies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.show.choose import Point, shown
from hdica.analysis.show.marks import SYMBOLS, color_of
from hdica.analysis.show.panel import Panel, Points
from hdica.analysis.show.words import Text, critical, leading, size, symbol, words
from hdica.analysis.steady.compute import TRANSITIONS
from hdica.analysis.transition.compute import OVERLAP
from hdica.systems.kinds import ZERO

Array = NDArray[np.float64]
LINES = 4


def transition(data: xr.Dataset) -> list[Panel]:
    """The critical value, and the overlap there, against x; a marker for every kind."""
    x = str(data.attrs["x"])
    value = critical_name(data)
    items, overlaps = (tuple(_items(data, name)) for name in ("value", OVERLAP))
    if not items:
        return []
    caption = "One marker a transition; those of a kind are joined in order of size."
    return [
        Panel("transition", words("Transitions"), symbol(x), value, items, caption),
        Panel(
            "transition_overlap",
            words("Overlap at the transitions"),
            symbol(x),
            size(str(data.attrs["overlap"])),
            overlaps,
            caption=caption,
            y_range=(-0.03, 1.03),
        ),
    ]


def critical_name(data: xr.Dataset) -> Text:
    """The critical parameter as it is written."""
    return critical(str(data.attrs["parameter"]))


@dataclass(frozen=True)
class Curve:
    """One transition over x: its name, a number for its marker, value and |Q|; shape (x,)."""

    name: Text
    mark: int
    value: Array
    overlap: Array


def curves(data: xr.Dataset, cell: Point) -> list[Curve]:
    """The k-th smallest transition of a kind at every x; those at Q = 0 stand apart."""
    here = data.sel(cell).transpose(data.attrs["x"], "transition", ...)
    value, kind, q = (here[k].values for k in ("value", "kind", OVERLAP))
    at_zero = np.abs(q) < ZERO
    out = []
    for code, name in enumerate(TRANSITIONS):
        for zero in (False, True):
            mine = (kind == code) & (at_zero == zero)
            own = np.where(mine, value, np.nan)
            order = np.argsort(own, axis=1)  # NaN last
            ranked = np.take_along_axis(own, order, axis=1).T
            overlap = np.abs(np.take_along_axis(np.where(mine, q, np.nan), order, axis=1)).T
            apart = zero and bool(np.any((kind == code) & ~at_zero))
            state = words(" at ") + symbol(str(data.attrs["overlap"])) + words(" = 0")
            label = words(name) + state if apart else words(name)
            mark = len(TRANSITIONS) if apart else code
            keep = np.isfinite(ranked).any(axis=1)
            out += [
                Curve(label, mark, v, o) for v, o in zip(ranked[keep], overlap[keep], strict=True)
            ]
    return out


def grid_of(data: xr.Dataset) -> list[str]:
    """Swept parameters beside x."""
    return [str(d) for d in data["value"].dims if d not in ("transition", data.attrs["x"])]


def _items(data: xr.Dataset, name: str) -> list[Points]:
    x = data[data.attrs["x"]].values.astype(float)
    cells = shown(data, grid_of(data), LINES)
    out: list[Points] = []
    seen: set[str] = set()
    for i, cell in enumerate(cells):
        lead = leading(cell)
        for curve in curves(data, cell):
            label = lead + curve.name
            color = color_of(i if len(cells) > 1 else curve.mark, max(len(cells), 4))
            y = curve.value if name == "value" else curve.overlap
            listed = label.plain not in seen
            seen.add(label.plain)
            mark = SYMBOLS[curve.mark % 4]
            out.append(Points(x, y, label, color, symbol=mark, joined=True, listed=listed))
    return out
