"""Which escape times suit a store whose study asks for nothing."""

from __future__ import annotations

from typing import Any

import xarray as xr

from hdica.analysis.escape.unit import unit_of
from hdica.analysis.offer import numeric
from hdica.analysis.reading import gives, group
from hdica.analysis.settings import ALONE


def suits(tree: xr.DataTree) -> dict[str, Any] | None:
    """Times of the first escape, measured and predicted, over the first swept parameter."""
    known = gives(tree)
    runs = [
        m for m, has in known.items() if has.stochastic and has.n and _has(has.outputs, "first")
    ]
    theory = [m for m, has in known.items() if not has.stochastic and _has(has.outputs, "mean")]
    units = {m: unit_of(group(tree, m)) for m in (*runs, *theory)}
    first = next(iter(units.values()), "")
    runs, theory = ([m for m in some if units[m] == first] for some in (runs, theory))
    swept = [numeric(tree, name) for name in (*runs, *theory)]
    if not swept or not all(swept):
        return None
    return {"x": swept[0][0], "simulation": runs, "limits": theory}


def _has(outputs: Any, name: str) -> bool:
    return outputs.get(name) == ALONE
