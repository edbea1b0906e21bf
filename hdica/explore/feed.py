"""Where the explorer's numbers come from: the published store, or what is committed so far."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from numpy.typing import DTypeLike, NDArray
from xarray.backends.common import BackendArray
from xarray.core import indexing

from hdica.errors import HdicaError
from hdica.status import DIVERGED, FAILED, LEFT_OUT, PENDING, STATUS_NAMES
from hdica.store.files import stamp
from hdica.store.paths import METADATA, STUDY, manifest_path, work_path
from hdica.store.publish import about_study, coordinates, grouped, is_current
from hdica.store.results import existing, open_results
from hdica.store.sealed import count_in, read_manifest, status_counts
from hdica.store.working import Source, place, recorded_study
from hdica.systems.method import Output

if TYPE_CHECKING:
    from hdica.study.study import Study

SHORTEST, SHARE = 2.0, 10.0
"""Seconds between two looks at the files, and how many times longer a pause is than a look."""
Stamp = tuple[tuple[int, ...] | None, ...]


@dataclass(frozen=True)
class Snapshot:
    """Results as they were at one moment: a group a method, whose values are read when wanted."""

    tree: xr.DataTree
    live: bool  # what a run has committed so far, rather than a published store
    counts: dict[str, int]  # points by status
    number: int  # of the snapshot, from 1

    @property
    def points(self) -> int:
        """Number of points."""
        return sum(self.counts.values())


@dataclass
class Feed:
    """The newest snapshot of ``results/<study>.zarr``, published or not; :meth:`look` renews it."""

    path: Path
    now: Snapshot = field(init=False)
    trouble: str = field(init=False, default="")
    """What was wrong at the last look, empty if nothing was."""
    pause: float = field(init=False, default=SHORTEST)
    """Seconds until the next look."""

    def __post_init__(self) -> None:
        self._stamp: Stamp = ()
        self._study: Study | None = None
        self._sources: tuple[Source, ...] = ()
        self._renew(self._stamps())

    def look(self) -> bool:
        """Look at the files again; whether there is a new snapshot; :attr:`trouble` if not."""
        began, before = time.monotonic(), self.now.number
        try:
            stamp = self._stamps()
            if stamp != self._stamp:
                self._renew(stamp)
            elif self.now.live:
                self._advance()
            self.trouble = ""
        except (HdicaError, OSError) as exc:
            self.trouble = str(exc)
        self.pause = max(SHORTEST, SHARE * (time.monotonic() - began))
        return self.now.number != before

    def _stamps(self) -> Stamp:
        """What is another one as soon as something was published or planned."""
        if self.path.suffix != ".zarr":
            return (stamp(self.path / METADATA),)
        work = work_path(self.path)
        files = (manifest_path(self.path), self.path / METADATA, work / STUDY)
        return tuple(map(stamp, files))

    def _renew(self, stamp: Stamp) -> None:
        """Decide what is shown, and open it."""
        if (study := self._unpublished()) is not None:
            every = tuple(grouped(place(study, self.path)))
            computed = any(
                ((one.status > PENDING) & (one.status < LEFT_OUT)).any() for one in every
            )
            if computed or not (self.path / METADATA).exists():
                self._study, self._sources = study, every
                self._show()
                self._stamp = stamp
                return
        tree = open_results(self.path)
        manifest = read_manifest(self.path) if self.path.suffix == ".zarr" else None
        if manifest is None:
            counts = _counted(node["status"].to_numpy() for node in tree.children.values())
        else:
            counts = {name: count_in(manifest, name) for name in STATUS_NAMES}
        self._set(tree, False, counts)
        self._study, self._sources, self._stamp = None, (), stamp

    def _unpublished(self) -> Study | None:
        """The study that was planned last, unless all of it is published."""
        if self.path.suffix != ".zarr" or not work_path(self.path).is_dir():
            existing(self.path)
            return None
        study = recorded_study(self.path)
        return None if study is None or is_current(study, self.path) else study

    def _advance(self) -> None:
        """Look which points of the same study are committed by now."""
        fresh = tuple(source.again() for source in self._sources)
        pairs = zip(self._sources, fresh, strict=True)
        if any(not np.array_equal(old.status, new.status) for old, new in pairs):
            self._sources = fresh
            self._show()

    def _show(self) -> None:
        assert self._study is not None
        groups = {source.method.name: _dataset(source) for source in self._sources}
        tree = xr.DataTree.from_dict(groups)
        tree.attrs = {**about_study(self._study), "system": self._study.system}
        self._set(tree, True, _counted(source.status for source in self._sources))

    def _set(self, tree: xr.DataTree, live: bool, counts: dict[str, int]) -> None:
        number = self.now.number + 1 if hasattr(self, "now") else 1
        self.now = Snapshot(tree, live, counts, number)


def _counted(statuses: Iterable[NDArray[np.uint8]]) -> dict[str, int]:
    return status_counts(np.concatenate([np.zeros(0, np.uint8), *map(np.ravel, statuses)]))


REASON = Output("reason", (), "why the point diverged or failed")


class _Committed(BackendArray):
    """A variable whose blocks are being committed; ``fill`` where a point is pending."""

    def __init__(self, source: Source, output: Output, dtype: DTypeLike, fill: float | str) -> None:
        self.source, self.output, self.fill = source, output, fill
        self.points = tuple(source.point_dims.values())
        self.own = source.placed[0].segment.shape(output.dims)
        self.shape, self.dtype = (*self.points, *self.own), np.dtype(dtype)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> NDArray[Any]:
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


def _dataset(source: Source) -> xr.Dataset:
    """The points of one method as far as they are committed, read when wanted; else NaN."""
    segment = source.placed[0].segment
    points = tuple(source.point_dims)
    variables = {output.name: _lazy(source, output, "f8", np.nan) for output in segment.outputs}
    shape = tuple(source.point_dims.values())
    variables["status"] = xr.Variable(points, source.status.reshape(shape))
    if np.isin(source.status, (DIVERGED, FAILED)).any():
        variables["reason"] = _lazy(source, REASON, object, "")
    attrs = {"method": source.method.name, "stochastic": int(source.method.stochastic)}
    every = coordinates(source).items()
    coords = {name: xr.Variable(dim, values, about) for name, (dim, values, about) in every}
    return xr.Dataset(variables, coords=coords, attrs=attrs)


def _lazy(source: Source, output: Output, dtype: DTypeLike, fill: float | str) -> xr.Variable:
    values = indexing.LazilyIndexedArray(_Committed(source, output, dtype, fill))
    about = {"long_name": output.long_name, "units": output.units}
    return xr.Variable((*source.point_dims, *output.dims), values, about)
