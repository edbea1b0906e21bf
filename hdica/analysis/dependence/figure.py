"""Means with bars along a swept parameter, and theory through them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from hdica.analysis.dependence.compute import others
from hdica.show.choose import MOST, at_last_n, points, selection_note, shown
from hdica.show.marks import GREY, bars, color_of, level, lines_first
from hdica.show.panel import Line, Panel, Points
from hdica.show.words import EMPTY, Text, axis, capital, joined, method_name, place, symbol, words

Curve = tuple[Text, xr.Dataset]
"""What is drawn in one colour, with its name: a method, at a point of what is not on the axis."""


def dependence(data: xr.Dataset) -> list[Panel]:
    """For every output its means, and where there is theory their difference to it."""
    here, out = at_last_n(data), []
    for output in map(str, data["output"].values):
        cut = here.sel(output=output)
        if bool(cut["mean"].notnull().any()):
            drawn = _curves(cut)
            out.append(_means(cut, output, drawn))
            if bool(cut["difference"].notnull().any()):
                out.append(_differences(cut, output, drawn))
    return out


def _curves(cut: xr.Dataset) -> list[Curve]:
    """Every method at some points of the other parameters, with its name if there are several."""
    methods = [str(name) for name in cut["simulation"].values]
    chosen = shown(cut, others(cut), max(MOST // len(methods), 1))
    out = []
    for method, point in ((method, point) for method in methods for point in chosen):
        name = method_name(method) if len(methods) > 1 or not point else EMPTY
        here = cut.sel(simulation=method, **point)
        if bool(here["mean"].notnull().any()):
            out.append((joined(name, place(point)), here))
    return out


def _means(cut: xr.Dataset, output: str, drawn: Sequence[Curve]) -> Panel:
    x = cut.attrs["over"]
    at, items = cut[x].values.astype(float), list[Line | Points]()
    lines: dict[tuple[bytes, bytes], Line] = {}
    for k, (label, here) in enumerate(drawn):
        color = color_of(k, len(drawn))
        items += bars(at, [here[name].values for name in ("mean", "low", "high")], label, color)
        line = here["predicted"].dropna(x)
        along = line[x].values.astype(float)
        if line.size > 1:  # methods with the same theory have one line
            theory = Line(along, line.values, "theory, " + label, color, listed=False)
            lines.setdefault((along.tobytes(), line.values.tobytes()), theory)
    # Theory of no curve in particular is in ink.
    shared = len(lines) == 1 and len(drawn) > 1
    items += [replace(line, color="ink") if shared else line for line in lines.values()]
    # A file returns a list of one as its only entry.
    names, values = (np.atleast_1d(cut.attrs[key]) for key in ("level_names", "levels"))
    for name, value in zip(names, values, strict=True):
        items.append(level(at, value, words(str(name)), GREY, dash="dot"))
    caption = ["Means over seeds with 95 % intervals" + ("; lines: theory." if lines else ".")]
    if len(points(cut, others(cut))) * cut.sizes["simulation"] > len(drawn):
        caption += selection_note(cut, others(cut), len(drawn))
    return Panel(
        f"dependence_{output}",
        _beginning(output) + " against " + symbol(x),
        axis(x),
        "mean of " + symbol(output),
        lines_first(items),
        " ".join(caption),
        cut.attrs["log"] in ("x", "both"),
        cut.attrs["log"] in ("y", "both"),
    )


def _beginning(output: str) -> Text:
    """An output at the beginning of a title: a symbol as it is, a word with a capital letter."""
    name = symbol(output)
    return words(capital(name.plain)) if name == words(name.plain) and len(name.plain) > 1 else name


def _differences(cut: xr.Dataset, output: str, drawn: Sequence[Curve]) -> Panel:
    x = cut.attrs["over"]
    at = cut[x].values.astype(float)
    items: list[Line | Points] = [level(at, 0.0, words("theory"), "ink", listed=False)]
    for k, (label, here) in enumerate(drawn):
        ends = [(here[end] - here["predicted"]).values for end in ("low", "high")]
        items += bars(at, [here["difference"].values, *ends], label, color_of(k, len(drawn)))
    return Panel(
        f"dependence_difference_{output}",
        _beginning(output) + ": measured less predicted",
        axis(x),
        "mean of " + symbol(output) + " − theory",
        tuple(items),
        "Difference of the mean over seeds to theory, with 95 % intervals.",
        cut.attrs["log"] in ("x", "both"),
    )
