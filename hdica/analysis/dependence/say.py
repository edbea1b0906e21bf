"""What means beside theory say."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.dependence.figure import at, curves, named, others
from hdica.analysis.show.choose import at_last_n, points
from hdica.analysis.show.sentences import among
from hdica.analysis.show.words import (
    count,
    measurement,
    number,
    place,
    plural,
    resolved,
    symbol,
)

FEW = 2
"""Of so many curves each is told by itself, of more what they span."""


def dependence(data: xr.Dataset) -> list[str]:
    """For every output its ends and its extremes along the axis, and how far theory is."""
    here, out = at_last_n(data), []
    for output in (str(name) for name in data["output"].values):
        cut = here.sel(output=output)
        out += [_courses(cut, output)] if len(curves(cut)) > FEW else _each(cut, output)
        out += [text for text in (_theory(cut, output),) if text]
    lost = int(here["diverged"].sum())
    if lost:
        out.append(f"{plural(lost, 'run')} diverged or failed and {_is(lost)} missing.")
    return out


def _is(many: int) -> str:
    return "is" if many == 1 else "are"


def _each(cut: xr.Dataset, output: str) -> list[str]:
    """A sentence a curve."""
    return [_course(cut, output, k) for k in range(len(curves(cut)))]


def _courses(cut: xr.Dataset, output: str) -> str:
    """What the means of all curves span at the ends of the axis."""
    x, told = str(cut.attrs["over"]), []
    known = cut.dropna(x, how="all", subset=["mean"])
    for i in sorted({0, known.sizes[x] - 1}):
        here = known.isel({x: i})
        low, high = here["mean"].min(), here["mean"].max()
        error = float(here["se"].min())
        ends = [resolved(float(end), error) for end in (low, high)]
        span = ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
        told.append(f"{span} at {symbol(x).html} = {number(float(here[x]), 6)}")
    return f"Mean {symbol(output).html} is {' and '.join(told)}."


def _course(cut: xr.Dataset, output: str, k: int) -> str:
    """Mean at the ends of the axis."""
    curve, x = curves(cut)[k], str(cut.attrs["over"])
    here = at(cut, curve).dropna(x, subset=["mean"])
    lead = f"{named(curve, cut).html}: " if len(curves(cut)) > 1 else ""
    told = [
        f"{measurement(float(one['mean']), float(one['se']))} at {symbol(x).html} = "
        f"{number(float(one[x]), 6)}"
        for one in (here.isel({x: i}) for i in sorted({0, here.sizes[x] - 1}))
    ]
    return f"{lead}mean {symbol(output).html} is {' and '.join(told)}."


def _theory(cut: xr.Dataset, output: str) -> str:
    """In how many cells theory lies in the interval, and the largest difference."""
    known = cut["difference"].notnull() & cut["se"].notnull()
    total = int(known.sum())
    if not total:
        return ""
    inside = (cut["low"] <= cut["predicted"]) & (cut["predicted"] <= cut["high"])
    dims = ["simulation", *others(cut), str(cut.attrs["over"])]
    size = abs(cut["difference"].where(known))
    cells = [p for p in points(cut, dims) if np.isfinite(float(size.sel(p)))]
    worst = cut.sel(max(cells, key=lambda p: float(size.sel(p))))
    hit, difference = int((inside & known).sum()), float(worst["difference"])
    intervals = "interval" if total == 1 else "intervals"
    at = {str(d): worst[d].item() for d in (*others(cut), str(cut.attrs["over"]))}
    return (
        f"Theory of {symbol(output).html} lies in {count(hit)} of {count(total)} 95 % "
        f"{intervals}; the largest difference{among()} is "
        f"{measurement(difference, float(worst['se']))}, at {place(at).html}."
    )
