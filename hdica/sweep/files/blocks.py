"""Blocks of a working store: read against their commit records, written data first.

One file a block and array, coded as Zarr would, so that Zarr reads them too. A block is committed
by the file of its statuses, with the commit record behind them, once all else is on the disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numcodecs.vlen import VLenUTF8
from numpy.typing import NDArray

from hdica.status import DIVERGED, DONE, PENDING
from hdica.sweep.files.commits import (
    FOREIGN,
    UNNAMED,
    Commit,
    Mark,
    commit_from,
    writing,
)
from hdica.sweep.files.disk import sync_folder, write_all
from hdica.sweep.files.frames import FrameError, is_torn, note_in, packed, unpacked
from hdica.sweep.files.guarded import METADATA, Chunks
from hdica.sweep.files.manifest import digest
from hdica.sweep.files.paths import DamageError, TornError, inside, read_regular
from hdica.sweep.files.places import describe

if TYPE_CHECKING:
    from hdica.sweep.files.store import Working

MOST_SEEN = 4096
"""Records that an open segment remembers."""
Status = NDArray[np.uint8]
_TEXTS = VLenUTF8()


@dataclass(frozen=True, eq=False)
class Committed:
    """What the file of a block's statuses says."""

    status: Status  # of every place
    commit: Commit  # the record behind them


def _encoded(values: NDArray[Any], chunks: Chunks) -> bytes:
    """The file of a chunk of an array."""
    if chunks.size is None:
        return packed(bytes(_TEXTS.encode(values.astype(object))))
    return packed(np.ascontiguousarray(values).tobytes())


def _decoded(raw: bytes, working: Working, name: str) -> NDArray[Any]:
    """Values in the file of a chunk."""
    array, chunks = working.array(name), working.layout(name)
    chunks.check(raw)
    content = unpacked(raw, chunks.size)
    if chunks.size is None:
        return np.asarray(_TEXTS.decode(content), dtype=object)
    return np.frombuffer(content, array.dtype).reshape(array.chunks)


def _file(working: Working, name: str, block: int) -> Path:
    """File of a chunk; links on the way are refused."""
    return inside(working.path, working.chunk(name, block).relative_to(working.path).as_posix())


def committed(working: Working, block: int) -> Committed | None:
    """Statuses and record of a block, None if it was never committed."""
    file = _file(working, "status", block)
    try:
        about = os.stat(file, follow_symlinks=False)
    except FileNotFoundError:
        return None
    except NotADirectoryError as exc:
        raise _damage(working, block, f"{file} is missing, it lies in no folder", False) from exc
    stamp = (about.st_ino, about.st_mtime_ns, about.st_size)
    known = working.seen.get(block)
    if known is not None and known[0] == stamp:
        return known[1]
    raw = read_regular(file)
    found = None if raw is None else _status_in(raw, working, block, file)
    if len(working.seen) >= MOST_SEEN:
        working.seen.clear()
    working.seen[block] = (stamp, found)
    return found


def _status_in(raw: bytes, working: Working, block: int, file: Path) -> Committed:
    try:
        status = _decoded(raw, working, "status")
    except FrameError as exc:
        raise _damage(working, block, f"{file} is damaged, {exc}", is_torn(raw)) from exc
    commit = commit_from(note_in(raw), file)
    here = (working.attrs["id"], block, digest(status.tobytes()))
    if (commit.segment, commit.block, commit.status) != here:
        raise _damage(working, block, f"{file} is damaged, {FOREIGN}", False)
    return Committed(status, commit)


def _damage(working: Working, block: int, what: str, torn: bool) -> DamageError:
    return (TornError if torn else DamageError)(f"{what} ({describe(working, block)})")


def points_digest(working: Working, block: int) -> str:
    """Digest of the keys of a block's places."""
    return digest(np.ascontiguousarray(working.read("key", working.span(block))).tobytes())


