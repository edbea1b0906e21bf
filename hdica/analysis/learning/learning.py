"""Whether the limits of a study learn anything at all, and what to change where they do not."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from markupsafe import escape

from hdica.analysis.reading import finished, group, space, system_of
from hdica.errors import HdicaError
from hdica.show.terms import entries, padded
from hdica.show.typeset import typeset
from hdica.show.wording import among
from hdica.show.words import count, method_name, plural
from hdica.status import DONE
from hdica.systems.outputs import ZERO

LOST = 0.05
"""A limit that ends with overlaps this small has learned nothing."""
_NONE = np.empty(0)
_OUTCOMES = {
    "still": "the limit stays at its start, which has no overlap",
    "lost": "the limit ends with an overlap of 0",
    "none": "nothing informative is found",
}


def learning(tree: xr.DataTree) -> xr.Dataset | None:
    """Limits that stay at 0 from their start, and methods that find nothing learned, if any.

    ``count`` of the ``points`` of a method that are done which are ``"still"`` (the start has no
    overlap and the limit none) or, where all points of the method are so, ``"lost"`` (the limit
    falls to 0) or ``"none"`` (no transition, no stable informative state): ``what``; and ``note``,
    why that is so at the first of them.
    """
    found = [_of(tree, name) for name in tree.children if "status" in tree[name]]
    rows = [row for row in found if row is not None]
    if not rows:
        return None
    names = ("method", "what", "count", "points", "note")
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return xr.Dataset({k: ("row", np.array(v), {"long_name": k}) for k, v in columns})


def _of(tree: xr.DataTree, name: str) -> tuple[str, str, int, int, str] | None:
    """The row of a method that learns nothing somewhere; None of one that does not show it."""
    data = group(tree, name)
    record = system_of(tree)
    telling = [] if record is None else [p.name for p in record.order_parameters if p.nothing == 0]
    overlap = next((v for v in telling if v in data and f"{v}_error" in data), "")
    if overlap and "time" in data[overlap].dims:
        values = abs(finished(data, overlap))
        size = values.max([d for d in values.dims if d in entries()])
        still, end = size.max("time") <= ZERO, size.isel(time=-1)
        lost = bool((end <= LOST).all()) and float(data["time"][-1]) > 0
        what, where = ("lost", end.notnull() & lost) if not still.any() else ("still", still)
    else:
        found = _known(data)
        if found is None:
            return None
        what, where = "none", (data["status"] == DONE) & ~found.any()
    if not where.any():
        return None
    pairs = zip(where.dims, np.argwhere(where.values)[0].tolist(), strict=True)
    first = {str(d): where[d][i].item() for d, i in pairs if d not in padded()}
    many, done = int(where.sum()), int((data["status"] == DONE).sum())
    return name, what, many, done, _note(tree, data, overlap, first)


def _known(data: xr.Dataset) -> xr.DataArray | None:
    """Whether a point has a transition, or a stable informative state; None of other methods."""
    if "stable" in data and "fixed_point" in data["stable"].dims:
        stable = finished(data, "stable") > 0
        return (stable & (data["kind"] == 0) if "kind" in data else stable).any("fixed_point")
    if "value" in data and "transition" in data["value"].dims:
        return finished(data, "value").notnull().any("transition")
    return None


def _note(tree: xr.DataTree, data: xr.Dataset, overlap: str, point: dict[str, Any]) -> str:
    """Why a point learns nothing; empty if its system cannot be built from the store."""
    record = system_of(tree)
    if record is None:
        return ""
    try:
        grid = space(tree, record)
        # A method is not swept over what it does not depend on: any value will do there.
        system = grid.at({a.path: point[a.dim] for a in grid.axes if a.dim in point})
    except HdicaError:
        return ""
    if overlap:
        path = data[overlap].sel(point).transpose("time", ...).values
        return record.notes.limit(system, {overlap: path}, data["time"].values.astype(float))
    if "fixed_point" in data.dims:
        return record.notes.states(system, _NONE, _NONE.astype(bool), _NONE.astype(bool))
    return record.notes.transitions(system, record.controls[0].name, _NONE, None)


def notes(data: xr.Dataset) -> list[str]:
    """One sentence a method that learns nothing, with the reason at its first point."""
    out = []
    for k in range(data.sizes["row"]):
        method, what, note = (str(data[name].values[k]) for name in ("method", "what", "note"))
        lost, points = int(data["count"][k]), int(data["points"][k])
        some = f"{count(lost)} of {plural(points, 'point')}"
        share = some if lost < points else f"any point{among()}"
        text = f"By {method_name(method).html} nothing is learned at {share}: {_OUTCOMES[what]}."
        if note:
            text += " At the first of them: " if lost > 1 else " "
            text += f"{escape(typeset(note[0].upper() + note[1:]))}."
        out.append(text)
    return out
