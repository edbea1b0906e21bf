"""The working store: one Zarr group a segment, flat along ``point``, appended to, never moved.

A block is a contiguous run of places and exactly one chunk of every result array, so no two
writers share a chunk. Results are written first and ``status`` last: it is the commit record.
The planner alone writes the keys, under a lock, and every append starts in a fresh block.
Metadata carry digests of themselves and chunks checksums, so that no changed bit is read as data.
"""

from __future__ import annotations

import json
import math
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr
from numpy.typing import NDArray

import hdica
from hdica.sweep.files.attributes import checked
from hdica.sweep.files.frames import codec
from hdica.sweep.files.guarded import METADATA, GuardedStore
from hdica.sweep.files.paths import DamageError, discard, write_text
from hdica.sweep.files.sealed import SCHEMA_VERSION, SchemaError, sealed
from hdica.sweep.spec.kept import plain
from hdica.sweep.spec.keys import Keys

if TYPE_CHECKING:
    from hdica.sweep.spec.segment import Segment

PENDING, DONE, DIVERGED, FAILED = range(4)
STATUS_NAMES = ("pending", "done", "diverged", "failed")
PLANNER_ARRAYS = ("key", "parameters", "seed")
PLANNED = 4096
"""Least places a chunk of the planner's arrays (key, parameters, seed)."""
PLACES = 2**16
"""About how many places of the planner's arrays are written at a time."""
SPAN = 32 * 2**20
"""Bytes of one array read at a time."""
WRONG = "its checksum is wrong"
UNREADABLE = (ValueError, RuntimeError, OSError, TypeError, KeyError)
"""What Zarr and its codecs raise where files are not as they were written."""
ARRAY_CONFIG: Any = {"write_empty_chunks": True}
"""A chunk of zeros or NaN is written like any other: a missing file is always damage."""


def status_counts(status: NDArray[np.uint8]) -> dict[str, int]:
    """How many points have each status, by its name."""
    found = np.bincount(status.reshape(-1), minlength=len(STATUS_NAMES)).tolist()
    return dict(zip(STATUS_NAMES, found, strict=True))


