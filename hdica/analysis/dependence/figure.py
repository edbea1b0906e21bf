"""Means with bars along a swept parameter, and theory through them."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.show.choose import MOST, Point, at_last_n, points, said, shown
from hdica.analysis.show.marks import GREY, color_of
from hdica.analysis.show.panel import Line, Panel, Points
from hdica.analysis.show.words import EMPTY, Text, axis, method_name, place, symbol, words

Array = NDArray[np.float64]
Curve = tuple[str, Point]
"""A method and what is not on the axis."""


def dependence(data: xr.Dataset) -> list[Panel]:
    """For every output its means, and where there is theory their difference to it."""
    here, out = at_last_n(data), []
    for output in (str(name) for name in data["output"].values):
        cut = here.sel(output=output)
        if bool(cut["mean"].notnull().any()):
            out.append(_means(cut, output))
            if bool(cut["difference"].notnull().any()):
                out.append(_differences(cut, output))
    return out


def others(data: xr.Dataset) -> list[str]:
    """Dimensions of the cells beside the swept parameter on the axis."""
    apart = ("simulation", "output", "n", data.attrs["over"])
    return [str(d) for d in data["mean"].dims if d not in apart]


def curves(data: xr.Dataset) -> list[Curve]:
    """What is drawn: every method at some points of the other parameters."""
    methods = [str(name) for name in data["simulation"].values]
    chosen = shown(data, others(data), max(MOST // len(methods), 1))
    found = [(method, point) for method in methods for point in chosen]
    return [one for one in found if bool(at(data, one)["mean"].notnull().any())]


def at(data: xr.Dataset, curve: Curve) -> xr.Dataset:
    """One curve."""
    return data.sel(simulation=curve[0], **curve[1])


def named(curve: Curve, data: xr.Dataset) -> Text:
    """A curve in words: its method where there are several, and where it is."""
    method = method_name(curve[0]) if data.sizes["simulation"] > 1 or not curve[1] else EMPTY
    return method + words(", " if method and curve[1] else "") + place(curve[1])


def _log(cut: xr.Dataset, letter: str) -> bool:
    return cut.attrs["log"] in (letter, "both")


def _means(cut: xr.Dataset, output: str) -> Panel:
    x, drawn = cut.attrs["over"], curves(cut)
    items: list[Line | Points] = []
    known: list[tuple[bytes, bytes]] = []
    for k, curve in enumerate(drawn):
        here = at(cut, curve).dropna(x, subset=["mean"])
        grid, color = here[x].values.astype(float), color_of(k, len(drawn))
        values = [here[name].values for name in ("mean", "low", "high")]
        low, high = (np.where(np.isfinite(end), end, values[0]) for end in values[1:])
        items.append(Points(grid, values[0], named(curve, cut), color, low, high))
        line = at(cut, curve)["predicted"].dropna(x)
        told = line[x].values.tobytes(), line.values.tobytes()
        # Methods with the same theory have one line.
        if line.size > 1 and told not in known:
            known.append(told)
            label = words("theory, ") + named(curve, cut)
            items.append(
                Line(line[x].values.astype(float), line.values, label, color, listed=False)
            )
    if len(known) == 1 and len(drawn) > 1:  # theory of no curve in particular
        items = [replace(one, color="ink") if isinstance(one, Line) else one for one in items]
    items += _levels(cut)
    ordered = sorted(items, key=lambda item: isinstance(item, Points))
    return Panel(
        f"dependence_{output}",
        _beginning(output) + words(" against ") + symbol(x),
        axis(x),
        words("mean of ") + symbol(output),
        tuple(ordered),
        caption=_caption(cut, len(drawn), bool(known)),
        log_x=_log(cut, "x"),
        log_y=_log(cut, "y"),
    )


def _beginning(output: str) -> Text:
    """An output at the beginning of a title: a symbol as it is, a word with a capital letter."""
    name = symbol(output)
    forms = {form: getattr(name, form) for form in ("html", "plain", "tex")}
    if not all(re.match("[a-z]{2}", text) for text in forms.values()):
        return name
    return replace(name, **{form: text[0].upper() + text[1:] for form, text in forms.items()})


def _levels(cut: xr.Dataset) -> list[Line]:
    """Horizontal lines across the panel."""
    x = cut[cut.attrs["over"]].values.astype(float)
    ends = np.array([x.min(), x.max()])
    return [
        Line(ends, np.full(2, value), words(name), GREY, "dot")
        for name, value in zip(cut.attrs["level_names"], cut.attrs["levels"], strict=True)
    ]


def _caption(cut: xr.Dataset, drawn: int, theory: bool) -> str:
    parts = ["Means over seeds with 95 % intervals" + ("; lines: theory." if theory else ".")]
    if len(points(cut, others(cut))) * cut.sizes["simulation"] > drawn:
        parts += said(cut, others(cut), drawn)
    return " ".join(parts)


def _differences(cut: xr.Dataset, output: str) -> Panel:
    x, drawn = cut.attrs["over"], curves(cut)
    grid = cut[x].values.astype(float)
    ends = np.array([grid.min(), grid.max()])
    items: list[Line | Points] = [Line(ends, np.zeros(2), words("theory"), "ink", listed=False)]
    for k, curve in enumerate(drawn):
        here = at(cut, curve).dropna(x, subset=["difference"])
        if here.sizes[x]:
            center = here["difference"].values
            low, high = (here[end].values - here["predicted"].values for end in ("low", "high"))
            low, high = (np.where(np.isfinite(end), end, center) for end in (low, high))
            color, at_x = color_of(k, len(drawn)), here[x].values.astype(float)
            items.append(Points(at_x, center, named(curve, cut), color, low, high))
    return Panel(
        f"dependence_difference_{output}",
        _beginning(output) + words(": measured less predicted"),
        axis(x),
        words("mean of ") + symbol(output) + words(" − theory"),
        tuple(items),
        caption="Difference of the mean over seeds to theory, with 95 % intervals.",
        log_x=_log(cut, "x"),
    )
