"""Critical values as another parameter varies."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import xarray as xr

from hdica.analysis.describe import TRANSITION, described
from hdica.analysis.reading import check_numbers, finished, group, required

OF = "critical value of "
"""How the long name of a critical value says whose it is."""


def transition(tree: xr.DataTree, settings: Mapping[str, Any]) -> xr.Dataset:
    """Where steady states appear or vanish, over one swept parameter.

    Parameters
    ----------
    tree
        A published store.
    settings
        ``x`` (a swept parameter with numbers), ``critical`` (a method, default ``"critical"``).

    Returns
    -------
    xarray.Dataset
        ``value`` with its ``error``, ``Q`` and ``kind`` over the swept parameters and
        ``transition``, NaN where there are fewer; ``Q`` is the overlap, which the attribute
        ``overlap`` names as its system does. The attribute ``parameter`` names the critical
        parameter.

    Raises
    ------
    HdicaError
        If a setting or the method is missing, or ``x`` is not swept or has no numbers.
    """
    x = str(required(settings, "x", "transition"))
    data = with_kind(group(tree, str(settings.get("critical") or "critical")))
    check_numbers(data, x, "analysis.transition.x")
    overlap = "Q" if "Q" in data else "R"
    data = data.rename({overlap: "Q"})
    kept = {k: finished(data, k) for k in ("value", "Q", "error", "kind") if k in data}
    name = str(data["value"].attrs.get("long_name", ""))
    out = xr.Dataset(kept).reset_coords(drop=True)
    parameter = name.removeprefix(OF) if name.startswith(OF) else ""
    out.attrs = {"x": x, "parameter": parameter, "overlap": overlap}
    return described(out, table=TRANSITION)


def with_kind(data: xr.Dataset) -> xr.Dataset:
    """Critical values with their kinds; a store that does not tell them has folds only."""
    if "kind" in data:
        return data
    return data.assign(kind=data["value"].where(data["value"].isnull(), 0.0))
