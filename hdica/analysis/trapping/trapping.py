"""The potential that traps an overlap near zero, as in Figure 2 of Rattray (2002)."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.describe import described
from hdica.analysis.reading import finished, group
from hdica.analysis.trapping import Trapping
from hdica.show.choose import MOST, Point, points, shown
from hdica.show.finding import Finding
from hdica.show.marks import color_of
from hdica.show.panel import Item, Line, Panel, Points
from hdica.show.terms import matrix_over
from hdica.show.wording import listed
from hdica.show.words import number, place, symbol, titled, words

DEEP = 1.5
"""The axis ends so many barriers of the highest above and below zero."""

LONG_NAMES = {
    "U": "potential U/D of r = sqrt(n) R, D the variance of its noise in a unit of time",
    "barrier": "height of the barrier of U/D",
    "summit": "r at the top of the barrier",
}


def trapping(tree: xr.DataTree, settings: Trapping) -> xr.Dataset:
    """U(r)/D of r = sqrt(n) R near R = 0 (Rattray 2002, (25)-(26)), with its barrier.

    ``U`` over the swept parameters, ``projection``, ``source`` and ``r``; ``barrier`` and
    ``summit`` without ``r``, infinite where the potential confines.
    """
    data = group(tree, settings.limit)
    kept = {k: finished(data, k) for k in ("U", "barrier", "summit")}
    out = xr.Dataset(kept).reset_coords(drop=True)
    out.attrs = {"limit_method": settings.limit}
    return described(out, LONG_NAMES)


def findings(data: xr.Dataset) -> list[Finding]:
    """Height and place of the barrier of every overlap at every grid point that has one."""
    named = {d for d in data["barrier"].dims if data.sizes[d] > 1}
    barrier = words("the barrier of the trapping potential in units of the variance D of its noise")
    summit = words("the distance r of the top of the barrier from 0")
    return [
        Finding(name, {k: v for k, v in p.items() if k in named}, float(data[variable].sel(p)))
        for name, variable in ((barrier, "barrier"), (summit, "summit"))
        for p in points(data, [*pair_of(data), *grid_of(data)])
        if np.isfinite(float(data["barrier"].sel(p)))
    ]


def notes(data: xr.Dataset) -> list[str]:
    """Which overlaps nothing frees."""
    known = data["U"].notnull().any("r")
    free = [
        place(entry).html or "the overlap"
        for entry in points(data, pair_of(data))
        if bool(known.sel(entry).any()) and not bool((data["barrier"] < np.inf).sel(entry).any())
    ]
    if not free:
        return []
    return [f"The potential of {listed(free)} has no barrier: noise alone does not end the trap."]


def panels(data: xr.Dataset) -> list[Panel]:
    """One panel an overlap, one curve a grid point, with dots at the summits."""
    every = points(data, pair_of(data))
    found = [
        _panel(data.sel(entry), entry if len(every) > 1 else {}, k + 1)
        for k, entry in enumerate(every[:MOST])
    ]
    return [panel for panel in found if panel.items]


def pair_of(data: xr.Dataset) -> tuple[str, ...]:
    """Dimensions of the matrix of overlaps, each of which has a potential; none of a number."""
    overlap = matrix_over(data.dims)
    return () if overlap is None else overlap.dims


def grid_of(data: xr.Dataset) -> list[str]:
    """Swept parameters of the potential."""
    return [str(d) for d in data["U"].dims if d not in (*pair_of(data), "r")]


def _panel(here: xr.Dataset, entry: Point, number_: int) -> Panel:
    cells = shown(here, grid_of(here))
    lines, marks = list[Item](), list[Item]()
    heights, top = list[str](), 0.0
    for i, cell in enumerate(cells):
        one, color = here.sel(cell), color_of(i, len(cells))
        u = one["U"].values
        if not np.isfinite(u).any():
            continue
        label = place(cell) or symbol("U")
        lines.append(Line(one["r"].values.astype(float), u, label, color, bold=True))
        summit, barrier = float(one["summit"]), float(one["barrier"])
        tops = np.array([-summit, summit])
        tops = tops[(tops >= float(one["r"].min())) & (tops <= float(one["r"].max()))]
        if tops.size:
            marks.append(Points(tops, np.full(tops.size, barrier), label, color, listed=False))
        height = "none: it confines"
        if np.isfinite(barrier):
            height, top = number(barrier), max(top, barrier)
        heights.append(height + (f" at {place(cell).html}" if cell else ""))
    return Panel(
        f"trapping_{number_}",
        titled(words("Trapping potential"), entry),
        symbol("r"),
        symbol("U"),
        (*lines, *marks),
        caption=f"<i>D</i> is the variance of the noise of <i>r</i> in a unit of time: where the "
        f"barrier is large against 1, escapes are rare. Dots: summits. Barrier: "
        f"{'; '.join(heights)}.",
        # Beyond the barriers the potential falls without bound.
        y_range=(-DEEP * top, DEEP * top) if top > 0 else None,
    )
