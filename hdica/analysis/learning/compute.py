"""Whether the limits of a study learn anything at all, and what to change where they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from hdica.analysis.reading import finished, group, study, system_of
from hdica.analysis.terms import entries, padded
from hdica.errors import HdicaError
from hdica.status import DONE
from hdica.systems.axes import parse_axis
from hdica.systems.kinds import ZERO
from hdica.systems.registry import record_of
from hdica.systems.space import space_of

LOST = 0.05
"""A limit that ends with overlaps this small has learned nothing."""
_NONE = np.empty(0)


def learning(tree: xr.DataTree) -> xr.Dataset | None:
    """Limits that stay at 0 from their start, and methods that find nothing learned, if any.

    ``count`` of the ``points`` of a method that are done which are ``"still"`` (the start has no
    overlap and the limit none) or, where all points of the method are so, ``"lost"`` (the limit
    falls to 0) or ``"none"`` (no transition, no stable informative state): ``what``; and ``note``,
    why that is so at the first of them.
    """
    rows = [row for name in tree.children if "status" in tree[name] for row in _of(tree, name)]
    if not rows:
        return None
    names = ("method", "what", "count", "points", "note")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    out = xr.Dataset({k: ("row", np.array(v)) for k, v in columns.items()})
    for name in names:
        out[name].attrs["long_name"] = name
    return out


def _of(tree: xr.DataTree, name: str) -> list[tuple[str, str, int, int, str]]:
    """What a method shows that learns nothing, at most one row."""
    data = group(tree, name)
    overlap = next((v for v in _telling(tree) if v in data and f"{v}_error" in data), "")
    if overlap and "time" in data[overlap].dims:
        values = abs(finished(data, overlap))
        size = values.max([d for d in values.dims if d in entries()])
        still, end = size.max("time") <= ZERO, size.isel(time=-1)
        lost = bool((end <= LOST).all()) and float(data["time"][-1]) > 0
        kinds = {"still": still, "lost": end.notnull() if lost else still & False}
    elif _has_states(data):
        found = _known(data)
        nothing = (data["status"] == DONE) & ~found if not bool(found.any()) else found & False
        kinds = {"none": nothing}
    else:
        return []
    done = int((data["status"] == DONE).sum())
    for what, where in kinds.items():
        if bool(where.any()):
            note = _note(tree, data, overlap, _first(where))
            return [(name, what, int(where.sum()), done, note)]
    return []


def _telling(tree: xr.DataTree) -> list[str]:
    """Order parameters that are 0 where nothing is learned."""
    record = system_of(tree)
    return [] if record is None else [p.name for p in record.order_parameters if p.nothing == 0]


def _has_states(data: xr.Dataset) -> bool:
    """Whether a method gives steady states or transitions, one by one."""
    dims = {dim for name in ("value", "stable") if name in data for dim in data[name].dims}
    return bool(dims & {"fixed_point", "transition"})


def _known(data: xr.Dataset) -> xr.DataArray:
    """Whether a point has a transition, or a stable state that is informative."""
    if "stable" not in data:
        return finished(data, "value").notnull().any("transition")
    stable = finished(data, "stable") > 0
    return (stable & (data["kind"] == 0) if "kind" in data else stable).any("fixed_point")


def _first(where: xr.DataArray) -> dict[str, Any]:
    """Coordinates of the first point that is meant."""
    pairs = zip(where.dims, np.argwhere(where.values)[0].tolist(), strict=True)
    return {str(d): where[d][i].item() for d, i in pairs if d not in padded()}


def _note(tree: xr.DataTree, data: xr.Dataset, overlap: str, point: dict[str, Any]) -> str:
    """Why a point learns nothing; empty if its system cannot be built from the store."""
    system = _system(tree, point)
    if system is None:
        return ""
    record = record_of(system)
    if overlap:
        path = data[overlap].sel(point).transpose("time", ...).values
        return record.notes.limit(system, {overlap: path}, data["time"].values.astype(float))
    if "fixed_point" in data.dims:
        return record.notes.states(system, _NONE, _NONE.astype(bool), _NONE.astype(bool))
    return record.notes.transitions(system, record.controls[0].name, _NONE, None)


def _system(tree: xr.DataTree, point: dict[str, Any]) -> Any:
    """The system of a point, or None."""
    record, written = system_of(tree), study(tree)
    if record is None:
        return None
    grid = {key: parse_axis(values, key) for key, values in (written.get("grid") or {}).items()}
    try:
        space = space_of(record.parameters, written.get("parameters") or {}, grid)
        # A method is not swept over what it does not depend on: any value will do there.
        return space.at({a.path: point[a.dim] for a in space.axes if a.dim in point})
    except HdicaError:
        return None
