"""The working store: one Zarr group a segment, flat along ``point``, appended to, never moved.

A block is a contiguous run of places and exactly one chunk of every result array, so no two
writers share a chunk. Results are written first and ``status`` last: it is the commit record.
The planner alone writes the keys, under a lock, and every append starts in a fresh block.
Metadata carry digests of themselves and chunks checksums, and both are bound to their places, so
that nothing which was changed, exchanged or put back is read as data.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import zarr
from numpy.typing import NDArray
from pydantic import AfterValidator, BaseModel, Field

from hdica.status import DIVERGED, DONE, FAILED, PENDING, STATUS_NAMES
from hdica.sweep.files import blocks, planned
from hdica.sweep.files.blocks import Committed
from hdica.sweep.files.guarded import METADATA, Chunks, GuardedStore, chunks_of
from hdica.sweep.files.paths import DamageError, TornError
from hdica.sweep.files.places import UNREADABLE
from hdica.sweep.files.planned import ARRAY_CONFIG
from hdica.sweep.files.sealed import SchemaError
from hdica.sweep.study.keys import Keys

__all__ = ["DIVERGED", "DONE", "FAILED", "PENDING", "STATUS_NAMES", "DamageError"]

PLANNER_ARRAYS = planned.ARRAYS
SPAN = 32 * 2**20
"""Bytes of one array read at a time."""


def _identifier(name: str) -> str:
    if not name.isidentifier():
        raise ValueError("it is no name")
    return name


class Attributes(BaseModel):
    """What the metadata of a segment say about it, checked when it is opened."""

    schema_version: int
    hdica_version: str = Field(description="what made it")
    id: str = Field(pattern=r"^[0-9a-f]{32}$", description="of its own, whatever it holds")
    system: str
    method: str
    n: int | None = Field(ge=1, description="dimension, None for a method without")
    times: tuple[float, ...]
    kernel: str = Field(description="version of the numerical code")
    noise: Literal["own", "shared"]
    block: int = Field(ge=1, description="places a block")
    outputs: tuple[Annotated[str, AfterValidator(_identifier)], ...]
    save: dict[str, Any] = Field(description="what is kept beyond the method's outputs")


def status_counts(status: NDArray[np.uint8]) -> dict[str, int]:
    """How many points have each status, by its name."""
    found = np.bincount(status.reshape(-1), minlength=len(STATUS_NAMES)).tolist()
    return dict(zip(STATUS_NAMES, found, strict=True))


@dataclass(frozen=True)
class Working:
    """One open segment of a working store."""

    path: Path
    group: zarr.Group  # its arrays are opened when they are needed
    attrs: dict[str, Any]  # what :class:`Attributes` names
    opened: dict[str, zarr.Array[Any]] = field(default_factory=dict, repr=False)
    layouts: dict[str, Chunks] = field(default_factory=dict, repr=False)  # how chunks are coded
    # What was read last: commit records by block, and a chunk of each of the planner's arrays.
    seen: dict[int, tuple[tuple[int, ...], Committed | None]] = field(
        default_factory=dict, repr=False
    )
    planned: dict[str, tuple[int, NDArray[Any]]] = field(default_factory=dict, repr=False)
    durable: set[Path] = field(default_factory=set, repr=False)  # names that are on the disk

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
        """One of the arrays."""
        if name not in self.opened:
            file = self.path / name / METADATA
            with readable(file, self.path.name):
                array = opened_array(self.group, name)
                blocks, rest = divmod(array.chunks[0], self.block)
                if rest or blocks < 1 or (blocks > 1 and name not in PLANNER_ARRAYS):
                    raise ValueError(f"chunks of {array.chunks[0]} places")
                _check_place(self, name, array)
            if name != "key" and array.shape[0] < self.size:
                what = f"it has {array.shape[0]} places of {self.size}"
                raise DamageError(f"{file} is damaged, {what} (all points of {self.path.name})")
            self.opened[name] = array
        return self.opened[name]

    def layout(self, name: str) -> Chunks:
        """How the chunks of an array are coded."""
        if name not in self.layouts:
            document: dict[str, Any] = dict(self.array(name).metadata.to_dict())
            self.layouts[name] = chunks_of(document, self.path / name / METADATA)
        return self.layouts[name]

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
        """Some places of one array."""
        reader = planned if name in PLANNER_ARRAYS else blocks
        return reader.read(self, name, places)

    def raw(self, name: str, places: slice) -> NDArray[Any]:
        """Some places of one array, with Zarr's own errors."""
        return np.asarray(self.array(name)[places])

    def keys(self) -> Keys:
        """Content key of every place, dtype ``S32``; empty where unused."""
        raw = np.ascontiguousarray(self.read("key", slice(0, self.size)), dtype=np.uint8)
        return raw.view("S32").reshape(-1)

    def status(self) -> NDArray[np.uint8]:
        """Status of every place."""
        return self.read("status", slice(0, self.size)).astype(np.uint8, copy=False)


def _check_place(working: Working, name: str, array: zarr.Array[Any]) -> None:
    """Refuse the metadata of another array, or of another segment's."""
    file, here = working.path / name / METADATA, working.attrs["id"]
    about = array.metadata.attributes
    # Those of an earlier version have neither, but for the keys' segment.
    if about.get("array", name) != name:
        raise DamageError(f"{file} is damaged, it is of another array")
    if about.get("segment", here) != here:
        what = f"it is of another segment than {working.path / METADATA}"
        raise DamageError(f"{file} is damaged, {what}")


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
        raise (TornError if isinstance(exc, TornError) else DamageError)(why) from exc


def open_segment(path: Path) -> Working:
    """Open a segment as it is now."""
    with readable(path / METADATA, path.name):
        if path.is_symlink() or not path.is_dir():
            raise DamageError(f"{path} is no folder")
        guarded = GuardedStore(path)
        group = zarr.open_group(guarded, mode="r+", zarr_format=3, use_consolidated=False)
        about = Attributes.model_validate(group.attrs.asdict())
        return Working(path, group, about.model_dump())


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
