"""Aggregated data as flat tables for download."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray as xr

from hdica.analysis.findings import COLUMNS, record
from hdica.show.finding import Finding

DIGITS = 6
"""Significant digits in the page's tables; the netCDF file has all."""

BUDGET = 2_500_000
"""Most numbers times characters, roughly bytes, that the page embeds."""


def tables(aggregate: xr.DataTree) -> dict[str, dict[str, Any]]:
    """Flat tables of every analysis, the smallest first, NaN as None.

    Variables with the same dimensions share a table; each is columns of equal length, the
    coordinates first: ``{"convergence by n, time": {"columns": {name: list}, "long_name": {name:
    text}}}``.
    """
    out: dict[str, dict[str, Any]] = {}
    for name, node in aggregate.children.items():
        data = node.to_dataset()
        by_dims: dict[tuple[str, ...], list[str]] = {}
        for variable, values in data.data_vars.items():
            by_dims.setdefault(tuple(map(str, values.dims)), []).append(str(variable))
        for dims, members in by_dims.items():
            key = f"{name} by {', '.join(dims)}" if dims else name
            out[key] = _flat(data, dims, members)
    return dict(sorted(out.items(), key=lambda item: _size(item[1])))


def of_findings(findings: Mapping[str, Sequence[Finding]]) -> dict[str, Any]:
    """The records of all findings as one table."""
    rows = [record(name, one) for name, some in findings.items() for one in some]
    columns = {name: _plain(np.array([row[name] for row in rows])) for name in COLUMNS}
    return {"columns": columns, "long_name": {}}


def within_budget(found: dict[str, dict[str, Any]]) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """The tables that fit into a page, and the names of those that do not."""
    kept: dict[str, dict[str, Any]] = {}
    used, left = 0, []
    for name, table in found.items():
        used += _size(table)
        if used > BUDGET:
            left.append(name)
        else:
            kept[name] = table
    return kept, left


def _flat(data: xr.Dataset, dims: tuple[str, ...], members: list[str]) -> dict[str, Any]:
    own = data[members].reset_coords(drop=True)
    shape = tuple(data.sizes[d] for d in dims)
    columns: dict[str, list[Any]] = {}
    for d, grid in zip(dims, np.indices(shape), strict=True):
        at = data[d].values if d in data.coords else np.arange(data.sizes[d])
        columns[d] = _plain(at[grid.ravel()])
    for member in members:
        columns[member] = _plain(own[member].transpose(*dims).values.ravel())
    return {
        "columns": columns,
        "long_name": {m: str(own[m].attrs.get("long_name", "")) for m in members},
    }


def _plain(values: np.ndarray) -> list[Any]:
    """JSON values: numbers to a few digits, None for NaN, text as it is."""
    if values.dtype.kind in "iub":
        return [int(v) for v in values]
    if values.dtype.kind == "f":
        return [float(f"{v:.{DIGITS}g}") if np.isfinite(v) else None for v in values]
    return [str(v) for v in values]


def _size(table: dict[str, Any]) -> int:
    return sum(8 * len(column) for column in table["columns"].values())
