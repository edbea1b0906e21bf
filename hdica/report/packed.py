"""Tables of means as the text in a page that its script unpacks."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.points.means import GROUP
from hdica.analysis.points.space import DENSITY, Axis
from hdica.report.explored import ERROR_BYTES, MEAN_BYTES, Explored, Table
from hdica.show.marks import color_of
from hdica.show.ticks import labels
from hdica.show.words import clock, measured, method_name, symbol, words

WORD = 4
"""Bytes of a number in single precision, and of the length at the beginning."""
ALSO_DENSITIES = ("xi", "weight")
"""What stands beside densities in results and is nothing to look at by itself."""


class _Numbers:
    """Arrays one after another, each by leading bytes of its numbers: first all highest bytes."""

    def __init__(self) -> None:
        self.parts: list[bytes] = []
        self.used = 0

    def put(self, values: NDArray[Any], width: int) -> dict[str, int]:
        """Where an array goes."""
        begin = self.used
        self.parts.append(planes(values, width))
        self.used += len(self.parts[-1])
        return {"begin": begin, "size": int(values.size), "width": width}


def planes(values: NDArray[Any], width: int) -> bytes:
    """Numbers in single precision, rounded to so many leading bytes, as planes of bytes."""
    bits = np.ascontiguousarray(values, dtype=">f4").view(">u4").astype(np.uint64).ravel()
    unit = 1 << 8 * (WORD - width)
    known = np.isfinite(values).ravel()
    bits = np.where(known, bits + unit // 2, bits) // unit
    return b"".join(
        (bits >> np.uint64(8 * k) & np.uint64(255)).astype(np.uint8).tobytes()
        for k in reversed(range(width))
    )


def packed(found: Explored, aggregate: xr.DataTree) -> str:
    """The tables with the names of everything: a header and numbers, compressed, as base64.

    Before compression: the length of the header (4 bytes, the highest first), the header (JSON),
    and the numbers.
    """
    numbers = _Numbers()
    axes: list[Axis] = []
    tables = [_table(table, numbers, axes, aggregate) for table in found.tables]
    methods = list(dict.fromkeys(table.method for table in found.tables))
    seeded = list(dict.fromkeys(t.method for t in found.tables if t.seeds))
    header = {
        "tables": tables,
        "first": _first(found.tables),
        "axes": [_axis(axis) for axis in axes],
        "methods": methods,
        "colors": {m: color_of(k, len(seeded)) for k, m in enumerate(seeded)},
        "fates": {
            method: {name: numbers.put(counts, MEAN_BYTES) for name, counts in fates.items()}
            for method, fates in found.fates.items()
        },
        "across": (words("entry ") + symbol(DENSITY.dims[-1]) + words(" of the estimate")).html,
        "played": DENSITY.dims[0],
    }
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode()
    raw = len(text).to_bytes(WORD, "big") + text + b"".join(numbers.parts)
    return base64.b64encode(gzip.compress(raw, compresslevel=9, mtime=0)).decode()


def _first(tables: Sequence[Table]) -> int:
    """The table that is shown first: with seeds, and over most swept parameters."""

    def rank(table: Table) -> tuple[bool, bool, int]:
        several = sum(a.size > 1 for a in table.axes if a.name in table.swept)
        return table.variable == DENSITY.name, not table.seeds, -several

    return min(range(len(tables)), key=lambda k: rank(tables[k]))


def _table(
    table: Table, numbers: _Numbers, axes: list[Axis], aggregate: xr.DataTree
) -> dict[str, Any]:
    """One table in the header; its axes go among those that are there."""
    dense = table.variable == DENSITY.name
    label, data = measured(table.variable), aggregate[GROUP][table.method].to_dataset()
    clocked = clock(data["time"].attrs) if table.along == "time" else None
    beside = table.variable in ALSO_DENSITIES and DENSITY.name in data
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
        "clock": clocked.html if clocked else "",
        "others": list(table.others),
        "density": dense,
        "offered": not dense and not beside,
        "mean": numbers.put(table.mean, MEAN_BYTES),
        "error": None if table.error is None else numbers.put(table.error, ERROR_BYTES),
    }


def _place(axis: Axis, known: list[Axis]) -> int:
    """Place of an axis among those that are known; a new one is added."""
    for k, one in enumerate(known):
        if one.name == axis.name and np.array_equal(one.values, axis.values):
            return k
    known.append(axis)
    return len(known) - 1


def _axis(axis: Axis) -> dict[str, Any]:
    """An axis in the header; groups of ξ have no value where that differs between points."""
    grouped = axis.name == DENSITY.dims[1] and axis.values.dtype.kind in "iu"
    name = words("group of ") + axis.symbol if grouped else axis.symbol
    shown = [str(k + 1) if grouped else axis.shown(k) for k in range(axis.size)]
    numbers = axis.values.astype(float) if axis.values.dtype.kind in "fiu" else None
    uneven = numbers is not None and axis.scale != "linear" and axis.equals == " = "
    spread = uneven and not grouped and bool((axis.values > 0).all())
    return {
        "name": axis.name,
        "html": axis.label.html,
        "symbol": name.html,
        "plain": name.plain,
        "equals": axis.equals,
        "scale": axis.scale,
        "values": None if numbers is None else [_short(v) for v in numbers],
        "shown": shown,
        # At the ticks of uneven numbers: all in full or all with powers of ten.
        "named": [t.html for t in labels(axis.values)] if spread else None,
    }


def _short(value: float) -> float | None:
    """A value of an axis to seven digits."""
    return float(f"{value:.7g}") if np.isfinite(value) else None
