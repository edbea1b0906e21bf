"""Results of single cells of a grid, put together as one labelled dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

Cell = Mapping[str, tuple[tuple[str, ...], Any]]
"""What was found in one cell: own dimensions and value by variable."""


def assembled(cells: Sequence[Cell], grid: Sequence[str], coords: Mapping[str, Any]) -> xr.Dataset:
    """All cells, of the same variables, as one dataset over the grid and their own dimensions.

    The last dimension of the grid is the fastest. ``coords`` has the values of its dimensions and
    of the variables'; an own dimension may lack them.
    """
    shape = tuple(len(coords[d]) for d in grid)
    variables = {}
    for name, (own, first) in cells[0].items():
        values = np.array([cell[name][1] for cell in cells])
        variables[name] = ((*grid, *own), values.reshape((*shape, *np.shape(first))))
    return xr.Dataset(variables, coords=dict(coords))
