"""Means over seeds with their errors: at every grid point, and in slices of results."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.laws.densities import histogram_of, over_bins
from hdica.analysis.points.space import (
    DENSITY,
    TIMES,
    Point,
    Quantity,
    beside,
    methods_in,
    quantity,
    variables_in,
)
from hdica.analysis.reading import finished
from hdica.show.choose import spread
from hdica.status import STATUS_NAMES
from hdica.systems.outputs import HISTOGRAM
from hdica.verdict.ladder import moments

MOST_CELLS = 160
"""Cells of a map along each side; of more values every second, third, ... is read."""
BAND = 2**22
"""Numbers of a variable that are in memory at a time, unless one row of a map has more."""
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
        found[method] = _of_method(tree, [one for one in wanted if one.method == method])
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
            most = min(MOST // _numbers(one, 1) for one in timed)
            found[name] = spread_times(timed[0].axis(name).size, most)
    return found


def spread_times(size: int, most: int) -> list[int]:
    """Positions of the first time, the last and others evenly between; of one alone, the last."""
    return spread(size, most) if most > 1 else [size - 1]


def _of_method(tree: xr.DataTree, every: Sequence[Quantity]) -> xr.Dataset:
    data, kept, found = tree[every[0].method].to_dataset(), _times(every), {}
    for name, count in _counts(data["status"].load()).items():
        found[f"runs_{name}"] = count.reset_coords(drop=True)
        found[f"runs_{name}"].attrs = {"long_name": f"points that are {name}", "units": "1"}
    for one in every:
        read = _everywhere(tree, one, kept)
        found[one.variable] = read["mean"].assign_attrs(_about(tree, one))
        if bool(read["error"].notnull().any()):
            kind = "standard error over seeds" if one.seeds else "the solver's own error"
            units = found[one.variable].attrs["units"]
            found[f"{one.variable}_error"] = read["error"].assign_attrs(long_name=kind, units=units)
    out = xr.Dataset(found, attrs={"method": every[0].method, "seeds": every[0].seeds})
    for dim in out.coords:
        out[dim].attrs = dict(data[dim].attrs)
    return out


def _everywhere(tree: xr.DataTree, shown: Quantity, kept: Mapping[str, list[int]]) -> xr.Dataset:
    """``mean`` and ``error`` over every dimension but the seed, at the times that are kept."""
    longest = max(shown.swept, key=lambda one: one.size, default=None)

    def reduced(band: xr.Dataset) -> xr.Dataset:
        return _densities(band, shown).isel(kept, missing_dims="ignore")

    part = _with_error(tree, shown)
    found = _in_bands(part, shown, longest.name if longest else "", reduced)
    return found.transpose(*(one.name for one in shown.axes), missing_dims="ignore")


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


def every_nth(size: int, most: int = MOST_CELLS) -> int:
    """The step with which at most so many of some values are taken."""
    return max(1, math.ceil(size / most))


def mean_over(
    tree: xr.DataTree, shown: Quantity, point: Point, *sides: str, whole: bool = True
) -> xr.Dataset:
    """A variable over up to two swept parameters, mean over seeds, at a point of the other ones.

    ``mean`` and ``error`` (standard error over seeds; of a method without seeds the solver's, NaN
    where it has none) over the sides in their order and, if all times are wanted (``whole``) rather
    than that of the point, the quantity's own dimension; and the counts of seeds by status,
    ``pending``, ``done``, ``diverged`` and ``failed``, over the sides.
    """
    part = _with_error(tree, shown)
    kept = {name: slice(None, None, every_nth(part.sizes[name])) for name in sides}
    free = (*sides, shown.along.name) if shown.along and whole else sides

    def reduced(band: xr.Dataset) -> xr.Dataset:
        return _means(band, shown).assign(_counts(band["status"])).reset_coords(drop=True)

    part = part.isel({**_places(shown, point, *free), **kept})
    return _in_bands(part, shown, sides[0] if sides else "", reduced).transpose(*sides, ...)


def _places(shown: Quantity, point: Point, *free: str) -> dict[str, int]:
    """Positions of a point along the dimensions of a quantity, but for those that are free."""
    return {one.name: point[one.name] for one in shown.axes if one.name not in free}


def _in_bands(
    part: xr.Dataset, shown: Quantity, side: str, reduced: Callable[[xr.Dataset], xr.Dataset]
) -> xr.Dataset:
    """What becomes of data that are read in bands along a side, each of a bounded size."""
    if not side:
        return reduced(part.load())
    size = part.sizes[side]
    most = max(1, BAND // max(1, math.prod(part[shown.variable].shape) // size))
    bands = (part.isel({side: slice(low, low + most)}) for low in range(0, size, most))
    rows = [reduced(band.load()) for band in bands]
    return rows[0] if len(rows) == 1 else xr.concat(rows, dim=side)


def _counts(status: xr.DataArray) -> dict[str, xr.DataArray]:
    """How many seeds have each status, by its name."""
    found = {name: status == code for code, name in enumerate(STATUS_NAMES)}
    return {k: v.sum("seed") if "seed" in v.dims else v.astype(int) for k, v in found.items()}


def runs(tree: xr.DataTree, shown: Quantity, point: Point) -> NDArray[np.float64]:
    """Values of every finished seed at one point and time, shape (seeds,)."""
    time = {shown.along.name: point[shown.along.name]} if shown.along else {}
    part = _with_error(tree, shown).isel(_places(shown, point, *time)).load()
    found = np.atleast_1d(finished(part, shown.variable).isel(time).to_numpy()).astype(float)
    return found[np.isfinite(found)]


def _with_error(tree: xr.DataTree, shown: Quantity) -> xr.Dataset:
    """A variable with the status and with what its mean and its error are made of.

    That is, of a method without seeds, the solver's own error, and of its density the distribution
    function; of histograms it is the weight of their groups.
    """
    data, dense = tree[shown.method].to_dataset(), shown.variable == DENSITY.name
    more = ["weight"] if dense else []
    if not shown.seeds:
        more = [f"{shown.variable}_error", *(["cdf"] if dense else [])]
    return data[["status", shown.variable, *(name for name in more if name in data)]]


def density(tree: xr.DataTree, shown: Quantity, point: Point, *free: str) -> xr.Dataset:
    """The density of the estimate given the feature at one point, a snapshot and a group.

    ``mean`` and ``error`` over own dimensions that are free and x, of runs and of limits the mean
    over the bin around each x; for one seed the error is that of independent entries.
    """
    part = _with_error(tree, shown).isel(_places(shown, point, *free, DENSITY.dims[-1]))
    return _densities(part.load(), shown).transpose(*free, DENSITY.dims[-1])


def reason(tree: xr.DataTree, shown: Quantity, point: Point) -> str:
    """Why the first point that did not get its numbers diverged or failed; empty if none did."""
    data = tree[shown.method].to_dataset()
    if "reason" not in data:
        return ""
    at = {one.name: point[one.name] for one in shown.swept}
    texts = np.atleast_1d(data["reason"].isel(at).load().to_numpy())
    return next((str(text) for text in texts if text), "")


def _means(band: xr.Dataset, shown: Quantity) -> xr.Dataset:
    """Mean and error of what is in memory, at all its times; of one seed no error is known."""
    mean = over_bins(band) if shown.variable == DENSITY.name else finished(band, shown.variable)
    error = xr.full_like(mean, np.nan)
    if "seed" in mean.dims:
        found = moments(mean)
        mean, error = found["mean"], found["se"]
    if f"{shown.variable}_error" in band:
        error = finished(band, f"{shown.variable}_error")
    return xr.Dataset({"mean": mean, "error": error}).reset_coords(drop=True)


def _densities(band: xr.Dataset, shown: Quantity) -> xr.Dataset:
    """The same, of histograms with an error for one seed too."""
    if shown.variable != DENSITY.name or not shown.seeds:
        return _means(band, shown)
    found = histogram_of(band, band["n"].astype(float) if "n" in band.coords else math.nan)
    out = {"mean": found["density"], "error": found["density_se"]}
    return xr.Dataset(out).reset_coords(drop=True)
