"""The same numbers as labelled dense arrays: from rows of segments to a published group."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from hdica.sweep import store
from hdica.sweep.paths import DamageError
from hdica.sweep.plan import Placed
from hdica.systems.method import Method, Output

CHUNK_ELEMENTS = 2**18
"""Numbers a published chunk: 2 MB, read in milliseconds."""


@dataclass(frozen=True)
class Source:
    """Where the points of one published group come from.

    Points are numbered as in the dense arrays: cell, then n, then seed, the last fastest.

    Parameters
    ----------
    placed
        The segments of one method, one an n.
    """

    placed: tuple[Placed, ...]

    @property
    def method(self) -> Method:
        """The method of the group."""
        return self.placed[0].segment.method

    @property
    def point_dims(self) -> dict[str, int]:
        """Dimensions that number points, with their sizes."""
        segment = self.placed[0].segment
        dims = {axis.dim: axis.size for axis in segment.cells.axes}
        if segment.n is not None:
            dims |= {"n": len(self.placed), "seed": len(segment.seeds)}
        return dims

    @property
    def size(self) -> int:
        """Number of points."""
        return math.prod(self.point_dims.values())

    @cached_property
    def working(self) -> dict[int, store.Working]:
        """Open segments, by position, where they exist."""
        return {i: store.open_segment(p.path) for i, p in enumerate(self.placed) if p.path.exists()}

    @cached_property
    def status(self) -> NDArray[np.uint8]:
        """Status of every point."""
        return self._interleave([p.statuses() for p in self.placed])

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Place of every point in its segment, -1 where it has none."""
        return self._interleave([p.rows for p in self.placed])

    def _interleave(self, parts: list[NDArray[Any]]) -> NDArray[Any]:
        seeds = self.placed[0].segment.per_cell
        return np.stack([part.reshape(-1, seeds) for part in parts], axis=1).reshape(-1)

    def gather(self, name: str, start: int, stop: int, fill: Any, dtype: Any) -> NDArray[Any]:
        """Values of one array at the points from ``start`` to ``stop``; ``fill`` where pending.

        Raises
        ------
        DamageError
            If a chunk of a point that is not pending is missing or does not decode.
        """
        points = np.arange(start, stop)
        part = (points // self.placed[0].segment.per_cell) % len(self.placed)
        ready = self.status[start:stop] != store.PENDING
        shape: tuple[int, ...] = ()
        if self.working:
            shape = next(iter(self.working.values())).array(name).shape[1:]
        else:
            segment = self.placed[0].segment
            shape = next((segment.shape(o.dims) for o in segment.outputs if o.name == name), ())
        found = np.full((stop - start, *shape), fill, dtype=dtype)
        for index, working in self.working.items():
            chosen = np.flatnonzero(ready & (part == index))
            for some, values in _read_rows(working, name, self.rows[start:stop][chosen]):
                found[chosen[some]] = values
        return found


def _read_rows(
    working: store.Working, name: str, rows: NDArray[np.int64]
) -> Iterator[tuple[NDArray[np.int64], NDArray[Any]]]:
    """Read rows of one array in runs of neighbouring blocks."""
    if not rows.size:
        return
    order = np.argsort(rows, kind="stable")
    blocks = np.unique(rows // working.block)
    if name in working.committed:
        for block in blocks.tolist():
            check_block(working, name, block)
    most = max(1, store.SPAN // working.block_bytes(name))
    for first, last in runs(blocks, most):
        span = slice(first * working.block, (last + 1) * working.block)
        low, high = np.searchsorted(rows[order], [span.start, span.stop])
        some = order[low:high]
        try:
            values = working.read(name, span)
        except DamageError:
            for block in range(first, last + 1):
                read_block(working, name, block)
            raise
        yield some, values[rows[some] - span.start]


def runs(blocks: NDArray[np.int64], most: int) -> Iterator[tuple[int, int]]:
    """Runs of neighbours in a sorted array, at most ``most`` long: first and last of each."""
    if not blocks.size:
        return
    cuts = np.flatnonzero(np.diff(blocks) != 1) + 1
    for run in np.split(blocks, cuts):
        for low in range(0, len(run), most):
            yield int(run[low]), int(run[min(low + most, len(run)) - 1])


def check_block(working: store.Working, name: str, block: int) -> None:
    """Refuse a block without its chunk.

    Raises
    ------
    DamageError
        Naming file and points.
    """
    path = working.chunk(name, block)
    if not path.exists():
        points = store.describe(working, block)
        raise DamageError(f"{path} is missing though its status is done ({points})")


def read_block(working: store.Working, name: str, block: int) -> NDArray[Any]:
    """Values of one block of one array.

    Raises
    ------
    DamageError
        If its chunk is missing or does not decode, naming file and points.
    """
    check_block(working, name, block)
    try:
        return working.read(name, working.span(block))
    except DamageError as exc:
        points = store.describe(working, block)
        path = working.chunk(name, block)
        raise DamageError(f"{path} is damaged, its checksum is wrong ({points})") from exc


def chunk_shape(points: tuple[int, ...], own: tuple[int, ...]) -> tuple[int, ...]:
    """Chunks of a published array: whole trailing axes, one axis split, 1 before it.

    Such a chunk is a contiguous range of points, whole own axes included. Where those alone
    are larger than a chunk, one of them is split and a chunk is a part of one point.

    Parameters
    ----------
    points, own
        Sizes of the dimensions that number points, and of the output's own.
    """
    room = CHUNK_ELEMENTS
    shape: list[int] = []
    for size in reversed((*points, *own)):
        taken = min(size, max(1, room))
        shape.append(taken)
        room = room // size
    return tuple(reversed(shape))


def point_ranges(
    points: tuple[int, ...], chunks: tuple[int, ...]
) -> Iterator[tuple[tuple[slice, ...], int, int]]:
    """Every chunk as slices along the point dimensions and as its range of points."""
    counts = [range(0, size, chunk) for size, chunk in zip(points, chunks, strict=True)]
    for starts in itertools.product(*counts):
        slices = tuple(
            slice(s, min(s + c, size)) for s, c, size in zip(starts, chunks, points, strict=True)
        )
        first = int(np.ravel_multi_index(starts, points)) if points else 0
        yield slices, first, first + math.prod(s.stop - s.start for s in slices)


Ranges = list[tuple[tuple[slice, ...], int, int]]


def _together(ranges: Iterator[tuple[tuple[slice, ...], int, int]], most: int) -> Iterator[Ranges]:
    """Neighbouring chunks of at most ``most`` points in all, and always at least one chunk."""
    some: Ranges = []
    for one in ranges:
        if some and one[2] - some[0][1] > most:
            yield some
            some = []
        some.append(one)
    yield some


def write_variable(
    group: zarr.Group,
    name: str,
    source: Source,
    output: Output | None,
    dtype: Any,
    fill: Any,
    attrs: dict[str, Any],
) -> None:
    """Write one variable of a published group, a chunk at a time.

    Parameters
    ----------
    group
        The published group.
    name
        Name of the array, in the group and in the segments.
    source
        Where the values come from.
    output
        The method's output, None for ``status``, ``cpu_seconds`` and ``reason``.
    dtype, fill
        Type of the array, and its value where a point is pending.
    attrs
        Its attributes.
    """
    own_dims = output.dims if output else ()
    own = source.placed[0].segment.shape(own_dims)
    dims = source.point_dims
    points = tuple(dims.values())
    chunks = chunk_shape(points, own)
    array = group.create_array(
        name,
        shape=(*points, *own),
        chunks=chunks,
        dtype=dtype,
        fill_value=fill,
        compressors=store.codec(),
        dimension_names=(*dims, *own_dims),
        config={"write_empty_chunks": True},
        attributes=attrs,
    )
    in_memory = object if dtype is str else dtype
    # A block may span several chunks: they are gathered together, so that it is read once.
    most = store.SPAN // (8 * max(1, math.prod(own)))
    for some in _together(point_ranges(points, chunks[: len(points)]), most):
        first, last = some[0][1], some[-1][2]
        if name == "status":
            values: NDArray[Any] = source.status[first:last]
        else:
            values = source.gather(name, first, last, fill, in_memory)
        for slices, start, stop in some:
            shape = (*(s.stop - s.start for s in slices), *own)
            array[slices if slices else ...] = values[start - first : stop - first].reshape(shape)
