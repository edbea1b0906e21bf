"""Which variable is half-way first, or where each is largest."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.curves.figure import cells_of, over
from hdica.analysis.show.choose import Point, evenly, selected
from hdica.analysis.show.sentences import among, listed
from hdica.analysis.show.words import measurement, number, place, symbol

CELLS = 4


def curves(data: xr.Dataset) -> list[str]:
    """Where each variable is half-way, at some grid points, and how often each is first.

    Where that is not asked for, where each is largest, if that is not at an end.
    """
    if "rise" not in data:
        return [text for cell in evenly(cells_of(data), CELLS) for text in _largest(data, cell)]
    known = [c for c in cells_of(data) if bool(selected(data["rise"], c).notnull().all())]
    out = [_at(data, cell) for cell in evenly(known, CELLS)]
    if len(known) > 1 and data.sizes["variable"] > 1:
        out.append(_order(data, known))
    return out


def _at(data: xr.Dataset, cell: Point) -> str:
    parts = []
    for name in data["variable"].values.tolist():
        rise, error = (
            float(selected(data[key], {**cell, "variable": name})) for key in ("rise", "rise_se")
        )
        where = measurement(rise, error) if error > 0 else number(rise, 4)
        parts.append(f"{symbol(name).html} at {where}")
    lead = f"At {place(cell).html}, half-way" if cell else "Half-way"
    return f"{lead} from its first value to its last is {listed(parts)}{_unit(data)}."


def _largest(data: xr.Dataset, cell: Point) -> list[str]:
    """Maxima inside the range of the dimension."""
    parts = []
    for name in data["variable"].values.tolist():
        mean, se = (
            selected(data[key], {**cell, "variable": name}).values for key in ("mean", "se")
        )
        top = int(np.argmax(mean)) if np.isfinite(mean).all() else 0
        if 0 < top < len(mean) - 1:
            value = measurement(float(mean[top]), float(se[top]))
            where = f"{over(data).html} = {number(float(data['at'].values[top]), 4)}"
            parts.append(f"{symbol(name).html} at {where} ({value})")
    if not parts:
        return []
    lead = f"At {place(cell).html}, largest" if cell else "Largest"
    return [f"{lead} is {listed(parts)}."]


def _unit(data: xr.Dataset) -> str:
    units = str(data.attrs["over_units"])
    return f" {units}" if units not in ("", "1") else ""


def _order(data: xr.Dataset, known: list[Point]) -> str:
    """At how many grid points each variable is the first of all in most seeds."""
    first = np.array([selected(data["first"], cell).values > 0.5 for cell in known])
    parts = [
        f"{symbol(name).html} at {many} of {len(known)} points"
        for name, many in zip(data["variable"].values.tolist(), first.sum(axis=0), strict=True)
        if many
    ]
    return (
        f"Half-way before the others, or with them, is {listed(parts)}{among()}." if parts else ""
    )
