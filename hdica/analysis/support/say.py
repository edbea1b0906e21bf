"""What the recovered support says, and its table."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.distances.say import ALONE
from hdica.analysis.show.choose import Point, at_largest_n, evenly, points
from hdica.analysis.show.sentences import N, cell, counted
from hdica.analysis.show.table import VERDICT_HEAD, Table, of_verdicts, verdict
from hdica.analysis.show.words import count, method_name, number, place

CELLS = 3


def support(data: xr.Dataset) -> list[str]:
    """Sentences on verdicts and on how well the support is recovered at the last snapshot."""
    grid = [str(d) for d in data["tpr_limit"].dims if d != "threshold"]
    out = []
    if "verdict" in data:
        cells = points(data, [str(d) for d in data["verdict"].dims])
        out = counted(data, cells, "comparisons of support recovery with the limit", cell)
        out += [ALONE] if data.sizes["n"] == 1 else []
    last = data.isel(snapshot=-1)
    for point in evenly(points(last, [d for d in grid if d != "snapshot"]), CELLS):
        out += _recovery(last.sel(point), point)
    return out


def _recovery(here: xr.Dataset, point: Point) -> list[str]:
    wrong = here["misclassified_limit"].values
    if not np.isfinite(wrong).all():
        return []
    best = int(wrong.argmin())
    at = {"snapshot": float(here["snapshot"]), **point}
    parts = []
    for method in here["simulation"].values if "simulation" in here.dims else ():
        own = here.sel(simulation=method).isel(threshold=best)
        own = at_largest_n(own, own["count"] > 0)
        if int(own["count"]):
            value, error = 100 * float(own["misclassified"]), 100 * float(own["misclassified_se"])
            bar = f" ± {number(error, 1)}" if np.isfinite(error) else ""
            where = f"{method_name(method).html} at {N} = {count(float(own['n']))}"
            parts.append(f"{where}: {number(value)}{bar} %")
    measured = f" ({'; '.join(parts)})" if parts else ""
    area = float(here["area_limit"])
    lead = f"At {place(at).html} the "
    ranking = (
        f"{lead}area under the limit's curve of true against false positives is "
        f"{'above 0.9999' if 0.9999 < area < 1 else number(area, 4)}, and the "
        if np.isfinite(area)
        else lead
    )
    return [
        f"{ranking}best threshold, |<i>x</i>| = {number(float(here['threshold'][best]))}, "
        f"misclassifies {number(100 * wrong[best])} % of the entries in the limit{measured}."
    ]


def table(data: xr.Dataset) -> Table:
    """One row for each snapshot; whatever does not agree comes first."""
    head = ("rates", *VERDICT_HEAD, "area under the limit's curve")

    def row(point: Point, here: xr.Dataset) -> tuple[str, ...]:
        rest = {k: v for k, v in point.items() if k != "simulation"}
        name = f"{method_name(point['simulation']).plain}, {place(rest).plain}"
        return name, *verdict(here), number(float(here["area_limit"]), 4)

    return of_verdicts(data, [str(d) for d in data["verdict"].dims], head, row)
