"""What the report says where nothing is learned."""

from __future__ import annotations

import xarray as xr
from markupsafe import escape

from hdica.analysis.show.sentences import among
from hdica.analysis.show.words import count, method_name, plural, typeset

_SAYS = {
    "still": "the limit stays at its start, which has no overlap",
    "lost": "the limit ends with an overlap of 0",
    "none": "nothing informative is found",
}


def learning(data: xr.Dataset) -> list[str]:
    """One sentence a method that learns nothing, with the reason at its first point."""
    out = []
    for k in range(data.sizes["row"]):
        method, what, note = (str(data[name].values[k]) for name in ("method", "what", "note"))
        found, points = int(data["count"][k]), int(data["points"][k])
        share = (
            f"any point{among()}"
            if found == points
            else f"{count(found)} of {plural(points, 'point')}"
        )
        lead = "" if found == 1 or not note else " At the first of them: "
        said = f"By {method_name(method).html} nothing is learned at {share}: {_SAYS[what]}."
        reason = f"{lead or ' '}{escape(typeset(note[0].upper() + note[1:]))}." if note else ""
        out.append(said + reason)
    return out
