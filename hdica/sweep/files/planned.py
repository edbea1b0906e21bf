"""The planner's arrays of a segment (key, parameters, seed): written under a lock, bound to places.

The metadata of ``key``, which are written last, hold a digest of every chunk of all three, over the
places that there are. So an append that is cut short changes nothing that is read, and a chunk that
was exchanged or put back from before is found. The metadata of every array hold its name and the
identity of its segment; but for those of ``key``, they follow from the study and are written anew
where they are damaged.
"""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import zarr
from numcodecs.vlen import VLenUTF8
from numpy.typing import NDArray

from hdica.status import PENDING
from hdica.sweep.files.disk import make_folder, sync_folder, sync_tree
from hdica.sweep.files.frames import codec, is_torn
from hdica.sweep.files.guarded import METADATA, GuardedStore
from hdica.sweep.files.manifest import digest
from hdica.sweep.files.paths import (
    DamageError,
    TornError,
    discard,
    discard_inside,
    inside,
    read_regular,
    write_text,
)
from hdica.sweep.files.places import UNREADABLE, WRONG, described
from hdica.sweep.files.sealed import SCHEMA_VERSION, sealed
from hdica.sweep.study.kept import plain
from hdica.sweep.study.keys import Keys
from hdica.version import __version__

if TYPE_CHECKING:
    from pathlib import Path

    from hdica.sweep.files.store import Working
    from hdica.sweep.study.segment import Segment

ARRAYS = ("key", "parameters", "seed")
PLANNED = 4096
"""Least places a chunk of the planner's arrays (key, parameters, seed)."""
PLACES = 2**16
"""About how many places of the planner's arrays are written at a time."""
MOVED = "it is not the chunk that was planned there"
ARRAY_CONFIG: Any = {"write_empty_chunks": True}
"""A chunk of zeros or NaN is written like any other: a missing file is always damage."""
_TEXTS = VLenUTF8()
Digests = dict[str, list[str]]


def _digest(values: NDArray[Any]) -> str:
    """Digest of the values of one of the planner's chunks."""
    if values.dtype.kind not in "uif":
        return digest(bytes(_TEXTS.encode(values.astype(object))))
    return digest(np.ascontiguousarray(values).tobytes())


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
    """Make an empty segment; it appears whole, by a rename."""
    partial = _partial(path)
    make_folder(partial.parent)
    _lay_out(partial, segment, block, uuid.uuid4().hex)
    sync_tree(partial)
    partial.replace(path)
    sync_folder(path.parent)


