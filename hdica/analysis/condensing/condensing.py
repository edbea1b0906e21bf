"""Whether a limit condenses: mass that no density can hold."""

from __future__ import annotations

import xarray as xr

from hdica.analysis.describe import described, units_by
from hdica.analysis.reading import group, over
from hdica.show.choose import evenly, points
from hdica.show.wording import where
from hdica.show.words import number
from hdica.status import PENDING

LONG_NAMES = {
    "curvature": "d_t = 2h at the last time",
    "least": "least d_t = 2h over time",
    "end": "last time with a curvature",
}

LISTED = 3
"""Points in a note."""


def condensing(tree: xr.DataTree) -> xr.Dataset | None:
    """Sign of the curvature d_t = 2 h at the last time that every limit reached; None without any.

    d/dt E[x^2] = -2 d_t (E[x^2] - 1): where d_t < 0 the bulk cannot hold |x|^2 = n, and what is
    left over moves to ever fewer, ever larger entries. A curvature that stays negative rises to 0
    like -1/t, so that the density never converges plainly.
    """
    methods = [m for m, node in tree.children.items() if "curvature" in node]
    if not methods:
        return None
    groups = [group(tree, m) for m in methods]
    found = over([_end(data) for data in groups], "method", methods)
    return described(found, LONG_NAMES, units=units_by(groups[0]["time"]))


def _end(data: xr.Dataset) -> xr.Dataset:
    """Curvature at the last time with one; a diverged point stopped there."""
    values = data["curvature"].where(data["status"] != PENDING).reset_coords(drop=True)
    values = values.drop_vars("time")
    time = xr.DataArray(data["time"].values.astype(float), dims="time")
    end = time.where(values.notnull()).max("time")
    last = values.where(time == end).max("time")
    return xr.Dataset({"curvature": last, "end": end, "least": values.min("time")})


def notes(data: xr.Dataset) -> list[str]:
    """Where the curvature is still negative at the last time."""
    dims = [str(d) for d in data["curvature"].dims]
    cells = [cell for cell in points(data, dims) if float(data["curvature"].sel(cell)) < 0]
    if not cells:
        return []
    parts = []
    for cell in evenly(cells, LISTED):
        end, curvature = (float(data[k].sel(cell)) for k in ("end", "curvature"))
        at = where({**cell, "t": end}).html
        parts.append(f"2<i>h</i> = {number(curvature, 2)} at {at}")
    more = f"; and {len(cells) - len(parts)} more" if len(cells) > len(parts) else ""
    return [
        "The estimate condenses: the curvature 2<i>h</i> of the effective potential is negative at "
        f"the last time ({'; '.join(parts)}{more}). The bulk of the entries cannot hold "
        "|<i>x</i>|² = <i>n</i>, and the rest moves to ever fewer and larger entries."
    ]
