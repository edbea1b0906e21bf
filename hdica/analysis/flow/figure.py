"""Flow curves with their fixed points."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.show.choose import evenly, points, said
from hdica.analysis.show.marks import color_of
from hdica.analysis.show.panel import Line, Panel, Points
from hdica.analysis.show.words import place, symbol, words


def flow(data: xr.Dataset) -> list[Panel]:
    """One panel with g(q) for a few grid points; its zeros filled if stable, open if not."""
    dims = [str(d) for d in data["drift"].dims if d != "q"]
    chosen = evenly(points(data, dims))
    q = data["q"].values.astype(float)
    items: list[Line | Points] = [
        Line(q[[0, -1]], np.zeros(2), words("0"), "ink", "solid", listed=False),
    ]
    marks: list[Line | Points] = []
    for i, point in enumerate(chosen):
        here = data.sel(point)
        color = color_of(i, len(chosen))
        label = place(point) or symbol("g")
        items.append(Line(q, here["drift"].values, label, color, bold=True))
        if "fixed_q" in here:
            at, stable = here["fixed_q"].values, here["stable"].values
            keep = np.isfinite(at) & (at <= 1)
            filled = stable[keep] > 0.5
            marks.append(
                Points(at[keep], np.zeros(keep.sum()), label, color, filled=filled, listed=False)
            )
    return [
        Panel(
            "flow",
            words("Flow of the overlap"),
            symbol("q"),
            symbol("g"),
            (*items, *marks),
            caption="Where <i>g</i> &gt; 0 the overlap grows. Circles: fixed points, filled if "
            + " ".join(["stable, open if unstable.", *said(data, dims, len(chosen))]),
            wide=True,
        )
    ]