def _partial(path: Path) -> Path:
    """Where a segment is laid out before it takes its place; nothing is there."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    discard(partial)
    return partial


def _lay_out(folder: Path, segment: Segment, block: int, identity: str) -> None:
    """Write the metadata of an empty segment, with the identity that it has."""
    method = segment.method
    group = zarr.open_group(folder, mode="w", zarr_format=3)
    chunk = block * max(1, PLANNED // block)
    _array(group, "key", chunk, "u1", 0, {"byte": 32})
    _array(group, "parameters", chunk, str, "", {})
    _array(group, "seed", chunk, "i8", -1, {})
    for output in segment.outputs:
        dims = dict(zip(output.dims, segment.shape(output.dims), strict=True))
        _array(group, output.name, block, "f8", float("nan"), dims)
    _array(group, "status", block, "u1", PENDING, {})
    _array(group, "cpu_seconds", block, "f8", float("nan"), {})
    _array(group, "reason", block, str, "", {})
    group.update_attributes(
        {
            "schema_version": SCHEMA_VERSION,
            "hdica_version": __version__,
            "id": identity,
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
    planned: dict[str, Any] = {"block": block, "planned": {name: [] for name in ARRAYS}}
    for name, array in group.arrays():
        own = planned if name == "key" else {}
        array.update_attributes({"segment": identity, "array": name, **own})
    for file in (folder / METADATA, *folder.glob(f"*/{METADATA}")):
        write_text(file, sealed(json.loads(file.read_bytes())))


def restore(path: Path, segment: Segment, name: str) -> None:
    """Write the metadata of an array anew, and the segment's own, alone if ``name`` is empty.

    They follow from the study and from the metadata of ``key``: identity, places, block. Those of
    ``key`` follow from nothing.
    """
    key = f"key/{METADATA}"
    document = json.loads(GuardedStore(path).load(key) or b"{}")
    about = document["attributes"]
    if name == "key" or about["array"] != "key":
        raise DamageError(f"{path / key} is damaged")
    partial = _partial(path)
    try:
        _lay_out(partial, segment, about["block"], about["segment"])
        for file in dict.fromkeys((METADATA, f"{name}/{METADATA}" if name else METADATA)):
            new = json.loads((partial / file).read_bytes())
            if file != METADATA:
                new["shape"][0] = document["shape"][0]
            _make_way(path, file)
            write_text(path / file, sealed(new))
    finally:
        discard(partial)


def _make_way(path: Path, name: str) -> None:
    """Remove a link or a folder in place of a file, or what stands in place of its folder."""
    with suppress(DamageError):
        if read_regular(inside(path, name)) is not None:
            return
    discard_inside(path, name)
    make_folder((path / name).parent)


def digests_of(working: Working) -> Digests:
    """Digests of all chunks of the planner's arrays, by array."""
    about = working.array("key").metadata.attributes
    found: Any = about.get("planned")
    file = working.path / "key" / METADATA
    count = -(-working.size // working.array("key").chunks[0])
    try:
        if all(len(found[name]) == count for name in ARRAYS):
            return {name: [str(one) for one in found[name]] for name in ARRAYS}
    except (KeyError, TypeError):
        pass
    raise DamageError(f"{file} is damaged, it does not name the chunks of {working.path.name}")


def read(working: Working, name: str, places: slice) -> NDArray[Any]:
    """Some places of one of the planner's arrays."""
    chunk = working.array(name).chunks[0]
    parts = []
    for number in range(places.start // chunk, -(-places.stop // chunk)):
        values, first = _chunk(working, name, number), number * chunk
        parts.append(values[max(0, places.start - first) : places.stop - first])
    if not parts:
        return np.asarray(working.array(name)[places])
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _chunk(working: Working, name: str, number: int) -> NDArray[Any]:
    """Values of a whole chunk; the one that was read last is kept, since blocks share it."""
    known = working.planned.get(name)
    if known is not None and known[0] == number:
        return known[1]
    within = _span(working, number)
    file = working.chunk(name, number)
    expected = digests_of(working)[name]
    if not file.exists():
        raise TornError(f"{file} is missing ({described(working, within)})")
    try:
        values = working.raw(name, within)
    except PermissionError:
        raise
    except UNREADABLE as exc:
        what = str(exc) if isinstance(exc, DamageError) else f"{file} is damaged, {WRONG}"
        kind = TornError if _torn(file) else DamageError
        raise kind(f"{what} ({described(working, within)})") from exc
    if _digest(values) != expected[number]:
        raise DamageError(f"{file} is damaged, {MOVED} ({described(working, within)})")
    values.setflags(write=False)
    working.planned[name] = (number, values)
    return values


def check_whole(working: Working) -> None:
    """Refuse chunks that were cut short; nothing is decoded, and most runs read few of them."""
    for name in ARRAYS:
        for number in range(-(-working.size // working.array(name).chunks[0])):
            file = working.chunk(name, number)
            if not file.exists() or _torn(file):
                points = described(working, _span(working, number))
                raise TornError(f"{file} is cut short ({points})")


def _torn(file: Path) -> bool:
    try:
        return is_torn(read_regular(file) or b"")
    except (DamageError, OSError):
        return False


def _pieces(start: int, stop: int, chunk: int) -> Iterator[tuple[int, int]]:
    """Runs of places that are written at once: whole chunks, but for the first and the last."""
    step = chunk * max(1, PLACES // chunk)
    while start < stop:
        end = min(stop, (start // step + 1) * step)
        yield start, end
        start = end


def append(
    working: Working,
    keys: Keys,
    systems: Callable[[int, int], list[str]],
    seeds: NDArray[np.int64],
) -> None:
    """Add points behind the last block. The caller holds the planning lock.

    An array has its new places when its metadata say so: after the data of the planner's arrays,
    and those of the keys last. An append that is cut short leaves the places that there were.

    ``systems(first, last)`` gives the JSON of the systems of some of the new points; a seed of -1
    means none.
    """
    start = working.size
    stop = start + -(-len(keys) // working.block) * working.block
    raw = np.ascontiguousarray(keys, dtype="S32").view(np.uint8).reshape(-1, 32)
    digests, grown = digests_of(working), {n: _grown(working, n, stop) for n in working.names}
    for name in working.names[len(ARRAYS) :]:
        _announce(working, name, grown[name])

    def texts(first: int, last: int) -> NDArray[Any]:
        return np.array(systems(first, last), dtype=object)

    new: dict[str, Callable[[int, int], NDArray[Any]]] = {
        "seed": lambda first, last: seeds[first:last],
        "parameters": texts,
        "key": lambda first, last: raw[first:last],
    }
    for name, values in new.items():
        digests[name] = _extended(working, grown[name], name, len(keys), values, digests[name])
        about = {"planned": digests} if name == "key" else None
        _announce(working, name, grown[name], about)


def _extended(
    working: Working,
    array: zarr.Array[Any],
    name: str,
    count: int,
    new: Callable[[int, int], NDArray[Any]],
    digests: list[str],
) -> list[str]:
    """Write new places of one array; digests of all its chunks then."""
    start, stop, chunk = working.size, array.shape[0], array.chunks[0]
    found = digests[: start // chunk]
    before = read(working, name, slice(len(found) * chunk, start))
    for first, last in _pieces(len(found) * chunk, stop, chunk):
        parts = [before] if first < start else []
        low, high = max(first, start), min(last, start + count)
        parts += [new(low - start, high - start)] if low < high else []
        dtype = object if array.dtype.kind not in "uif" else array.dtype
        rest = last - max(high, low, start)
        parts.append(np.full((rest, *array.shape[1:]), array.fill_value, dtype=dtype))
        values = np.concatenate([part.astype(dtype, copy=False) for part in parts])
        array[first:last] = values
        found += [_digest(values[at : at + chunk]) for at in range(0, last - first, chunk)]
    return found


def _span(working: Working, number: int) -> slice:
    """Places of a chunk of the planner's arrays."""
    chunk = working.array("key").chunks[0]
    return slice(number * chunk, min((number + 1) * chunk, working.size))


def blocks_of(working: Working, number: int) -> range:
    """Blocks whose places lie in a chunk of the planner's arrays."""
    span = _span(working, number)
    return range(span.start // working.block, span.stop // working.block)


def forget(working: Working, number: int) -> None:
    """Give up the places of one chunk of the planner's arrays; the next plan places them anew."""
    span = _span(working, number)
    digests = digests_of(working)
    for name in ("parameters", "seed", "key"):
        array = working.array(name)
        dtype = object if array.dtype.kind not in "uif" else array.dtype
        shape = (span.stop - span.start, *array.shape[1:])
        values: NDArray[Any] = np.full(shape, array.fill_value, dtype=dtype)
        array[span] = values
        digests[name][number] = _digest(values)
    working.planned.clear()
    _announce(working, "key", working.array("key"), {"planned": digests})


def _grown(working: Working, name: str, places: int) -> zarr.Array[Any]:
    """An array with more places, which nobody knows of yet."""
    array = working.array(name)
    document: dict[str, Any] = dict(array.metadata.to_dict())
    document["shape"] = [places, *array.shape[1:]]
    return zarr.Array.from_dict(array.store_path, document).with_config(ARRAY_CONFIG)


def _announce(
    working: Working, name: str, array: zarr.Array[Any], about: dict[str, Any] | None = None
) -> None:
    """Write the metadata of an array, at once and with their digest."""
    document: dict[str, Any] = dict(array.metadata.to_dict())
    if about is not None:
        document["attributes"] = {**(document.get("attributes") or {}), **about}
    write_text(working.path / name / METADATA, sealed(document))
