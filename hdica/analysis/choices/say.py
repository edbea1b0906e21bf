"""What the report says of choices that were left to the system."""

from __future__ import annotations

import xarray as xr
from markupsafe import escape

from hdica.analysis.show.words import plural, typeset

ROWS = 6


def choices(data: xr.Dataset) -> list[str]:
    """A sentence for each of a few choices, with the points at which it was made."""
    total, out = int(data.attrs["points"]), []
    for k in range(min(data.sizes["row"], ROWS)):
        what, many = typeset(str(data["chosen"].values[k])), int(data["count"][k])
        share = "at every point" if many == total else f"at {many} of {plural(total, 'point')}"
        out.append(f"Chosen {share}: {escape(what)}.")
    return out
