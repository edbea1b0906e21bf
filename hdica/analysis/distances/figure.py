"""Distance of the empirical law from the limit's, against n."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.densities.figure import group_label
from hdica.analysis.distances.compute import NAMES, grid_of
from hdica.show.choose import MOST, Point, shown
from hdica.show.marks import ERRORS, GREY, NOWHERE, against_n, guide, methods_of, over_n
from hdica.show.panel import Item, Line, Panel, Points
from hdica.show.words import Text, place, words

SHORT = {"ks": words("KS"), "w1": Text("<i>W</i><sub>1</sub>", "$W_1$", "W₁")}


def distances(data: xr.Dataset) -> list[Panel]:
    """One panel a distance, on logarithmic axes; nothing for a single n or without results."""
    if data.sizes["n"] < 2 or not bool((data["count"] > 0).any()):
        return []
    return [_panel(data, kind) for kind in NAMES]


def _law_label(data: xr.Dataset, point: Point) -> Text:
    """A snapshot and group, and the grid point if there are several; a time always tells laws."""
    group = group_label(data.sel({k: v for k, v in point.items() if k in data["xi"].dims}))
    long = {k for k in point if k == "snapshot" or (k != "feature" and data.sizes[k] > 1)}
    several = {k: v for k, v in point.items() if k in long}
    return place(several) + ", " + group if group else place(point)


def _panel(data: xr.Dataset, kind: str) -> Panel:
    marks: list[Points] = []
    lines: list[Line] = []
    chosen = shown(data, grid_of(data))
    named = [(_law_label(data, point), point) for point in chosen]
    for here, look in over_n(data, data[kind].notnull(), named):
        n, size = here["n"].values.astype(float), here[kind].values
        bar = ERRORS * np.nan_to_num(here[f"{kind}_se"].values)
        marks.append(
            Points(n, size, low=np.maximum(size - bar, size * 1e-2), high=size + bar, **look)
        )
        expected = here[f"{kind}_expected"].values
        lines.append(Line(n, expected, look["label"], look["color"], "dash", listed=False))
    dashed = Line(NOWHERE, NOWHERE, words("independent draws"), GREY, "dash")
    laws = int(np.prod([data.sizes[d] for d in grid_of(data)], dtype=int))
    text = (
        "Markers: distance between the law of the entries in one run and the limit's, mean over "
        "seeds ± 2 standard errors. Dashed: as many independent draws from the limit. Dotted: "
        "slope −1/2." + (f" {len(chosen)} laws of {laws}, chosen evenly." if laws > MOST else "")
    )
    items: tuple[Item, ...] = (*lines, *marks, *methods_of(data), dashed, *guide(marks, 0.5))
    title, label = words(f"{NAMES[kind]} distance"), SHORT[kind] + " distance of one run"
    return against_n(f"distance_{kind}", title, label, items, text)
