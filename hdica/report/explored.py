"""The catalogue of the explorer's tables, and the numbers of those that fit into a page."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.points import DENSITY, GROUP, TIMES, Axis, spread_times
from hdica.report.parts import embedded, rounded
from hdica.report.ticks import labels
from hdica.show.marks import color_of
from hdica.show.words import clock, count, measured, method_name, symbol, words
from hdica.status import STATUS_NAMES

BUDGET = 740_000  # bytes of the tables in a page, which are at most 1.0 MB of text there
MEAN_BYTES, ERROR_BYTES = 3, 2
"""Leading bytes of single precision that are kept: five digits of a mean, two of an error."""
DIGITS = 5  # digits of a mean in a page
LEAST_TIMES = 12  # rather than fewer times than these, densities and further variables are left out
WORD = 4  # bytes of a number in single precision, and of the length at the beginning of a message
LONG = 4096
"""Evenly spaced values of an axis up to which all are sent; of more the first and the last."""
BESIDE_DENSITIES = ("xi", "weight")  # variables that belong to densities in results
Values = NDArray[np.floating]
Entry = dict[str, Any]  # a part of the catalogue, as JSON


@dataclass(frozen=True, eq=False)
class Table:
    """A variable of a method at every grid point; without numbers where slices are sent."""

    method: str
    variable: str
    axes: tuple[Axis, ...]  # all its dimensions
    swept: tuple[str, ...]  # those of swept parameters and n
    along: str  # the own one along which it is drawn, as time; empty for none
    seeds: int  # 0 for a method without
    others: tuple[str, ...]  # every ``method/variable`` with the same quantity
    clock: str = ""  # label of the time, HTML
    mean: Values | None = None
    error: Values | None = None

    @property
    def key(self) -> str:
        """Name among the tables."""
        return f"{self.method}/{self.variable}"

    def size(self, times: int) -> int:
        """Bytes in a page at so many times."""
        shape = (min(a.size, times) if a.name in TIMES else a.size for a in self.axes)
        errors = 0 if self.error is None else ERROR_BYTES
        return math.prod(shape) * (MEAN_BYTES + errors)

    def thinned(self, times: int) -> Table:
        """The same at so many of its times."""
        out = self
        for k, axis in enumerate(self.axes):
            if axis.name in TIMES and axis.size > times:
                at = spread_times(axis.size, times)
                axes = (*out.axes[:k], Axis(axis.name, axis.values[at]), *out.axes[k + 1 :])
                mean, error = (
                    None if v is None else v.take(at, axis=k) for v in (out.mean, out.error)
                )
                out = replace(out, axes=axes, mean=mean, error=error)
        return out


@dataclass(frozen=True, eq=False)
class Explored:
    """What a page holds of the means of results."""

    tables: tuple[Table, ...]  # those that fit, by method as in the study, order parameters first
    counts: Mapping[str, Mapping[str, Values]]  # by method with an unfinished point, and status
    left: str  # what was left out to keep the page small, in words


def kinds(tables: Sequence[Table]) -> Entry:
    """Whether tables have means over seeds and theory, and the caption of curves of them."""
    runs, theory = any(t.seeds for t in tables), any(not t.seeds for t in tables)
    bands = "Bands: ± 2 standard errors of the mean over seeds"
    bands += "; lines without a band: theory." if theory else "."
    bands = bands if runs else "Lines: theory."
    return {"runs_shown": runs, "theory_shown": theory, "bands": bands}


def explored(aggregate: xr.DataTree) -> Explored | None:
    """What a page can show of the means at every grid point; None if there are none."""
    if GROUP not in aggregate:
        return None
    every = [
        table
        for node in aggregate[GROUP].children.values()
        for table in _tables(node.to_dataset())
        if table.mean is not None and np.unique(table.mean[np.isfinite(table.mean)]).size > 1
    ]
    about = aggregate[GROUP].attrs
    if not every:
        return Explored((), {}, "") if about["left"] else None
    tables, left = fitting(every, BUDGET, int(about["times"]), set(str(about["left"]).split()))
    counts = {}
    for method in {table.method for table in tables}:
        data = aggregate[GROUP][method]
        by_status = {name: data[f"runs_{name}"].to_numpy() for name in STATUS_NAMES}
        if any(many.any() for name, many in by_status.items() if name != "done"):
            counts[method] = by_status
    return Explored(tuple(tables), counts, left)


def _tables(data: xr.Dataset) -> list[Table]:
    """Tables of one method."""
    swept = tuple(map(str, data[f"runs_{STATUS_NAMES[0]}"].dims))
    method, seeds, out = str(data.attrs["method"]), int(data.attrs["seeds"]), []
    for name, values in data.data_vars.items():
        if "along" not in values.attrs:
            continue
        axes = tuple(Axis(str(d), data[d].to_numpy()) for d in values.dims)
        about, others = values.attrs["along"], tuple(str(values.attrs["others"]).split())
        time = clock(data["time"].attrs).html if about == "time" else ""
        table = Table(method, str(name), axes, swept, about, seeds, others, time, values.to_numpy())
        if f"{name}_error" in data:
            error = data[f"{name}_error"].broadcast_like(values).transpose(*values.dims)
            table = replace(table, error=error.to_numpy())
        out.append(table)
    return out


def fitting(
    every: list[Table], budget: int, of_times: int, gone: set[str]
) -> tuple[list[Table], str]:
    """As much as fits into so many bytes, and what was left out for that, in words.

    First times are left out, down to a few, then densities, then variables beyond the first of each
    method, then further times, and at last all but one table. Swept parameters keep every value.
    ``of_times`` is how many times results have, and ``gone`` has the ``method/variable`` that were
    too many before.
    """
    first = {table.method: table.key for table in reversed(every)}
    same = {other for table in every if table.key in first.values() for other in table.others}
    few = [t for t in every if t.key in first.values() or t.key in same]
    no_densities = [table for table in every if table.variable != DENSITY.name]
    longest = max((a.size for t in every for a in t.axes if a.name in TIMES), default=1)
    main = sorted(few, key=lambda t: (not t.seeds, -len(t.swept)))[:1]
    for tables, least in (
        (every, LEAST_TIMES), (no_densities, LEAST_TIMES), (few, LEAST_TIMES), (few, 1), (main, 1),
    ):  # fmt: skip
        fits = (k for k in range(longest, 0, -1) if sum(t.size(k) for t in tables) <= budget)
        times = next(fits, 0)
        if tables and times >= min(least, longest):
            thinned = [table.thinned(times) for table in tables]
            return thinned, _left_out({t.key for t in every} | gone, thinned, times, of_times)
    return [], ""


def _left_out(every: set[str], tables: list[Table], times: int, of_times: int) -> str:
    """What was left out, in words."""
    methods, names = (
        {key.split("/")[k] for key in every} - {table.key.split("/")[k] for table in tables}
        for k in (0, 1)
    )
    parts = [f"{times} of {of_times} times"] if times < of_times else []
    if DENSITY.name in names:
        parts.append("no densities")
    if names - {DENSITY.name}:
        listed = dict.fromkeys(symbol(table.variable).html for table in tables)
        parts.append(f"of the variables only {', '.join(listed)}")
    if methods:
        listed = dict.fromkeys(method_name(table.method).html for table in tables)
        parts.append(f"of the methods only {', '.join(listed)}")
    return ", ".join(parts)


class Numbers:
    """Arrays one after another, each by leading bytes of its numbers: first all highest bytes."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []

    def put(self, values: NDArray[Any] | None, width: int = WORD) -> dict[str, int] | None:
        """Where an array goes; None for one that is not there."""
        if values is None:
            return None
        begin = sum(map(len, self.parts))
        self.parts.append(planes(values, width))
        return {"begin": begin, "size": int(values.size), "width": width}

    def message(self, header: Mapping[str, object]) -> bytes:
        """The length of the header (4 bytes, the highest first), the header (JSON), the numbers."""
        text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
        return len(text).to_bytes(WORD, "big") + text + b"".join(self.parts)


