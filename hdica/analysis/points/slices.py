"""Slices of results: means over seeds with their errors, read no more than is asked for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.densities.compute import histogram_of, over_bins, xi_of
from hdica.analysis.points.space import DENSITY, Point, Quantity
from hdica.analysis.reading import finished
from hdica.status import STATUS_NAMES
from hdica.verdict.ladder import moments

Array = NDArray[np.float64]
MOST_CELLS = 160
"""Cells of a map along each side; of more values every second, third, ... is read."""
BAND = 2**22
"""Numbers of a variable that are in memory at a time, unless one row of a map has more."""
KEPT = 2**22
"""Numbers of a map that are kept for all times; of a larger one each time is read anew."""


def every_nth(size: int, most: int = MOST_CELLS) -> int:
    """The step with which at most so many of some values are taken."""
    return max(1, math.ceil(size / most))


def places(shown: Quantity, point: Point, free: tuple[str, ...]) -> dict[str, int]:
    """Positions of a point along the dimensions of a quantity, but for those that are free."""
    return {one.name: point[one.name] for one in shown.axes if one.name not in free}


def surface(
    tree: xr.DataTree, shown: Quantity, point: Point, x: str, y: str, whole: bool = True
) -> xr.Dataset:
    """A variable over two swept parameters, mean over seeds, at a point of the other ones.

    ``y`` is empty for a map of one row. ``mean`` and ``error`` (standard error over seeds; of a
    method without seeds the solver's, NaN where it has none) over y, x and, if all times are wanted
    (``whole``) rather than that of the point, the quantity's own dimension; and the counts of seeds
    by status, ``pending``, ``done``, ``diverged`` and ``failed``, over y, x.
    """
    data = tree[shown.method].to_dataset()
    sides = tuple(name for name in (y, x) if name)
    along = shown.along.name if shown.along else ""
    free = (*sides, *((along,) if along and whole else ()))
    kept = {name: slice(None, None, every_nth(data.sizes[name])) for name in sides}
    fixed = {k: v for k, v in places(shown, point, free).items() if k != along}
    part = _with_error(data, shown).isel({**fixed, **kept})
    rows = [_reduced(band.load(), shown, point, free) for band in _bands(part, sides, shown)]
    found = rows[0] if len(rows) == 1 else xr.concat(rows, dim=sides[0])
    return found.transpose(*sides, ...)


def _bands(part: xr.Dataset, sides: tuple[str, ...], shown: Quantity) -> Iterator[xr.Dataset]:
    """Parts along the first side, each of a bounded size."""
    size = part.sizes[sides[0]]
    row = max(1, math.prod(part[shown.variable].shape) // size)
    most = max(1, BAND // row)
    for low in range(0, size, most):
        yield part.isel({sides[0]: slice(low, low + most)})


def _reduced(band: xr.Dataset, shown: Quantity, point: Point, free: tuple[str, ...]) -> xr.Dataset:
    """Mean, error and counts of what is in memory."""
    if shown.along and shown.along.name not in free:
        band = band.isel({shown.along.name: point[shown.along.name]})
    return _means(band, shown).assign(_counts(band["status"])).reset_coords(drop=True)


def _counts(status: xr.DataArray) -> dict[str, xr.DataArray]:
    """How many seeds have each status, by its name."""
    found = {name: status == code for code, name in enumerate(STATUS_NAMES)}
    return {k: v.sum("seed") if "seed" in v.dims else v.astype(int) for k, v in found.items()}


def course(tree: xr.DataTree, shown: Quantity, point: Point) -> xr.Dataset:
    """``mean``, ``error`` and counts as of :func:`surface` at one point, over its own dimension."""
    free = (shown.along.name,) if shown.along else ()
    part = _at(tree, shown, point, free)
    return _reduced(part, shown, point, free)


def cut(tree: xr.DataTree, shown: Quantity, point: Point, x: str) -> xr.Dataset:
    """A variable along one swept parameter through a point, at the point's time: a map's row."""
    return surface(tree, shown, point, x, "", whole=False)


def runs(tree: xr.DataTree, shown: Quantity, point: Point) -> Array:
    """Values of every finished seed at one point and time, shape (seeds,)."""
    part = _at(tree, shown, point, (shown.along.name,) if shown.along else ())
    values = finished(part, shown.variable)
    if shown.along:
        values = values.isel({shown.along.name: point[shown.along.name]})
    found = np.atleast_1d(values.to_numpy()).astype(float)
    return found[np.isfinite(found)]


def _at(tree: xr.DataTree, shown: Quantity, point: Point, free: tuple[str, ...]) -> xr.Dataset:
    data = tree[shown.method].to_dataset()
    return _with_error(data, shown).isel(places(shown, point, free)).load()


def _with_error(data: xr.Dataset, shown: Quantity) -> xr.Dataset:
    """A variable with the status, and of a method without seeds with what it says of it itself.

    That is the solver's own error; of a density, the distribution function.
    """
    more = [f"{shown.variable}_error", *(["cdf"] if shown.variable == DENSITY.name else [])]
    own = [name for name in more if not shown.seeds and name in data]
    return data[["status", shown.variable, *own]]


def density(tree: xr.DataTree, shown: Quantity, point: Point) -> xr.Dataset:
    """The density of the estimate given the feature at one point, a snapshot and a group.

    ``mean`` and ``error`` over x, of runs and of limits the mean over the bin around each x; for
    one seed the error is that of independent entries. ``xi`` is the value of xi of the group.
    """
    data = tree[shown.method].to_dataset()
    more = [name for name in ("xi", "weight", "cdf") if name in data]
    at = places(shown, point, (DENSITY.dims[-1],))
    part = data[["status", DENSITY.name, *more]].isel(at).load()
    if shown.seeds:
        found = _histograms(part)
    else:
        mean = over_bins(part)
        found = xr.Dataset({"mean": mean, "error": xr.full_like(mean, np.nan)})
    return found.assign(xi=xi_of(part).mean()).reset_coords(drop=True)


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

    ``mean`` and ``error`` as of :func:`surface`, of densities as of :func:`density`, over every
    dimension of the variable but the seed. ``kept`` are positions along some of the variable's own
    dimensions that are wanted; of others all are.
    """
    data = tree[shown.method].to_dataset()
    dense = shown.variable == DENSITY.name and shown.seeds > 0
    part = _with_error(data, shown)
    if dense and "weight" in data:
        part = part.assign(weight=data["weight"])
    sides = tuple(sorted((one.name for one in shown.swept), key=lambda d: -data.sizes[d]))
    rows = []
    for band in _bands(part, sides, shown) if sides else (part,):
        loaded = band.load()
        found = _histograms(loaded) if dense else _means(loaded, shown)
        rows.append(found.isel({k: list(v) for k, v in kept.items()}, missing_dims="ignore"))
    found = rows[0] if len(rows) == 1 else xr.concat(rows, dim=sides[0])
    return found.transpose(*(one.name for one in shown.axes), missing_dims="ignore")


def _means(band: xr.Dataset, shown: Quantity) -> xr.Dataset:
    """Mean and error of what is in memory, at all its times; of one seed no error is known."""
    dense = shown.variable == DENSITY.name
    mean = over_bins(band) if dense else finished(band, shown.variable)
    error = xr.full_like(mean, np.nan)
    if "seed" in mean.dims:
        found = moments(mean)
        mean, error = found["mean"], found["se"]
    if f"{shown.variable}_error" in band:
        error = finished(band, f"{shown.variable}_error")
    return xr.Dataset({"mean": mean, "error": error}).reset_coords(drop=True)


def _histograms(band: xr.Dataset) -> xr.Dataset:
    """Mean and error of densities that are in memory."""
    found = histogram_of(band, band["n"].astype(float) if "n" in band.coords else math.nan)
    out = {"mean": found["density"], "error": found["density_se"]}
    return xr.Dataset(out).reset_coords(drop=True)


def fates(tree: xr.DataTree, method: str) -> xr.Dataset:
    """Counts of seeds by status at every grid point, with the names of :data:`STATUS_NAMES`."""
    return xr.Dataset(_counts(tree[method].to_dataset()["status"].load())).reset_coords(drop=True)
