"""Which trajectories suit a store whose study asks for nothing."""

from __future__ import annotations

from typing import Any

import xarray as xr

from hdica.analysis.offer import numeric, offered
from hdica.analysis.settings import FIXED_POINT, TIME
from hdica.systems.method import Role


def suits(tree: xr.DataTree) -> dict[str, Any] | None:
    """Simulation and limit in one panel where there is time, but nothing is swept over numbers."""
    simulation, limit = (offered(tree, role, TIME) for role in (Role.SIMULATION, Role.LIMIT))
    curves = [name for name in (simulation, limit) if name]
    times = [tree[name].sizes.get("time", 0) for name in curves]
    if not curves or min(times) < 2 or (simulation and numeric(tree, simulation)):
        return None
    steady = offered(tree, Role.STEADY_STATES, FIXED_POINT)
    return {"curves": curves} | ({"steady": steady} if steady else {})
