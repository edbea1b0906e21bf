"""Slices of results: means over seeds with their errors, read no more than is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.densities.compute import histogram_of, over_bins
from hdica.analysis.points.space import DENSITY, Point, Quantity
from hdica.analysis.reading import finished
from hdica.status import STATUS_NAMES
from hdica.verdict.ladder import moments

Array = NDArray[np.float64]
MOST_CELLS = 160
"""Cells of a map along each side; of more values every second, third, ... is read."""
BAND = 2**22
"""Numbers of a variable that are in memory at a time, unless one row of a map has more."""


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


def runs(tree: xr.DataTree, shown: Quantity, point: Point) -> Array:
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


def density(tree: xr.DataTree, shown: Quantity, point: Point) -> xr.Dataset:
    """The density of the estimate given the feature at one point, a snapshot and a group.

    ``mean`` and ``error`` over x, of runs and of limits the mean over the bin around each x; for
    one seed the error is that of independent entries.
    """
    part = _with_error(tree, shown).isel(_places(shown, point, DENSITY.dims[-1]))
    return _densities(part.load(), shown)


def reason(tree: xr.DataTree, shown: Quantity, point: Point) -> str:
    """Why the first point that did not get its numbers diverged or failed; empty if none did."""
    data = tree[shown.method].to_dataset()
    if "reason" not in data:
        return ""
    at = {one.name: point[one.name] for one in shown.swept}
    texts = np.atleast_1d(data["reason"].isel(at).load().to_numpy())
    return next((str(text) for text in texts if text), "")


def everywhere(
    tree: xr.DataTree, shown: Quantity, kept: Mapping[str, Sequence[int]] = MappingProxyType({})
) -> xr.Dataset:
    """A variable at every grid point, mean over seeds, read in bands.

    ``mean`` and ``error`` as of :func:`mean_over`, of densities as of :func:`density`, over every
    dimension of the variable but the seed. ``kept`` are positions along some of the variable's own
    dimensions that are wanted; of others all are.
    """
    longest = max(shown.swept, key=lambda one: one.size, default=None)

    def reduced(band: xr.Dataset) -> xr.Dataset:
        wanted = {k: list(v) for k, v in kept.items()}
        return _densities(band, shown).isel(wanted, missing_dims="ignore")

    found = _in_bands(_with_error(tree, shown), shown, longest.name if longest else "", reduced)
    return found.transpose(*(one.name for one in shown.axes), missing_dims="ignore")


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


def fates(tree: xr.DataTree, method: str) -> xr.Dataset:
    """Counts of seeds by status at every grid point, with the names of :data:`STATUS_NAMES`."""
    return xr.Dataset(_counts(tree[method].to_dataset()["status"].load())).reset_coords(drop=True)
