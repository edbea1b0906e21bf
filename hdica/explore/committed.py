"""What is committed of a study so far, as the lazy tree that a published store is opened as."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from xarray.backends.common import BackendArray
from xarray.core import indexing

from hdica.status import DIVERGED, PENDING
from hdica.store.publish import about_dim, about_study
from hdica.systems.outputs import Output

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from hdica.store.dense import Source
    from hdica.study.study import Study

REASON = Output("reason", (), "why the point diverged or failed")


class _Committed(BackendArray):
    """One variable of a group of which blocks are being committed, read where it is indexed.

    ``fill`` is its value where a point is pending.
    """

    def __init__(self, source: Source, output: Output, dtype: Any, fill: Any) -> None:
        self.source, self.output, self.fill = source, output, fill
        self.points = tuple(source.point_dims.values())
        self.own = source.placed[0].segment.shape(output.dims)
        self.shape, self.dtype = (*self.points, *self.own), np.dtype(dtype)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        support = indexing.IndexingSupport.OUTER
        return indexing.explicit_indexing_adapter(key, self.shape, support, self._read)

    def _read(self, key: tuple[Any, ...]) -> NDArray[Any]:
        """Values at the outer product of integers, slices and arrays of integers."""
        depth = len(self.points)
        chosen = [np.arange(n)[k] for n, k in zip(self.points, key[:depth], strict=True)]
        grid = np.ix_(*(np.atleast_1d(one) for one in chosen)) if chosen else ()
        numbers = np.ravel_multi_index(grid, self.points) if grid else np.zeros((), dtype=np.int64)
        values = self.source.at(self.output.name, numbers.reshape(-1), self.fill, self.dtype)
        values = values.reshape(*(one.size for one in chosen if one.ndim), *self.own)
        behind = 0
        for one in reversed(key[depth:]):
            values = values[(..., one, *[slice(None)] * behind)]
            # An integer leaves no dimension, a slice and an array one each.
            behind += 0 if isinstance(one, int | np.integer) else 1
        return values


def dataset(source: Source) -> xr.Dataset:
    """The points of one method as far as they are committed; what is pending is NaN.

    As of a published store values are read when they are wanted; statuses are those of when they
    are first read.
    """
    segment = source.placed[0].segment
    points = tuple(source.point_dims)
    variables = {output.name: _lazy(source, output, "f8", np.nan) for output in segment.outputs}
    shape = tuple(source.point_dims.values())
    variables["status"] = xr.Variable(points, source.status.reshape(shape))
    if (source.status >= DIVERGED).any():
        variables["reason"] = _lazy(source, REASON, object, "")
    attrs = {"method": source.method.name, "stochastic": int(source.method.stochastic)}
    return xr.Dataset(variables, coords=_coordinates(source), attrs=attrs)


def _lazy(source: Source, output: Output, dtype: Any, fill: Any) -> xr.Variable:
    values = indexing.LazilyIndexedArray(_Committed(source, output, dtype, fill))
    about = {"long_name": output.long_name, "units": output.units}
    return xr.Variable((*source.point_dims, *output.dims), values, about)


def _coordinates(source: Source) -> dict[str, xr.Variable]:
    segment = source.placed[0].segment
    coords = {
        axis.dim: xr.Variable(axis.dim, np.asarray(axis.values)) for axis in segment.cells.axes
    }
    if segment.n is not None:
        coords["n"] = xr.Variable("n", np.array([p.segment.n for p in source.placed]))
    if segment.seeds:
        coords["seed"] = xr.Variable("seed", np.array(segment.seeds, dtype=np.int64))
    for dim, values in segment.coords.items():
        coords[dim] = xr.Variable(dim, values, about_dim(segment.system, dim, values))
    return coords


def tree(study: Study, sources: Sequence[Source]) -> xr.DataTree:
    """The methods of a study, a group each, as far as they are committed: as a published store."""
    out = xr.DataTree.from_dict({source.method.name: dataset(source) for source in sources})
    out.attrs = {**about_study(study), "system": study.system}
    return out


def computed(sources: Sequence[Source]) -> int:
    """How many points are not pending."""
    return int(sum((source.status != PENDING).sum() for source in sources))
