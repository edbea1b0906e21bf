"""Verdicts on the recovery of the support, as a table."""

from __future__ import annotations

import xarray as xr

from hdica.analysis.show.table import MOST_ROWS, VERDICT_HEAD, Table, verdict, worst_first
from hdica.analysis.show.words import number, place


def support(data: xr.Dataset) -> Table:
    """One row for each snapshot; whatever does not agree comes first."""
    head = ("rates", *VERDICT_HEAD, "area under the limit's curve")
    cells = worst_first(data, ["simulation", *(str(d) for d in data["verdict"].dims[1:])])
    rows = []
    for point in cells[:MOST_ROWS]:
        here, rest = data.sel(point), {k: v for k, v in point.items() if k != "simulation"}
        name = f"{point['simulation']}, {place(rest).plain}"
        rows.append((name, *verdict(here), number(float(here["area_limit"]), 4)))
    return Table(head, tuple(rows), (False, False, *(True,) * 5), len(cells))
