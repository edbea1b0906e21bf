"""Steady states and transitions over a grid of parameters, as labelled data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from hdica.api.over import Grid, Over, grid_of
from hdica.errors import HdicaError
from hdica.process.timeout import check_timeout, named, within
from hdica.systems.labelled import described

LISTS = ("fixed_point", "transition")
"""Dimensions along which combinations have as many entries as they have."""
_NOTE = "what a reader of the numbers must know, or why there are none"


def steady_grid(
    system: Any,
    over: Over,
    timeout: float | None,
    function: str,
    compute: Callable[[Any], xr.Dataset],
    parameter: str = "",
) -> xr.Dataset:
    """What a function of some name finds at every combination of parameters, as one dataset.

    It may vary a parameter itself, which ``over`` may not name then.
    """
    grid, timeout = grid_of(system, over), check_timeout(timeout)
    if parameter in [axis.key for axis in grid.axes]:
        raise HdicaError(f"over: {parameter!r} is not allowed (its critical values are found)")
    found: list[xr.Dataset | HdicaError] = []
    for one in grid.systems:
        try:
            found.append(within(timeout, named(function, one), partial(compute, one)))
        except HdicaError as exc:
            found.append(exc)
    known = [one for one in found if isinstance(one, xr.Dataset)]
    if not known:
        raise next(one for one in found if isinstance(one, HdicaError))
    return described(_stacked(grid, found, known), system)


def _stacked(
    grid: Grid, found: Sequence[xr.Dataset | HdicaError], known: Sequence[xr.Dataset]
) -> xr.Dataset:
    """Datasets of all combinations as one, with room for the longest list."""
    variables = {str(name): one[name] for one in reversed(known) for name in one.data_vars}
    grid.check_names({*variables, *(str(dim) for one in variables.values() for dim in one.dims)})
    sizes = _sizes(grid, known)
    data: dict[str, Any] = {}
    for name, like in variables.items():
        shape = [sizes[str(dim)] for dim in like.dims]
        values = np.stack([_padded(one, name, like, shape) for one in found])
        data[name] = (("point", *like.dims), values, like.attrs)
    notes = np.array([_note(one) for one in found], dtype=object)
    data["note"] = ("point", notes, {"long_name": _NOTE})
    longest = max(known, key=lambda one: max(one.sizes.get(dim, 0) for dim in LISTS))
    # Values of xi that differ between combinations are in a variable: the dimension counts.
    own = grid.own({str(dim) for dim in longest.dims}).items()
    differ = {d: (d, list(v)) for d, v in own if tuple(longest[d].values) != tuple(v)}
    longest = longest.assign_coords(differ)
    attrs = {name: value for name, value in longest.attrs.items() if name != "note"}
    return grid.unfolded(xr.Dataset(data, longest.coords, attrs))


def _note(found: xr.Dataset | HdicaError) -> str:
    return str(found.attrs.get("note", "") if isinstance(found, xr.Dataset) else found)


def _sizes(grid: Grid, known: Sequence[xr.Dataset]) -> dict[str, int]:
    """Sizes of all dimensions: of lists the longest, of others one for all combinations."""
    found: dict[str, int] = {}
    for one in known:
        for dim, size in one.sizes.items():
            name = str(dim)
            if name not in LISTS and found.get(name, size) != size:
                raise grid.uneven(name)
            found[name] = max(size, found.get(name, 0))
    return found


def _padded(found: xr.Dataset | HdicaError, name: str, like: xr.DataArray, shape: list[int]) -> Any:
    """A variable with as many entries as the longest has: NaN, no word, or False."""
    kind = like.dtype.kind
    blank, dtype = {"O": ("", object), "b": (False, bool)}.get(kind, (np.nan, float))
    padded = np.full(shape, blank, dtype=dtype)
    if isinstance(found, xr.Dataset) and name in found:
        values = found[name].values
        padded[tuple(slice(size) for size in values.shape)] = values
    return padded
