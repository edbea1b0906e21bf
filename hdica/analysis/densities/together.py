"""All groups of entries at one time in one panel, and such panels one time after another."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.densities.figure import (
    GROUPS,
    group_label,
    headline,
    range_of,
    steps,
)
from hdica.analysis.show.choose import Point, evenly, shown, spread
from hdica.analysis.show.film import FRAMES, Film, film
from hdica.analysis.show.marks import color_of
from hdica.analysis.show.panel import Line, Panel
from hdica.analysis.show.words import EMPTY, Text, limit_name, symbol, titled, words

WHAT = "densities over time"

FILMS = 3
"""Grid points of which a report has an animation, chosen evenly."""


def films(data: xr.Dataset) -> list[Film]:
    """Densities over time, at a few grid points; none where there is one snapshot."""
    grid = [str(d) for d in data["limit"].dims if d not in ("snapshot", "feature", "x")]
    found = [(cell, over_time(data.sel(cell), cell)) for cell in shown(data, grid, FILMS)]
    kept = [(cell, panels) for cell, panels in found if len(panels) > 1]
    return [
        film(f"densities_{k}", titled(words(WHAT), cell), panels)
        for k, (cell, panels) in enumerate(kept, start=1)
    ]


def over_time(data: xr.Dataset, cell: Point) -> list[Panel]:
    """A panel for every snapshot at which something is known, of many for some, evenly."""
    times = evenly(data["snapshot"].values.astype(float).tolist(), FRAMES)
    panels = [together(data.sel(snapshot=t), {"snapshot": t, **cell}) for t in times]
    return [one for one in panels if one.items]


def together(here: xr.Dataset, at: Point) -> Panel:
    """Histograms and limits of one snapshot, a colour for every group of entries.

    ``here`` has, over ``feature`` and ``x``, ``density`` with ``density_se``, or ``limit``, or
    both, and ``xi`` over ``feature``; its attributes say ``n`` and the methods. Steps with a band
    of two standard errors are histograms; smooth lines are the limit, in the colour of the group
    where there is no histogram.
    """
    places = spread(here.sizes["feature"], GROUPS)
    lines: list[Line] = []
    for k, where in enumerate(places):
        lines += _group(here.isel(feature=where), color_of(k, len(places)), where == places[0])
    known = (line for line in lines if np.isfinite(line.y).any())
    kept = tuple(sorted(known, key=lambda line: line.dash != "solid"))
    band = " (band: ± 2 s.e.)" if any(line.low is not None for line in kept) else ""
    return Panel(
        "densities",
        headline(at, EMPTY),
        words("entry ") + symbol("x") + words(" of the estimate"),
        words(f"density{band}"),
        kept,
        x_range=_range(kept),
    )


def _group(here: xr.Dataset, color: str, first: bool) -> list[Line]:
    """Histogram and limit of a group, each at its own points."""
    group, out = group_label(here), []
    if "density" in here:
        runs = here[["density", "density_se"]].dropna("x", subset=["density"])
        runs = runs.assign_attrs(here.attrs)
        if runs.sizes["x"] > 1:
            out.append(_steps(runs, group, color))
    if "limit" in here:
        alone = "density" not in here
        limit = here["limit"].dropna("x")
        label = group if alone and group else limit_name(str(here.attrs["limit_method"]))
        out.append(
            Line(limit["x"].values.astype(float), limit.values, label, color if alone else "ink",
                 "solid" if alone else "dash", bold=True, listed=alone or first)
        )  # fmt: skip
    return out


def _steps(runs: xr.Dataset, group: Text, color: str) -> Line:
    line = steps(runs, runs["x"].values.astype(float))
    label = group + words(", ") + line.label if group else line.label
    return Line(line.x, line.y, label, color, low=line.low, high=line.high)


def _range(lines: tuple[Line, ...]) -> tuple[float, float] | None:
    """Where any of the curves has something to see."""
    ends = []
    for line in lines:
        here = xr.Dataset({"limit": ("x", np.nan_to_num(line.y))})
        found = range_of(here, line.x)
        ends += [] if found is None else [found]
    return (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None
