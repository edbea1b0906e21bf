"""Critical values as another parameter varies."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.steady import TRANSITIONS
from hdica.report.choose import Point, shown
from hdica.report.figures.convergence import color_of
from hdica.report.panel import Panel, Points
from hdica.report.words import EMPTY, SYMBOLS, Text, place, size, symbol, words

LINES = 4


def transition(data: xr.Dataset) -> list[Panel]:
    """The critical value, and the overlap there, against x; a marker for every kind."""
    x = str(data.attrs["x"])
    value = critical_name(data)
    items, overlaps = (tuple(_items(data, name)) for name in ("value", "Q"))
    if not items:
        return []
    caption = "One marker a transition; joined in order of size."
    return [
        Panel(
            "transition",
            words("Transitions"),
            symbol(x),
            value,
            items,
            caption=caption,
        ),
        Panel(
            "transition_overlap",
            words("Overlap at the transitions"),
            symbol(x),
            size("Q"),
            overlaps,
            caption=caption,
            y_range=(-0.03, 1.03),
        ),
    ]


def critical_name(data: xr.Dataset) -> Text:
    """The critical parameter as it is written."""
    name = str(data.attrs["parameter"])
    return symbol(f"{name}_c") if name in ("tau", "omega") else words(f"critical {name}".strip())


def curves(data: xr.Dataset, cell: Point) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Kind, value and |Q| over x: the k-th smallest transition of a kind at every x."""
    here = data.sel(cell).transpose(data.attrs["x"], "transition", ...)
    value, kind, q = (here[k].values for k in ("value", "kind", "Q"))
    out = []
    for code in range(len(TRANSITIONS)):
        own = np.where(kind == code, value, np.nan)
        order = np.argsort(own, axis=1)  # NaN last
        ranked = np.take_along_axis(own, order, axis=1)
        overlap = np.abs(np.take_along_axis(np.where(kind == code, q, np.nan), order, axis=1))
        keep = np.isfinite(ranked).any(axis=0)
        out += [(code, v, o) for v, o in zip(ranked.T[keep], overlap.T[keep], strict=True)]
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
        lead = place(cell) + words(", ") if cell else EMPTY
        for code, value, overlap in curves(data, cell):
            label = lead + words(TRANSITIONS[code])
            color = color_of(i if len(cells) > 1 else code, max(len(cells), len(TRANSITIONS)))
            y = value if name == "value" else overlap
            listed = label.plain not in seen
            seen.add(label.plain)
            out.append(
                Points(x, y, label, color, symbol=SYMBOLS[code % 4], joined=True, listed=listed)
            )
    return out
