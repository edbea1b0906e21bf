"""Drift of the limit with its zeros, effective potential, and potential that traps an overlap."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis import reading
from hdica.analysis.landscapes import Flow, Potential, Trapping
from hdica.analysis.laws.densities import FEATURE, GROUPS, PANELS, chosen, group_label, xi_of
from hdica.analysis.settings import Suiting
from hdica.show.choose import (
    MOST,
    Point,
    cells_of,
    dims_of,
    evenly,
    has_values,
    numbers,
    points,
    positions,
    selection_note,
    shown,
    spread,
    without,
)
from hdica.show.finding import Finding
from hdica.show.marks import colored, level
from hdica.show.panel import Array, Item, Line, Panel, Points
from hdica.show.terms import matrix_over
from hdica.show.wording import among, listed
from hdica.show.words import Text, axis, number, place, symbol, titled, words
from hdica.systems.method import ZERO

OF_FLOW = {
    "drift": "g(q) = (1/tau) dq/dt",
    "fixed_q": "q = Q^2 of the fixed point",
    "fixed_Q": "Q of the fixed point",
    "stable": "1 if stable, 0 if unstable",
}


def flow(tree: xr.DataTree, settings: Flow) -> xr.Dataset:
    """Flow curves g(q) = (1/tau) dq/dt against q = Q^2, and the fixed points on them.

    ``drift`` over the swept parameters and ``q``; ``fixed_q``, ``fixed_Q`` and ``stable`` over the
    swept parameters and ``fixed_point``, NaN where there are fewer.
    """
    curves = reading.group(tree, settings.method)
    out = {"drift": reading.finished(curves, "drift")}
    states = settings.fixed_points or reading.steady_states(tree)
    if states is not None and states in tree.children:
        fixed = reading.group(tree, states)
        at = reading.done(fixed, reading.overlap_in(tree, fixed))
        out |= {"fixed_q": at**2, "fixed_Q": at, "stable": fixed["stable"].where(at.notnull())}
    return reading.described(xr.Dataset(out), OF_FLOW)


def flow_suits(tree: xr.DataTree) -> Suiting:
    """The drift of any method that has one, with fixed points beside it."""
    drift = reading.keeping(tree, "drift", "q")[1]
    states = [name for name, has in reading.gives(tree).items() if "stable" in has.outputs]
    return {"method": drift[0], "fixed_points": states[0]} if drift and states else None


def flow_findings(data: xr.Dataset) -> list[Finding]:
    """Up to which parameter the limit has a stable informative state, and its q at each point."""
    if "fixed_q" not in data:
        return []
    dims = dims_of(data["fixed_q"], "fixed_point")
    # A point that is pending has no fixed point yet; one that is done has at least q = 0.
    done = [p for p in points(data, dims) if has_values(data["fixed_q"].sel(p))]
    q = [float(data["fixed_q"].where(data["stable"] > 0.5).sel(p).max()) for p in done]
    learned = [(p, one) for p, one in zip(done, q, strict=True) if one > ZERO]
    name = symbol("q") + " of the stable informative state"
    states = [Finding(name, p, one) for p, one in learned]
    if len(learned) == len(done):
        return states
    what = f"the number of grid points with a stable informative state, out of {len(done)},"
    first = [Finding(words(what), {}, len(learned))]
    if len(done) == data["fixed_q"].isel(fixed_point=0).size and len(dims) == 1:
        first = _edge(dims[0], data[dims[0]].values, np.array(q) > ZERO) or first
    return [*first, *states]


def _edge(dim: str, at: NDArray[Any], learned: NDArray[np.bool_]) -> list[Finding]:
    """The last value of a parameter with such a state, if no value beyond it has one."""
    if at.dtype.kind not in "fiu" or not learned.any():
        return []
    have, lack = at[learned].astype(float), at[~learned].astype(float)
    if have.max() < lack.min():
        ends = ("largest", have.max(), "with"), ("smallest", lack.min(), "without")
    elif have.min() > lack.max():
        ends = ("smallest", have.min(), "with"), ("largest", lack.max(), "without")
    else:
        return []
    state = "a stable informative state"
    name = axis(dim) + f" on the grid{among()} "
    return [
        Finding(f"the {extreme} " + name + f"{having} {state}", {}, float(value), digits=6)
        for extreme, value, having in ends
    ]


def flow_panels(data: xr.Dataset) -> list[Panel]:
    """One panel with g(q) for a few grid points; its zeros filled if stable, open if not."""
    dims = dims_of(data["drift"], "q")
    chosen = evenly(points(data, dims))
    q = positions(data, "q")
    items: list[Item] = [level(q, 0.0, words("0"), "ink", listed=False)]
    marks: list[Item] = []
    for color, point in colored(chosen):
        here = data.sel(point)
        label = place(point) or symbol("g")
        items.append(Line(q, here["drift"].values, label, color, bold=True))
        if "fixed_q" in here:
            at, stable = here["fixed_q"].values, here["stable"].values
            keep = np.isfinite(at) & (at <= 1)
            look = {"filled": stable[keep] > 0.5, "listed": False}
            marks.append(Points(at[keep], np.zeros(keep.sum()), label, color, **look))
    text = "Where <i>g</i> &gt; 0 the overlap grows. Circles: fixed points, filled if "
    text += " ".join(["stable, open if unstable.", *selection_note(data, dims, len(chosen))])
    labels = words("Flow of the overlap"), symbol("q"), symbol("g")
    return [Panel("flow", *labels, (*items, *marks), text, wide=True)]


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

    ``potential`` over the swept parameters, ``snapshot``, ``feature`` and ``x``, 0 at the point
    nearest to x = 0; ``minimum``, where it is least; ``convex`` and ``curvature`` over ``time``, as
    far as the method has them; ``xi``, the value of xi of a group.
    """
    data = reading.group(tree, settings.limit)
    values = reading.finished(data, "potential")
    zero = int(np.abs(values["x"].values).argmin())
    out = {"potential": values - values.isel(x=zero, drop=True), "xi": xi_of(data)}
    across, core = values["x"].astype(float), [["x"]] * 2
    out["minimum"] = xr.apply_ufunc(_least, values, across, input_core_dims=core, vectorize=True)
    out |= {k: reading.finished(data, k) for k in ("convex", "curvature") if k in data}
    result = xr.Dataset(out, attrs={"limit_method": settings.limit})
    return reading.described(result, OF_POTENTIAL)


