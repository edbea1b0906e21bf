"""What was run, as a table."""

from __future__ import annotations

import xarray as xr

from hdica.analysis.show.table import Table
from hdica.analysis.show.words import count, number, symbol


def runs(data: xr.Dataset) -> Table:
    """What was run."""
    counts = ("points", "done", "diverged", "failed", "pending")
    head = ("method", "accuracy", *counts, "CPU seconds", symbol("n").html, "seeds")
    rows = []
    for method in data["method"].values:
        here = data.sel({"method": method})
        rows.append(
            (
                str(method),
                here["accuracy"].item(),
                *(count(int(here[c])) for c in counts),
                number(float(here["cpu_seconds"])),
                here["n"].item() or "∞",
                str(int(here["seeds"])) if int(here["seeds"]) else "–",
            )
        )
    numeric = (False, False, *(True for _ in counts), True, False, True)
    return Table(head, tuple(rows), numeric, len(rows))