@dataclass(frozen=True)
class Working:
    """One open segment of a working store.

    Parameters
    ----------
    path
        Directory of the Zarr group.
    group
        The group; its arrays are opened when they are needed.
    attrs
        Its attributes: see :class:`hdica.sweep.files.attributes.Attributes`.
    """

    path: Path
    group: zarr.Group
    attrs: dict[str, Any]
    opened: dict[str, zarr.Array[Any]] = field(default_factory=dict, repr=False)

    @property
    def block(self) -> int:
        """Places a block."""
        return int(self.attrs["block"])

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the result arrays."""
        names: tuple[str, ...] = self.attrs["outputs"]
        return names

    @property
    def committed(self) -> tuple[str, ...]:
        """Arrays whose chunk must exist for every block that is not pending."""
        return (*self.outputs, "cpu_seconds")

    @property
    def names(self) -> tuple[str, ...]:
        """All arrays: three of the planner, then the results, ``status`` and ``reason``."""
        return (*PLANNER_ARRAYS, *self.committed, "status", "reason")

    def array(self, name: str) -> zarr.Array[Any]:
        """One of the arrays.

        Raises
        ------
        DamageError
            If its metadata is missing or unreadable.
        """
        if name not in self.opened:
            with readable(self.path / name / METADATA, self.path.name):
                array = opened_array(self.group, name)
                blocks, rest = divmod(array.chunks[0], self.block)
                if rest or blocks < 1 or (blocks > 1 and name not in PLANNER_ARRAYS):
                    raise ValueError(f"chunks of {array.chunks[0]} places")
                self.opened[name] = array
        return self.opened[name]

    @property
    def size(self) -> int:
        """Places, used or not: a whole number of blocks."""
        return int(self.array("key").shape[0])

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return self.size // self.block

    def span(self, block: int) -> slice:
        """Places of a block."""
        return slice(block * self.block, (block + 1) * self.block)

    def block_bytes(self, name: str) -> int:
        """Size of a block of one array in memory, 8 bytes a number."""
        return 8 * math.prod((self.block, *self.array(name).shape[1:]))

    def chunk(self, name: str, block: int) -> Path:
        """File of one block in one of the result arrays."""
        rest = ["0"] * (len(self.array(name).shape) - 1)
        return self.path.joinpath(name, "c", str(block), *rest)

    def read(self, name: str, places: slice) -> NDArray[Any]:
        """Some places of one array.

        Raises
        ------
        DamageError
            If a chunk does not decode or its checksum is wrong, naming file and points; or if
            one of the planner's, which every place has, is missing.
        """
        if name in PLANNER_ARRAYS:
            for number in self._numbers(name, places):
                if not self.chunk(name, number).exists():
                    points = described(self, self._within(name, number))
                    raise DamageError(f"{self.chunk(name, number)} is missing ({points})")
        try:
            return self.raw(name, places)
        except PermissionError:
            raise
        except UNREADABLE as exc:
            raise self._damage(name, places, exc) from exc

    def raw(self, name: str, places: slice) -> NDArray[Any]:
        """Some places of one array, with Zarr's own errors."""
        return np.asarray(self.array(name)[places])

    def _damage(self, name: str, places: slice, exc: Exception) -> DamageError:
        """The first chunk among some places that does not decode."""
        for number in self._numbers(name, places):
            within, file = self._within(name, number), self.chunk(name, number)
            try:
                self.raw(name, within)
            except UNREADABLE as one:
                what = str(one) if isinstance(one, DamageError) else f"{file} is damaged, {WRONG}"
                return DamageError(f"{what} ({described(self, within)})")
        return DamageError(f"{self.path / name} cannot be read ({type(exc).__name__}: {exc})")

    def _numbers(self, name: str, places: slice) -> range:
        """Chunks of an array that some places lie in."""
        chunk = self.array(name).chunks[0]
        return range(places.start // chunk, -(-places.stop // chunk))

    def _within(self, name: str, number: int) -> slice:
        """Places of a chunk."""
        chunk = self.array(name).chunks[0]
        return slice(number * chunk, min((number + 1) * chunk, self.array(name).shape[0]))

    def keys(self) -> Keys:
        """Content key of every place, dtype ``S32``; empty where unused."""
        raw = np.ascontiguousarray(self.read("key", slice(0, self.size)), dtype=np.uint8)
        return raw.view("S32").reshape(-1)

    def status(self) -> NDArray[np.uint8]:
        """Status of every place."""
        return self.read("status", slice(0, self.size)).astype(np.uint8, copy=False)


@contextmanager
def readable(path: Path, segment: str) -> Iterator[None]:
    """Say which metadata is damaged, and of which segment, if the body cannot read it."""
    try:
        yield
    except (SchemaError, PermissionError):
        raise
    except (*UNREADABLE, AttributeError) as exc:
        what = str(exc) if isinstance(exc, DamageError) else f"{path} is damaged"
        why = f"{what}: its metadata cannot be read (all points of {segment})"
        raise DamageError(why) from exc


def _array(
    group: zarr.Group, name: str, chunk: int, dtype: Any, fill: Any, dims: dict[str, int]
) -> None:
    own: tuple[int, ...] = tuple(dims.values())
    group.create_array(
        name,
        shape=(0, *own),
        chunks=(chunk, *own),
        dtype=dtype,
        fill_value=fill,
        compressors=codec(),
        dimension_names=("point", *dims),
        config=ARRAY_CONFIG,
    )


def create(path: Path, segment: Segment, block: int) -> None:
    """Make an empty segment; it appears whole, by a rename.

    Parameters
    ----------
    path
        Where it shall lie.
    segment
        What it holds.
    block
        Places a block.
    """
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    discard(partial)
    partial.parent.mkdir(parents=True, exist_ok=True)
    method = segment.method
    group = zarr.open_group(partial, mode="w", zarr_format=3)
    planned = block * max(1, PLANNED // block)
    _array(group, "key", planned, "u1", 0, {"byte": 32})
    _array(group, "parameters", planned, str, "", {})
    _array(group, "seed", planned, "i8", -1, {})
    for output in segment.outputs:
        dims = dict(zip(output.dims, segment.shape(output.dims), strict=True))
        _array(group, output.name, block, "f8", float("nan"), dims)
    _array(group, "status", block, "u1", PENDING, {})
    _array(group, "cpu_seconds", block, "f8", float("nan"), {})
    _array(group, "reason", block, str, "", {})
    group.update_attributes(
        {
            "schema_version": SCHEMA_VERSION,
            "hdica_version": hdica.__version__,
            "id": uuid.uuid4().hex,
            "system": segment.system,
            "method": method.name,
            "n": segment.n,
            "times": list(segment.times),
            "kernel": method.kernel,
            "noise": method.noise,
            "block": block,
            "outputs": [output.name for output in segment.outputs],
            "save": plain(segment.save),
        }
    )
    for file in (partial / METADATA, *partial.glob(f"*/{METADATA}")):
        write_text(file, sealed(json.loads(file.read_bytes())))
    partial.replace(path)


def open_segment(path: Path) -> Working:
    """Open a segment as it is now.

    Raises
    ------
    DamageError
        If its metadata is missing, was changed or cannot be read.
    SchemaError
        If another version of this package wrote it; the sentence says what to do.
    """
    with readable(path / METADATA, path.name):
        if path.is_symlink() or not path.is_dir():
            raise DamageError(f"{path} is no folder")
        guarded = GuardedStore(path)
        group = zarr.open_group(guarded, mode="r+", zarr_format=3, use_consolidated=False)
        return Working(path, group, checked(dict(group.attrs.asdict()), path))


def opened_array(group: zarr.Group, name: str) -> zarr.Array[Any]:
    """An array of a group that writes every chunk, be it all zeros or NaN."""
    array = group[name]
    if not isinstance(array, zarr.Array):
        raise KeyError(name)
    return array.with_config(ARRAY_CONFIG)


@lru_cache(maxsize=64)
def _cached(path: Path, stamp: tuple[int, int]) -> Working:
    return open_segment(path)


def open_cached(path: Path) -> Working:
    """Open a segment once a process, and again only after it has grown."""
    with readable(path / "key" / METADATA, path.name):
        info = os.stat(path / "key" / METADATA)
    return _cached(path, (info.st_mtime_ns, info.st_ino))


def _pieces(start: int, stop: int, chunk: int) -> Iterator[tuple[int, int]]:
    """Runs of places that are written at once: whole chunks, but for the first and the last."""
    step = chunk * max(1, PLACES // chunk)
    while start < stop:
        end = min(stop, (start // step + 1) * step)
        yield start, end
        start = end


def append(
    path: Path, keys: Keys, systems: Callable[[int, int], list[str]], seeds: NDArray[np.int64]
) -> None:
    """Add points behind the last block. The caller holds the planning lock.

    An array has its new places when its metadata say so: after the data of the planner's arrays,
    and those of the keys last. An append that is cut short leaves the places that there were.

    Parameters
    ----------
    keys
        Content keys of the new points, dtype ``S32``.
    systems
        ``systems(first, last)``: JSON of the systems of some of the new points.
    seeds
        Seed of each point, -1 for none.
    """
    working = open_segment(path)
    start = working.size
    stop = start + -(-len(keys) // working.block) * working.block
    grown = {name: _grown(working, name, stop) for name in working.names}
    for name in working.names[len(PLANNER_ARRAYS) :]:
        _announce(working, name, grown[name])
    grown["seed"][start : start + len(keys)] = seeds
    _announce(working, "seed", grown["seed"])
    pieces = list(_pieces(start, start + len(keys), grown["key"].chunks[0]))
    for first, last in pieces:
        texts = systems(first - start, last - start)
        grown["parameters"][first:last] = np.array(texts, dtype=object)
    _announce(working, "parameters", grown["parameters"])
    raw = np.ascontiguousarray(keys, dtype="S32").view(np.uint8).reshape(-1, 32)
    for first, last in pieces:
        grown["key"][first:last] = raw[first - start : last - start]
    _announce(working, "key", grown["key"])


def _grown(working: Working, name: str, places: int) -> zarr.Array[Any]:
    """An array with more places, which nobody knows of yet."""
    array = working.array(name)
    document: dict[str, Any] = dict(array.metadata.to_dict())
    document["shape"] = [places, *array.shape[1:]]
    return zarr.Array.from_dict(array.store_path, document).with_config(ARRAY_CONFIG)


def _announce(working: Working, name: str, array: zarr.Array[Any]) -> None:
    """Write the metadata of an array that has grown, at once and with their digest."""
    write_text(working.path / name / METADATA, sealed(dict(array.metadata.to_dict())))


def write_array(working: Working, name: str, block: int, values: NDArray[Any]) -> None:
    """Write one whole chunk of one array.

    Raises
    ------
    AssertionError
        If the values are not exactly the chunk: a shared chunk would lose data silently.
    """
    array, span = working.array(name), working.span(block)
    if array.chunks[0] != working.block or values.shape != array.chunks or span.stop > working.size:
        raise AssertionError(f"{name}: block {block} is not one chunk of {array.chunks}")
    array[span] = values


def write_block(
    working: Working,
    block: int,
    values: dict[str, NDArray[np.float64]],
    cpu_seconds: NDArray[np.float64],
    reasons: list[str],
    status: NDArray[np.uint8],
) -> None:
    """Write a whole block: data first, ``status`` last."""
    for name in working.outputs:
        write_array(working, name, block, values[name])
    write_array(working, "cpu_seconds", block, cpu_seconds)
    if any(reasons) or working.chunk("reason", block).exists():
        write_array(working, "reason", block, np.array(reasons, dtype=object))
    write_array(working, "status", block, status)


def missing_chunk(working: Working, block: int) -> str:
    """File of this block that a committed array lacks, empty if there is none."""
    for name in working.committed:
        path = working.chunk(name, block)
        if not path.exists():
            return str(path)
    return ""


def describe(working: Working, block: int, limit: int = 3) -> str:
    """Which points a block holds, for a person: their parameters and seeds."""
    return described(working, working.span(block), limit)


def numbered(places: slice) -> str:
    """Some places, for a person."""
    return f"places {places.start} to {places.stop - 1}"


def described(working: Working, places: slice, limit: int = 3) -> str:
    """Which points lie at some places, for a person; their numbers if those are damaged too."""
    try:
        contents, seeds = working.raw("parameters", places), working.raw("seed", places)
        texts = [json.loads(text) if text else None for text in contents]
    except UNREADABLE:
        return numbered(places)
    n = working.attrs["n"]
    named = []
    for content, seed in zip(texts, seeds, strict=True):
        if isinstance(content, dict):
            fields = [f"{k}={v}" for k, v in content.items()]
            fields += [] if n is None else [f"n={n}", f"seed={seed}"]
            named.append(" ".join(fields) or "default parameters")
    if not named:
        return numbered(places)
    shown = "; ".join(named[:limit])
    more = f"; and {len(named) - limit} more" if len(named) > limit else ""
    return f"{len(named)} points: {shown}{more}"
