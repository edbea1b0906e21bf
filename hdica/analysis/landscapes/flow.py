"""The drift as a curve with its zeros, and up to where the limit learns."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.landscapes import Flow
from hdica.analysis.reading import (
    described,
    done,
    finished,
    gives,
    group,
    overlap_in,
    steady_states,
)
from hdica.show.choose import evenly, points, selection_note
from hdica.show.finding import Finding
from hdica.show.marks import color_of, level
from hdica.show.panel import Item, Line, Panel, Points
from hdica.show.wording import among
from hdica.show.words import axis, place, symbol, words
from hdica.systems.kinds import ZERO

LONG_NAMES = {
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
    curves = group(tree, settings.method)
    out = {"drift": finished(curves, "drift")}
    states = settings.fixed_points or steady_states(tree)
    if states is not None and states in tree.children:
        fixed = group(tree, states)
        at = done(fixed, overlap_in(tree, fixed))
        out |= {"fixed_q": at**2, "fixed_Q": at, "stable": fixed["stable"].where(at.notnull())}
    return described(xr.Dataset(out).reset_coords(drop=True), LONG_NAMES)


def suits(tree: xr.DataTree) -> dict[str, Any] | None:
    """The drift of any method that has one, with fixed points beside it."""
    known = gives(tree)
    drift = next((name for name, has in known.items() if has.outputs.get("drift") == ("q",)), "")
    states = next((name for name, has in known.items() if "stable" in has.outputs), "")
    return {"method": drift, "fixed_points": states} if drift and states else None


def findings(data: xr.Dataset) -> list[Finding]:
    """Up to which parameter the limit has a stable informative state, and its q at each point."""
    if "fixed_q" not in data:
        return []
    dims = [str(d) for d in data["fixed_q"].dims if d != "fixed_point"]
    # A point that is pending has no fixed point yet; one that is done has at least q = 0.
    done = [p for p in points(data, dims) if bool(data["fixed_q"].sel(p).notnull().any())]
    q = [float(data["fixed_q"].where(data["stable"] > 0.5).sel(p).max()) for p in done]
    learned = [(p, one) for p, one in zip(done, q, strict=True) if one > ZERO]
    name = symbol("q") + words(" of the stable informative state")
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
    on_grid = words(f" on the grid{among()} ")
    return [
        Finding(
            words(f"the {extreme} ") + axis(dim) + on_grid + f"{having} {state}",
            {},
            float(value),
            digits=6,
        )
        for extreme, value, having in ends
    ]


def panels(data: xr.Dataset) -> list[Panel]:
    """One panel with g(q) for a few grid points; its zeros filled if stable, open if not."""
    dims = [str(d) for d in data["drift"].dims if d != "q"]
    chosen = evenly(points(data, dims))
    q = data["q"].values.astype(float)
    items: list[Item] = [level(q, 0.0, words("0"), "ink", listed=False)]
    marks: list[Item] = []
    for i, point in enumerate(chosen):
        here = data.sel(point)
        color = color_of(i, len(chosen))
        label = place(point) or symbol("g")
        items.append(Line(q, here["drift"].values, label, color, bold=True))
        if "fixed_q" in here:
            at, stable = here["fixed_q"].values, here["stable"].values
            keep = np.isfinite(at) & (at <= 1)
            look = {"filled": stable[keep] > 0.5, "listed": False}
            marks.append(Points(at[keep], np.zeros(keep.sum()), label, color, **look))
    return [
        Panel(
            "flow",
            words("Flow of the overlap"),
            symbol("q"),
            symbol("g"),
            (*items, *marks),
            caption="Where <i>g</i> &gt; 0 the overlap grows. Circles: fixed points, filled if "
            + " ".join(["stable, open if unstable.", *selection_note(data, dims, len(chosen))]),
            wide=True,
        )
    ]
