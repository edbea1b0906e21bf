"""What a curvature that stays negative says."""

from __future__ import annotations

import xarray as xr

from hdica.analysis.show.choose import evenly, points
from hdica.analysis.show.sentences import cell
from hdica.analysis.show.words import number

CELLS = 3


def condensing(data: xr.Dataset) -> list[str]:
    """One sentence on the points whose curvature is still negative at the end."""
    dims = [str(d) for d in data["curvature"].dims]
    where = [p for p in points(data, dims) if float(data["curvature"].sel(p)) < 0]
    if not where:
        return []
    parts = []
    for point in evenly(where, CELLS):
        here = data.sel(point)
        named = cell(
            {"simulation": point["method"]} | {k: v for k, v in point.items() if k != "method"}
        )
        parts.append(
            f"{named} (2<i>h</i> = {number(float(here['curvature']), 2)} at "
            f"<i>t</i> = {number(float(here['end']))})"
        )
    more = f" and {len(where) - len(parts)} more" if len(where) > len(parts) else ""
    return [
        "The estimate condenses: the curvature 2<i>h</i> of the effective potential is negative at "
        f"the last time at {'; '.join(parts)}{more}. The bulk of the entries then cannot hold "
        "|<i>x</i>|² = <i>n</i>; the rest moves to ever fewer, ever larger entries while "
        "2<i>h</i> rises to 0 like −1/<i>t</i>, and the density never converges plainly (unless "
        "2<i>h</i> turns positive later)."
    ]
