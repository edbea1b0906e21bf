"""How small the number is by which pictures are sorted, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr
from markupsafe import escape

from hdica.analysis.pictures.figure import grid_of
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import Point, evenly, points, selected
from hdica.analysis.show.sentences import listed
from hdica.analysis.show.words import count, number, place, plural

TOLD = 3
"""Grid points that are told."""


def answer(data: xr.Dataset) -> Answer | None:
    """The median with the middle half, of the pictures and of what they are told beside."""
    if "by" not in data:
        return None
    cells = points(data, [d for d in grid_of(data) if d in data["by"].dims])
    known = [c for c in cells if bool(selected(data["by"], c).notnull().all())]
    if not known:
        return None
    chosen = evenly(known, TOLD)
    counts = [int(selected(data["count"], c)) for c in chosen]
    many = plural(counts[0], "picture") + (" each" if cells[1:] else "")
    if len(set(counts)) > 1:  # some of them are pending or failed
        many = f"{listed([count(k) for k in counts])} pictures"
    told = listed([_middle(data, "by", c) for c in chosen])
    text = f"The median {_called(data, 'by')} is {told} (of {many})"
    beside = [c for c in chosen if _has(data, c)]
    if beside:
        other = listed([_middle(data, "against", c) for c in beside])
        text += f"; {_rest(data)} is {other}"
    return Answer(f"{text}.", covers=len(known))


def _called(data: xr.Dataset, key: str) -> str:
    return str(escape(str(data.attrs[key])))


def _rest(data: xr.Dataset) -> str:
    """What tells the second number from the first: its name from where they begin to differ."""
    first, second = str(data.attrs["by"]).split(), str(data.attrs["against"]).split()
    same = 0
    while same < min(len(first), len(second)) and first[same] == second[same]:
        same += 1
    if same < 2:
        return _called(data, "against")
    # From the preposition on that the differing words belong to.
    begin = next((k for k in range(same - 1, 0, -1) if second[k] == "of"), same)
    return f"that {escape(' '.join(second[begin:]))}"


def _has(data: xr.Dataset, cell: Point) -> bool:
    return "against" in data and bool(selected(data["against"], cell).notnull().all())


def _middle(data: xr.Dataset, name: str, cell: Point) -> str:
    """A median with the middle half, and where it is."""
    low, middle, high = (
        float(v) for v in np.asarray(selected(data[name], cell).transpose("quartile").values)
    )
    where = f" at {place(cell).html}" if cell else ""
    return f"{number(middle)} [middle half {number(low)} to {number(high)}]{where}"
