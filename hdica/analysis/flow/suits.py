"""Which flow suits a store whose study asks for nothing."""

from __future__ import annotations

from typing import Any

import xarray as xr

from hdica.analysis.reading import gives


def suits(tree: xr.DataTree) -> dict[str, Any] | None:
    """The drift of any method that has one, with fixed points beside it."""
    known = gives(tree)
    drift = next((name for name, has in known.items() if has.outputs.get("drift") == ("q",)), "")
    states = next((name for name, has in known.items() if "stable" in has.outputs), "")
    return {"method": drift, "fixed_points": states} if drift and states else None
