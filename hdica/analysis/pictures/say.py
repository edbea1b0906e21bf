"""The quartiles of the number by which pictures are sorted."""

from __future__ import annotations

from html import escape

import numpy as np
import xarray as xr

from hdica.analysis.pictures.figure import grid_of
from hdica.analysis.show.choose import points, selected
from hdica.analysis.show.words import number, place, plural


def pictures(data: xr.Dataset) -> list[str]:
    """A sentence for each point of the grid, where there is a number to tell."""
    if "by" not in data:
        return []
    out = []
    for cell in points(data, [d for d in grid_of(data) if d in data["by"].dims]):
        found = _quartiles(data, "by", cell)
        if found:
            where = f"At {place(cell).html}: " if cell else ""
            many = plural(int(selected(data["count"], cell)), "picture")
            beside = _quartiles(data, "against", cell) if "against" in data else ""
            more = f"; {escape(str(data.attrs['against']))}: {beside}" if beside else ""
            text = f"{escape(str(data.attrs['by']))}: {found} ({many}){more}."
            out.append(where + text if where else text[0].upper() + text[1:])
    return out


def _quartiles(data: xr.Dataset, name: str, cell: dict[str, object]) -> str:
    """A median with its quartiles, empty if it is unknown."""
    low, middle, high = selected(data[name], cell).transpose("quartile").values
    if not np.isfinite(middle):
        return ""
    return f"median {number(middle)}, quartiles {number(low)} and {number(high)}"
