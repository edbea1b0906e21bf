"""Pictures of one seed in the order of a number, and the quartiles of that number over seeds."""

from __future__ import annotations

import warnings
from html import escape
from itertools import product

import numpy as np
import xarray as xr

from hdica.analysis.pictures import BY_PIXEL, CHANNEL, NUMBER, Shown
from hdica.analysis.reading import at_top, described, done, group, over
from hdica.show import words
from hdica.show.choose import dims_of, points, points_in, selected, selection_note, shown
from hdica.show.finding import Finding
from hdica.show.panel import Array, Panel, Pictures

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
    "against": "quartiles over components and seeds of the number that it is compared with",
    "count": "components and seeds in the quartiles",
}


def pictures(tree: xr.DataTree, settings: Shown) -> xr.Dataset:
    """Pictures over ``shown``, the grid, ``place``, ``row`` and ``column``, with their numbers.

    ``picture`` has those of the first seed that is done at each grid point, at the last time and
    the largest n; of at most ``settings.most`` components, those with the least ``settings.by``
    first. ``value`` is this number and ``number`` the component; ``by`` and ``against`` are
    quartiles over components and seeds.
    """
    data = group(tree, settings.method)
    out = over({name: _in_order(data, name, settings) for name in settings.show}, "shown")
    meaning = [str(data[name].attrs.get("long_name", name)) for name in settings.show]
    out["meaning"] = ("shown", meaning)
    out.attrs = {"method": settings.method, "variable": settings.by or ""}
    for key, name in (("by", settings.by), ("against", settings.against)):
        out.attrs[key] = "" if name is None else str(data[name].attrs.get("long_name", name))
        if name is not None:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "All-NaN slice", RuntimeWarning)
                found_of = _over_all(data, name).quantile(QUARTILES, ALL)
            out[key] = found_of.rename(quantile="quartile")
    if settings.by is not None:
        out["count"] = _over_all(data, settings.by).notnull().sum(ALL)
    many = max(data[k].sizes.get(NUMBER, 1) for k in settings.show)
    out.attrs |= {"scale": settings.scale, "components": many}
    return described(out, LONG_NAMES, settings.by or "")


def _at_end(data: xr.Dataset, name: str) -> xr.DataArray:
    """An output at the last time and the largest n; entries that are NaN are judged alone."""
    values = done(data, name)
    values = values.isel(time=-1, drop=True) if "time" in values.dims else values
    return at_top(values)[0]


def _in_order(data: xr.Dataset, name: str, settings: Shown) -> xr.Dataset:
    """Pictures of one output and one seed, by increasing number; equal ones as they are."""
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
    score = score.where(known, np.inf).transpose(..., NUMBER)
    least = np.argsort(score.values, axis=-1, kind="stable")[..., : settings.most]
    order = xr.DataArray(least, dims=(*score.dims[:-1], PLACE))
    out = {
        "picture": values.isel({NUMBER: order}),
        "number": values[NUMBER].isel({NUMBER: order}).where(known.isel({NUMBER: order})),
    }
    if by is not None:
        out["value"] = by.isel({NUMBER: order})
    made = xr.Dataset({key: one.reset_coords(drop=True) for key, one in out.items()})
    return made.assign_coords({PLACE: np.arange(order.sizes[PLACE])})


def _over_all(data: xr.Dataset, name: str) -> xr.DataArray:
    """An output over all components and seeds as one dimension."""
    values = _at_end(data, name)
    return values.stack({ALL: [d for d in ("seed", NUMBER) if d in values.dims]})


def findings(data: xr.Dataset) -> list[Finding]:
    """Medians of the number by which pictures are sorted, and of the number to compare it with."""
    out = []
    for name in [key for key in ("by", "against") if key in data]:
        for cell in points(data, [d for d in _grid(data) if d in data[name].dims]):
            low, middle, high = selected(data[name], cell).values.tolist()
            many = words.plural(int(selected(data["count"], cell)), "picture")
            evidence = f"of {many}; middle half {words.number(low)} to {words.number(high)}"
            quantity = words.words(f"the median {data.attrs[name]}")
            out.append(Finding(quantity, cell, middle, evidence=evidence, digits=3))
    return out


def panels(data: xr.Dataset) -> list[Panel]:
    """One panel for each output at each point of the grid, at most six points."""
    out: list[Panel] = []
    for name, cell in product(data["shown"].values.tolist(), shown(data, _grid(data))):
        one = data.sel(shown=name)
        kept = [k for k in ("picture", "number", "value") if k in one]
        here = xr.Dataset({k: selected(one[k], cell) for k in kept})
        pixels = here["picture"].transpose(PLACE, *BY_PIXEL, ...).values
        keep = np.isfinite(pixels).any(axis=tuple(range(1, pixels.ndim)))
        if keep.any():
            here, grey = here.isel({PLACE: keep}), _grey(pixels[keep], data.attrs["scale"])
            drawn = Pictures(grey, _names(here, data.attrs["variable"]))
            title = words.titled(words.words(words.capital(str(one["meaning"].item()))), cell)
            key, caption = f"pictures_{len(out) + 1}", _caption(data, here)
            out.append(Panel(key, title, words.EMPTY, words.EMPTY, (drawn,), caption))
    return out


def _grid(data: xr.Dataset) -> list[str]:
    """Swept parameters on which the pictures depend."""
    own = ("shown", PLACE, *BY_PIXEL, CHANNEL)
    return dims_of(data["picture"], *own)


def _grey(pixels: Array, scale: str) -> Array:
    """Brightness: 1/2 at zero, 0 and 1 at minus and plus the largest size of a pixel."""
    size = np.nanmax(np.abs(pixels), axis=tuple(range(1, pixels.ndim)), keepdims=True)
    size = size if scale == "each" else np.full_like(size, size.max())
    pixels = 0.5 + 0.5 * pixels / np.where(size > 0, size, 1.0)
    for axis in range(1, pixels.ndim):
        others = tuple(k for k in range(pixels.ndim) if k != axis)
        pixels = np.compress(np.isfinite(pixels).any(axis=others), pixels, axis=axis)
    return pixels[..., 0] if pixels.ndim == 4 and pixels.shape[3] == 1 else pixels


def _names(here: xr.Dataset, variable: str) -> tuple[words.Text, ...]:
    """The component of each picture, and the number by which they are sorted."""
    names = [words.words(f"component {int(k)}") for k in here["number"].values]
    if "value" in here:
        for k, value in enumerate(here["value"].values):
            if np.isfinite(value):
                names[k] += ", " + words.symbol(variable) + f" = {words.number(value)}"
    return tuple(names)


def _caption(data: xr.Dataset, here: xr.Dataset) -> str:
    drawn, total = here.sizes[PLACE], int(data.attrs["components"])
    scale = "each about its" if data.attrs["scale"] == "each" else "all on one scale about their"
    method = words.method_name(data.attrs["method"]).html
    parts = [f"First seed ({method}); dark to light, {scale} zero."]
    if "value" in here and bool(here["value"].notnull().any()):
        parts.append(f"Sorted by {escape(str(data.attrs['by']))}, the least first.")
    if total > drawn:
        parts.append(f"{drawn} of {total} are drawn.")
    return " ".join([*parts, *selection_note(data, _grid(data), points_in(data, _grid(data)))])
