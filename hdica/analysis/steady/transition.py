"""Critical values as another parameter varies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr

from hdica.analysis import reading
from hdica.analysis.settings import Suiting
from hdica.analysis.steady import Transition
from hdica.analysis.steady.compute import TRANSITIONS
from hdica.analysis.steady.figure import once
from hdica.show.choose import Point, cells_of, dims_of, positions, shown
from hdica.show.finding import Finding, Form
from hdica.show.marks import SHARES, SYMBOLS, color_of
from hdica.show.panel import Array, Item, Panel, Points
from hdica.show.words import EMPTY, Text, axis, critical, leading, size, symbol, words
from hdica.systems.method import ZERO

OVERLAP = "Q"
"""Name of the overlap in what is returned, whatever its system calls it: files have it."""
LONG_NAMES = {
    "value": "critical value",
    OVERLAP: "{v} at the transition",
    "error": "error of the critical value",
    "kind": "0 fold, 1 transcritical, 2 junction",
}

OF = "critical value of "
"""How the long name of a critical value begins, before the parameter."""
LINES = 4
DIGITS = 6


def transition(tree: xr.DataTree, settings: Transition) -> xr.Dataset:
    """Where steady states appear or vanish, over one swept parameter.

    ``value`` with its ``error``, ``Q`` and ``kind`` over the swept parameters and ``transition``,
    NaN where there are fewer; ``Q`` is the overlap, which the attribute ``overlap`` names as its
    system does. The attribute ``parameter`` names the critical parameter.
    """
    x = settings.x
    data = reading.group(tree, settings.critical)
    reading.check_numbers(data, x, "analysis.transition.x")
    overlap = reading.overlap_in(tree, data)
    data = data.rename({overlap: OVERLAP})
    kept = {k: reading.finished(data, k) for k in ("value", OVERLAP, "error", "kind") if k in data}
    name = str(data["value"].attrs.get("long_name", ""))
    parameter = name.removeprefix(OF) if name.startswith(OF) else ""
    attrs = {"x": x, "parameter": parameter, "overlap": overlap}
    return reading.described(xr.Dataset(kept, attrs=attrs), LONG_NAMES, overlap)


def suits(tree: xr.DataTree) -> Suiting:
    """Critical values over the first parameter on which they are swept."""
    for name, has in reading.gives(tree).items():
        swept = reading.numeric(tree, name)
        if has.outputs.get("value") == ("transition",) and swept:
            return {"x": swept[0], "critical": name}
    return None


def findings(data: xr.Dataset) -> list[Finding]:
    """Where each transition has its largest and its smallest critical value.

    The first transitions come first, and an extreme inside the range of x before one at an end.
    """
    x, at = data.attrs["x"], data[data.attrs["x"]].values
    out = []
    for cell in cells_of(data["value"], "transition", x):
        here = curves(data, cell)
        for rank, curve in enumerate(here):
            nth = sum(one.name == curve.name for one in here[: rank + 1])
            known = np.flatnonzero(np.isfinite(curve.value))
            ends = known[np.argmax(curve.value[known])], known[np.argmin(curve.value[known])]
            alone = curve.value[ends[0]] == curve.value[ends[1]]
            forms = (Form.VALUE,) if alone else (Form.LARGEST, Form.SMALLEST)
            of = " of " + symbol(data.attrs["parameter"]) if data.attrs["parameter"] else EMPTY
            kind = " (" + curve.name + (f" {nth})" if nth > 1 else ")")
            name = "the critical value" + of + kind
            for order, (form, i) in enumerate(zip(forms, ends, strict=False)):
                value, place = float(curve.value[i]), {**cell, x: at[i].item()}
                finding = Finding(name, place, value, form=form, digits=DIGITS)
                out.append((rank, i in known[[0, -1]], order, finding))
    return [finding for *_, finding in sorted(out, key=lambda one: one[:3])]


def panels(data: xr.Dataset) -> list[Panel]:
    """The critical value, and the overlap there, against x; a marker for every kind."""
    x = data.attrs["x"]
    value = critical(data.attrs["parameter"])
    items, sizes = (tuple(_items(data, name)) for name in ("value", "overlap"))
    if not items:
        return []
    caption = "One marker a transition; those of a kind are joined in order of size."
    title, there = words("Transitions"), words("Overlap at the transitions")
    of, inside = size(data.attrs["overlap"]), SHARES
    return [
        Panel("transition", title, axis(x), value, items, caption),
        Panel("transition_overlap", there, axis(x), of, sizes, caption, y_range=inside),
    ]


@dataclass(frozen=True)
class Curve:
    """One transition over x: its name, a number for its marker, value and |Q|; shape (x,)."""

    name: Text
    mark: int
    value: Array
    overlap: Array


def curves(data: xr.Dataset, cell: Point) -> list[Curve]:
    """The k-th smallest transition of a kind at every x; those at Q = 0 stand apart."""
    here = data.sel(cell).transpose(data.attrs["x"], "transition", ...)
    value, kind, q = (here[k].values for k in ("value", "kind", OVERLAP))
    at_zero = np.abs(q) < ZERO
    out = []
    for code, name in enumerate(TRANSITIONS):
        for zero in (False, True):
            mine = (kind == code) & (at_zero == zero)
            own = np.where(mine, value, np.nan)
            order = np.argsort(own, axis=1)  # NaN last
            ranked = np.take_along_axis(own, order, axis=1).T
            overlap = np.abs(np.take_along_axis(np.where(mine, q, np.nan), order, axis=1)).T
            apart = zero and bool(np.any((kind == code) & ~at_zero))
            state = " at " + symbol(data.attrs["overlap"]) + " = 0"
            label = words(name) + state if apart else words(name)
            mark = len(TRANSITIONS) if apart else code
            keep = np.isfinite(ranked).any(axis=1)
            out += [
                Curve(label, mark, v, o) for v, o in zip(ranked[keep], overlap[keep], strict=True)
            ]
    return out


def _items(data: xr.Dataset, name: str) -> list[Item]:
    x, out = positions(data, data.attrs["x"]), list[Item]()
    cells = shown(data, dims_of(data["value"], "transition", data.attrs["x"]), LINES)
    for i, cell in enumerate(cells):
        for curve in curves(data, cell):
            color = color_of(i if len(cells) > 1 else curve.mark, max(len(cells), 4))
            y, mark = getattr(curve, name), SYMBOLS[curve.mark % 4]
            out.append(Points(x, y, leading(cell) + curve.name, color, symbol=mark, joined=True))
    return once(out)
