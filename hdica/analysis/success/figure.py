"""Probability of success over two parameters with the boundary of even odds, and its slices."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy import special

from hdica.analysis.success.compute import event, maps
from hdica.show.choose import Point, evenly
from hdica.show.marks import (
    SHARES,
    color_of,
    interval,
    lines_first,
    map_of,
    shared_noise,
    tailed,
)
from hdica.show.panel import Array, Line, Panel, Points
from hdica.show.words import axis, number, place, symbol, titled, words

SLICES = 6
CELLS = 150
"""Numbers are written in the cells of a map that has no more."""
SMOOTH = 101


def success(data: xr.Dataset) -> list[Panel]:
    """A heat map and slices for each combination of the other parameters."""
    out = []
    for tail, other in tailed(maps(data)):
        here = data.sel(other)
        out += [_map(here, other, tail), _slices(here, other, tail)]
    return out


def _map(here: xr.Dataset, other: Point, tail: str) -> Panel:
    share = here["probability"].transpose(here.attrs["y"], here.attrs["x"])
    when = f" at <i>t</i> = {number(here.attrs['time'])}" if "time" in here.attrs else ""
    caption = [f"Share of seeds with {event(here).html}{when}."]
    if bool(here["boundary"].notnull().any()):
        caption.append("Dots: even odds, with 95 % intervals.")
    if np.isfinite(float(here["exponent"])):
        caption.append("Dashed: the power law through them.")
    if int(here["diverged"].sum()):
        caption.append("Diverged runs count as failures.")
    few = share.size <= CELLS
    written = tuple(
        tuple("" if np.isnan(p) else f"{p:.2f}" for p in row) for row in share.values if few
    )
    titles = titled("Probability that " + event(here), other), words("probability")
    text, over = " ".join(caption), _even(here)
    return map_of(share, f"success{tail}", titles, text, over, other, log=True, written=written)


def _even(here: xr.Dataset) -> list[Line | Points]:
    """The boundary with its intervals and the power law through it, to be seen on any colour."""
    known = np.isfinite(here["boundary"].values)
    at_x = here[here.attrs["x"]].values.astype(float)[known]
    at, low, high = (values[known] for values in interval(here, "boundary"))
    if not known.any():
        return []
    out: list[Line | Points] = []
    if np.isfinite(float(here["exponent"])):
        law = float(here["prefactor"]) * at_x ** float(here["exponent"])
        out.append(Line(at_x, law, words("fitted power law"), "#000000", "dash", cased=True))
    # A line for each interval, with a gap after it.
    ends = np.stack([low, high, np.full(at.size, np.nan)], axis=1).ravel()
    label = words("95 % interval")
    out.append(Line(np.repeat(at_x, 3), ends, label, "#000000", cased=True, listed=False))
    return [*out, Points(at_x, at, words("even odds"), "#ffffff")]


def _slices(here: xr.Dataset, other: Point, tail: str) -> Panel:
    x, y = here.attrs["x"], here.attrs["y"]
    at = here[y].values.astype(float)
    fine = np.geomspace(at[0], at[-1], SMOOTH)
    kept = evenly(list(range(here.sizes[x])), SLICES)
    items: list[Line | Points] = []
    for i, k in enumerate(kept):
        cut, color = here.isel({x: k}), color_of(i, len(kept))
        label = place({x: here[x].values[k].item()})
        share, low, high = interval(cut, "probability")
        items.append(Points(at, share, label, color, low, high))
        if np.isfinite(float(cut["boundary"])):
            curve = _curve(np.log(fine / float(cut["boundary"])), cut)
            items.append(Line(fine, curve, label, color, listed=False))
    warning = " Points share their noise and so rise and fall together."
    return Panel(
        f"success_slices{tail}",
        titled(words("Slices"), other),
        axis(y),
        "probability that " + event(here),
        lines_first(items),
        "Share of seeds with 95 % Wilson intervals; lines: logistic curves in log "
        f"{symbol(y).html}, where the shares bracket one half.{shared_noise(here, warning)}",
        log_x=True,
        y_range=SHARES,
    )


def _curve(z: Array, cut: xr.Dataset) -> Array:
    """The fitted probability by log y about even odds, as far as it rises or falls one way."""
    slope, bend = float(cut["slope"]), float(cut["bend"])
    one_way = (slope + 2 * bend * z) * slope > 0
    return np.where(one_way, special.expit(slope * z + bend * z**2), np.nan)
