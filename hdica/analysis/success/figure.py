"""Probability of success over two parameters with the boundary of even odds, and its slices."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import special

from hdica.analysis.show.choose import Point, evenly, points
from hdica.analysis.show.marks import color_of
from hdica.analysis.show.panel import Cells, Heat, Line, Panel, Points, edges
from hdica.analysis.show.words import Text, axis, number, place, simple, symbol, titled, words

Array = NDArray[np.float64]

MAPS = 3
"""Of further swept parameters at most so many combinations are drawn."""
SLICES = 6
CELLS = 150
"""Numbers are written in the cells of a map that has no more."""
SMOOTH = 101


def success(data: xr.Dataset) -> list[Panel]:
    """A heat map and slices for each combination of the other parameters."""
    out = []
    chosen = maps(data)
    for k, other in enumerate(chosen):
        here = data.sel(other)
        tail = "" if len(chosen) == 1 else f"_{k + 1}"
        out += [_map(here, other, tail), _slices(here, other, tail)]
    return out


def maps(data: xr.Dataset) -> list[Point]:
    """What tells maps apart, at the largest n."""
    own = (data.attrs["x"], data.attrs["y"], "n")
    others = [str(d) for d in data["probability"].dims if d not in own]
    top = {"n": int(data["n"].values[-1])} if "n" in data.dims else {}
    return [{**other, **top} for other in evenly(points(data, others), MAPS)]


def event(data: xr.Dataset) -> Text:
    """What counts as success: "tan² ≤ 1/3"."""
    below = "below" in data.attrs
    mark, bound = ("≤", data.attrs["below"]) if below else ("≥", data.attrs["above"])
    sign = Text(f" {mark} ", r" $\leq$ " if below else r" $\geq$ ", f" {mark} ")
    return symbol(str(data.attrs["variable"])) + sign + words(simple(float(bound)))


def _map(here: xr.Dataset, other: Point, tail: str) -> Panel:
    x, y = here.attrs["x"], here.attrs["y"]
    at_x, at_y = (here[d].values.astype(float) for d in (x, y))
    z = here["probability"].transpose(y, x).values
    written = tuple(tuple("" if np.isnan(p) else f"{p:.2f}" for p in row) for row in z)
    few = written if z.size <= CELLS else ()
    cells = Cells(x, y, at_x, at_y, other)
    heat = Heat(at_x, at_y, z, words("probability"), written=few, cells=cells)
    across, up = (edges(at, log=True) for at in (at_x, at_y))
    return Panel(
        f"success{tail}",
        titled(words("Probability that ") + event(here), other),
        axis(x),
        axis(y),
        (heat, *_even(here, at_x)),
        caption=_caption(here),
        log_x=True,
        log_y=True,
        x_range=(float(across[0]), float(across[-1])),
        y_range=(float(up[0]), float(up[-1])),
    )


def _even(here: xr.Dataset, at_x: Array) -> list[Line | Points]:
    """The boundary with its intervals and the power law through it, to be seen on any colour."""
    at, low, high = (here[f"boundary{end}"].values for end in ("", "_low", "_high"))
    known = np.isfinite(at)
    if not known.any():
        return []
    out: list[Line | Points] = []
    if np.isfinite(float(here["exponent"])):
        law = float(here["prefactor"]) * at_x[known] ** float(here["exponent"])
        label = words("fitted power law")
        out.append(Line(at_x[known], law, label, "#000000", "dash", cased=True))
    # A line for each interval, with a gap after it.
    ends = np.stack([low[known], high[known], np.full(int(known.sum()), np.nan)], axis=1).ravel()
    label = words("95 % interval")
    out.append(Line(np.repeat(at_x[known], 3), ends, label, "#000000", cased=True, listed=False))
    out.append(Points(at_x[known], at[known], words("even odds"), "#ffffff"))
    return out


def _caption(here: xr.Dataset) -> str:
    parts = [f"Share of seeds with {event(here).html}{_when(here)}."]
    if bool(here["boundary"].notnull().any()):
        parts.append("Dots: even odds, with 95 % intervals.")
    if np.isfinite(float(here["exponent"])):
        parts.append("Dashed: the power law through them.")
    if int(here["diverged"].sum()):
        parts.append("Diverged runs count as failures.")
    return " ".join(parts)


def _when(here: xr.Dataset) -> str:
    return f" at <i>t</i> = {number(here.attrs['time'])}" if "time" in here.attrs else ""


def _slices(here: xr.Dataset, other: Point, tail: str) -> Panel:
    x, y = here.attrs["x"], here.attrs["y"]
    at = here[y].values.astype(float)
    fine = np.geomspace(at[0], at[-1], SMOOTH)
    kept = evenly(list(range(here.sizes[x])), SLICES)
    items: list[Line | Points] = []
    for i, k in enumerate(kept):
        cut, color = here.isel({x: k}), color_of(i, len(kept))
        label = place({x: here[x].values[k].item()})
        share = [cut[f"probability{end}"].values for end in ("", "_low", "_high")]
        items.append(Points(at, share[0], label, color, share[1], share[2]))
        if np.isfinite(float(cut["boundary"])):
            curve = _curve(np.log(fine / float(cut["boundary"])), cut)
            items.append(Line(fine, curve, label, color, listed=False))
    return Panel(
        f"success_slices{tail}",
        titled(words("Slices"), other),
        axis(y),
        words("probability that ") + event(here),
        tuple(sorted(items, key=lambda item: isinstance(item, Points))),
        caption="Share of seeds with 95 % Wilson intervals; lines: logistic curves in log "
        f"{symbol(y).html}, where the shares bracket one half.{_together(here)}",
        log_x=True,
        y_range=(-0.03, 1.03),
    )


def _curve(z: Array, cut: xr.Dataset) -> Array:
    """The fitted probability by log y about even odds, as far as it rises or falls one way."""
    slope, bend = float(cut["slope"]), float(cut["bend"])
    one_way = (slope + 2 * bend * z) * slope > 0
    return np.where(one_way, special.expit(slope * z + bend * z**2), np.nan)


def _together(here: xr.Dataset) -> str:
    """A warning where the points of a slice are not independent."""
    if here.attrs["noise"] != "shared":
        return ""
    return " Points share their noise and so rise and fall together."
