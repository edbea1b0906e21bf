"""Which densities suit a store whose study asks for nothing."""

from __future__ import annotations

from typing import Any

import xarray as xr

from hdica.analysis.reading import gives
from hdica.analysis.settings import BY_X


def suits(tree: xr.DataTree) -> dict[str, Any] | None:
    """The limiting density at the snapshots, with a simulation's histograms if there are any."""
    known = {m: has for m, has in gives(tree).items() if has.outputs.get("density") == BY_X}
    runs = next((m for m, has in known.items() if has.stochastic and has.n), "")
    limit = next((m for m, has in known.items() if not has.stochastic), "")
    if not limit:
        return None
    return {"limit": limit} | ({"simulation": runs} if runs else {})
