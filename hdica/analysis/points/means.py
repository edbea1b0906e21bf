"""Means at every grid point with their errors: what a page needs to let readers look around."""

from __future__ import annotations

import math
from collections.abc import Sequence

import xarray as xr

from hdica.analysis.points.slices import everywhere, fates
from hdica.analysis.points.space import (
    DENSITY,
    TIMES,
    Quantity,
    beside,
    methods_in,
    quantity,
    variables_in,
)
from hdica.show.choose import spread
from hdica.status import STATUS_NAMES
from hdica.systems.method import HISTOGRAM

GROUP = "points"
"""Of the aggregate: its groups have the names of methods."""
MOST = 2**20
"""Numbers of a variable that are kept; of more, fewer times are."""
ALTOGETHER = 2**22
"""Numbers of all variables of all methods that are kept."""
ENTRIES = 2
"""A variable with more own dimensions of entries, as pixels of pictures, is not looked at."""


def means(tree: xr.DataTree) -> xr.DataTree | None:
    """Every variable of every method, mean over seeds, at all grid points; None without any.

    A group for each method, over its swept parameters, ``n`` and the variables' own dimensions:
    each variable, ``<variable>_error`` (standard error over seeds; of a method without seeds the
    solver's, left out where there is none), and the counts of points by status, ``runs_done``,
    ``runs_diverged``, ``runs_failed`` and ``runs_pending``. Attributes of a variable: ``along``,
    the own dimension along which it is drawn, and ``others``, which ``method/variable`` have the
    same quantity. Where there are too many numbers, fewer times are kept (the first, the last,
    others evenly between), then fewer variables. Attributes of the whole: ``times``, how many there
    were at most, and ``left``, which ``method/variable`` had too many numbers.
    """
    every = [one for method in methods_in(tree) for one in _explorable(tree, method)]
    if not every:
        return None
    wanted = _within(ALTOGETHER, [one for one in every if _numbers(one, 1) <= MOST])
    left = [f"{one.method}/{one.variable}" for one in every if one not in wanted]
    times = max((a.size for one in every for a in one.axes if a.name in TIMES), default=1)
    found = {"/": xr.Dataset(attrs={"left": " ".join(left), "times": times})}
    for method in dict.fromkeys(one.method for one in wanted):
        own = [one for one in wanted if one.method == method]
        found[method] = _of_method(tree, own, _times(own))
    return xr.DataTree.from_dict(found)


def _explorable(tree: xr.DataTree, method: str) -> list[Quantity]:
    """Variables with something to choose, or to be seen along, order parameters first."""
    every = [quantity(tree, method, name) for name in variables_in(tree, method)]
    return [
        one
        for one in every
        if len(one.entries) <= ENTRIES
        and (one.numbers or (one.along is not None and one.along.size > 1))
    ]


def _numbers(one: Quantity, times: int) -> int:
    """How many numbers a variable has at so many times."""
    return math.prod(min(a.size, times) if a.name in TIMES else a.size for a in one.axes)


def _within(most: int, every: list[Quantity]) -> list[Quantity]:
    """Those that fit, the first variable of every method before the second of any."""
    methods = [one.method for one in every]
    ranks = [methods[:k].count(method) for k, method in enumerate(methods)]
    kept, used = set(), 0
    for k in sorted(range(len(every)), key=lambda k: ranks[k]):
        size = min(_numbers(every[k], max(a.size for a in every[k].axes)), MOST)
        if used + size <= most:
            kept.add(k)
            used += size
    return [one for k, one in enumerate(every) if k in kept]


def _times(every: Sequence[Quantity]) -> dict[str, list[int]]:
    """Positions of the times that are kept of a method, for all its variables."""
    found = {}
    for name in TIMES:
        timed = [one for one in every if any(a.name == name for a in one.axes)]
        if timed:
            size = timed[0].axis(name).size
            most = min(MOST // _numbers(one, 1) for one in timed)
            if most < size:
                found[name] = spread_times(size, most)
    return found


def spread_times(size: int, most: int) -> list[int]:
    """Positions of the first time, the last and others evenly between; of one alone, the last."""
    return spread(size, most) if most > 1 else [size - 1]


def _of_method(
    tree: xr.DataTree, every: Sequence[Quantity], kept: dict[str, list[int]]
) -> xr.Dataset:
    data = tree[every[0].method].to_dataset()
    found = {f"runs_{k}": v for k, v in fates(tree, every[0].method).data_vars.items()}
    for name in STATUS_NAMES:
        found[f"runs_{name}"].attrs = {"long_name": f"points that are {name}", "units": "1"}
    for one in every:
        read = everywhere(tree, one, kept)
        found[one.variable] = read["mean"].assign_attrs(_about(tree, one))
        if bool(read["error"].notnull().any()):
            kind = "standard error over seeds" if one.seeds else "the solver's own error"
            units = found[one.variable].attrs["units"]
            found[f"{one.variable}_error"] = read["error"].assign_attrs(long_name=kind, units=units)
    out = xr.Dataset(found, attrs={"method": every[0].method, "seeds": every[0].seeds})
    for dim in out.coords:
        out[dim].attrs = dict(data[dim].attrs)
    return out


def _about(tree: xr.DataTree, one: Quantity) -> dict[str, str]:
    """Attributes of a mean."""
    attrs = tree[one.method][one.variable].attrs
    about = attrs.get("long_name", one.variable)
    if one.variable == DENSITY.name and "cdf" in tree[one.method]:
        about = HISTOGRAM.long_name  # of limits too: see over_bins
    others = beside(tree, one) if one.variable != DENSITY.name else []
    return {
        "long_name": f"{about}, mean over seeds" if one.seeds else about,
        "units": attrs.get("units", "1"),
        "along": one.along.name if one.along else "",
        "others": " ".join(f"{other.method}/{other.variable}" for other in others),
    }
