"""What the effective potential says."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.show.choose import evenly, points
from hdica.analysis.show.sentences import listed
from hdica.analysis.show.words import number, place, plural

CELLS = 3


def potential(data: xr.Dataset) -> list[str]:
    """Sentences on the times at which the effective potential is not convex."""
    if "convex" not in data:
        return []
    every = points(data, [str(d) for d in data["convex"].dims if d != "time"])
    out = []
    for point in evenly(every, CELLS):
        convex, time = data["convex"].sel(point).values, data["time"].values.astype(float)
        known = np.isfinite(convex)
        if not known.any():
            continue
        lead = f"At {place(point).html} the" if point else "The"
        bad = known & (convex < 0.5)
        if not bad.any():
            total = plural(int(known.sum()), "output time")
            out.append(f"{lead} effective potential is convex at all {total}.")
        else:
            out.append(
                f"{lead} effective potential is not convex at {_times(time, bad)} "
                f"({int(bad.sum())} of {int(known.sum())} output times)."
            )
    return out


def _times(time: np.ndarray, chosen: np.ndarray) -> str:
    """Runs of neighbouring output times."""
    where = np.flatnonzero(chosen)
    runs = np.split(where, np.flatnonzero(np.diff(where) > 1) + 1)
    parts = [
        number(time[r[0]]) if len(r) == 1 else f"{number(time[r[0]])} … {number(time[r[-1]])}"
        for r in runs
    ]
    more = [f"{len(parts) - 3} more ranges"] if len(parts) > 4 else []
    return f"<i>t</i> = {listed(parts[:3] + more if more else parts)}"
