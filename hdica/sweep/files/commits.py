"""Commit records: which chunks a block of a working store consists of, and of which points.

A chunk's own checksum says that it is whole and not where it belongs. The record of a block names
its segment, its number, its points and the digest of every one of its chunks. It stands in the file
of the block's ``status``, behind the values, so that one rename commits both; to whoever reads the
store without this package it is no part of the data. A chunk that was exchanged, put back from
before or made by somebody else is none that its record names.
"""

from __future__ import annotations

import fcntl
import json
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from hdica.sweep.files.locks import lockable
from hdica.sweep.files.manifest import digest
from hdica.sweep.files.paths import DamageError, no_link

LOCKS = ".locks"
"""Folder of a working store: its files are locked while blocks are written."""
STRIPES = 64
"""Files in it; a block has one of them, by its number."""
FOREIGN = "its commit record is of another place"
UNNAMED = "it is not the chunk that its commit record names"


@dataclass(frozen=True)
class Mark:
    """What a record says of a chunk's file."""

    size: int  # bytes
    digest: str  # sha256

    @classmethod
    def of(cls, raw: bytes) -> Mark:
        """The mark of a file with this content."""
        return cls(len(raw), digest(raw))


@dataclass(frozen=True)
class Commit:
    """The commit record of a block.

    ``chunks`` has the marks of the files of every array. They are two while a block that was
    committed before is being written anew: the file before and the one after.
    """

    segment: str  # its identity
    block: int  # its number
    points: str  # digest of the keys of its places
    status: str  # digest of the statuses that were committed with it
    chunks: dict[str, tuple[Mark, ...]]

    def names(self, name: str, raw: bytes) -> bool:
        """Whether a file is the chunk of this array."""
        return Mark.of(raw) in self.chunks.get(name, ())

    def is_short(self, name: str, raw: bytes) -> bool:
        """Whether a file has fewer bytes than the chunk of this array."""
        return any(len(raw) < mark.size for mark in self.chunks.get(name, ()))

    @property
    def text(self) -> bytes:
        """The record as it is stored."""
        return json.dumps(asdict(self), separators=(",", ":"), sort_keys=True).encode()


_COMMIT = TypeAdapter(Commit)


def commit_from(text: bytes, path: Path) -> Commit:
    """The record that a note is."""
    try:
        return _COMMIT.validate_json(text)
    except ValidationError as exc:
        raise DamageError(f"{path} is damaged, it has no commit record") from exc


@contextmanager
def writing(segment: Path, block: int) -> Iterator[None]:
    """Keep everybody else from writing a block of a segment meanwhile, also on other machines.

    Two runs of one store may have computed the same block: processor times differ, so that of two
    sets of files only one fits its record. Where a file system has no locks, they would be mixed
    if they came within the same few milliseconds; ``hdica repair`` makes such a block pending.
    """
    folder = no_link(segment.parent / LOCKS)
    folder.mkdir(exist_ok=True)
    stripe = zlib.crc32(f"{segment.name}/{block}".encode()) % STRIPES
    with lockable(folder / f"{stripe:02d}", 0o666) as file:
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
