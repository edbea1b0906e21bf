"""What an analysis takes from a published store: its settings and its finished points."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from hdica.errors import HdicaError
from hdica.sweep.store import DONE


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
    whole, so that a mean never mixes different sets of seeds at different times.
    """
    if variable not in data:
        raise HdicaError(f"method {data.attrs.get('method', '?')!r} has no variable {variable!r}")
    values = data[variable]
    own = [d for d in values.dims if d not in data["status"].dims]
    whole = values.notnull().all(own) if own else values.notnull()
    return values.where((data["status"] == DONE) & whole)


def swept(data: xr.DataArray) -> list[str]:
    """Names of the grid's dimensions of a result, in order."""
    own = {"n", "seed", "time", "q", "fixed_point", "transition"}
    return [str(d) for d in data.dims if d not in own]


def optional(data: xr.Dataset, variable: str, like: xr.DataArray) -> xr.DataArray:
    """A companion variable such as ``Q_error``, or NaN of the shape of ``like``."""
    if variable in data:
        return finished(data, variable)
    return xr.full_like(like, np.nan, dtype=float)


def names(value: Any) -> tuple[str, ...]:
    """One name or a list of names, as a tuple."""
    return (value,) if isinstance(value, str) else tuple(value)


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
