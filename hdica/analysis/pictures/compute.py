"""Pictures of one seed in the order of a number, and the quartiles of that number over seeds."""

from __future__ import annotations

import warnings

import numpy as np
import xarray as xr

from hdica.analysis.describe import described
from hdica.analysis.pictures.record import BY_PIXEL, CHANNEL, NUMBER, Shown
from hdica.analysis.reading import at_top, group, over
from hdica.errors import HdicaError
from hdica.status import DONE

PLACE = "place"
"""Dimension of the pictures in the order in which they are drawn."""
ALL = "every"
QUARTILES = (0.25, 0.5, 0.75)
LONG_NAMES = {
    "picture": "pixels of the pictures of the first seed that is done",
    "meaning": "what the pictures show",
    "number": "number of each picture's component",
    "value": "{v} of each picture",
    "by": "quartiles over components and seeds of {v}",
    "against": "quartiles over components and seeds of what it is told beside",
    "count": "components and seeds in the quartiles",
}


def pictures(tree: xr.DataTree, settings: Shown) -> xr.Dataset:
    """Pictures over ``shown``, the grid, ``place``, ``row`` and ``column``, with their numbers.

    ``picture`` has those of the first seed that is done at each point of the grid, at the last
    time and the largest n where there are such dimensions; of at most ``settings.most`` components,
    those with the least ``settings.by`` first. ``value`` is this number and ``number`` the
    component. ``by`` and ``against`` are quartiles over all components and seeds.
    """
    data = group(tree, settings.method)
    found = [_in_order(data, name, settings) for name in settings.show]
    out = over(found, "shown", settings.show)
    meaning = [str(data[name].attrs.get("long_name", name)) for name in settings.show]
    out["meaning"] = ("shown", meaning)
    for key, name in (("by", settings.by), ("against", settings.against)):
        if name is not None:
            out[key] = _quartiles(_over_all(data, name))
    if settings.by is not None:
        out["count"] = _over_all(data, settings.by).notnull().sum(ALL)
    out.attrs = {
        "method": settings.method,
        "variable": settings.by or "",
        "by": _called(data, settings.by),
        "against": _called(data, settings.against),
        "scale": settings.scale,
        "components": max((data[k].sizes.get(NUMBER, 1) for k in settings.show), default=1),
    }
    return described(out, LONG_NAMES, settings.by or "")


def _quartiles(values: xr.DataArray) -> xr.DataArray:
    """Quartiles over all pictures; NaN where none is done."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
        return values.quantile(QUARTILES, ALL).rename(quantile="quartile")


def _called(data: xr.Dataset, name: str | None) -> str:
    return "" if name is None else str(data[name].attrs.get("long_name", name))


def _at_end(data: xr.Dataset, name: str) -> xr.DataArray:
    """An output at the last time and the largest n; entries that are NaN are judged alone."""
    if name not in data:
        raise HdicaError(f"method {data.attrs.get('method', '?')!r} has no variable {name!r}")
    values = data[name].where(data["status"] == DONE).reset_coords(drop=True)
    values = values.isel(time=-1, drop=True) if "time" in values.dims else values
    return at_top(values)[0]


def _in_order(data: xr.Dataset, name: str, settings: Shown) -> xr.Dataset:
    """Pictures of one output and one seed, sorted."""
    values = _at_end(data, name)
    known = values.notnull().any([d for d in values.dims if d in (*BY_PIXEL, CHANNEL)])
    many = NUMBER in values.dims
    sort = settings.by if many and name not in settings.unsorted else None
    by = None if sort is None else _at_end(data, sort)
    if "seed" in values.dims:
        first = known.any([d for d in (NUMBER,) if many]).argmax("seed")
        values, known = values.isel(seed=first), known.isel(seed=first)
        by = None if by is None else by.isel(seed=first)
    if not many:
        values, known = (one.expand_dims({NUMBER: [0]}) for one in (values, known))
    score = xr.zeros_like(known, dtype=float) if by is None else by
    order = _order(score.where(known, np.inf), settings.most)
    out = {
        "picture": values.isel({NUMBER: order}),
        "number": values[NUMBER].isel({NUMBER: order}).where(known.isel({NUMBER: order})),
    }
    if by is not None:
        out["value"] = by.isel({NUMBER: order})
    made = xr.Dataset({key: one.reset_coords(drop=True) for key, one in out.items()})
    return made.assign_coords({PLACE: np.arange(order.sizes[PLACE])})


def _order(score: xr.DataArray, most: int) -> xr.DataArray:
    """Indices of the components by increasing score, NaN last; equal ones as they are."""
    moved = score.transpose(..., NUMBER)
    at = np.argsort(moved.values, axis=-1, kind="stable")[..., :most]
    return xr.DataArray(at, dims=(*moved.dims[:-1], PLACE))


def _over_all(data: xr.Dataset, name: str) -> xr.DataArray:
    """An output over all components and seeds as one dimension."""
    values = _at_end(data, name)
    return values.stack({ALL: [d for d in ("seed", NUMBER) if d in values.dims]})
