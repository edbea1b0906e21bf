"""Critical values as another parameter varies."""

from __future__ import annotations

import xarray as xr

from hdica.analysis.describe import described
from hdica.analysis.reading import check_numbers, finished, group, overlap_in
from hdica.analysis.transition.record import Transition

OVERLAP = "Q"
"""Name of the overlap in what is returned, whatever its system calls it: files have it."""

LONG_NAMES = {
    "value": "critical value",
    OVERLAP: "{v} at the transition",
    "error": "error of the critical value",
    "kind": "0 fold, 1 transcritical, 2 junction",
}

OF = "critical value of "
"""How the long name of a critical value says whose it is."""


def transition(tree: xr.DataTree, settings: Transition) -> xr.Dataset:
    """Where steady states appear or vanish, over one swept parameter.

    ``value`` with its ``error``, ``Q`` and ``kind`` over the swept parameters and ``transition``,
    NaN where there are fewer; ``Q`` is the overlap, which the attribute ``overlap`` names as its
    system does. The attribute ``parameter`` names the critical parameter.
    """
    x = settings.x
    data = group(tree, settings.critical)
    check_numbers(data, x, "analysis.transition.x")
    overlap = overlap_in(tree, data)
    data = data.rename({overlap: OVERLAP})
    kept = {k: finished(data, k) for k in ("value", OVERLAP, "error", "kind") if k in data}
    name = str(data["value"].attrs.get("long_name", ""))
    out = xr.Dataset(kept).reset_coords(drop=True)
    parameter = name.removeprefix(OF) if name.startswith(OF) else ""
    out.attrs = {"x": x, "parameter": parameter, "overlap": overlap}
    return described(out, LONG_NAMES, overlap)
