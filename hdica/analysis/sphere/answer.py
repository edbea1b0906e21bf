"""How many critical points a landscape has, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import Point, points, selected
from hdica.analysis.show.sentences import listed
from hdica.analysis.show.words import count, plural
from hdica.analysis.sphere.compute import MINIMISER
from hdica.analysis.sphere.say import NAMES, dimension, grid_of, law, numbers

SMALL = 1e-6
"""Coordinates below this are none."""


def answer(data: xr.Dataset) -> Answer | None:
    """Critical points by kind in the largest space, and whether they follow the common law."""
    cells = [one for one in points(data, grid_of(data)) if np.isfinite(data["space"].sel(one))]
    if not cells:
        return None
    cell = max(cells, key=lambda one: dimension(data, one))
    many, d = numbers(data, cell), dimension(data, cell)
    kinds = listed([plural(m, one) for m, one in zip(many, NAMES, strict=True) if m])
    by_law = "as many as 3<sup><i>d</i></sup> − 1" if many == law(d) else ""
    tail = f", {by_law}" if by_law else ""
    single = "; the minimisers and no others lie on the axes" if _on_axes(data, cell) else ""
    covers = 1 if len(cells) == 1 else 0
    lead = f"For <i>d</i> = {d} the landscape has {count(sum(many))} critical points"
    return Answer(f"{lead}{tail}: {kinds}{single}.", covers=covers)


def _on_axes(data: xr.Dataset, cell: Point) -> bool:
    """Whether every minimiser has one coordinate alone, and no other critical point has."""
    own = {k: v for k, v in cell.items() if k in data["at"].dims}
    at = np.nan_to_num(data["at"].sel(own).transpose(..., "component").values)
    kind = selected(data["kind"], cell).values
    alone, known = (np.abs(at) > SMALL).sum(axis=-1) == 1, np.isfinite(kind)
    lowest = kind == MINIMISER
    return bool(lowest.any() and np.array_equal(alone[known], lowest[known]))
