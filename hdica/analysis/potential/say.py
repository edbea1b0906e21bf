"""What the effective potential says: its minima against the feature, and its shape."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.densities.figure import GROUPS
from hdica.analysis.show.choose import evenly, points, spread
from hdica.analysis.show.sentences import listed
from hdica.analysis.show.words import number, place, plural

CELLS = 3
_OWN = ("snapshot", "feature")
NONE = 5e-4
"""A shift below it is none: minima are written to three decimals."""


def potential(data: xr.Dataset) -> list[str]:
    """A sentence a grid point: where the minima are, and when the potential is not convex."""
    every = points(data, [str(d) for d in data["minimum"].dims if d not in _OWN])
    out = []
    for point in evenly(every, CELLS):
        here = data.sel(point)
        lead = f"At {place(point).html} the" if point else "The"
        minima, shape = _minima(here), _shape(here)
        if minima and shape:
            out.append(f"{lead} effective potential {minima}; it {shape}.")
        elif minima or shape:
            out.append(f"{lead} effective potential {minima or shape}.")
    return out


def _minima(here: xr.Dataset) -> str:
    """Where the groups of entries have their minima at the last snapshot that is known."""
    known = here["minimum"].notnull().any("feature").values
    if not known.any():
        return ""
    when = float(here["snapshot"].values[np.flatnonzero(known)[-1]])
    last = here.sel(snapshot=when)
    groups = [last.isel(feature=k) for k in spread(last.sizes["feature"], GROUPS)]
    parts = [_minimum(group) for group in groups if bool(group["minimum"].notnull())]
    at = place({"snapshot": when}).html
    return f"has its minimum at {at} {listed(parts)}" if parts else ""


def _minimum(group: xr.Dataset) -> str:
    """One group's minimum, and how far from the value of the feature it is."""
    xi, least = float(group["xi"].mean()), float(group["minimum"])
    shift = least - xi
    said = f"at <i>x</i> = {number(round(least, 3) + 0.0, 4)} for ξ = {number(xi, 4)}"
    if abs(shift) < NONE:
        return f"{said} (not shifted)"
    share = f", {number(100 * abs(shift / xi), 2)} % of ξ" if xi != 0 else ""
    return f"{said} (shifted by {number(round(shift, 3), 3)}{share})"


def _shape(here: xr.Dataset) -> str:
    """When it is not convex, if that is known."""
    if "convex" not in here:
        return ""
    convex, time = here["convex"].values, here["time"].values.astype(float)
    known = np.isfinite(convex)
    if not known.any():
        return ""
    bad = known & (convex < 0.5)
    if not bad.any():
        return f"is convex at all {plural(int(known.sum()), 'output time')}"
    total = f"{int(bad.sum())} of {int(known.sum())} output times"
    return f"is not convex at {_times(time, bad)} ({total})"


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
