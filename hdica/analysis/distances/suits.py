"""Which distances of laws suit a store whose study asks for nothing."""

from __future__ import annotations

from typing import Any

import xarray as xr

from hdica.analysis.reading import gives
from hdica.analysis.settings import BY_EDGE


def suits(tree: xr.DataTree) -> dict[str, Any] | None:
    """Simulations with n that keep densities against the limit's."""
    known = {m: has for m, has in gives(tree).items() if has.outputs.get("cdf") == BY_EDGE}
    runs = [m for m, has in known.items() if has.stochastic and has.n]
    limit = next((m for m, has in known.items() if not has.stochastic), "")
    return {"simulation": runs, "limit": limit} if runs and limit else None
