"""Bifurcation diagram: steady states over a parameter, and where simulations end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from hdica.analysis.show.choose import Point, points, said, selected, shown
from hdica.analysis.show.marks import GREY, SYMBOLS, color_of
from hdica.analysis.show.panel import Line, Panel, Points, Vertical
from hdica.analysis.show.words import (
    EMPTY,
    Text,
    leading,
    method_name,
    number,
    place,
    size,
    symbol,
    words,
)
from hdica.analysis.steady.branches import Branches, branches_of
from hdica.analysis.steady.compute import BRANCH, TRANSITIONS, extra_dims

CONDENSED = 2
LETTER = 0.021
"""Width of a letter of a label as a share of the printed axis."""

ERRORS = 2.0

Item = Line | Points | Vertical


def steady(data: xr.Dataset) -> list[Panel]:
    """One panel: theory as lines, simulations as markers."""
    others = extra_dims(data)
    cells = shown(data, others)
    at = x_range(data)
    items = _theory(data, cells, at)
    items += _transitions(data, cells, at)
    for i, cell in enumerate(cells):
        items += _dots(data, cell, color_of(i, len(cells)) if len(cells) > 1 else "")
    if not items:
        return []
    x, name = str(data.attrs["x"]), str(data.attrs["variable"])
    return [
        Panel(
            "steady",
            words("Steady states"),
            symbol(x),
            size(name),
            tuple(once(items)),
            caption=_caption(data, cells),
            x_range=at,
            y_range=(-0.03, 1.03),
            wide=True,
        )
    ]


def x_range(data: xr.Dataset) -> tuple[float, float]:
    """The swept values with a margin; without them, somewhat beyond the transitions."""
    x = data.attrs["x"]
    if x in data.dims:
        values = data[x].values.astype(float)
    else:
        known = data.get("transition_value", data.get("branch_value", xr.DataArray([0.0, 1.0])))
        values = known.values[np.isfinite(known.values)]
        values = np.concatenate([values * 0.5, values * 1.5])
    margin = 0.03 * (values.max() - values.min()) or 0.5
    return float(values.min() - margin), float(values.max() + margin)


def branches_in(data: xr.Dataset, cell: Point) -> Branches | None:
    """The branches of a cell, if the data have any."""
    if "branch_Q" not in data:
        return None
    columns = [selected(data[name], cell) for name in BRANCH]
    if any(c.ndim != 1 for c in columns):
        return None
    return branches_of(*(c.values for c in columns))


def style_of(stable: bool, kind: int, color: str) -> tuple[Text, str, str]:
    """Name, colour and dash of a piece of a branch."""
    lead = "condensed, " if kind == CONDENSED else ""
    name = words(lead + ("stable" if stable else "unstable"))
    if kind == CONDENSED:
        return name, GREY, "solid" if stable else "dot"
    return name, color, "solid" if stable else "dash"


def _own(values: xr.DataArray, cells: list[Point]) -> Iterator[tuple[int, Point]]:
    """Number and coordinates of every cell on which a variable depends, once."""
    own = [{k: v for k, v in c.items() if k in values.dims} for c in cells]
    return ((i, cell) for i, cell in enumerate(own) if cell not in own[:i])


def _theory(data: xr.Dataset, cells: list[Point], at: tuple[float, float]) -> list[Item]:
    """Theory once for every cell on which it depends."""
    name = next((k for k in ("branch_Q", "fixed_Q") if k in data), None)
    if name is None:
        return []
    out: list[Item] = []
    cells = with_series(data, cells, name)
    for i, cell in _own(data[name], cells):
        color = color_of(i, len(cells)) if cell else "ink"
        lead = leading(cell)
        branches = branches_in(data, cell)
        if branches is None:
            out += _fixed(data, cell, color, lead)
        else:
            out += lines_of(branches, color, lead, at)
    return out


def with_series(data: xr.Dataset, cells: list[Point], name: str) -> list[Point]:
    """The cells, each for every value of the series where branches depend on it.

    Fixed points of all values stand in one column; a curve has one value.
    """
    series = data.attrs["series"]
    if name != "branch_Q" or series not in data[name].dims:
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


def _fixed(data: xr.Dataset, cell: Point, color: str, lead: Text) -> list[Item]:
    """Fixed points at every swept value as markers."""
    if "fixed_Q" not in data or data.attrs["x"] not in data["fixed_Q"].dims:
        return []
    at = data.attrs["x"]
    # The series is no part of a cell: the states of all its values stand in one column, as in
    # ``_own`` those of a cell that does not matter to them.
    columns = xr.broadcast(*(selected(data[k], cell) for k in ("fixed_Q", "fixed_stable")))
    q, stable = (c.transpose(at, ...).values.reshape(data.sizes[at], -1) for c in columns)
    x = np.repeat(data[at].values.astype(float), q.shape[1])
    keep = np.isfinite(q.ravel())
    shade = "#444444" if color == "ink" else color
    filled = stable.ravel()[keep] > 0.5
    label = lead + words("fixed points")
    return [Points(x[keep], np.abs(q.ravel()[keep]), label, shade, filled=filled)]


def _transitions(data: xr.Dataset, cells: list[Point], at: tuple[float, float]) -> list[Vertical]:
    """Labelled lines, in the colour of their cell; labels that would meet go to other rows."""
    if "transition_value" not in data:
        return []
    found: list[tuple[float, str, str]] = []
    for i, cell in _own(data["transition_value"], cells):
        value, kind = (
            selected(data[f"transition_{k}"], cell).values.ravel() for k in ("value", "kind")
        )
        color = color_of(i, len(cells)) if cell else GREY
        known = np.flatnonzero(np.isfinite(value) & (at[0] <= value) & (value <= at[1]))
        found += [
            (float(value[k]), f"{TRANSITIONS[int(kind[k])]} {number(value[k], 4)}", color)
            for k in known
        ]
    ends: list[float] = []
    out = []
    for value_, text, color in sorted(found):
        left, right, anchor = _extent(value_, text, at)
        free = [r for r, end in enumerate(ends) if end < left]
        row = free[0] if free else len(ends)
        ends[row : row + 1] = [right]
        out.append(Vertical(value_, words(text), color, anchor, row))
    return out


def _extent(value: float, text: str, at: tuple[float, float]) -> tuple[float, float, str]:
    """Where a label begins and ends, as a share of the axis, and its anchor.

    Labels near an end of the axis grow inwards.
    """
    share, width = (value - at[0]) / (at[1] - at[0]), LETTER * len(text)
    if share < width / 2:
        return share, share + width, "left"
    if share > 1 - width / 2:
        return share - width, share, "right"
    return share - width / 2, share + width / 2, "center"


def _dots(data: xr.Dataset, cell: Point, color: str) -> list[Item]:
    """Ends of the simulations at their largest n, and of limits that were followed in time."""
    series = [data.attrs["series"]] if data.attrs["series"] in data.dims else []
    starts = points(data, series) if series else [{}]
    out: list[Item] = []
    if "overlap" in data:
        methods = [str(m) for m in data["simulation"].values]
        every = [(m, s) for m in methods for s in starts]
        for j, (method, start) in enumerate(every):
            name = method if len(methods) > 1 or not (start or cell) else ""
            label = _joined(words(name), place(start), place(cell))
            shade = color or color_of(j, len(every))
            at = {"simulation": method, **start, **cell}
            out += _series(data, at, label, shade, SYMBOLS[j % 4])
    if "limit_end" in data:
        for method in data["limit"].values:
            for start in starts:
                own = method_name(method) + words(", last time")
                label = _joined(own, place(start), place(cell))
                out.append(_ends(data, {**start, **cell, "limit": method}, label, color or GREY))
    return out


def _joined(*parts: Text) -> Text:
    """The parts that say something, separated by commas."""
    out = EMPTY
    for part in parts:
        out = out + (words(", ") if out and part else EMPTY) + part
    return out


def _series(data: xr.Dataset, point: Point, label: Text, color: str, mark: str) -> list[Item]:
    here = {k: selected(data[k], point) for k in ("overlap", "overlap_se", "count")}
    x, order = data.attrs["x"], (data.attrs["x"], "n")
    q, se, seeds = (v.transpose(*order).values for v in here.values())
    done = np.flatnonzero((seeds > 0).any(axis=0))
    if not len(done):
        return []
    y, bar = q[:, done[-1]], ERRORS * np.nan_to_num(se[:, done[-1]])
    keep = np.isfinite(y)
    at = data[x].values.astype(float)[keep]
    return [Points(at, y[keep], label, color, (y - bar)[keep], (y + bar)[keep], mark)]


def _ends(data: xr.Dataset, point: Point, label: Text, color: str) -> Points:
    values = selected(data["limit_end"], point).values
    at = data[data.attrs["x"]].values.astype(float)
    return Points(at, values, label, color, symbol="diamond", filled=np.zeros(len(at), bool))


def once(items: Sequence[Item]) -> list[Item]:
    """Every name once in the legend."""
    seen: set[str] = set()
    out: list[Item] = []
    for item in items:
        if not isinstance(item, Vertical):
            again = item.label.plain in seen
            seen.add(item.label.plain)
            item = replace(item, listed=False) if again else item
        out.append(item)
    return out


def _left_out(data: xr.Dataset, cells: list[Point]) -> list[str]:
    """What a branch depends on that is not chosen here, so that it is not drawn."""
    every = with_series(data, cells, "branch_Q")
    rest = {str(d) for k in BRANCH for c in every for d in selected(data[k], c).dims}
    rest -= {"branch_point"}
    if not rest:
        return []
    names = " and ".join(symbol(one).html for one in sorted(rest))
    return [f"Branches are not drawn: they depend on {names}, which is not chosen here."]


def _caption(data: xr.Dataset, cells: list[Point]) -> str:
    parts = []
    if "branch_Q" in data:
        parts.append("Solid: stable steady states; dashed: unstable.")
        if bool((data["branch_kind"] == CONDENSED).any()):
            parts.append("Condensed states: solid if stable, dotted if not.")
        parts += _left_out(data, cells)
    elif "fixed_Q" in data:
        parts.append("Circles: steady states, filled if stable.")
    if "overlap" in data:
        methods = " and ".join(method_name(m).html for m in data["simulation"].values)
        parts.append(
            f"Markers: mean of {size(str(data.attrs['variable'])).html} over seeds at the last "
            f"time ± 2 standard errors ({methods}, at the largest {symbol('n').html})."
        )
    parts += said(data, extra_dims(data), len(cells))
    return " ".join(parts)
