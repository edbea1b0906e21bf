"""Verdicts on laws, as a table."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.distances.figure import law_label
from hdica.analysis.show.table import (
    MOST_ROWS,
    VERDICT_HEAD,
    Table,
    exponent,
    verdict,
    worst_first,
)
from hdica.analysis.show.words import number


def distances(data: xr.Dataset) -> Table:
    """One row for each law; whatever does not agree comes first."""
    columns = tuple(
        (f"{short}, largest <i>n</i>", f"{short} of independent draws") for short in ("KS", "W1")
    )
    head = ("law", *VERDICT_HEAD, *columns[0], *columns[1], "<i>a</i> (KS)", "<i>a</i> (W1)")
    cells = worst_first(data, ["simulation", *(str(d) for d in data["verdict"].dims[1:])])
    rows = []
    for point in cells[:MOST_ROWS]:
        here, rest = data.sel(point), {k: v for k, v in point.items() if k != "simulation"}
        last = _last(here, "ks")
        rows.append(
            (
                f"{point['simulation']}, {law_label(data, rest).plain}",
                *verdict(here),
                *(text for k in ("ks", "w1") for text in _distance(last, k)),
                *(exponent(here, f"{k}_exponent") for k in ("ks", "w1")),
            )
        )
    return Table(head, tuple(rows), (False, False, *(True,) * 10), len(cells))


def _last(here: xr.Dataset, name: str) -> xr.Dataset:
    """The largest n with a result, or the largest of all."""
    known = np.flatnonzero(np.isfinite(here[name].values))
    return here.isel(n=int(known[-1]) if len(known) else -1)


def _distance(last: xr.Dataset, kind: str) -> tuple[str, str]:
    """A distance with its error, and that of independent draws."""
    value, error = float(last[kind]), float(last[f"{kind}_se"])
    bar = f" ± {number(error, 1)}" if np.isfinite(error) else ""
    return f"{number(value, 2)}{bar}", number(float(last[f"{kind}_expected"]), 2)
