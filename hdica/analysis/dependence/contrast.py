"""Means at one of two values of a parameter that is a word, beside those at the other."""

from __future__ import annotations

import numpy as np
import xarray as xr
from markupsafe import escape
from scipy import stats

from hdica.analysis.dependence.figure import others
from hdica.analysis.show.choose import Point, points
from hdica.analysis.show.sentences import among
from hdica.analysis.show.words import count, measurement, place, symbol, value_of

TWO = 2
LEVEL = 0.01
"""Chance that points that are alike are said to differ, of all points of an output."""


def contrast(cut: xr.Dataset) -> str:
    """How the outputs differ between the two values, in a sentence; empty where nothing does so.

    One parameter beside the one on the axis has two values that are words. Errors of differences
    take the means as independent, which is on the safe side where both are of the same seeds.
    """
    sides = [d for d in others(cut) if cut.sizes[d] == TWO and cut[d].dtype.kind not in "fiub"]
    if not sides or cut.sizes["simulation"] > 1:
        return ""
    outputs = [str(name) for name in cut["output"].values]
    told = [text for name in outputs if (text := _one(cut, sides[-1], name, name == outputs[0]))]
    return f"{'; '.join(told)}." if told else ""


def _one(cut: xr.Dataset, side: str, output: str, first: bool) -> str:
    """One output: at how many points it is clearly larger at one value, and by how much."""
    here = cut.sel(output=output).isel(simulation=0)
    old, new = (here.isel({side: k}, drop=True) for k in (0, 1))
    size = new["mean"] - old["mean"]
    error: xr.DataArray = (new["se"] ** 2 + old["se"] ** 2) ** 0.5
    cells = points(size.to_dataset(name="size"), [str(d) for d in size.dims])
    known = [p for p in cells if np.isfinite(float(size.sel(p))) and float(error.sel(p)) > 0]
    if not known:
        return ""
    freedom = max(float(here["seeds"].where(here["seeds"] > 0).min()) - 1, 1.0)
    least = float(stats.t.isf(LEVEL / (2 * len(known)), freedom))
    up, down = (
        [p for p in known if sign * float(size.sel(p)) > least * float(error.sel(p))]
        for sign in (1, -1)
    )
    clear, word = (up, "larger") if len(up) >= len(down) else (down, "smaller")
    names = [str(escape(value_of(value))) for value in here[side].values]
    lead = f"{'Mean' if first else 'mean'} {symbol(output).html} is"
    if not clear:
        return f"{lead} alike within errors{among()}" + (
            f" for {names[1]} and {names[0]}" if first else ""
        )
    if not first:
        return f"{lead} {word} at {_share(clear, known)}{among()}"
    versus = f"for {names[1]} than for {names[0]}"
    return (
        f"{lead} {word} {versus} at {_share(clear, known)} points{among()}, by "
        f"{_span(size, error, clear)}"
    )


def _share(some: list[Point], every: list[Point]) -> str:
    if len(some) == len(every):
        return f"all {count(len(every))}"
    return f"{count(len(some))} of {count(len(every))}"


def _span(size: xr.DataArray, error: xr.DataArray, cells: list[Point]) -> str:
    """The least and the largest of the differences, with errors and places."""
    ordered = sorted(cells, key=lambda p: abs(float(size.sel(p))))
    ends = [ordered[0], ordered[-1]] if len(ordered) > 1 else ordered
    return " to ".join(
        f"{measurement(abs(float(size.sel(p))), float(error.sel(p)))} (at {place(p).html})"
        for p in ends
    )
