"""The effective potential of one entry of the estimate."""

from __future__ import annotations

from itertools import product

import numpy as np
import xarray as xr

from hdica.analysis.densities.densities import FEATURE, GROUPS, PANELS, chosen, group_label, xi_of
from hdica.analysis.describe import described
from hdica.analysis.potential import Potential
from hdica.analysis.reading import finished, group
from hdica.show.choose import Point, points, shown, spread
from hdica.show.finding import Finding
from hdica.show.marks import color_of
from hdica.show.panel import Array, Line, Panel, Points
from hdica.show.words import Text, number, place, symbol, words

LABEL = Text(
    "<i>E<sub>t</sub></i>(<i>x</i>, ξ) − <i>E<sub>t</sub></i>(0, ξ)",
    r"$E_t(x, \xi) - E_t(0, \xi)$",
    "E_t(x, ξ) − E_t(0, ξ)",
)
LONG_NAMES = {
    "potential": "effective potential E_t(x, xi) - E_t(0, xi)",
    "convex": "1 where the effective potential is convex",
    "curvature": "d_t = 2h, curvature of the effective potential",
    "xi": FEATURE,
    "minimum": "where the potential of a group is least, NaN where that is an end of the range",
}


def potential(tree: xr.DataTree, settings: Potential) -> xr.Dataset:
    """E_t(x, xi): every entry follows its gradient in a noise of its own (Wang and Lu 2017, (16)).

    ``potential`` over the swept parameters, ``snapshot``, ``feature`` and ``x``, shifted to 0 at
    the point nearest to x = 0; ``minimum``, where it is least, over all of these but ``x``;
    ``convex`` and ``curvature`` over ``time``, as far as the method has them; ``xi``, the value of
    xi of a group.
    """
    data = group(tree, settings.limit)
    values = finished(data, "potential")
    zero = int(np.abs(values["x"].values).argmin())
    out = {"potential": values - values.isel(x=zero, drop=True), "xi": xi_of(data)}
    across, core = values["x"].astype(float), [["x"]] * 2
    out["minimum"] = xr.apply_ufunc(_least, values, across, input_core_dims=core, vectorize=True)
    out |= {k: finished(data, k) for k in ("convex", "curvature") if k in data}
    found = xr.Dataset(out).reset_coords(drop=True)
    found.attrs = {"limit_method": settings.limit}
    return described(found, LONG_NAMES)


def _least(y: Array, x: Array) -> float:
    """Vertex of the parabola through the least point and its neighbours; NaN at an end.

    With an l1 penalty the potential is a parabola on either side of its kink, so that a minimum
    away from it is exact; one at a kink is within half a step, and exact where both sides are
    alike.
    """
    k = int(y.argmin())
    if not np.isfinite(y).all() or not 0 < k < y.size - 1:
        return float("nan")
    left, right = x[k] - x[k - 1], x[k + 1] - x[k]
    falls, climbs = (y[k] - y[k - 1]) / left, (y[k + 1] - y[k]) / right
    # Slopes hold at the middles of their intervals and are linear in between.
    if climbs == falls:
        return float(x[k])
    vertex = x[k] - left / 2 - falls * (left + right) / (2 * (climbs - falls))
    return float(np.clip(vertex, x[k] - left / 2, x[k] + right / 2))


def findings(data: xr.Dataset) -> list[Finding]:
    """Where the potential of each group is least at the last snapshot, and when it is convex."""
    grid = [str(d) for d in data["minimum"].dims if d not in ("snapshot", "feature")]
    here = [(cell, data.sel(cell)) for cell in points(data, grid)]
    minima = [one for cell, some in here for one in _minima(some, cell)]
    return minima + [one for cell, some in here for one in _convex(some, cell)]


def _minima(here: xr.Dataset, cell: Point) -> list[Finding]:
    """Minima of a few groups at the last snapshot at which any is inside the range."""
    known = np.flatnonzero(here["minimum"].notnull().any("feature").values)
    name = words("the minimiser ") + symbol("x") + words(" of the effective potential")
    out = []
    for k in spread(here.sizes["feature"], GROUPS) if known.size else []:
        one = here.isel(snapshot=known[-1], feature=k)
        at = {**cell, "t": float(one["snapshot"]), "feature": float(one["xi"].mean())}
        out.append(Finding(name, at, float(one["minimum"])))
    return out


def _convex(here: xr.Dataset, cell: Point) -> list[Finding]:
    """The share of output times at which the potential is convex, and the last at which not."""
    if "convex" not in here or not bool(here["convex"].notnull().any()):
        return []
    convex = here["convex"].dropna("time")
    share = words("the share of output times at which the effective potential is convex")
    found = [Finding(share, cell, 100 * float((convex > 0.5).mean()), unit=words("%"))]
    bad = convex["time"].values[convex.values < 0.5]
    if bad.size:
        last = words("the last output time at which the effective potential is not convex")
        found.append(Finding(last, cell, float(bad[-1])))
    return found


def panels(data: xr.Dataset) -> list[Panel]:
    """One panel a snapshot, one curve a group, with a marker at its minimum."""
    grid, snapshots, features = chosen(data, "potential")
    cells = shown(data, grid, max(PANELS // (2 * len(snapshots)), 1))
    out: list[Panel] = []
    for cell, snapshot in product(cells, snapshots):
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
        least = int(y.argmin())
        if np.isfinite(y).all() and 0 < least < y.size - 1:
            marks.append(Points(x[[least]], y[[least]], label, color, listed=False))
    return Panel(
        f"potential_{number_}",
        place(at),
        symbol("x"),
        LABEL,
        (*lines, *marks),
        caption=f"Dots: minima inside the range drawn. {_shape(here, at)}",
    )


def _shape(here: xr.Dataset, at: Point) -> str:
    """Curvature and convexity at the time of the snapshot."""
    if "curvature" not in here:
        return ""
    now = here.sel(time=at["snapshot"], method="nearest")
    text = f"Curvature <i>d<sub>t</sub></i> = {number(float(now['curvature']))}"
    if "convex" not in now or not np.isfinite(now["convex"]):
        return text + "."
    return text + (": convex." if float(now["convex"]) > 0.5 else ": <em>not</em> convex.")
