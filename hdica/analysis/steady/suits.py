"""Which bifurcation diagram suits a store whose study asks for nothing."""

from __future__ import annotations

from typing import Any

import xarray as xr

from hdica.analysis.offer import control, numeric, offered
from hdica.analysis.settings import BRANCH_POINT, FIXED_POINT, TIME
from hdica.systems.method import Role


def suits(tree: xr.DataTree) -> dict[str, Any] | None:
    """Steady states over a swept control parameter, with what there is of branches and runs."""
    states = offered(tree, Role.STEADY_STATES, FIXED_POINT)
    branches = offered(tree, Role.BRANCHES, BRANCH_POINT)
    theory = states or branches
    x = control(tree, numeric(tree, theory)) if states else ""
    if not x:
        return None
    simulation = offered(tree, Role.SIMULATION, TIME, n=True)
    if simulation and len(numeric(tree, simulation)) > 1:
        return None  # over two parameters a phase diagram shows it
    found: dict[str, Any] = {"x": x, "limits": [states]}
    found |= {"branches": branches} if branches else {}
    return found | ({"simulation": [simulation]} if simulation else {})
