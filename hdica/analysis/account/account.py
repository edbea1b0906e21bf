"""What was run, chosen and learned at the points of a study, in counts and notes."""

from __future__ import annotations

import math
from itertools import islice, product
from typing import Any

import numpy as np
import xarray as xr
from markupsafe import escape

from hdica.analysis import reading
from hdica.errors import HdicaError
from hdica.show.choose import Point, cells_of, evenly, numbers, positions
from hdica.show.terms import entries, padded
from hdica.show.typeset import typeset
from hdica.show.wording import Table, among, listed, where
from hdica.show.words import count, method_name, number, plural, symbol
from hdica.status import DIVERGED, DONE, FAILED, LEFT_OUT, PENDING
from hdica.systems.method import ZERO
from hdica.systems.system import System, joined
from hdica.systems.values import shown

COUNTS = {"done": DONE, "diverged": DIVERGED, "failed": FAILED, "pending": PENDING}


def runs(tree: xr.DataTree) -> xr.Dataset:
    """Account of a store over ``method``: points by outcome, processor seconds, n and seeds.

    The attribute ``has_n`` is 1 if the system has any method with a dimension n, else 0.
    """
    named = reading.groups(tree, reading.computed(tree))
    groups = list(named.values())
    written = ("accuracy", "equations", "kernel")
    columns: dict[str, list[object]] = {
        **{key: [str(g.attrs.get(key, "")) for g in groups] for key in written},
        "noise": [str(g.attrs.get("noise", "own" if "seed" in g.dims else "")) for g in groups],
        "points": [int((g["status"] < LEFT_OUT).sum()) for g in groups],
        "cpu_seconds": [float(g["cpu_seconds"].sum()) for g in groups],
        "n": [_sizes(g["n"].values) if "n" in g.dims else "" for g in groups],
        "seeds": [int(g.sizes.get("seed", 0)) for g in groups],
        "reason": [_reason(g) for g in groups],
    }
    for name, code in COUNTS.items():
        columns[name] = [int((g["status"] == code).sum()) for g in groups]
    attrs = {name: {"long_name": name.replace("_", " ")} for name in columns}
    attrs["cpu_seconds"]["units"] = "s"
    variables = {k: ("method", np.array(v), attrs[k]) for k, v in columns.items()}
    known = reading.system_of(tree)
    has_n = int(known is None or any(m.takes_n for m in known.methods))
    return xr.Dataset(variables, {"method": list(named)}, {"has_n": has_n})


def _reason(data: xr.Dataset) -> str:
    """Where and why the first point without a result has none; empty if there is no reason."""
    if "reason" not in data:
        return ""
    values = data["reason"]
    bad = np.isin(data["status"].transpose(*values.dims).values, (DIVERGED, FAILED))
    for index in np.argwhere(bad):
        text = values.values[tuple(index)]
        if isinstance(text, str) and text:
            at = zip(values.dims, index, strict=True)
            point = ", ".join(f"{dim} = {shown(data[dim].values[k])}" for dim, k in at)
            return f"{point}: {text}" if point else text
    return ""


def _sizes(values: np.ndarray) -> str:
    """Whole numbers as text, separated by commas; a long list by its ends."""
    texts = [str(int(v)) for v in values]
    if len(texts) <= 12:
        return ", ".join(texts)
    return f"{texts[0]}, {texts[1]}, …, {texts[-1]} ({len(texts)})"


def notes_of_runs(data: xr.Dataset) -> list[str]:
    """Sentences on what was run, and why some of it has no result."""
    total, done = int(data["points"].sum()), int(data["done"].sum())
    lost = {k: int(data[k].sum()) for k in ("diverged", "failed", "pending")}
    extra = listed([f"{count(v)} {k}" for k, v in lost.items() if v] or ["none diverged or failed"])
    seconds = number(float(data["cpu_seconds"].sum()))
    whole = f"{count(done)} of {plural(total, 'point')} are done ({extra})"
    lacking = [data.sel({"method": name}) for name in data["method"][data["reason"] != ""].values]
    return [f"{whole}; they took {seconds} s of processor time.", *map(_lost, lacking)]


def _lost(here: xr.Dataset) -> str:
    """At how many points a method has no result, and the first reason that it gives."""
    text = escape(typeset(str(here["reason"].item()).rstrip(".").replace("HdicaError: ", "")))
    lost = int(here["diverged"]) + int(here["failed"])
    lead = "" if lost == 1 else "the first of them, "
    method = method_name(here["method"].item()).html
    return f"{method} has no result at {plural(lost, 'point')}: {lead}{text}."


def sharing(data: xr.Dataset) -> str:
    """Methods whose points share their noise, in words; empty if there are none."""
    shared = data["method"].values[data["noise"].values == "shared"]
    return listed([str(name) for name in shared]) if len(shared) else ""


