"""How many critical points of each kind a landscape has."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.show.choose import Point, points, selected
from hdica.analysis.show.sentences import listed
from hdica.analysis.show.words import count, number, place, plural
from hdica.analysis.sphere.compute import KINDS

LAW = (
    "2<i>d</i> minimisers, 2<sup><i>d</i></sup> maximisers and "
    "3<sup><i>d</i></sup> − 2<sup><i>d</i></sup> − 2<i>d</i> − 1 saddles"
)
"""Of a sum of fourth powers of d coordinates."""
NAMES = ("minimiser", "maximiser", "saddle")


def sphere(data: xr.Dataset) -> list[str]:
    """Numbers of critical points, by a common law where they follow it, and whether one lacks."""
    cells = [one for one in points(data, grid_of(data)) if np.isfinite(data["space"].sel(one))]
    found = {dimension(data, cell): numbers(data, cell) for cell in cells}
    lawful = [d for d, many in found.items() if d > 1 and many == law(d)]
    out = []
    if lawful:
        parts = [f"{', '.join(count(m) for m in found[d])} for <i>d</i> = {d}" for d in lawful]
        out.append(f"The landscape has {LAW}: {'; '.join(parts)}.")
    for cell in cells:
        many, d = numbers(data, cell), dimension(data, cell)
        if d not in lawful or many != law(d):
            lead = f"At {place(cell).html} the" if cell else "The"
            kinds = (plural(m, one) for m, one in zip(many, NAMES, strict=True))
            around = f"<i>d</i> = {d}"
            told = "" if around in lead else f" ({around})"
            out.append(f"{lead} landscape has {listed(list(kinds))}{told}.")
    return out + _missing(data, cells)


def grid_of(data: xr.Dataset) -> list[str]:
    """Swept parameters on which the landscape depends."""
    return [str(d) for d in data["space"].dims]


def dimension(data: xr.Dataset, cell: Point) -> int:
    """Dimension d of the space around the sphere."""
    return int(selected(data["space"], cell))


def numbers(data: xr.Dataset, cell: Point) -> tuple[int, ...]:
    """Minimisers, maximisers and saddles."""
    return tuple(round(float(data[name].sel(cell))) for name in KINDS)


def law(d: int) -> tuple[int, ...]:
    """The same for a sum of fourth powers of d coordinates: 3^d - 1 altogether."""
    return 2 * d, 2**d, 3**d - 2**d - 2 * d - 1


def _missing(data: xr.Dataset, cells: list[Point]) -> list[str]:
    """Whether indices sum to the Euler characteristic, as they must if no point is missing."""
    known = [cell for cell in cells if np.isfinite(data["index_sum"].sel(cell))]
    wrong = [
        cell for cell in known if data["index_sum"].sel(cell) != data["characteristic"].sel(cell)
    ]
    if not known:
        return []
    if not wrong:
        return [
            "Their indices sum to the Euler characteristic of the sphere, as they must if none is "
            "missing."
        ]
    cell = wrong[0]
    where = f" at {place(cell).html}" if cell else ""
    found, right = (round(float(data[k].sel(cell))) for k in ("index_sum", "characteristic"))
    return [
        f"Their indices sum to {number(found)}{where}, not to {right}, the Euler characteristic of "
        "the sphere: some are missing."
    ]
