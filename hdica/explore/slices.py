"""Slices of results: means over seeds along some dimensions, at one position along the others."""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis import points
from hdica.analysis.points import DENSITY, Point, Quantity
from hdica.analysis.reading import finished

MOST_CELLS = 160
"""Cells of a map along each side; of more values every second, third, ... is read."""


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
    part = points.with_error(tree, shown)
    kept = {name: slice(None, None, every_nth(part.sizes[name])) for name in sides}
    free = (*sides, shown.along.name) if shown.along and whole else sides

    def reduced(band: xr.Dataset, shown: Quantity) -> xr.Dataset:
        means = points.means_of(band, shown).assign(points.counts(band["status"]))
        return means.reset_coords(drop=True)

    part = part.isel({**_places(shown, point, *free), **kept})
    return points.in_bands(part, shown, sides[0] if sides else "", reduced).transpose(*sides, ...)


def runs(tree: xr.DataTree, shown: Quantity, point: Point) -> NDArray[np.float64]:
    """Values of every finished seed at one point and time, shape (seeds,)."""
    time = {shown.along.name: point[shown.along.name]} if shown.along else {}
    part = points.with_error(tree, shown).isel(_places(shown, point, *time)).load()
    values = np.atleast_1d(finished(part, shown.variable).isel(time).to_numpy()).astype(float)
    return values[np.isfinite(values)]


def density(tree: xr.DataTree, shown: Quantity, point: Point, *free: str) -> xr.Dataset:
    """The density of the estimate given the feature at one point, a snapshot and a group.

    ``mean`` and ``error`` over free own dimensions and x, those of one seed of independent entries.
    """
    part = points.with_error(tree, shown).isel(_places(shown, point, *free, DENSITY.dims[-1]))
    return points.densities_of(part.load(), shown).transpose(*free, DENSITY.dims[-1])


def reason(tree: xr.DataTree, shown: Quantity, point: Point) -> str:
    """Why the first point that did not get its numbers diverged or failed; empty if none did."""
    data = tree[shown.method].to_dataset()
    if "reason" not in data:
        return ""
    at = {one.name: point[one.name] for one in shown.swept}
    texts = np.atleast_1d(data["reason"].isel(at).load().to_numpy())
    return next((str(text) for text in texts if text), "")


def _places(shown: Quantity, point: Point, *free: str) -> dict[str, int]:
    """Positions of a point along the dimensions of a quantity, but for those that are free."""
    return {one.name: point[one.name] for one in shown.axes if one.name not in free}
