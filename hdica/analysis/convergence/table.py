"""Verdicts on means over seeds, as a table."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.convergence.figure import grid_of
from hdica.analysis.show.table import (
    MOST_ROWS,
    VERDICT_HEAD,
    Table,
    exponent,
    verdict,
    worst_first,
)
from hdica.analysis.show.words import count, number, symbol, value_of


def verdicts(data: xr.Dataset) -> Table:
    """One row for each grid point and simulation; whatever does not agree comes first."""
    dims = ["simulation", *grid_of(data)]
    head = (
        *("method" if d == "simulation" else symbol(d).html for d in dims),
        *VERDICT_HEAD,
        "<i>n</i> used from",
        "<i>a</i> (fluctuation)",
        "<i>b</i> (bias)",
        "sup error, largest <i>n</i>",
    )
    cells = worst_first(data, dims)
    rows = []
    for point in cells[:MOST_ROWS]:
        here = data.sel(point)
        rows.append(
            (
                *(value_of(point[d]) for d in dims),
                *verdict(here),
                count(float(here["n_from"])) if np.isfinite(here["n_from"]) else "–",
                exponent(here, "fluctuation_exponent"),
                exponent(here, "bias_exponent"),
                _error(here),
            )
        )
    text = tuple(data[d].dtype.kind not in "fiu" for d in dims)
    numeric = (*(not t for t in text), False, *(True,) * 8)
    return Table(head, tuple(rows), numeric, len(cells))


def _error(here: xr.Dataset) -> str:
    known = np.flatnonzero(np.isfinite(here["sup_error"].values))
    if not len(known):
        return "–"
    last = here.isel(n=int(known[-1]))
    return f"{number(float(last['sup_error']), 2)} ± {number(float(last['sup_error_se']), 1)}"
