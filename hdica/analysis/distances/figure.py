"""Distance of the empirical law from the limit's, against n."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.convergence.figure import guides
from hdica.analysis.densities.figure import group_label
from hdica.analysis.show.choose import MOST, Point, shown
from hdica.analysis.show.marks import GREY, SYMBOLS, color_of
from hdica.analysis.show.panel import Line, Panel, Points
from hdica.analysis.show.words import Text, method_name, place, symbol, words

NAMES = {"ks": "Kolmogorov–Smirnov", "w1": "Wasserstein-1"}
SHORT = {"ks": words("KS"), "w1": Text("<i>W</i><sub>1</sub>", "$W_1$", "W₁")}
ERRORS = 2.0


def distances(data: xr.Dataset) -> list[Panel]:
    """One panel a distance, on logarithmic axes; nothing for a single n or without results."""
    if data.sizes["n"] < 2 or not bool((data["count"] > 0).any()):
        return []
    return [_panel(data, kind) for kind in NAMES]


def grid_of(data: xr.Dataset) -> list[str]:
    """Swept parameters, snapshots and groups of the distances."""
    return [str(d) for d in data["verdict"].dims if d != "simulation"]


def law_label(data: xr.Dataset, point: Point) -> Text:
    """A snapshot and group, and the grid point if there are several."""
    rest = {k: v for k, v in point.items() if k != "feature" and _told(data, k)}
    here = data.sel({k: v for k, v in point.items() if k in data["xi"].dims})
    group = group_label(here)
    return place(rest) + words(", ") + group if group else place(point)


def _told(data: xr.Dataset, dim: str) -> bool:
    """Whether a dimension tells laws apart; a time always does."""
    return dim == "snapshot" or data.sizes[dim] > 1


def _panel(data: xr.Dataset, kind: str) -> Panel:
    chosen = shown(data, grid_of(data))
    methods = [str(m) for m in data["simulation"].values]
    marks: list[Line | Points] = []
    lines: list[Line | Points] = []
    for i, point in enumerate(chosen):
        label, color = law_label(data, point), color_of(i, len(chosen))
        first = True
        for j, method in enumerate(methods):
            here = data.sel({"simulation": method, **point})
            keep = np.isfinite(here[kind].values)
            if not keep.any():
                continue
            n, size = here["n"].values[keep].astype(float), here[kind].values[keep]
            bar = ERRORS * np.nan_to_num(here[f"{kind}_se"].values[keep])
            low = np.maximum(size - bar, size * 1e-2)
            mark = SYMBOLS[j % 4]
            marks.append(Points(n, size, label, color, low, size + bar, mark, listed=first))
            expected = here[f"{kind}_expected"].values[keep]
            lines.append(Line(n, expected, label, color, "dash", listed=False))
            first = False
    return Panel(
        f"distance_{kind}",
        words(f"{NAMES[kind]} distance"),
        words("dimension ") + symbol("n"),
        SHORT[kind] + words(" distance of one run"),
        (*lines, *marks, *_legend(methods), *guides(marks, 0.5)),
        caption="Markers: distance between the law of the entries in one run and the limit's, "
        "mean over seeds ± 2 standard errors. Dashed: as many independent draws "
        "from the limit. Dotted: slope −1/2."
        + (f" {len(chosen)} laws of {_laws(data)}, chosen evenly." if _laws(data) > MOST else ""),
        log_x=True,
        log_y=True,
    )


def _laws(data: xr.Dataset) -> int:
    return int(np.prod([data.sizes[d] for d in grid_of(data)], dtype=int))


def _legend(methods: list[str]) -> list[Line | Points]:
    """Entries for the methods, if there are several, and for the dashed lines."""
    nowhere = np.full(2, np.nan)
    entries: list[Line | Points] = [
        Points(nowhere, nowhere, method_name(m), GREY, symbol=SYMBOLS[j % 4])
        for j, m in enumerate(methods)
        if len(methods) > 1
    ]
    return [*entries, Line(nowhere, nowhere, words("independent draws"), GREY, "dash")]
