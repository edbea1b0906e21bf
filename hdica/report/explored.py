"""What readers of a page can look around in: tables of means, as many as fit into the page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.points.means import GROUP, spread_times
from hdica.analysis.points.space import DENSITY, TIMES, Axis
from hdica.show.words import method_name, symbol
from hdica.status import STATUS_NAMES

BUDGET = 740_000
"""Bytes of the tables in a page, which are at most 1.0 MB of text there."""
MEAN_BYTES, ERROR_BYTES = 3, 2
"""Leading bytes of single precision that are kept: five digits of a mean, two of an error."""
LEAST_TIMES = 12
"""Rather than fewer times than these, densities and further variables are left out."""
Values = NDArray[np.floating]


@dataclass(frozen=True, eq=False)
class Table:
    """One variable of one method at every grid point.

    Parameters
    ----------
    method, variable
        Their names.
    axes
        Every dimension, in the order of the values.
    swept
        Names of swept parameters and ``n``.
    along
        Name of the own dimension along which it is drawn, empty for none.
    seeds
        How many there are, 0 for a method without.
    others
        ``method/variable`` of what has the same quantity.
    mean, error
        Shape as of the axes; no error where there is none.
    """

    method: str
    variable: str
    axes: tuple[Axis, ...]
    swept: tuple[str, ...]
    along: str
    seeds: int
    others: tuple[str, ...]
    mean: Values
    error: Values | None

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
                error = None if out.error is None else out.error.take(at, axis=k)
                out = replace(out, axes=axes, mean=out.mean.take(at, axis=k), error=error)
        return out


@dataclass(frozen=True, eq=False)
class Explored:
    """What a page holds of the means of results.

    Parameters
    ----------
    tables
        Those that fit, by method in the order of the study, order parameters first; none if not
        even one fits at one time.
    fates
        By method: counts of points by status, its name first, over the swept parameters and
        ``n``; without a method all of whose points are done.
    left
        What was left out to keep the page small, in words.
    """

    tables: tuple[Table, ...]
    fates: Mapping[str, Mapping[str, Values]]
    left: str


def explored(aggregate: xr.DataTree, budget: int = BUDGET) -> Explored | None:
    """What a page can show of the means at every grid point; None if there are none."""
    if GROUP not in aggregate:
        return None
    every = [
        table
        for node in aggregate[GROUP].children.values()
        for table in _tables(node.to_dataset())
        if np.unique(table.mean[np.isfinite(table.mean)]).size > 1
    ]
    about = aggregate[GROUP].attrs
    if not every:
        return Explored((), {}, "") if about["left"] else None
    kept, left = fitting(every, budget, int(about["times"]), set(str(about["left"]).split()))
    names = {table.method for table in kept}
    fates = {name: _fates(aggregate[GROUP][name].to_dataset()) for name in names}
    return Explored(tuple(kept), {k: v for k, v in fates.items() if v}, left)


def _tables(data: xr.Dataset) -> list[Table]:
    """Tables of one method."""
    swept = tuple(map(str, data[f"runs_{STATUS_NAMES[0]}"].dims))
    out = []
    for name, values in data.data_vars.items():
        if "along" not in values.attrs:
            continue
        error = data.get(f"{name}_error")
        axes = tuple(Axis(str(d), data[d].to_numpy()) for d in values.dims)
        spread = None if error is None else error.broadcast_like(values).transpose(*values.dims)
        about, others = values.attrs["along"], tuple(str(values.attrs["others"]).split())
        out.append(
            Table(
                str(data.attrs["method"]), str(name), axes, swept, about, int(data.attrs["seeds"]),
                others, values.to_numpy(), None if spread is None else spread.to_numpy(),
            )
        )  # fmt: skip
    return out


def _fates(data: xr.Dataset) -> dict[str, Values]:
    """Counts by status where some point is not done."""
    counts = {name: data[f"runs_{name}"].to_numpy() for name in STATUS_NAMES}
    return counts if any(counts[k].any() for k in STATUS_NAMES if k != "done") else {}


def fitting(
    every: list[Table], budget: int, of_times: int, gone: set[str]
) -> tuple[list[Table], str]:
    """As much as fits into so many bytes, and what was left out for that, in words.

    Of times the first, the last and others evenly between are kept, down to a few; then densities
    are left out, then variables beyond the first of each method, then further times, and at last
    all but one table. Swept parameters keep every value. ``of_times`` is how many times results
    have, and ``gone`` has the ``method/variable`` that were too many before.
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
            found = [table.thinned(times) for table in tables]
            return found, _left_out({t.key for t in every} | gone, found, times, of_times)
    return [], ""


def _left_out(every: set[str], found: list[Table], times: int, of_times: int) -> str:
    """What was left out, in words."""
    methods, names = (
        {key.split("/")[k] for key in every} - {table.key.split("/")[k] for table in found}
        for k in (0, 1)
    )
    parts = [f"{times} of {of_times} times"] if times < of_times else []
    if DENSITY.name in names:
        parts.append("no densities")
    if names - {DENSITY.name}:
        kept = dict.fromkeys(symbol(table.variable).html for table in found)
        parts.append(f"of the variables only {', '.join(kept)}")
    if methods:
        kept = dict.fromkeys(method_name(table.method).html for table in found)
        parts.append(f"of the methods only {', '.join(kept)}")
    return ", ".join(parts)
