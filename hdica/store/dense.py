"""The same numbers as labelled dense arrays: from blocks of points to a published group."""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import zarr
from numpy.typing import DTypeLike, NDArray

from hdica.store.published import codec
from hdica.store.sealed import Document
from hdica.store.working import Placed
from hdica.study.segment import Segment
from hdica.systems.method import Method

CHUNK_ELEMENTS = 2**18  # numbers a published chunk: 2 MB, read in milliseconds
SPAN = 32 * 2**20  # bytes of one array that are gathered at a time
BAND = 64 * 2**20  # bytes of neighbouring points that are put into chunks at a time


@dataclass(frozen=True)
class Source:
    """The segments of one method, one an n, with points in the order of the dense arrays.

    They are numbered by cell, then n, then seed, the last fastest.
    """

    placed: tuple[Placed, ...]

    @property
    def segment(self) -> Segment:
        """The first segment; the others have another n."""
        return self.placed[0].segment

    @property
    def method(self) -> Method:
        """The method of the group."""
        return self.segment.method

    @property
    def point_dims(self) -> dict[str, int]:
        """Dimensions that number points, with their sizes."""
        segment = self.segment
        dims = {axis.dim: axis.size for axis in segment.cells.axes}
        if segment.n is not None:
            dims["n"] = len(self.placed)
        if segment.seeds:
            dims["seed"] = len(segment.seeds)
        return dims

    @cached_property
    def status(self) -> NDArray[np.uint8]:
        """Status of every point."""
        return self._interleave([each.statuses for each in self.placed])

    @cached_property
    def cpu_seconds(self) -> NDArray[np.float64]:
        """Processor time of every point, NaN where it is pending."""
        return self._interleave([each.cpu_seconds for each in self.placed])

    def _interleave(self, parts: list[NDArray[Any]]) -> NDArray[Any]:
        seeds = self.segment.per_cell
        return np.stack([part.reshape(-1, seeds) for part in parts], axis=1).reshape(-1)

    def again(self) -> Source:
        """The same with the blocks that there are now."""
        return Source(tuple(each.again() for each in self.placed))

    def at(
        self, name: str, points: NDArray[np.int64], fill: float | str, dtype: DTypeLike
    ) -> NDArray[Any]:
        """Values of one array at some points, by their numbers; ``fill`` where pending."""
        seeds, count = self.segment.per_cell, len(self.placed)
        part, own = (points // seeds) % count, points // (seeds * count) * seeds + points % seeds
        values = np.full((points.size, *self.segment.shape_of(name)), fill, dtype=dtype)
        for index, placed in enumerate(self.placed):
            chosen = np.flatnonzero(part == index)
            values[chosen] = placed.read(name, own[chosen], fill, dtype)
        return values


def chunk_shape(swept: tuple[int, ...], whole: tuple[int, ...]) -> tuple[int, ...]:
    """Chunks of a published array, from the sizes that are ``swept`` and those that are ``whole``.

    Seeds and an output's own dimensions are whole in a chunk if they fit. The swept parameters and
    n share the room that is left evenly, so that a slice along any reads little more than itself.
    """
    size = math.prod(whole)
    if size > CHUNK_ELEMENTS:
        # Whole trailing dimensions, one that is split, and 1 before it.
        rooms = [CHUNK_ELEMENTS // math.prod(whole[k + 1 :]) for k in range(len(whole))]
        return (
            *(1 for _ in swept),
            *(min(n, max(1, r)) for n, r in zip(whole, rooms, strict=True)),
        )
    shape = list(swept)
    for axis in range(len(swept)):
        step = 8 * size * math.prod(swept[axis + 1 :])
        shape[axis] = min(swept[axis], max(1, BAND // step))
        if shape[axis] > 1:
            break
    while math.prod(shape) * size > CHUNK_ELEMENTS:
        longest = shape.index(max(shape))
        shape[longest] = -(-shape[longest] // 2)
    return (*shape, *whole)


class Band(NamedTuple):
    """Neighbouring points, ``start`` to ``stop``, that are whole chunks."""

    start: int
    stop: int
    place: tuple[slice, ...]  # in the array; dimensions that follow are whole


def bands(points: tuple[int, ...], chunks: tuple[int, ...]) -> Iterator[Band]:
    """Every chunk of some points, in bands that follow each other; ``chunks`` is a chunk's size."""
    split = next((axis for axis, chunk in enumerate(chunks) if chunk > 1), len(points) - 1)
    later = math.prod(points[split + 1 :])
    begins = [range(0, n, c) for n, c in zip(points[: split + 1], chunks, strict=False)]
    end = 0
    for corner in itertools.product(*begins):
        sides = zip(corner, points, chunks, strict=False)
        place = tuple(slice(low, min(low + chunk, size)) for low, size, chunk in sides)
        start, end = end, end + later * math.prod(each.stop - each.start for each in place)
        yield Band(start, end, place)


def create(
    group: zarr.Group,
    name: str,
    shape: tuple[int, ...],
    chunks: tuple[int, ...],
    dims: tuple[str, ...],
    dtype: DTypeLike,
    fill: float | str | None,
    about: Document,
) -> zarr.Array:
    """Create an array of a published group, none of whose chunks is left out."""
    return group.create_array(
        name,
        shape=shape,
        chunks=chunks,
        dtype=dtype,
        fill_value=fill,
        compressors=codec(),
        dimension_names=dims,
        config={"write_empty_chunks": True},
        attributes=about,
    )


def write_variable(
    group: zarr.Group,
    source: Source,
    name: str,
    dtype: DTypeLike,
    fill: float | str,
    about: Document,
    own_dims: tuple[str, ...] = (),
) -> None:
    """Write one variable of a published group, ``fill`` where a point is pending.

    ``own_dims`` are its dimensions beside those of the points.
    """
    own = source.segment.shape(own_dims)
    dims = source.point_dims
    points = tuple(dims.values())
    swept = len(points) - ("seed" in dims)
    chunks = chunk_shape(points[:swept], (*points[swept:], *own))
    shape = (*points, *own)
    array = create(group, name, shape, chunks, (*dims, *own_dims), dtype, fill, about)
    listed: dict[str, NDArray[Any]] = {"status": source.status, "cpu_seconds": source.cpu_seconds}
    # A block may span several bands: they are gathered together, so that it is read once.
    most, kind = SPAN // (8 * max(1, math.prod(own))), object if dtype is str else dtype
    every = list(bands(points, chunks[: len(points)]))
    stops = [band.stop for band in every]
    first = last = 0
    for number, (start, stop, place) in enumerate(every):
        if stop > last:
            first, last = start, stops[max(number, bisect_right(stops, start + most) - 1)]
            among = np.arange(first, last)
            values = listed[name][among] if name in listed else source.at(name, among, fill, kind)
        extent = (side.stop - side.start for side in place)
        part = values[start - first : stop - first]
        array[place or ...] = part.reshape((*extent, *array.shape[len(place) :]))
