"""What a system chose of itself at the points of a study, such as a sign, and notes on its data."""

from __future__ import annotations

import math
from itertools import islice, product
from typing import Any

import numpy as np
import xarray as xr

from hdica.analysis.reading import study, system_of
from hdica.errors import HdicaError
from hdica.systems.axes import parse_axis
from hdica.systems.notes import joined
from hdica.systems.space import space_of
from hdica.systems.system import System

MOST = 4096
"""Points of a grid that are asked."""


def choices(tree: xr.DataTree) -> xr.Dataset | None:
    """What was chosen or is to be noted of data, and at how many points, if anything is.

    ``kind``, ``"chosen"`` or ``"data"``, ``text`` and ``count`` over ``row``, in the order of the
    grid; the attribute ``points`` is the number of points that are examined.
    """
    record, written = system_of(tree), study(tree)
    if record is None or "system" not in written:
        return None
    found: dict[tuple[str, str], int] = {}
    try:
        grid = {key: parse_axis(v, key) for key, v in (written.get("grid") or {}).items()}
        space = space_of(record.parameters, written.get("parameters") or {}, grid)
        axes = [[(axis.path, value) for value in axis.values] for axis in space.axes]
        ends = [dict(axis[end] for axis in axes) for end in (0, -1)]
        # To build every system of a large grid takes seconds, and few have a choice.
        if not any(_notes(record, space.at(point)) for point in ends):
            return None
        for point in islice(product(*axes), MOST):
            for note in _notes(record, space.at(dict(point))):
                found[note] = found.get(note, 0) + 1
    except HdicaError:
        return None
    if not found:  # the last point alone has a note, and there are too many to come to it
        return None
    kinds, texts = zip(*found, strict=True)
    columns = {"kind": np.array(kinds), "text": np.array(texts), "count": [*found.values()]}
    out = xr.Dataset({name: ("row", values) for name, values in columns.items()})
    out.attrs["points"] = min(MOST, math.prod(len(axis) for axis in axes))
    out["kind"].attrs["long_name"] = "whether it is a choice or a note on data"
    out["text"].attrs["long_name"] = "what the system chose of itself, or what its data are"
    out["count"].attrs["long_name"] = "points of the grid"
    return out


def _notes(record: System, system: Any) -> list[tuple[str, str]]:
    """Kind and text of every note on one system."""
    notes = {"chosen": record.notes.chosen(system), "data": joined(*record.notes.data(system))}
    return [(kind, text) for kind, text in notes.items() if text]
