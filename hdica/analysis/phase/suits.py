"""Which phase diagram suits a store whose study asks for nothing."""

from __future__ import annotations

from typing import Any

import xarray as xr

from hdica.analysis.offer import control, numeric, offered
from hdica.analysis.settings import TIME
from hdica.analysis.terms import starts
from hdica.systems.method import Role


def suits(tree: xr.DataTree) -> dict[str, Any] | None:
    """A control parameter against the start, or another parameter, where both are swept."""
    simulation = offered(tree, Role.SIMULATION, TIME)
    if not simulation:
        return None
    swept = numeric(tree, simulation)
    x = control(tree, swept)
    others = sorted((d for d in swept if d != x), key=lambda d: d not in starts())
    if not x or not others:
        return None
    limit = offered(tree, Role.LIMIT, TIME)
    return {"simulation": simulation, "x": x, "y": others[0]} | ({"limit": limit} if limit else {})
