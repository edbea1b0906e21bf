"""What the analyses return: cells put together, with long names and units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

TIMES = ("sup_time", "end")
"""Variables that are times."""
UNITS = dict.fromkeys(TIMES, "samples per dimension (k/n)")
TEXT = {"verdict", "corrected_verdict", "why", "what", "where", "origin", "erratum"}


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


def interval_names(name: str, what: str) -> dict[str, str]:
    """Long names of both ends of the 95 % interval of a variable, by their names."""
    both = {"low": "lower", "high": "upper"}
    return {f"{name}_{k}": f"{end} end of the 95 % interval of {what}" for k, end in both.items()}


def units_by(time: xr.DataArray) -> dict[str, str]:
    """Units of variables by the clock of the dimension ``time``."""
    return dict.fromkeys(TIMES, str(time.attrs.get("units", UNITS[TIMES[0]])))


def described(
    data: xr.Dataset,
    table: Mapping[str, str],
    variable: str = "",
    units: Mapping[str, str] = UNITS,
) -> xr.Dataset:
    """The dataset with ``long_name`` and ``units`` on every variable.

    The table has ``{v}`` for the output that was looked at, ``variable``; what is not among the
    units has none.
    """
    for name, values in data.data_vars.items():
        values.attrs["long_name"] = table[str(name)].format(v=variable)
        if name not in TEXT:
            values.attrs["units"] = units.get(str(name), "1")
    return data