def table(data: xr.Dataset) -> Table:
    """What was run; a limit of methods with n has n = ∞."""
    counts = ("points", "done", "diverged", "failed", "pending")
    head = ("method", "accuracy", *counts, "CPU seconds", symbol("n").html, "seeds")
    rows = []
    for method in data["method"].values:
        here = data.sel({"method": method})
        whole, seeds = [count(int(here[c])) for c in counts], int(here["seeds"])
        n = here["n"].item() or ("∞" if data.attrs["has_n"] and not seeds else "–")
        cpu = number(float(here["cpu_seconds"]))
        rows.append((str(method), here["accuracy"].item(), *whole, cpu, n, str(seeds or "–")))
    numeric = (False, False, *(True for _ in counts), True, False, True)
    return Table(head, tuple(rows), numeric, len(rows))


OF_CURVATURE = {
    "curvature": "d_t = 2h at the last time",
    "least": "least d_t = 2h over time",
    "end": "last time with a curvature",
}

LISTED = 3
"""Points in a note."""


def condensing(tree: xr.DataTree) -> xr.Dataset | None:
    """Sign of the curvature d_t = 2 h at the last time that every limit reached; None without any.

    d/dt E[x^2] = -2 d_t (E[x^2] - 1): where d_t < 0 the bulk cannot hold |x|^2 = n, and what is
    left over moves to ever fewer, ever larger entries. A curvature that stays negative rises to 0
    like -1/t, so that the density never converges plainly.
    """
    groups = reading.groups(tree, [m for m, node in tree.children.items() if "curvature" in node])
    if not groups:
        return None
    parts = {}
    for name, data in groups.items():
        # A diverged point stopped at the last time with a curvature.
        values = data["curvature"].where(data["status"] != PENDING).drop_vars("time")
        time = xr.DataArray(positions(data, "time"), dims="time")
        end = time.where(values.notnull()).max("time")
        last = values.where(time == end).max("time")
        parts[name] = xr.Dataset({"curvature": last, "end": end, "least": values.min("time")})
    units = reading.units_by(next(iter(groups.values()))["time"])
    return reading.described(reading.over(parts, "method"), OF_CURVATURE, units=units)


def notes_of_condensing(data: xr.Dataset) -> list[str]:
    """Where the curvature is still negative at the last time."""
    values = data["curvature"]
    cells = [cell for cell in cells_of(values) if float(values.sel(cell)) < 0]
    if not cells:
        return []
    parts = []
    for cell in evenly(cells, LISTED):
        end, curvature = numbers(data, cell, "end", "curvature")
        at = where({**cell, "t": end}).html
        parts.append(f"2<i>h</i> = {number(curvature, 2)} at {at}")
    more = f"; and {len(cells) - len(parts)} more" if len(cells) > len(parts) else ""
    return [
        "The estimate condenses: the curvature 2<i>h</i> of the effective potential is negative at "
        f"the last time ({'; '.join(parts)}{more}). The bulk of the entries cannot hold "
        "|<i>x</i>|² = <i>n</i>, and the rest moves to ever fewer and larger entries."
    ]


LOST = 0.05
"""A limit that ends with overlaps this small has learned nothing."""
_NONE = np.empty(0)
_OUTCOMES = {
    "still": "the limit stays at its start, which has no overlap",
    "lost": "the limit ends with an overlap of 0",
    "none": "nothing informative is found",
}


def learning(tree: xr.DataTree) -> xr.Dataset | None:
    """Limits that stay at 0 from their start, and methods that find nothing learned, if any.

    ``count`` of the ``points`` of a method that are done which are ``"still"`` (the start has no
    overlap and the limit none) or, where all points of the method are so, ``"lost"`` (the limit
    falls to 0) or ``"none"`` (no transition, no stable informative state): ``what``; and ``note``,
    why that is so at the first of them.
    """
    every = [_of(tree, name) for name in reading.computed(tree)]
    rows = [row for row in every if row is not None]
    if not rows:
        return None
    names = ("method", "what", "count", "points", "note")
    columns = zip(names, zip(*rows, strict=True), strict=True)
    return xr.Dataset({k: ("row", np.array(v), {"long_name": k}) for k, v in columns})


def _of(tree: xr.DataTree, name: str) -> tuple[str, str, int, int, str] | None:
    """The row of a method that learns nothing somewhere; None of one that does not show it."""
    data = reading.group(tree, name)
    record = reading.system_of(tree)
    telling = [] if record is None else [p.name for p in record.order_parameters if p.nothing == 0]
    overlap = next((v for v in telling if v in data and f"{v}_error" in data), "")
    if overlap and "time" in data[overlap].dims:
        values = abs(reading.finished(data, overlap))
        size = values.max([d for d in values.dims if d in entries()])
        still, end = size.max("time") <= ZERO, size.isel(time=-1)
        lost = bool((end <= LOST).all()) and float(data["time"][-1]) > 0
        what, where = ("lost", end.notnull() & lost) if not still.any() else ("still", still)
    else:
        learned = _known(data)
        if learned is None:
            return None
        what, where = "none", (data["status"] == DONE) & ~learned.any()
    if not where.any():
        return None
    pairs = zip(where.dims, np.argwhere(where.values)[0].tolist(), strict=True)
    first = {str(d): where[d][i].item() for d, i in pairs if d not in padded()}
    many, done = int(where.sum()), int((data["status"] == DONE).sum())
    return name, what, many, done, _note(tree, data, overlap, first)


