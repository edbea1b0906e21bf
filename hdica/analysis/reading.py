"""What an analysis takes from a published store: its settings and its finished points."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from hdica.errors import HdicaError
from hdica.status import DONE

PADDED = frozenset({"feature", "fixed_point", "transition", "branch_point"})
"""Dimensions along which points have different numbers of entries; the rest is NaN."""

OWN = PADDED | {"n", "seed", "time", "q", "snapshot", "x", "edge", "threshold", "age", "r"}
"""Dimensions of results that are not swept parameters."""

SIZED = frozenset({"projection", "other", "source"})
"""Dimensions of matrices, as long as the largest system of the grid needs. Analyses treat each
entry like a cell of the grid (:func:`swept`)."""


def study(tree: xr.DataTree) -> dict[str, Any]:
    """The study of a store, as plain data.

    Raises
    ------
    HdicaError
        If the store does not carry its study.
    """
    text = tree.attrs.get("study_yaml")
    if not text:
        raise HdicaError("the store has no attribute study_yaml, so it is not a published store")
    loaded: dict[str, Any] = json.loads(text)
    return loaded


def asked(tree: xr.DataTree, analysis: str) -> dict[str, Any] | None:
    """Settings of one analysis as the study wrote them, or None if it did not ask for it."""
    settings = (study(tree).get("analysis") or {}).get(analysis)
    return None if settings is None else dict(settings)


def group(tree: xr.DataTree, method: str) -> xr.Dataset:
    """Everything a method left in the store.

    Raises
    ------
    HdicaError
        If the store has no such method.
    """
    if method not in tree.children:
        known = ", ".join(sorted(tree.children)) or "none"
        raise HdicaError(f"the store has no method {method!r} (its methods: {known})")
    return tree[method].to_dataset().load()


def finished(data: xr.Dataset, variable: str) -> xr.DataArray:
    """One variable with NaN wherever the point is not done.

    A point that is marked done and still holds a NaN is no result either: it becomes NaN as a
    whole, so that a mean never mixes different sets of seeds at different times. Along padded
    dimensions and over the entries of a matrix each entry is judged alone.
    """
    if variable not in data:
        raise HdicaError(f"method {data.attrs.get('method', '?')!r} has no variable {variable!r}")
    values = data[variable]
    own = [d for d in values.dims if d not in {*data["status"].dims, *PADDED, *SIZED}]
    whole = values.notnull().all(own) if own else values.notnull()
    return values.where((data["status"] == DONE) & whole)


def swept(data: xr.DataArray) -> list[str]:
    """Names of the grid's dimensions of a result, in order."""
    return [str(d) for d in data.dims if d not in OWN]


def grid_of(data: xr.Dataset) -> list[str]:
    """Swept parameters of a method's group, in order."""
    return [str(d) for d in data["status"].dims if d not in OWN]


def check_numbers(data: xr.Dataset, parameter: str, where: str) -> None:
    """Refuse a parameter that is not swept, or whose values are no numbers.

    Raises
    ------
    HdicaError
        Naming ``where`` it was asked for.
    """
    check_swept(data, parameter, where)
    if data[parameter].dtype.kind not in "fiu":
        raise HdicaError(f"{where} = {parameter!r} is not allowed (its values must be numbers)")


def optional(data: xr.Dataset, variable: str, like: xr.DataArray) -> xr.DataArray:
    """A companion variable such as ``Q_error``, or NaN of the shape of ``like``."""
    if variable in data:
        return finished(data, variable)
    return xr.full_like(like, np.nan, dtype=float)


def names(value: Any) -> tuple[str, ...]:
    """One name, a list of names or None, as a tuple."""
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def largest_n(values: xr.DataArray) -> int:
    """The largest dimension with a finished seed; the largest of all if there is none."""
    some = values.notnull().any([d for d in values.dims if d != "n"])
    at = values["n"].values[some.values]
    return int(at[-1] if len(at) else values["n"].values[-1])


def check_swept(data: xr.Dataset, parameter: str, where: str) -> None:
    """Refuse a parameter that is not swept.

    Raises
    ------
    HdicaError
        Naming ``where`` it was asked for and what is swept.
    """
    known = grid_of(data)
    if parameter not in known:
        hint = f"swept: {', '.join(known)}" if known else "nothing is swept"
        raise HdicaError(f"{where}: {parameter!r} is not a swept parameter of the study ({hint})")


def over(parts: Sequence[xr.Dataset], dim: str, labels: Sequence[str]) -> xr.Dataset:
    """Results of several methods along a new dimension; NaN where one lacks what others have."""
    index = xr.DataArray(list(labels), dims=dim, name=dim)
    return xr.concat(parts, dim=index, join="outer", data_vars="all", coords="minimal")


def required(settings: Mapping[str, Any], key: str, analysis: str) -> Any:
    """A setting without a default.

    Raises
    ------
    HdicaError
        If it is missing.
    """
    if settings.get(key) is None:
        raise HdicaError(f"analysis.{analysis}.{key} is missing")
    return settings[key]
