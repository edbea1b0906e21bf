"""Which recovery of the support suits a store whose study asks for nothing."""

from __future__ import annotations

from typing import Any

import xarray as xr

from hdica.analysis.reading import gives
from hdica.analysis.settings import BY_THRESHOLD


def suits(tree: xr.DataTree) -> dict[str, Any] | None:
    """The limiting rates at the snapshots, with a simulation's if it keeps them."""
    known = {m: has for m, has in gives(tree).items() if has.outputs.get("tpr") == BY_THRESHOLD}
    runs = [m for m, has in known.items() if has.stochastic and has.n]
    limit = next((m for m, has in known.items() if not has.stochastic), "")
    return {"simulation": runs, "limit": limit} if limit else None
