"""The potential that traps an overlap near zero, as in Figure 2 of Rattray (2002)."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.show.choose import MOST, Point, points, shown
from hdica.analysis.show.marks import color_of
from hdica.analysis.show.panel import Line, Panel, Points
from hdica.analysis.show.words import number, place, symbol, titled, words
from hdica.analysis.terms import matrix_over

DEEP = 1.5
"""The axis ends so many barriers of the highest above and below zero."""


def trapping(data: xr.Dataset) -> list[Panel]:
    """One panel an overlap, one curve a grid point, with dots at the summits."""
    every = points(data, pair_of(data))
    out = []
    for k, entry in enumerate(every[:MOST]):
        panel = _panel(data.sel(entry), entry if len(every) > 1 else {}, k + 1)
        if panel is not None:
            out.append(panel)
    return out


def pair_of(data: xr.Dataset) -> tuple[str, ...]:
    """Dimensions of the matrix of overlaps, each of which has a potential; none of a number."""
    overlap = matrix_over(data.dims)
    return () if overlap is None else overlap.dims


def grid_of(data: xr.Dataset) -> list[str]:
    """Swept parameters of the potential."""
    return [str(d) for d in data["U"].dims if d not in (*pair_of(data), "r")]


def _panel(here: xr.Dataset, entry: Point, number_: int) -> Panel | None:
    cells = shown(here, grid_of(here))
    lines: list[Line | Points] = []
    marks: list[Line | Points] = []
    heights = []
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
        height = number(barrier) if np.isfinite(barrier) else "none: it confines"
        heights.append(height + (f" at {place(cell).html}" if cell else ""))
    if not lines:
        return None
    return Panel(
        f"trapping_{number_}",
        titled(words("Trapping potential"), entry),
        symbol("r"),
        symbol("U"),
        (*lines, *marks),
        caption=f"<i>D</i> is the variance of the noise of <i>r</i> in a unit of time: where the "
        f"barrier is large against 1, escapes are rare. Dots: summits. Barrier: "
        f"{'; '.join(heights)}.",
        y_range=_range(here, cells),
    )


def _range(here: xr.Dataset, cells: list[Point]) -> tuple[float, float] | None:
    """Room for the barriers; beyond them the potential falls without bound."""
    tops = [float(here["barrier"].sel(cell)) for cell in cells]
    top = max([t for t in tops if np.isfinite(t)], default=0.0)
    return (-DEEP * top, DEEP * top) if top > 0 else None
