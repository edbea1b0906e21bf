"""What a system chose of itself at the points of a study, such as a sign, and notes on its data."""

from __future__ import annotations

import math
from itertools import islice, product
from typing import Any

import numpy as np
import xarray as xr
from markupsafe import escape

from hdica.analysis.reading import space, study, system_of
from hdica.errors import HdicaError
from hdica.show.typeset import typeset
from hdica.show.words import plural
from hdica.systems.system import System, joined

MOST = 4096
"""Points of a grid that are asked."""

ROWS = 6
"""Choices and notes on data on a page."""


def choices(tree: xr.DataTree) -> xr.Dataset | None:
    """What was chosen or is to be noted of data, and at how many points, if anything is.

    ``kind``, ``"chosen"`` or ``"data"``, ``text`` and ``count`` over ``row``, in the order of the
    grid; the attribute ``points`` is the number of points that are examined.
    """
    record = system_of(tree)
    if record is None or "system" not in study(tree):
        return None
    found: dict[tuple[str, str], int] = {}
    try:
        grid = space(tree, record)
        axes = [[(axis.path, value) for value in axis.values] for axis in grid.axes]
        ends = [dict(axis[end] for axis in axes) for end in (0, -1)]
        # To build every system of a large grid takes seconds, and few have a choice.
        if not any(_notes(record, grid.at(point)) for point in ends):
            return None
        for point in islice(product(*axes), MOST):
            for note in _notes(record, grid.at(dict(point))):
                found[note] = found.get(note, 0) + 1
    except HdicaError:
        return None
    if not found:  # the last point alone has a note, and there are too many to come to it
        return None
    kinds, texts = map(np.array, zip(*found, strict=True))
    columns = {
        "kind": ("row", kinds, {"long_name": "whether it is a choice or a note on data"}),
        "text": (
            "row",
            texts,
            {"long_name": "what the system chose of itself, or what its data are"},
        ),
        "count": ("row", [*found.values()], {"long_name": "points of the grid"}),
    }
    return xr.Dataset(columns, attrs={"points": min(MOST, math.prod(map(len, axes)))})


def _notes(record: System, system: Any) -> list[tuple[str, str]]:
    """Kind and text of every note on one system."""
    notes = {"chosen": record.notes.chosen(system), "data": joined(*record.notes.data(system))}
    return [(kind, text) for kind, text in notes.items() if text]


def notes(data: xr.Dataset) -> list[str]:
    """A sentence for each of a few choices and notes on data, with the points they are about."""
    total, out = int(data.attrs["points"]), []
    for k in range(min(data.sizes["row"], ROWS)):
        text, many = str(data["text"].values[k]), int(data["count"][k])
        share = "at every point" if many == total else f"at {many} of {plural(total, 'point')}"
        if str(data["kind"].values[k]) == "data":
            out.append(f"Data are not as the rule assumes {share}: {escape(text)}.")
        else:
            out.append(f"Chosen {share}: {escape(typeset(text))}.")
    return out
