"""What a system chose of itself at the points of a study, such as a sign."""

from __future__ import annotations

import math
from itertools import islice, product

import numpy as np
import xarray as xr

from hdica.analysis.reading import study, system_of
from hdica.errors import HdicaError
from hdica.systems.axes import parse_axis
from hdica.systems.space import space_of

MOST = 4096
"""Points of a grid that are asked."""


def choices(tree: xr.DataTree) -> xr.Dataset | None:
    """What was chosen and at how many points of the grid, if anything was.

    ``chosen`` and ``count`` over ``row``, in the order of the grid; the attribute ``points`` is
    the number of points asked.
    """
    record, written = system_of(tree), study(tree)
    if record is None or "system" not in written:
        return None
    found: dict[str, int] = {}
    try:
        grid = {key: parse_axis(v, key) for key, v in (written.get("grid") or {}).items()}
        space = space_of(record.parameters, written.get("parameters") or {}, grid)
        axes = [[(axis.path, value) for value in axis.values] for axis in space.axes]
        ends = [dict(axis[end] for axis in axes) for end in (0, -1)]
        # To build every system of a large grid takes seconds, and few have a choice.
        if not any(record.notes.chosen(space.at(point)) for point in ends):
            return None
        for point in islice(product(*axes), MOST):
            said = record.notes.chosen(space.at(dict(point)))
            if said:
                found[said] = found.get(said, 0) + 1
    except HdicaError:
        return None
    out = xr.Dataset({"chosen": ("row", np.array([*found])), "count": ("row", [*found.values()])})
    out.attrs["points"] = min(MOST, math.prod(len(axis) for axis in axes))
    out["chosen"].attrs["long_name"] = "what the system chose of itself"
    out["count"].attrs["long_name"] = "points of the grid"
    return out
