"""How many critical points a landscape has, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import points
from hdica.analysis.show.sentences import listed
from hdica.analysis.show.words import count, plural
from hdica.analysis.sphere.say import NAMES, dimension, grid_of, law, numbers


def answer(data: xr.Dataset) -> Answer | None:
    """Critical points by kind in the largest space, and whether they follow the common law."""
    cells = [one for one in points(data, grid_of(data)) if np.isfinite(data["space"].sel(one))]
    if not cells:
        return None
    cell = max(cells, key=lambda one: dimension(data, one))
    many, d = numbers(data, cell), dimension(data, cell)
    kinds = listed([plural(m, one) for m, one in zip(many, NAMES, strict=True) if m])
    by_law = "as many as 3<sup><i>d</i></sup> − 1" if many == law(d) else ""
    tail = f", {by_law}" if by_law else ""
    return Answer(
        f"For <i>d</i> = {d} the landscape has {count(sum(many))} critical points{tail}: {kinds}."
    )
