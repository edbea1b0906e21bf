"""Long names and units on what the analyses return."""

from __future__ import annotations

from collections.abc import Mapping

import xarray as xr

UNITS = dict.fromkeys(("sup_time", "end"), "samples per dimension (k/n)")
TEXT = {"verdict", "why"}


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