def check_points(working: Working, block: int, commit: Commit) -> None:
    """Refuse a record that was made for other points than those at the places of its block."""
    if commit.points != points_digest(working, block):
        file = working.chunk("status", block)
        raise _damage(working, block, f"{file} is damaged, it is of other points", False)


def chunk(working: Working, name: str, block: int) -> NDArray[Any] | None:
    """Values of one array in one block, None where nothing is committed of it."""
    if name == "status":
        found = committed(working, block)
        return None if found is None else found.status
    there = _named(working, name, block)
    if there is None:
        return None
    raw, commit = there
    check_points(working, block, commit)
    try:
        return _decoded(raw, working, name)
    except FrameError as exc:
        file = working.chunk(name, block)
        raise _damage(working, block, f"{file} is damaged, {exc}", False) from exc


def _named(working: Working, name: str, block: int) -> tuple[bytes, Commit] | None:
    """The file of a chunk as its record names it, with the record."""
    before = None
    while (now := committed(working, block)) is not None:
        if name not in now.commit.chunks:
            least = DIVERGED if name == "reason" else DONE
            if (now.status >= least).any():
                file = working.chunk(name, block)
                raise _damage(working, block, f"{file} is damaged, {UNNAMED}", False)
            return None
        raw = read_regular(_file(working, name, block))
        if raw is not None and now.commit.names(name, raw):
            return raw, now.commit
        if now is before:
            raise _wrong(working, name, block, raw, now.commit)
        # Once more: another run may be writing the block at this very moment.
        before = now
    return None


def _wrong(
    working: Working, name: str, block: int, raw: bytes | None, commit: Commit
) -> DamageError:
    """What is wrong with a file that its record does not name."""
    file = working.chunk(name, block)
    if raw is None:
        return _damage(working, block, f"{file} is missing though its status is done", True)
    try:
        _decoded(raw, working, name)
    except FrameError as exc:
        torn = commit.is_short(name, raw) or is_torn(raw)
        return _damage(working, block, f"{file} is damaged, {exc}", torn)
    # What ends with a right checksum was not cut short, however short it is.
    return _damage(working, block, f"{file} is damaged, {UNNAMED}", False)