def planes(values: NDArray[Any], width: int) -> bytes:
    """Numbers in single precision, rounded to so many leading bytes, as planes of bytes."""
    bits = np.ascontiguousarray(values, dtype=">f4").view(">u4").astype(np.uint64).ravel()
    unit = 1 << 8 * (WORD - width)
    rounded_up = np.where(np.isfinite(values).ravel(), bits + unit // 2, bits).astype(">u4")
    return rounded_up.view(np.uint8).reshape(-1, WORD)[:, :width].T.tobytes()


def packed(content: Explored) -> str:
    """The catalogue of a page and its numbers, as the text of an element."""
    numbers = Numbers()
    counts = {
        method: {name: numbers.put(many, MEAN_BYTES) for name, many in by_status.items()}
        for method, by_status in content.counts.items()
    }
    every = content.counts.values()
    totals = {name: sum(int(one[name].sum()) for one in every) for name in STATUS_NAMES}
    header = catalogue(content.tables, numbers)
    header |= {"counts": counts, "totals": written(totals), "digits": DIGITS}
    return embedded(numbers.message(header))


def written(totals: Mapping[str, int]) -> dict[str, str]:
    """How many points have no value, by their status."""
    return {name: count(many) for name, many in totals.items() if many and name != "done"}


def catalogue(tables: Sequence[Table], numbers: Numbers, all_offered: bool = False) -> Entry:
    """Names, axes and colours of tables; densities are offered only if all are."""
    axes: list[Axis] = []
    entries = [_table(table, numbers, axes) for table in tables]
    dense = {table.method for table in tables if table.variable == DENSITY.name}
    called = [called for _, called in {(e["method"], e["called"]) for e in entries}]
    for entry in entries:
        if called.count(entry["called"]) > 1:
            entry["called"] = entry["method"]
        companion = entry["variable"] in BESIDE_DENSITIES and entry["method"] in dense
        entry["offered"] = all_offered or not (entry["density"] or companion)
    seeded = list(dict.fromkeys(t.method for t in tables if t.seeds))
    return {
        "tables": entries,
        "first": _first(tables),
        "axes": [_axis(axis) for axis in axes],
        "colors": {m: color_of(k, len(seeded)) for k, m in enumerate(seeded)},
        "across": (words("entry ") + symbol(DENSITY.dims[-1]) + words(" of the estimate")).html,
        "played": DENSITY.dims[0],
    }


def _first(tables: Sequence[Table]) -> int:
    """The table that is shown first: with seeds, and over most swept parameters."""

    def rank(table: Table) -> tuple[bool, bool, int]:
        several = sum(a.size > 1 for a in table.axes if a.name in table.swept)
        return table.variable == DENSITY.name, not table.seeds, -several

    return min(range(len(tables)), key=lambda k: rank(tables[k]))


def _table(table: Table, numbers: Numbers, axes: list[Axis]) -> Entry:
    """One table in the catalogue; its axes go among those that are there."""
    label = measured(table.variable)
    return {
        "method": table.method,
        "called": method_name(table.method).plain,
        "variable": table.variable,
        "html": label.html,
        "plain": label.plain,
        "symbol": symbol(table.variable).html,
        "seeds": table.seeds,
        "axes": [_place(axis, axes) for axis in table.axes],
        "swept": list(table.swept),
        "along": table.along,
        "clock": table.clock,
        "others": list(table.others),
        "density": table.variable == DENSITY.name,
        "mean": numbers.put(table.mean, MEAN_BYTES),
        "error": numbers.put(table.error, ERROR_BYTES),
    }


def _place(axis: Axis, axes: list[Axis]) -> int:
    """Place of an axis among some; a new one is added."""
    for k, one in enumerate(axes):
        if one.name == axis.name and np.array_equal(one.values, axis.values):
            return k
    axes.append(axis)
    return len(axes) - 1


def _axis(axis: Axis) -> Entry:
    """An axis in the catalogue; groups of ξ have no value where that differs between points."""
    grouped = axis.name == DENSITY.dims[1] and axis.values.dtype.kind in "iu"
    name = words("group of ") + axis.symbol if grouped else axis.symbol
    numbers = axis.values.astype(float) if axis.values.dtype.kind in "fiu" else None
    out = {
        "name": axis.name,
        "html": axis.label.html,
        "symbol": name.html,
        "plain": name.plain,
        "equals": axis.equals,
        "scale": axis.scale,
        "size": axis.size,
    }
    if numbers is not None and axis.size > LONG and axis.scale != "places":
        return out | {"ends": numbers[[0, -1]].tolist()}
    uneven = numbers is not None and axis.scale != "linear" and axis.equals == " = "
    spread = uneven and not grouped and bool((axis.values > 0).all())
    return out | {
        "values": None if numbers is None else rounded(numbers, 7),
        "shown": [str(k + 1) if grouped else axis.shown(k) for k in range(axis.size)],
        # At the ticks of uneven numbers: all in full or all with powers of ten.
        "named": [t.html for t in labels(axis.values)] if spread else None,
    }
