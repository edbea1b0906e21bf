"""Effective potential of one entry of the estimate."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.densities.figure import PANELS, chosen, group_label
from hdica.analysis.show.choose import Point, shown
from hdica.analysis.show.marks import color_of
from hdica.analysis.show.panel import Line, Panel, Points
from hdica.analysis.show.words import Text, number, place, symbol

LABEL = Text(
    "<i>E<sub>t</sub></i>(<i>x</i>, ξ) − <i>E<sub>t</sub></i>(0, ξ)",
    r"$E_t(x, \xi) - E_t(0, \xi)$",
    "E_t(x, ξ) − E_t(0, ξ)",
)


def potential(data: xr.Dataset) -> list[Panel]:
    """One panel a snapshot, one curve a group, with a marker at its minimum."""
    grid, snapshots, features = chosen(data, "potential")
    out: list[Panel] = []
    for cell in shown(data, grid, max(PANELS // (2 * len(snapshots)), 1)):
        for snapshot in snapshots:
            at = {"snapshot": snapshot, **cell}
            here = data.sel(at)
            if bool(here["potential"].notnull().any()):
                out.append(panel_of(here, at, features, len(out) + 1))
    return out


def panel_of(here: xr.Dataset, at: Point, features: list[int], number_: int) -> Panel:
    """One time, a curve a group with a marker at its minimum."""
    x = here["x"].values.astype(float)
    lines: list[Line | Points] = []
    marks: list[Line | Points] = []
    for i, k in enumerate(features):
        one = here.isel(feature=k)
        y, label, color = one["potential"].values, group_label(one), color_of(i, len(features))
        lines.append(Line(x, y, label, color, bold=True))
        inner = _minimum(y)
        if inner is not None:
            marks.append(Points(x[[inner]], y[[inner]], label, color, listed=False))
    return Panel(
        f"potential_{number_}",
        place(at),
        symbol("x"),
        LABEL,
        (*lines, *marks),
        caption=f"Dots: minima inside the range drawn. {_shape(here, at)}",
    )


def _minimum(y: np.ndarray) -> int | None:
    """Position of the least value if it is not at an end."""
    if not np.isfinite(y).all():
        return None
    k = int(y.argmin())
    return k if 0 < k < len(y) - 1 else None


def _shape(here: xr.Dataset, at: Point) -> str:
    """Curvature and convexity at the time of the snapshot."""
    if "curvature" not in here:
        return ""
    now = here.sel(time=at["snapshot"], method="nearest")
    text = f"Curvature <i>d<sub>t</sub></i> = {number(float(now['curvature']))}"
    if "convex" not in now or not np.isfinite(now["convex"]):
        return text + "."
    return text + (": convex." if float(now["convex"]) > 0.5 else ": <em>not</em> convex.")
