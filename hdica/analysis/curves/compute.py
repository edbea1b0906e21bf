"""Means over seeds of several variables, and where each is half-way."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.curves.record import Curves
from hdica.analysis.describe import described
from hdica.analysis.reading import at_top, finished, group, over

LONG_NAMES = {
    "mean": "mean over seeds of each variable",
    "se": "standard error of this mean",
    "count": "seeds that are done",
    "rise": "mean over seeds of where each variable is half-way from its first to its last value",
    "rise_se": "standard error of this mean",
    "first": "share of seeds in which no other variable is half-way before this one",
    "theory": "each variable by theory",
    "meaning": "what the variable is",
    "at": "where the variables are told",
}
Array = NDArray[np.float64]


def curves(tree: xr.DataTree, settings: Curves) -> xr.Dataset:
    """Means over ``variable``, the swept parameters and the dimension that is named.

    Of the method at its largest n, if it has any. ``mean``, ``se`` and ``count`` over seeds (a
    method without them counts as one); with ``rises`` in addition ``rise``, the first coordinate
    at which a variable has come half-way from its first value to its last, with its standard error,
    and ``first``, the share of seeds in which no other variable is there before; with theory
    ``theory``, NaN where it has no such variable.
    """
    data = group(tree, settings.method)
    every = [_of_seeds(data, name) for name in settings.variables]
    out = over([_means(values) for values in every], "variable", settings.variables)
    out["count"] = out["count"].fillna(0).astype(int)
    if settings.rises:
        out = out.merge(_rises(every, settings))
    if settings.theory is not None:
        out["theory"] = _theory(group(tree, settings.theory), settings, out["mean"])
    meaning = [str(data[name].attrs.get("long_name", name)) for name in settings.variables]
    out["meaning"] = ("variable", meaning)
    # By another name, so that every analysis of a store may call its time as it likes.
    out["at"] = (settings.over, data[settings.over].values.astype(float))
    about = data[settings.over].attrs
    out.attrs = {
        "method": settings.method,
        "theory": settings.theory or "",
        "over": settings.over,
        "over_name": str(about.get("long_name", settings.over)),
        "over_units": str(about.get("units", "")),
        "log": int(settings.log),
    }
    return described(out.reset_coords(drop=True), LONG_NAMES)


def _of_seeds(data: xr.Dataset, name: str) -> xr.DataArray:
    """A variable with a dimension ``seed``, its dimension last."""
    values = at_top(finished(data, name))[0].reset_coords(drop=True)
    return values if "seed" in values.dims else values.expand_dims(seed=[0])


def _means(values: xr.DataArray) -> xr.Dataset:
    own = [d for d in values.dims if d not in _grid(values)]
    count = values.notnull().all([d for d in own if d != "seed"]).sum("seed")
    return xr.Dataset({"mean": values.mean("seed"), "se": _error(values, count), "count": count})


def _error(values: xr.DataArray, count: xr.DataArray) -> xr.DataArray:
    """Standard error of the mean over seeds; NaN for one seed."""
    some = values.sizes["seed"] > 1
    spread = values.std("seed", ddof=1) if some else values.mean("seed") * np.nan
    return spread / np.sqrt(count.where(count > 0))


def _grid(values: xr.DataArray) -> list[str]:
    """Swept parameters: all dimensions but ``seed`` and the last."""
    return [str(d) for d in values.dims[:-1] if d != "seed"]


def half_way(at: Array, values: Array) -> float:
    """First coordinate at which values are half-way from the first to the last; NaN if unknown."""
    middle = (values[0] + values[-1]) / 2
    beyond = values >= middle if values[-1] >= values[0] else values <= middle
    return float(at[int(beyond.argmax())]) if beyond.any() and values[0] != values[-1] else np.nan


def _rises(every: list[xr.DataArray], settings: Curves) -> xr.Dataset:
    def of_one(values: xr.DataArray) -> xr.DataArray:
        at = values[settings.over].values.astype(float)
        return xr.apply_ufunc(
            lambda y: half_way(at, y), values, input_core_dims=[[settings.over]], vectorize=True
        )

    index = xr.DataArray(list(settings.variables), dims="variable", name="variable")
    found = xr.concat([of_one(values) for values in every], dim=index)
    count = found.notnull().sum("seed")
    known = found.notnull().all("variable")
    earliest = (found == found.min("variable")).where(known)
    return xr.Dataset(
        {
            "rise": found.mean("seed"),
            "rise_se": _error(found, count),
            "first": earliest.mean("seed"),
        }
    )


def _theory(data: xr.Dataset, settings: Curves, like: xr.DataArray) -> xr.DataArray:
    """Variables of the theory where it has them over the same dimension."""
    parts = []
    for name in settings.variables:
        if name in data and settings.over in data[name].dims:
            parts.append(finished(data, name).reset_coords(drop=True))
        else:
            parts.append(xr.full_like(like.isel(variable=0, drop=True), np.nan))
    index = xr.DataArray(list(settings.variables), dims="variable", name="variable")
    return xr.concat(xr.broadcast(*parts), dim=index)
