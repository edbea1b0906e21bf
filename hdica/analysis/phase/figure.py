"""Phase diagram: overlap and success over two parameters, with the theory on top."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from hdica.analysis.phase.odds import DASHES_OF_LEVELS, SHOWN, curve, lines
from hdica.analysis.show.choose import Point, evenly, points
from hdica.analysis.show.marks import captioned, color_of
from hdica.analysis.show.panel import Cells, Heat, Item, Line, Panel, Points, Vertical
from hdica.analysis.show.words import (
    Text,
    axis,
    critical,
    number,
    place,
    size,
    symbol,
    titled,
    words,
)
from hdica.analysis.terms import starts

MAPS = 3
"""Of further swept parameters at most so many combinations are drawn."""

SIZES = 4
"""... each at several n, of which there are at most so many of all combinations together."""

SLICES = 4


def phase(data: xr.Dataset) -> list[Panel]:
    """Heat maps and slices at each n, for each combination of the other parameters.

    Maps of one quantity follow each other from the largest n down; the first has the plain key.
    """
    x, y = data.attrs["x"], data.attrs["y"]
    if any(data[axis].dtype.kind not in "fiu" for axis in (x, y)):
        return []
    others = [str(d) for d in data["overlap"].dims if d not in (x, y, "n")]
    every = points(data, others)
    chosen = evenly(every, MAPS)
    sizes = _sizes(data, SIZES // len(chosen))
    out: list[Panel] = []
    for k, other in enumerate(chosen):
        tail = "" if len(chosen) == 1 else f"_{k + 1}"
        at = [{**other, **size} for size in sizes]
        tails = [tail, *(f"{tail}_n{size['n']}" for size in sizes[1:])]
        cuts = [(data.sel(one), one, end) for one, end in zip(at, tails, strict=True)]
        for draw in (_overlap, _success, _decaying, _slices):
            out += [panel for cut in cuts for panel in draw(*cut)]
    if len(chosen) < len(every):
        left = f"{len(chosen)} of {len(every)} values of the other parameters, chosen evenly."
        out[0] = replace(out[0], caption=f"{out[0].caption} {left}")
    return out


def _sizes(data: xr.Dataset, most: int) -> list[Point]:
    """The n that are drawn, from the largest down; without n one point that says nothing."""
    if "n" not in data.dims:
        return [{}]
    return [{"n": int(n)} for n in evenly(data["n"].values[::-1].tolist(), max(most, 1))]


def _overlap(here: xr.Dataset, other: Point, tail: str) -> list[Panel]:
    quantity, time = size(str(here.attrs["variable"])), place({"snapshot": here.attrs["time"]})
    label, title = words("mean ") + quantity, titled(words("Overlap at ") + time, other)
    caption = f"Mean of {quantity.html} over seeds at {time.html}."
    return [_map(here, "overlap", label, title, f"phase_overlap{tail}", caption, other)]


def success(data: xr.Dataset) -> str:
    """What counts as success, in words."""
    variable, limit = size(str(data.attrs["variable"])).html, number(data.attrs["success"])
    by_limit = data["by_limit"].values
    trend = f"is above {variable} = {limit} and not falling over the last third of the time"
    basin = "lies in the basin of an informative state of the limit"
    if (by_limit == 1).all():
        return f"a run succeeds if it {basin}"
    if (by_limit == 0).all():
        return f"a run succeeds if it {trend}"
    return f"a run succeeds if it {basin}, or, where that is not known, {trend}"


def _success(here: xr.Dataset, other: Point, tail: str) -> list[Panel]:
    label = words("success probability")
    what = success(here)
    caption = (
        f"{what[0].upper()}{what[1:]} at <i>t</i> = {number(here.attrs['time'])}; shown is the "
        "share of such runs."
    )
    if bool(((here["trials"] > 0) & here["probability"].isnull()).any()):
        caption += " Cells are empty where most runs are still closer to their start than to the "
        caption += "state to which they go."
    title = titled(words("Success probability"), other)
    key = f"phase_success{tail}"
    return [_map(here, "probability", label, title, key, caption, other, "cividis")]


def _decaying(here: xr.Dataset, other: Point, tail: str) -> list[Panel]:
    """Runs that are large and do not succeed, if there are any."""
    if not bool((here["decaying"] > 0).any()):
        return []
    share = (here["decaying"] / here["trials"]).where(here["trials"] > 0)
    variable = size(str(here.attrs["variable"])).html
    caption = (
        f"Share of runs with {variable} &gt; {number(here.attrs['success'])} at <i>t</i> = "
        f"{number(here.attrs['time'])} that do not succeed: they are on their way down."
    )
    drawn = here.assign(decaying=share)
    label, title = words("share still decaying"), titled(words("Still decaying"), other)
    return [
        _map(drawn, "decaying", label, title, f"phase_decaying{tail}", caption, other, "cividis")
    ]


def unstable_symbol(here: xr.Dataset) -> Text:
    """The overlap of the unstable fixed point."""
    return symbol(f"{here.attrs['variable']}_u")


def unstable(here: xr.Dataset) -> str:
    """What the unstable fixed point is: the boundary, where the overlap alone evolves."""
    q = f"unstable fixed point {unstable_symbol(here).html}"
    if here.attrs["divides"]:
        return f"{q}, the boundary in theory"
    return f"{q}, which with a regularizer is no boundary in the start's overlap alone"


def _bounded(here: xr.Dataset) -> bool:
    """Whether the vertical axis is the start, which unstable states may divide."""
    known = "boundary" in here and bool(here["boundary"].notnull().any())
    return known and here.attrs["y"] in starts()


def _legend(here: xr.Dataset, items: Sequence[Item]) -> list[str]:
    """What the marks on a map are."""
    y = str(here.attrs["y"])
    what = "start" if y in starts() else symbol(y).html
    levels = [item.dash for item in lines(here)]
    level = "where the predicted probability of success is"
    return captioned(
        items,
        {
            "solid": f"Solid line: {unstable(here)}.",
            "points": f"Dots: {what} with even odds in the simulation.",
            "upright": f"Upright dashed line: {critical_symbol(here).html}.",
            **{
                dash: f"{'Dotted' if dash == 'dot' else 'Dashed'}: {level} {number(at)}."
                for dash, at in zip(DASHES_OF_LEVELS, SHOWN, strict=True)
                if dash in levels
            },
        },
    )


def _map(
    here: xr.Dataset,
    name: str,
    label: Text,
    title: Text,
    key: str,
    caption: str,
    other: Point,
    scale: str = "viridis",
) -> Panel:
    x, y = here.attrs["x"], here.attrs["y"]
    at_x, at_y = here[x].values.astype(float), here[y].values.astype(float)
    z = here[name].transpose(y, x).values
    cells = Cells(x, y, at_x, at_y, other)
    items: list[Heat | Line | Points | Vertical] = [Heat(at_x, at_y, z, label, scale, cells=cells)]
    items += _theory(here, at_x)
    caption = " ".join([caption, *_legend(here, items)])
    across, up = _edges(at_x), _edges(at_y)
    return Panel(key, title, axis(x), axis(y), tuple(items), caption, x_range=across, y_range=up)


def _edges(at: np.ndarray) -> tuple[float, float]:
    """Outer edges of the cells."""
    if len(at) == 1:
        return float(at[0] - 0.5), float(at[0] + 0.5)
    return float(at[0] - (at[1] - at[0]) / 2), float(at[-1] + (at[-1] - at[-2]) / 2)


def critical_symbol(here: xr.Dataset) -> Text:
    """The critical value of the horizontal axis."""
    return critical(str(here.attrs["x"]))


def critical_values(data: xr.Dataset) -> list[tuple[float, float]]:
    """Critical values with their overlaps; only where they do not depend on a swept parameter."""
    if "critical_value" not in data or data["critical_value"].ndim != 1:
        return []
    pairs = zip(data["critical_value"].values, data["critical_overlap"].values, strict=True)
    return [(float(v), float(q)) for v, q in pairs if np.isfinite(v)]


def _theory(here: xr.Dataset, at_x: np.ndarray) -> list[Line | Points | Vertical]:
    out: list[Line | Points | Vertical] = []
    known = critical_values(here)
    if "boundary" in here and here["boundary"].ndim == 1 and here.attrs["y"] in starts():
        boundary = here["boundary"].values
        keep = np.isfinite(boundary)
        line_x, line_y = at_x[keep], boundary[keep]
        beyond = [c for c in known if len(line_x) and c[0] >= line_x[-1]]
        if beyond and len(line_x) < len(at_x):  # close the branch at its fold
            line_x, line_y = np.append(line_x, beyond[0][0]), np.append(line_y, beyond[0][1])
        if len(line_x):
            label = unstable_symbol(here) + words(" (theory)")
            out.append(Line(line_x, line_y, label, "#000000", bold=True, cased=True))
    for value, _ in known:
        if at_x[0] <= value <= at_x[-1]:
            out.append(Vertical(value, critical_symbol(here) + words(f" = {number(value, 4)}")))
    out += lines(here)
    # Across a gap of cells in which runs have not separated it is nowhere in particular.
    step = np.abs(np.diff(here[here.attrs["y"]].values.astype(float))).max(initial=0.0)
    found = here["threshold"].where(here["threshold_se"] < step).values
    if np.isfinite(found).any():
        out.append(Points(at_x, found, words("even odds"), "#ffffff"))
    return out


def _slices(here: xr.Dataset, other: Point, tail: str) -> list[Panel]:
    x, y = here.attrs["x"], here.attrs["y"]
    at = here[y].values.astype(float)
    items: list[Points | Vertical | Line] = []
    kept = _informative(here, x)
    for i, k in enumerate(kept):
        cut = here.isel({x: k})
        color = color_of(i, len(kept))
        label = place({x: here[x].values[k]})
        p = cut["probability"].values
        low, high = cut["probability_low"].values, cut["probability_high"].values
        items.append(Points(at, p, label, color, low, high, joined=True))
        items += curve(cut, y, color)
        if "boundary" in cut and cut["boundary"].ndim == 0 and y in starts():
            edge = float(cut["boundary"])
            if np.isfinite(edge):
                ends = np.array([edge, edge]), np.array([0.0, 1.0])
                items.append(Line(*ends, label, color, "dash", listed=False))
    panel = Panel(
        f"phase_slices{tail}",
        titled(words("Slices"), other),
        axis(y),
        words("success probability"),
        tuple(items),
        caption=f"Share of seeds that succeed, with 95 % Wilson intervals{_together(here)}."
        + (f" Dashed: {unstable(here)}." if _bounded(here) else "")
        + (" Dotted: the predicted probability." if "odds" in here else ""),
        wide=True,
        y_range=(-0.03, 1.03),
    )
    return [panel]


def _together(here: xr.Dataset) -> str:
    """A warning where the points of a slice are not independent."""
    if here.attrs["noise"] != "shared":
        return ""
    return " of single points, which share their noise and so rise and fall together"


def _informative(here: xr.Dataset, x: str) -> list[int]:
    """A few values of x, evenly among those where the outcome depends on the start."""
    span = here["probability"].max(here.attrs["y"]) - here["probability"].min(here.attrs["y"])
    telling = np.flatnonzero(span.values >= 0.5)
    pool = telling if len(telling) else np.arange(here.sizes[x])
    return evenly(pool.tolist(), SLICES)
