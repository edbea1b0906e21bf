"""How well the support is recovered, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.show.agreement import verdict_of
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import Point, at_largest_n, points
from hdica.analysis.show.sentences import N
from hdica.analysis.show.words import count, number, place, with_error


def answer(data: xr.Dataset) -> Answer | None:
    """The share that the best threshold misclassifies at the last snapshot, at the first point."""
    last = data.isel(snapshot=-1)
    grid = [str(d) for d in last["misclassified_limit"].dims if d != "threshold"]
    cells = points(last, grid)
    known = [p for p in cells if bool(last["misclassified_limit"].sel(p).notnull().all())]
    if not known:
        return None
    here = last.sel(known[0])
    best = int(here["misclassified_limit"].values.argmin())
    at = here.isel(threshold=best)
    point: Point = {"snapshot": float(here["snapshot"]), **(known[0] if len(cells) > 1 else {})}
    verdict = "verdict" in data and verdict_of(
        data, points(data, [str(d) for d in data["verdict"].dims])
    )
    return Answer(
        f"At {place(point).html} the best threshold, |<i>x</i>| = "
        f"{number(float(at['threshold']))}, misclassifies "
        f"{number(100 * float(at['misclassified_limit']))} % of the entries in the limit"
        f"{_measured(at)}.",
        verdict or "",
    )


def _measured(at: xr.Dataset) -> str:
    """The same in the first simulation, at its largest n."""
    if "simulation" not in at.dims:
        return ""
    own = at.isel(simulation=0)
    own = at_largest_n(own, own["count"] > 0)
    value, error = 100 * float(own["misclassified"]), 100 * float(own["misclassified_se"])
    if not np.isfinite(value) or not int(own["count"]):
        return ""
    return f" and {with_error(value, error)} % in simulation at {N} = {count(float(own['n']))}"
