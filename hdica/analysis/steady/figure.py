"""Bifurcation diagram: steady states over a parameter, and where simulations end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import xarray as xr

from hdica.analysis.steady.branches import Branches, closed, tracks
from hdica.analysis.steady.compute import BRANCH, CONDENSED, TRANSITIONS, extra_dims
from hdica.show.choose import Point, points, positions, selected, selection_note, shown
from hdica.show.marks import ERRORS, GREY, NOWHERE, SHARES, SYMBOLS, bars, color_of, colored
from hdica.show.panel import Item, Line, Panel, Points, Vertical
from hdica.show.words import (
    Text,
    axis,
    joined,
    leading,
    method_name,
    number,
    place,
    size,
    symbol,
    words,
)

LETTER = 0.021
"""Width of a letter of a label as a share of the printed axis."""


def steady(data: xr.Dataset, as_lines: bool = False) -> list[Panel]:
    """One panel: theory as lines, simulations as markers.

    Where there are steady states at single values of x alone they are markers too, with lines at
    the transitions; or, if ``as_lines``, lines that end in the transitions.
    """
    cells = shown(data, extra_dims(data))
    at = _x_range(data)
    items = _theory(data, cells, at, as_lines)
    items += [] if as_lines else _transitions(data, cells, at)
    for color, cell in colored(cells):
        items += _dots(data, cell, color if len(cells) > 1 else "")
    title, x, y = words("Steady states"), axis(data.attrs["x"]), size(data.attrs["variable"])
    drawn, text = tuple(once(items)), _caption(data, cells)
    panel = Panel("steady", title, x, y, drawn, text, x_range=at, y_range=SHARES, wide=True)
    return [panel] if items else []


def _x_range(data: xr.Dataset) -> tuple[float, float]:
    """The swept values with a margin; without them, somewhat beyond the transitions."""
    if data.attrs["x"] in data.dims:
        values = positions(data, data.attrs["x"])
    else:
        known = data.get("transition_value", data.get("branch_value", xr.DataArray([0.0, 1.0])))
        values = known.values[np.isfinite(known.values)]
        if "transition_value" in data:
            values = np.concatenate([values * 0.5, values * 1.5])
    margin = 0.03 * (values.max() - values.min()) or 0.5
    return float(values.min() - margin), float(values.max() + margin)


def style_of(stable: bool, kind: int, color: str) -> tuple[Text, str, str]:
    """Name, colour and dash of a piece of a branch."""
    name = "stable" if stable else "unstable"
    if kind == CONDENSED:
        return words(f"condensed, {name}"), GREY, "solid" if stable else "dot"
    return words(name), color, "solid" if stable else "dash"


def _own(values: xr.DataArray, cells: list[Point]) -> Iterator[tuple[int, Point]]:
    """Number and coordinates of every cell on which a variable depends, once."""
    own = [{k: v for k, v in c.items() if k in values.dims} for c in cells]
    return ((i, cell) for i, cell in enumerate(own) if cell not in own[:i])


def _theory(
    data: xr.Dataset, cells: list[Point], at: tuple[float, float], as_lines: bool
) -> list[Item]:
    """Branches, or fixed points without any, once for every cell on which they depend."""
    out: list[Item] = []
    curves = [data[k] for k in BRANCH if k in data]
    drawn = data.get("branch_Q", data.get("fixed_Q"))
    cells = _with_series(data, cells)
    for i, cell in _own(drawn, cells) if drawn is not None else ():
        color, lead = color_of(i, len(cells)) if cell else "ink", leading(cell)
        columns = [selected(curve, cell) for curve in curves]
        if columns and all(column.ndim == 1 for column in columns):
            out += lines_of(Branches(*(c.values for c in columns)), color, lead, at)
        elif "fixed_Q" in data and data.attrs["x"] in data["fixed_Q"].dims:
            out += _tracked(data, cell, color) if as_lines else [_fixed(data, cell, color, lead)]
    return out


def _with_series(data: xr.Dataset, cells: list[Point]) -> list[Point]:
    """The cells, each for every value of the series where branches depend on it."""
    series = data.attrs["series"]
    if "branch_Q" not in data or series not in data["branch_Q"].dims:
        return cells
    return [{**cell, **one} for cell in cells for one in points(data, [series])]


def lines_of(branches: Branches, color: str, lead: Text, at: tuple[float, float]) -> list[Item]:
    """Branches as lines, piece by piece."""
    out: list[Item] = []
    for line, stable, kind in branches.pieces():
        x, y = branches.value[line], branches.q[line]
        if x.max() >= at[0] and x.min() <= at[1]:
            name, shade, dash = style_of(stable, kind, color)
            out.append(Line(x, y, lead + name, shade, dash, bold=stable))
    return out


def _tracked(data: xr.Dataset, cell: Point, color: str) -> list[Item]:
    """Fixed points joined from value to value, up to the transitions in which they end."""
    at, q = data.attrs["x"], abs(selected(data["fixed_Q"], cell))
    kind = data["fixed_kind"] if "fixed_kind" in data else xr.zeros_like(q)
    columns = [q, selected(data["fixed_stable"], cell), selected(kind, cell)]
    flat = [one.transpose(at, ...).values.reshape(data.sizes[at], -1) for one in columns]
    ends, names = [np.empty(0), np.empty(0)], ("transition_value", "transition_Q")
    if set(names) <= set(data):
        ends = [selected(data[k], cell).values.ravel().astype(float) for k in names]
    every = closed(tracks(positions(data, at), *flat), ends[0], abs(ends[1]))
    out: list[Item] = []
    for one in sorted(every, key=lambda one: not one.stable):
        name, shade, dash = style_of(one.stable, one.kind, color)
        x, y = np.array(one.x), np.array(one.q)
        if len(x) > 1:
            out.append(Line(x, y, leading(cell) + name, shade, dash, bold=one.stable))
        else:
            shade = "#444444" if shade == "ink" else shade
            filled = np.array([one.stable])
            out.append(Points(x, y, leading(cell) + name, shade, filled=filled))
    return out


def _fixed(data: xr.Dataset, cell: Point, color: str, lead: Text) -> Points:
    """Fixed points at every swept value as markers; the states of all series in one column."""
    at = data.attrs["x"]
    columns = xr.broadcast(*(selected(data[k], cell) for k in ("fixed_Q", "fixed_stable")))
    q, stable = (c.transpose(at, ...).values.reshape(data.sizes[at], -1) for c in columns)
    x = np.repeat(positions(data, at), q.shape[1])
    keep = np.isfinite(q.ravel())
    shade = "#444444" if color == "ink" else color
    filled = stable.ravel()[keep] > 0.5
    label = lead + "fixed points"
    return Points(x[keep], np.abs(q.ravel()[keep]), label, shade, filled=filled)


def _transitions(data: xr.Dataset, cells: list[Point], at: tuple[float, float]) -> list[Vertical]:
    """Labelled lines, in the colour of their cell; labels that would meet go to other rows."""
    if "transition_value" not in data:
        return []
    labels: list[tuple[float, str, str]] = []
    for i, cell in _own(data["transition_value"], cells):
        value, kind = (
            selected(data[f"transition_{k}"], cell).values.ravel() for k in ("value", "kind")
        )
        color = color_of(i, len(cells)) if cell else GREY
        labels += [
            (float(v), f"{TRANSITIONS[int(k)]} {number(v, 4)}", color)
            for v, k in zip(value, kind, strict=True)
            if at[0] <= v <= at[1]
        ]
    ends: list[float] = []
    out = []
    for x, text, color in sorted(labels):
        # A label has its middle at the line, but near an end of the axis it grows inwards.
        share, width = (x - at[0]) / (at[1] - at[0]), LETTER * len(text)
        anchor = "left" if share < width / 2 else "right" if share > 1 - width / 2 else "center"
        left = share - {"left": 0.0, "center": width / 2, "right": width}[anchor]
        row = next((r for r, end in enumerate(ends) if end < left), len(ends))
        ends[row : row + 1] = [left + width]
        out.append(Vertical(x, words(text), color, anchor, row))
    return out


def _dots(data: xr.Dataset, cell: Point, color: str) -> list[Item]:
    """Ends of the simulations at their largest n, and of limits that were followed in time."""
    x = data.attrs["x"]
    at = positions(data, x) if x in data.dims else NOWHERE
    starts = points(data, [d for d in (data.attrs["series"],) if d in data.dims])
    out: list[Item] = []
    methods = data["simulation"].values.tolist() if "overlap" in data else []
    every = list(product(methods, starts))
    for j, (method, start) in enumerate(every):
        name = method if len(methods) > 1 or not (start or cell) else ""
        label = joined(words(name), place(start), place(cell))
        point = {"simulation": method, **start, **cell}
        here = [selected(data[k], point).transpose(x, "n") for k in ("overlap", "overlap_se")]
        done = np.flatnonzero((selected(data["count"], point) > 0).any(x))
        if len(done):
            y, se = (one.values[:, done[-1]] for one in here)
            half, shade = ERRORS * np.nan_to_num(se), color or color_of(j, len(every))
            mark = SYMBOLS[j % len(SYMBOLS)]
            out += bars(at, (y, y - half, y + half), label, shade, symbol=mark)
    hollow = np.zeros(len(at), bool)
    for method, start in product(data["limit"].values if "limit_end" in data else (), starts):
        label = joined(method_name(method) + ", last time", place(start), place(cell))
        values = selected(data["limit_end"], {**start, **cell, "limit": method}).values
        out.append(Points(at, values, label, color or GREY, symbol="diamond", filled=hollow))
    return out


def once(items: Sequence[Item]) -> list[Item]:
    """Every name once in the legend."""
    seen: set[str] = set()
    out: list[Item] = []
    for item in items:
        if isinstance(item, Line | Points):
            again = item.label.plain in seen
            seen.add(item.label.plain)
            item = replace(item, listed=False) if again else item
        out.append(item)
    return out


def _caption(data: xr.Dataset, cells: list[Point]) -> str:
    parts = []
    if "branch_Q" in data:
        parts.append("Solid: stable steady states; dashed: unstable.")
        if bool((data["branch_kind"] == CONDENSED).any()):
            parts.append("Condensed states: solid if stable, dotted if not.")
        every = _with_series(data, cells)
        rest = {str(d) for k in BRANCH for c in every for d in selected(data[k], c).dims}
        if rest := rest - {"branch_point"}:
            names = " and ".join(symbol(one).html for one in sorted(rest))
            note = f"Branches are not drawn: they depend on {names}, which is not chosen here."
            parts.append(note)
    elif "fixed_Q" in data:
        parts.append("Circles: steady states, filled if stable.")
    if "overlap" in data:
        methods = " and ".join(method_name(m).html for m in data["simulation"].values)
        parts.append(
            f"Markers: mean of {size(str(data.attrs['variable'])).html} over seeds at the last "
            f"time ± 2 standard errors ({methods}, at the largest {symbol('n').html})."
        )
    return " ".join([*parts, *selection_note(data, extra_dims(data), len(cells))])
