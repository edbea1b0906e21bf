"""What the report says of choices that were left to the system."""

from __future__ import annotations

import xarray as xr
from markupsafe import escape

from hdica.analysis.show.words import plural, typeset

ROWS = 6


def choices(data: xr.Dataset) -> list[str]:
    """A sentence for each of a few choices and notes on data, with the points they are about."""
    total, out = int(data.attrs["points"]), []
    for k in range(min(data.sizes["row"], ROWS)):
        text, many = str(data["text"].values[k]), int(data["count"][k])
        share = "at every point" if many == total else f"at {many} of {plural(total, 'point')}"
        if str(data["kind"].values[k]) == "data":
            out.append(f"Data are not as the rule assumes {share}: {escape(text)}.")
        else:
            out.append(f"Chosen {share}: {escape(typeset(text))}.")
    return out
