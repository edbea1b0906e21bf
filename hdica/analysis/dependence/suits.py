"""Which dependence suits a store whose study asks for nothing."""

from __future__ import annotations

from typing import Any

import xarray as xr

from hdica.analysis.offer import control, numeric, offered
from hdica.analysis.settings import ALONE, TIME
from hdica.systems.method import Role


def suits(tree: xr.DataTree) -> dict[str, Any] | None:
    """The order parameter at the end against the parameter that is swept most.

    Not where a phase diagram shows the same, over two parameters.
    """
    simulation = offered(tree, Role.SIMULATION, ALONE, TIME)
    if not simulation:
        return None
    swept = numeric(tree, simulation)
    if not swept or (control(tree, swept) and len(swept) > 1):
        return None
    limit = offered(tree, Role.LIMIT, ALONE, TIME)
    return {"simulation": simulation} | ({"theory": limit} if limit else {})
