"""Which transitions suit a store whose study asks for nothing."""

from __future__ import annotations

from typing import Any

import xarray as xr

from hdica.analysis.offer import numeric
from hdica.analysis.reading import gives
from hdica.analysis.settings import BY_TRANSITION


def suits(tree: xr.DataTree) -> dict[str, Any] | None:
    """Critical values over the first parameter on which they are swept."""
    for name, has in gives(tree).items():
        swept = numeric(tree, name)
        if has.outputs.get("value") == BY_TRANSITION and swept:
            return {"x": swept[0], "critical": name}
    return None