def _known(data: xr.Dataset) -> xr.DataArray | None:
    """Whether a point has a transition, or a stable informative state; None of other methods."""
    if "stable" in data and "fixed_point" in data["stable"].dims:
        stable = reading.finished(data, "stable") > 0
        return (stable & (data["kind"] == 0) if "kind" in data else stable).any("fixed_point")
    if "value" in data and "transition" in data["value"].dims:
        return reading.finished(data, "value").notnull().any("transition")
    return None


def _note(tree: xr.DataTree, data: xr.Dataset, overlap: str, point: Point) -> str:
    """Why a point learns nothing; empty if its system cannot be built from the store."""
    record = reading.system_of(tree)
    if record is None:
        return ""
    try:
        grid = reading.space(tree, record)
        # A method is not swept over what it does not depend on: any value will do there.
        system = grid.at({a.path: point[a.dim] for a in grid.axes if a.dim in point})
    except HdicaError:
        return ""
    if overlap:
        path = data[overlap].sel(point).transpose("time", ...).values
        return record.notes.limit(system, {overlap: path}, positions(data, "time"))
    if "fixed_point" in data.dims:
        return record.notes.states(system, _NONE, _NONE.astype(bool), _NONE.astype(bool))
    return record.notes.transitions(system, record.controls[0].name, _NONE, None)


def notes_of_learning(data: xr.Dataset) -> list[str]:
    """One sentence a method that learns nothing, with the reason at its first point."""
    out = []
    for k in range(data.sizes["row"]):
        method, what, note = (str(data[name].values[k]) for name in ("method", "what", "note"))
        lost, points = int(data["count"][k]), int(data["points"][k])
        some = f"{count(lost)} of {plural(points, 'point')}"
        share = some if lost < points else f"any point{among()}"
        text = f"By {method_name(method).html} nothing is learned at {share}: {_OUTCOMES[what]}."
        if note:
            text += " At the first of them: " if lost > 1 else " "
            text += f"{escape(typeset(note[0].upper() + note[1:]))}."
        out.append(text)
    return out


MOST = 4096
"""Points of a grid that are asked."""
ROWS = 6
"""Choices and notes on data on a page."""
OF_CHOICES = {
    "kind": "whether it is a choice or a note on data",
    "text": "what the system chose of itself, or what its data are",
    "count": "points of the grid",
}


def choices(tree: xr.DataTree) -> xr.Dataset | None:
    """What was chosen or is to be noted of data, and at how many points, if anything is.

    ``kind``, ``"chosen"`` or ``"data"``, ``text`` and ``count`` over ``row``, in the order of the
    grid; the attribute ``points`` is the number of points that are examined.
    """
    record = reading.system_of(tree)
    if record is None or "system" not in reading.study(tree):
        return None
    counts: dict[tuple[str, str], int] = {}
    try:
        grid = reading.space(tree, record)
        axes = [[(axis.path, value) for value in axis.values] for axis in grid.axes]
        ends = [dict(axis[end] for axis in axes) for end in (0, -1)]
        # To build every system of a large grid takes seconds, and few have a choice.
        if not any(_noted(record, grid.at(point)) for point in ends):
            return None
        for point in islice(product(*axes), MOST):
            for note in _noted(record, grid.at(dict(point))):
                counts[note] = counts.get(note, 0) + 1
    except HdicaError:
        return None
    if not counts:  # the last point alone has a note, and there are too many to come to it
        return None
    kinds, texts = map(np.array, zip(*counts, strict=True))
    data = {"kind": kinds, "text": texts, "count": np.array([*counts.values()])}
    columns = {k: ("row", values, {"long_name": OF_CHOICES[k]}) for k, values in data.items()}
    return xr.Dataset(columns, attrs={"points": min(MOST, math.prod(map(len, axes)))})


def _noted(record: System, system: Any) -> list[tuple[str, str]]:
    texts = {"chosen": record.notes.chosen(system), "data": joined(*record.notes.data(system))}
    return [(kind, text) for kind, text in texts.items() if text]


def notes_of_choices(data: xr.Dataset) -> list[str]:
    """A sentence for each of a few choices and notes on data, with the points they are about."""
    total, out = int(data.attrs["points"]), []
    for k in range(min(data.sizes["row"], ROWS)):
        text, many = str(data["text"].values[k]), int(data["count"][k])
        share = "at every point" if many == total else f"at {many} of {plural(total, 'point')}"
        if str(data["kind"].values[k]) == "data":
            out.append(f"Data are not as the rule assumes {share}: {escape(text)}.")
        else:
            out.append(f"Chosen {share}: {escape(typeset(text))}.")
    return out
