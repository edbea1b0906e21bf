"""The effective potential in which each entry of the estimate moves by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import xarray as xr

from hdica.analysis.densities.densities import GROUPS, xi_of
from hdica.analysis.potential.potential import panel_of
from hdica.plots.densities import chosen_time, one_point
from hdica.plots.source import Source
from hdica.show.choose import spread
from hdica.show.panel import Panel

POTENTIAL = "potential"


def holds(source: Source) -> bool:
    """Whether it has a potential."""
    return POTENTIAL in source.data


def panel(source: Source, snapshot: float | None = None) -> Panel:
    """One time, the last unless another is named, a colour for every group of entries.

    The potential is 0 at the point nearest to x = 0; dots are its minima.
    """
    one_point(source, POTENTIAL)
    values = source.values(POTENTIAL).squeeze(source.grid, drop=True)
    dim = "snapshot" if "snapshot" in values.dims else "time"
    when = chosen_time(values, dim, snapshot)
    here = values.sel({dim: when}, drop=True)
    zero = int(np.abs(here["x"].values).argmin())
    data = source.data.squeeze(source.grid, drop=True)
    found = xr.Dataset({POTENTIAL: here - here.isel(x=zero, drop=True), "xi": xi_of(data)})
    groups = spread(found.sizes["feature"], GROUPS)
    return replace(panel_of(found, {"snapshot": when}, groups, 1), key="potential")
