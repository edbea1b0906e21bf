"""Grid points of a dataset with their numbers, and which of them a figure shows."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from itertools import groupby, product
from typing import Any, TypeVar

import numpy as np
import xarray as xr
from numpy.typing import NDArray

MOST = 6
"""No figure shows more grid points than this."""
BANDS = 3
"""Of more curves the first and the last alone have bands: those of all would be one grey."""

Point = dict[str, Any]
T = TypeVar("T")


def spread(count: int, most: int = MOST) -> list[int]:
    """At most ``most`` indices out of ``count``, evenly from the first to the last."""
    even = np.linspace(0, count - 1, min(count, most))
    return [int(i) for i in np.unique(np.round(even))]


def evenly(items: Sequence[T], most: int | None = MOST) -> list[T]:
    """At most ``most`` of some items, evenly from the first to the last; all for None."""
    return list(items) if most is None else [items[i] for i in spread(len(items), most)]


def banded(items: Sequence[T]) -> list[T]:
    """Which of some curves in their order have bands, so that each can be seen."""
    return list(items) if len(items) <= BANDS else [items[0], items[-1]]


def dims_of(values: xr.DataArray | xr.Dataset, *own: object) -> list[str]:
    """Dimensions in order, but for some of the variable's own."""
    return [str(d) for d in values.dims if d not in own]


def points(data: xr.DataArray | xr.Dataset, dims: Sequence[str]) -> list[Point]:
    """All combinations of coordinates over ``dims``."""
    axes = (data[d].values.tolist() for d in dims)
    return [dict(zip(dims, values, strict=True)) for values in product(*axes)]


def points_in(data: xr.DataArray | xr.Dataset, dims: Iterable[str]) -> int:
    """How many combinations of coordinates there are over ``dims``."""
    return math.prod(data.sizes[d] for d in dims)


def cells_of(values: xr.DataArray | xr.Dataset, *own: str) -> list[Point]:
    """All grid points of a variable: over its dimensions but for some of its own."""
    return points(values, dims_of(values, *own))


def without(point: Point, *names: str) -> Point:
    """A point without some of its coordinates."""
    return {k: v for k, v in point.items() if k not in names}


def selected(values: xr.DataArray, point: Point) -> xr.DataArray:
    """A variable at a point of the grid, of which it may know some coordinates only."""
    return values.sel({k: v for k, v in point.items() if k in values.dims})


def numbers(data: xr.Dataset, point: Point, *names: str) -> tuple[float, ...]:
    """Variables that are single numbers at a point."""
    return tuple(float(selected(data[name], point)) for name in names)


def positions(data: xr.DataArray | xr.Dataset, name: Hashable) -> NDArray[np.float64]:
    """Values of a coordinate or variable as positions on an axis."""
    return np.asarray(data[name].values, dtype=float)


def has_values(values: xr.DataArray) -> bool:
    """Whether any value is there, neither NaN nor None."""
    return bool(values.notnull().any())


def at_largest_n(data: xr.Dataset, known: xr.DataArray) -> xr.Dataset:
    """The data at the largest n at which something is known, or the largest of all.

    Where ``known`` has other dimensions, each entry of these has an n of its own.
    """
    above = known.isel(n=slice(None, None, -1)).argmax("n")
    return data.isel(n=data.sizes["n"] - 1 - above)


def at_last_n(data: xr.Dataset) -> xr.Dataset:
    """The data at the last n, or as they are without n."""
    return data.isel(n=-1, missing_dims="ignore")


def shown(data: xr.Dataset, dims: Sequence[str], most: int = MOST) -> list[Point]:
    """Grid points for a figure: first every value of the last axis that fits, evenly."""
    if not dims:
        return [{}]
    inner = evenly(points(data, dims[-1:]), 3 if len(dims) > 1 else most)
    outer = evenly(points(data, dims[:-1]), max(most // len(inner), 1))
    return [{**o, **i} for o in outer for i in inner]


def selection_note(data: xr.Dataset, dims: Sequence[str], drawn: int) -> list[str]:
    """What a caption says where a figure cannot show all grid points over ``dims``."""
    total = points_in(data, dims)
    return [f"{drawn} of {total} grid points, chosen evenly."] if total > MOST else []


def grouped(chosen: Iterable[Point], inner: str | None) -> list[tuple[Point, list[Point]]]:
    """Points with the same values but for ``inner``, together."""
    parts = groupby(chosen, key=lambda point: without(point, inner or ""))
    return [(common, list(members)) for common, members in parts]