def read(working: Working, name: str, places: slice) -> NDArray[Any]:
    """Some places of an array with one chunk a block; the fill value where none is committed."""
    array, block = working.array(name), working.block
    dtype = object if working.layout(name).size is None else array.dtype
    found = np.full((places.stop - places.start, *array.shape[1:]), array.fill_value, dtype=dtype)
    for number in range(places.start // block, -(-places.stop // block)):
        values = chunk(working, name, number)
        if values is not None:
            first, last = max(places.start, number * block), min(places.stop, (number + 1) * block)
            found[first - places.start : last - places.start] = values[
                first - number * block : last - number * block
            ]
    return found


def every_place(working: Working, name: str) -> NDArray[Any]:
    """``"status"`` or ``"cpu_seconds"`` at all places; the fill value where no block was written.

    Only blocks that have a file are looked at: a study of expensive points has a chunk a block, and
    few of the blocks that it will have. Who asks what is still to do would wait for hundreds of
    thousands of files that are not there.
    """
    array = working.array(name)
    found = np.full(working.size, array.fill_value, dtype=array.dtype)
    for number in _written(working):
        values = chunk(working, name, number)
        if values is not None:
            found[working.span(number)] = values
    return found


def _written(working: Working) -> Iterator[int]:
    """Blocks of which something was committed; whatever else lies there is not looked at."""
    folder, count = inside(working.path, "status/c"), working.blocks
    if not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.isascii() and entry.name.isdigit():
                block = int(entry.name)
                # Beyond the last one: of an append that has not ended.
                if entry.name == str(block) and block < count:
                    yield block


def _checked(working: Working, name: str, block: int, values: NDArray[Any]) -> NDArray[Any]:
    """Values that are exactly a chunk."""
    array = working.array(name)
    fits = array.chunks[0] == working.block and values.shape == array.chunks
    if not fits or working.span(block).stop > working.size:
        raise AssertionError(f"{name}: block {block} is not one chunk of {array.chunks}")
    return values.astype(array.dtype, copy=False) if working.layout(name).size else values


def write(
    working: Working,
    block: int,
    values: Mapping[str, NDArray[Any]],
    reasons: list[str],
    status: Status,
) -> None:
    """Commit a whole block: all else first, its statuses and their record last.

    ``values`` has a chunk of every array that is committed, ``reasons`` empty texts where there is
    none. What another run has committed of the block meanwhile is kept.
    """
    with writing(working.path, block):
        before = committed(working, block)
        if before is not None:
            if not ((before.status == PENDING) & (status != PENDING)).any():
                return
            _keep(working, block, before, values, reasons, status)
        data = {name: _checked(working, name, block, values[name]) for name in working.committed}
        if any(reasons) or (before is not None and "reason" in before.commit.chunks):
            data["reason"] = np.array(reasons, dtype=object)
        files = {name: _encoded(one, working.layout(name)) for name, one in data.items()}
        marks = {name: (Mark.of(raw),) for name, raw in files.items()}
        if before is not None and before.commit.chunks:
            # Killed in between, the block is what it was, with some of its files written anew.
            both = {k: (*before.commit.chunks.get(k, ()), *m) for k, m in marks.items()}
            record(working, block, before.status, both)
        put(working, [(_file(working, name, block), raw) for name, raw in files.items()])
        record(working, block, status, marks)


def _keep(
    working: Working,
    block: int,
    before: Committed,
    values: Mapping[str, NDArray[Any]],
    reasons: list[str],
    status: Status,
) -> None:
    """Take over what was committed of points that these values lack."""
    for place in np.flatnonzero((status == PENDING) & (before.status != PENDING)).tolist():
        at = slice(working.span(block).start + place, working.span(block).start + place + 1)
        for name in working.committed:
            values[name][place] = read(working, name, at)[0]
        reasons[place] = str(read(working, "reason", at)[0])
        status[place] = before.status[place]


def make_pending(working: Working, block: int, places: NDArray[np.bool_] | None = None) -> None:
    """Commit that some places of a block are to be computed again.

    None makes every place pending and gives up all data.
    """
    with writing(working.path, block):
        if places is None:
            record(working, block, np.zeros(working.block, dtype=np.uint8), {})
            return
        before = committed(working, block)
        if before is not None:
            status = np.where(places, PENDING, before.status).astype(np.uint8)
            record(working, block, status, before.commit.chunks)


def record(
    working: Working, block: int, status: Status, chunks: Mapping[str, tuple[Mark, ...]]
) -> None:
    """Commit a block: its statuses and the record of its chunks, which are on the disk already."""
    status = _checked(working, "status", block, np.asarray(status, dtype=np.uint8))
    commit = Commit(
        segment=str(working.attrs["id"]),
        block=block,
        points=points_digest(working, block),
        status=digest(status.tobytes()),
        chunks=dict(chunks),
    )
    raw = packed(status.tobytes(), commit.text)
    put(working, [(_file(working, "status", block), raw)])


def put(working: Working, files: list[tuple[Path, bytes]]) -> None:
    """Write chunks, at paths as :func:`_file` has looked at them; at the end all is on the disk."""
    levels = {folder: None for path, _ in files for folder in _folders(working, path)}
    for folder in levels:
        folder.mkdir(exist_ok=True)
    write_all(files)
    for folder in levels:
        if folder.name != "c" or folder not in working.durable:
            sync_folder(folder.parent)
            working.durable.add(folder)
    if not (working.path / METADATA).exists():
        for path, _ in files:
            path.unlink(missing_ok=True)
        raise FileNotFoundError(2, "it was removed while a run went on", str(working.path))


def _folders(working: Working, path: Path) -> Iterator[Path]:
    """Folders of a chunk below that of its array, the topmost first.

    That of the array is there from the beginning: where it is not, the segment was removed.
    """
    array, *below, _ = path.relative_to(working.path).parts
    folder = working.path / array
    for part in below:
        folder = folder / part
        yield folder