def _least(y: Array, x: Array) -> float:
    """Vertex of the parabola through the least point and its neighbours; NaN at an end.

    With an l1 penalty a minimum away from the kink is exact, and one at the kink within half a
    step, or exact where both sides are alike.
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
    here = [(cell, data.sel(cell)) for cell in cells_of(data["minimum"], "snapshot", "feature")]
    minima = [one for cell, some in here for one in _minima(some, cell)]
    return minima + [one for cell, some in here for one in _convex(some, cell)]


def _minima(here: xr.Dataset, cell: Point) -> list[Finding]:
    """Minima of a few groups at the last snapshot at which any is inside the range."""
    known = np.flatnonzero(here["minimum"].notnull().any("feature").values)
    name = "the minimiser " + symbol("x") + " of the effective potential"
    out = []
    for k in spread(here.sizes["feature"], GROUPS) if known.size else []:
        one = here.isel(snapshot=known[-1], feature=k)
        at = {**cell, "t": float(one["snapshot"]), "feature": float(one["xi"].mean())}
        out.append(Finding(name, at, float(one["minimum"])))
    return out


def _convex(here: xr.Dataset, cell: Point) -> list[Finding]:
    """The share of output times at which the potential is convex, and the last at which not."""
    if "convex" not in here or not has_values(here["convex"]):
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
        if has_values(here["potential"]):
            out.append(panel_of(here, at, features, len(out) + 1))
    return out


def panel_of(here: xr.Dataset, at: Point, features: list[int], number_: int) -> Panel:
    """One time, a curve a group with a marker at its minimum."""
    x = positions(here, "x")
    lines, marks = list[Item](), list[Item]()
    for color, k in colored(features):
        one = here.isel(feature=k)
        y, label = one["potential"].values, group_label(one["xi"])
        lines.append(Line(x, y, label, color, bold=True))
        least = int(y.argmin())
        if np.isfinite(y).all() and 0 < least < y.size - 1:
            marks.append(Points(x[[least]], y[[least]], label, color, listed=False))
    text, labels = f"Dots: minima inside the range drawn. {_shape(here, at)}", (symbol("x"), LABEL)
    return Panel(f"potential_{number_}", place(at), *labels, (*lines, *marks), text)


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
    data = reading.group(tree, settings.limit)
    kept = {k: reading.finished(data, k) for k in ("U", "barrier", "summit")}
    out = xr.Dataset(kept, attrs={"limit_method": settings.limit})
    return reading.described(out, OF_TRAP)


def trapping_findings(data: xr.Dataset) -> list[Finding]:
    """Height and place of the barrier of every overlap at every grid point that has one."""
    alone = [d for d in dims_of(data["barrier"]) if data.sizes[d] == 1]
    barrier = words("the barrier of the trapping potential in units of the variance D of its noise")
    summit = words("the distance r of the top of the barrier from 0")
    return [
        Finding(name, without(p, *alone), float(data[variable].sel(p)))
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
    return dims_of(data["U"], *pair_of(data), "r")


def _panel(here: xr.Dataset, entry: Point, number_: int) -> Panel:
    cells = shown(here, grid_of(here))
    lines, marks = list[Item](), list[Item]()
    heights, top = list[str](), 0.0
    for color, cell in colored(cells):
        one = here.sel(cell)
        u = one["U"].values
        if not np.isfinite(u).any():
            continue
        label = place(cell) or symbol("U")
        lines.append(Line(positions(one, "r"), u, label, color, bold=True))
        summit, barrier = numbers(one, {}, "summit", "barrier")
        tops = np.array([-summit, summit])
        tops = tops[(tops >= float(one["r"].min())) & (tops <= float(one["r"].max()))]
        if tops.size:
            marks.append(Points(tops, np.full(tops.size, barrier), label, color, listed=False))
        height = "none: it confines"
        if np.isfinite(barrier):
            height, top = number(barrier), max(top, barrier)
        heights.append(height + (f" at {place(cell).html}" if cell else ""))
    text = (
        "<i>D</i> is the variance of the noise of <i>r</i> in a unit of time: where the barrier is "
        f"large against 1, escapes are rare. Dots: summits. Barrier: {'; '.join(heights)}."
    )
    labels = titled(words("Trapping potential"), entry), symbol("r"), symbol("U")
    # Beyond the barriers the potential falls without bound.
    ends = (-DEEP * top, DEEP * top) if top > 0 else None
    return Panel(f"trapping_{number_}", *labels, (*lines, *marks), text, y_range=ends)
