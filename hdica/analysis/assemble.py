"""Results of single cells of a grid, put together as one labelled dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

Cell = Mapping[str, tuple[tuple[str, ...], Any]]
"""What was found in one cell: own dimensions and value by variable."""


def assembled(cells: Sequence[Cell], grid: Sequence[str], coords: Mapping[str, Any]) -> xr.Dataset:
    """One dataset of all cells.

    Parameters
    ----------
    cells
        In the order of the grid, the last dimension fastest; all with the same variables.
    grid
        Dimensions of the grid.
    coords
        Values of the dimensions of the grid and of the variables; an own dimension may lack them.

    Returns
    -------
    xarray.Dataset
        Every variable over the grid and its own dimensions.
    """
    shape = tuple(len(coords[d]) for d in grid)
    variables = {}
    for name, (own, first) in cells[0].items():
        values = np.array([cell[name][1] for cell in cells])
        variables[name] = ((*grid, *own), values.reshape((*shape, *np.shape(first))))
    return xr.Dataset(variables, coords=dict(coords))
