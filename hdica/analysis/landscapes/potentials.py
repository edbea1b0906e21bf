"""Effective potential of one entry, and the potential that traps an overlap (Rattray 2002)."""

from __future__ import annotations

from itertools import product

import numpy as np
import xarray as xr

from hdica.analysis.landscapes import Potential, Trapping
from hdica.analysis.laws.densities import FEATURE, GROUPS, PANELS, chosen, group_label, xi_of
from hdica.analysis.reading import described, finished, group
from hdica.show.choose import MOST, Point, points, shown, spread
from hdica.show.finding import Finding
from hdica.show.marks import color_of
from hdica.show.panel import Array, Item, Line, Panel, Points
from hdica.show.terms import matrix_over
from hdica.show.wording import listed
from hdica.show.words import Text, number, place, symbol, titled, words

LABEL = Text(
    "<i>E<sub>t</sub></i>(<i>x</i>, ξ) − <i>E<sub>t</sub></i>(0, ξ)",
    r"$E_t(x, \xi) - E_t(0, \xi)$",
    "E_t(x, ξ) − E_t(0, ξ)",
)
OF_POTENTIAL = {
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
    result = xr.Dataset(out).reset_coords(drop=True)
    result.attrs = {"limit_method": settings.limit}
    return described(result, OF_POTENTIAL)


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


def potential_findings(data: xr.Dataset) -> list[Finding]:
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
    out = [Finding(share, cell, 100 * float((convex > 0.5).mean()), unit=words("%"))]
    bad = convex["time"].values[convex.values < 0.5]
    if bad.size:
        last = words("the last output time at which the effective potential is not convex")
        out.append(Finding(last, cell, float(bad[-1])))
    return out


def potential_panels(data: xr.Dataset) -> list[Panel]:
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


DEEP = 1.5
"""The axis ends so many barriers of the highest above and below zero."""

OF_TRAP = {
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
    return described(out, OF_TRAP)


def trapping_findings(data: xr.Dataset) -> list[Finding]:
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


def trapping_notes(data: xr.Dataset) -> list[str]:
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


def trapping_panels(data: xr.Dataset) -> list[Panel]:
    """One panel an overlap, one curve a grid point, with dots at the summits."""
    every = points(data, pair_of(data))
    drawn = [
        _panel(data.sel(entry), entry if len(every) > 1 else {}, k + 1)
        for k, entry in enumerate(every[:MOST])
    ]
    return [panel for panel in drawn if panel.items]


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
