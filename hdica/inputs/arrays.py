"""Arrays of the user's own on disk, ``.npy`` files and Zarr arrays, checked before they are read.

Zarr believes what an array says of itself. The filters and object types of its format 2 may
unpickle, which runs code; a shape may promise more numbers than any memory holds; a few bytes of a
compressed chunk may expand to gigabytes. Here the metadata and the head of every chunk are read
first, and only the types and codecs listed below go on to Zarr, whatever the installed versions of
Zarr and numcodecs would accept.
"""

from __future__ import annotations

import gzip
import io
import json
import math
import mmap
import os
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

import numpy as np

from hdica.errors import HdicaError, extras, no_room

MOST_METADATA = 2**20  # bytes of a metadata file
MOST_CHUNK = 2**28  # decoded bytes of a chunk
MOST_CHUNKS = 10**5
# Chunks beyond one a byte of files: one that holds the fill value alone has no file, and takes its
# time all the same.
BLANK_CHUNKS = 10**4
MOST_WHOLE, WHOLE_RATIO = 2**28, 200
"""Bytes of an array, as float64, and of each of its files' own beyond them: what takes time."""
MOST_ONCE, ONCE_RATIO = 2**26, 8
"""The same of what is in memory at once: a vector, or the chunks in which a row lies. A vector is
copied seven times on its way, so that a file of 3 MB takes less than a gigabyte."""
MOST_ARCHIVE, ARCHIVE_RATIO = 2**26, 20
"""The same of an archive, which is read whole: weights hardly compress."""
MOST_PICKLE = 2**21
"""Bytes of a checkpoint's list of its tensors: each may be an object of a hundred."""
_TYPE_3 = re.compile(r"(?:u?int|float(?!8))(8|16|32|64)")
_TYPE_2 = re.compile(r"[<>|][iuf]([1248])")
_CHUNK = re.compile(r"(c[/.])?\d+([/.]\d+)*")
"""Name of a chunk's file below the folder of its array."""
_METADATA = ("zarr.json", ".zarray")
_MISSING = 2**64 - 1
"""Offset and length, in the index of a shard, of a chunk that holds the fill value alone."""

_PIECE = 2**20  # bytes that are decoded at a time where they are only counted

Buffer = bytes | memoryview


class Refused(ValueError):
    """Why an array is not read; the message completes the sentence "it cannot be read (...)"."""


def _size_of_gzip(raw: Buffer, size: int) -> int:
    """Decoded bytes of a stream that does not declare them, counted to one past ``size``.

    Zarr decodes it once more: the length that stands at the end of a gzip stream is a mere claim.
    """
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(raw)) as stream:
            count = 0
            while count <= size and (piece := stream.read(min(_PIECE, size + 1 - count))):
                count += len(piece)
            return count
    except (OSError, EOFError, zlib.error) as exc:
        raise Refused("a chunk is damaged") from exc


def _size_of_zlib(raw: Buffer, size: int) -> int:
    stream, count = zlib.decompressobj(), 0
    try:
        # Of every byte come a thousand at most.
        for start in range(0, len(raw), _PIECE >> 10):
            count += len(stream.decompress(raw[start : start + (_PIECE >> 10)]))
            if count > size or stream.eof:
                break
        return count
    except zlib.error as exc:
        raise Refused("a chunk is damaged") from exc


def _size_of_zstd(raw: Buffer, _: int) -> int:
    """Decoded bytes that the header of a zstd frame declares (RFC 8878, section 3.1.1).

    There may be one frame: others behind it, with headers of their own, would be decoded, too.
    """
    if raw[:4] != b"\x28\xb5\x2f\xfd" or len(raw) < 6:
        raise Refused("a chunk is damaged")
    single, code = bool(raw[4] & 0x20), raw[4] >> 6
    width = (1 if single else 0, 2, 4, 8)[code]
    start = 5 + (0 if single else 1) + (0, 1, 2, 4)[raw[4] & 3]
    if not width:
        raise Refused("a zstd chunk does not declare its size")
    place, last = start + width, False
    while not last:
        block = int.from_bytes(raw[place : place + 3], "little")
        last, repeated = bool(block & 1), block & 6 == 2
        place += 3 + (1 if repeated else block >> 3)
        if place > len(raw):
            raise Refused("a chunk is damaged")
    if place + (4 if raw[4] & 4 else 0) != len(raw):
        raise Refused("a zstd chunk is damaged, or has several frames")
    return int.from_bytes(raw[start : start + width], "little") + (256 if code == 1 else 0)


def _declared(start: int) -> Callable[[Buffer, int], int]:
    """Decoded bytes that a header declares as four bytes from ``start`` on."""
    return lambda raw, _: int.from_bytes(raw[start : start + 4], "little")


COMPRESSORS: Mapping[str, Callable[[Buffer, int], int]] = {
    "": lambda raw, _: len(raw),
    "blosc": _declared(4),
    "gzip": _size_of_gzip,
    "lz4": _declared(0),
    "zlib": _size_of_zlib,
    "zstd": _size_of_zstd,
}
"""How many bytes a compressed chunk decodes to, by compressor, or one more than it should."""
COMPRESSORS_3 = ("blosc", "gzip", "zstd")  # those of format 3


class Codec(NamedTuple):
    """How a chunk is encoded: by one compressor, with a checksum of 4 bytes behind it or not."""

    compressor: str
    checksum: bool

    def check(self, raw: Buffer, size: int) -> None:
        """Refuse a chunk that would not decode to ``size`` bytes."""
        body = raw[:-4] if self.checksum else raw
        decoded = COMPRESSORS[self.compressor](body, size)
        if decoded != size:
            raise Refused(f"a chunk decodes to {decoded} bytes, or more, and not to {size}")


class Shards(NamedTuple):
    """Where the chunks of a shard lie in its file."""

    chunks: int
    at_end: bool
    checksum: bool

    def pieces(self, raw: Buffer) -> Iterator[Buffer]:
        """The encoded chunks of a shard."""
        size = 16 * self.chunks
        length = size + (4 if self.checksum else 0)
        if len(raw) < length:
            raise Refused("a shard is damaged")
        start = len(raw) - length if self.at_end else 0
        for offset, count in struct.iter_unpack("<QQ", raw[start : start + size]):
            if (offset, count) == (_MISSING, _MISSING):
                continue
            if offset + count > len(raw):
                raise Refused("a shard is damaged")
            yield raw[offset : offset + count]


class Layout(NamedTuple):
    """What the metadata of a Zarr array say of its files."""

    shape: tuple[int, ...]
    files: tuple[int, ...]  # numbers along each dimension in one file: a chunk, or a shard
    chunk: tuple[int, ...]
    item: int  # bytes of a number
    codec: Codec
    version: Literal[2, 3]
    shards: Shards | None = None

    def check(self, folder: Path) -> None:
        """Refuse an array that promises more than its files can hold, or a chunk that expands."""
        counts = [-(-n // c) for n, c in zip(self.shape, self.chunk, strict=True)]
        chunks, size = math.prod(counts), self.item * math.prod(self.chunk)
        # All numbers become float64 where they are read, whatever their type.
        padded = [count * c for count, c in zip(counts, self.chunk, strict=True)]
        whole = 8 * math.prod(padded)
        once = 8 * math.prod([self.chunk[0], *padded[1:]]) if len(padded) > 1 else whole
        if chunks > MOST_CHUNKS:
            raise Refused(f"it has {chunks} chunks; at most {MOST_CHUNKS} are allowed")
        if size > MOST_CHUNK:
            raise Refused(f"a chunk has {size} bytes; at most {MOST_CHUNK} are allowed")
        named = ((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*"))
        paths = [path for name, path in named if _CHUNK.fullmatch(name) and path.is_file()]
        stored = sum(path.stat().st_size for path in paths)
        most = MOST_WHOLE + WHOLE_RATIO * stored
        if whole > most or (len(padded) == 1 and once > MOST_ONCE + ONCE_RATIO * stored):
            raise Refused(f"its shape promises {whole} bytes, and its files have {stored}")
        if once > MOST_ONCE + ONCE_RATIO * stored:
            raise Refused(f"its chunks promise {once} bytes for a row, and its files have {stored}")
        if chunks > BLANK_CHUNKS + stored:
            raise Refused(f"it has {chunks} chunks, and its files have {stored} bytes")
        for path in paths:
            raw = _mapped(path)
            for piece in self.shards.pieces(raw) if self.shards else (raw,):
                # A shard may name the same bytes as many chunks, or have more than the array.
                most -= 8 * math.prod(self.chunk)
                if most < 0:
                    raise Refused(f"its chunks are more than its {stored} bytes of files allow")
                self.codec.check(piece, size)


def _mapped(path: Path) -> memoryview:
    """The bytes of a file, of which only those are read that are indexed."""
    try:
        with path.open("rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except ValueError as exc:  # an empty file cannot be mapped
        raise Refused("a chunk is empty") from exc


def _whole(values: Any, least: int) -> tuple[int, ...]:
    """A list of whole numbers of a metadata file."""
    if not isinstance(values, list) or len(values) > 32:
        raise Refused("its metadata have no list of whole numbers as shape or chunk shape")
    if any(type(n) is not int or n < least for n in values):
        raise Refused(f"its shape or chunk shape has other than whole numbers from {least} on")
    return tuple(values)


def _grid(shape: Any, chunk: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shapes of an array and of its chunks."""
    whole, part = _whole(shape, 0), _whole(chunk, 1)
    if len(whole) != len(part):
        raise Refused("its chunks have other dimensions than the array")
    return whole, part


def _size_in(kind: Any, pattern: re.Pattern[str]) -> int:
    """The size that the name of a type of numbers holds."""
    if not isinstance(kind, str) or not (match := pattern.fullmatch(kind)):
        raise Refused(f"type {str(kind)[:40]!r} is not allowed (real numbers)")
    return int(match[1])


def _layout_2(document: Mapping[str, Any]) -> Layout:
    item = _size_in(document["dtype"], _TYPE_2)
    filters, compressor = document.get("filters") or [], document.get("compressor")
    names = [one.get("id") for one in filters]
    if any(name != "shuffle" for name in names):
        raise Refused(f"filters {names} are not allowed (none, or shuffle)")
    name = "" if compressor is None else compressor["id"]
    if name not in COMPRESSORS:
        raise Refused(
            f"compressor {name!r} is not allowed ({', '.join(filter(None, COMPRESSORS))})"
        )
    shape, chunk = _grid(document["shape"], document["chunks"])
    return Layout(shape, chunk, chunk, item, Codec(name, False), 2)


def _codec_3(codecs: Sequence[Mapping[str, Any]]) -> Codec:
    """The compressor and checksum of a list of codecs of format 3."""
    names = [one["name"] for one in codecs]
    while names and names[0] == "transpose":
        names.pop(0)
    checksum = bool(names) and names[-1] == "crc32c"
    rest = names[1:-1] if checksum else names[1:]
    if names[:1] != ["bytes"] or len(rest) > 1 or any(one not in COMPRESSORS_3 for one in rest):
        raise Refused(
            f"codecs {', '.join(str(one['name'])[:40] for one in codecs[:8])} are not allowed "
            f"(transpose, bytes, at most one of {', '.join(COMPRESSORS_3)}, and crc32c)"
        )
    return Codec(rest[0] if rest else "", checksum)


def _layout_3(document: Mapping[str, Any]) -> Layout:
    grid, codecs = document["chunk_grid"], document["codecs"]
    item = _size_in(document["data_type"], _TYPE_3) // 8
    if grid["name"] != "regular" or document.get("storage_transformers"):
        raise Refused("its grid of chunks is not regular, or it has storage transformers")
    shape, files = _grid(document["shape"], grid["configuration"]["chunk_shape"])
    if [one["name"] for one in codecs][:1] != ["sharding_indexed"]:
        return Layout(shape, files, files, item, _codec_3(codecs), 3)
    inner = codecs[0]["configuration"]
    (_, chunk), index = _grid([*files], inner["chunk_shape"]), _codec_3(inner["index_codecs"])
    if len(codecs) > 1 or index.compressor or any(n % c for n, c in zip(files, chunk, strict=True)):
        raise Refused("its shards are encoded once more, or no whole number of chunks")
    count = math.prod(n // c for n, c in zip(files, chunk, strict=True))
    if count > MOST_CHUNKS:
        raise Refused(f"a shard has {count} chunks; at most {MOST_CHUNKS} are allowed")
    shards = Shards(count, inner.get("index_location", "end") == "end", index.checksum)
    return Layout(shape, files, chunk, item, _codec_3(inner["codecs"]), 3, shards)


def _layout(folder: Path) -> Layout:
    """What a Zarr array says of itself, read from its one metadata file."""
    path = next((folder / name for name in _METADATA if (folder / name).is_file()), None)
    if path is None:
        raise Refused("it has no metadata of a Zarr array")
    # Hidden files are no data, so that nothing else has looked at them; Zarr reads them whole.
    for one in (folder / name for name in (*_METADATA, ".zattrs")):
        if os.path.lexists(one) and not one.is_file():
            raise Refused(f"{one.name} is no regular file")
        if one.is_file() and one.stat().st_size > MOST_METADATA:
            raise Refused(f"its metadata have more than {MOST_METADATA} bytes")
    try:
        document = json.loads(path.read_bytes())
        version = document["zarr_format"]
        if version == 3 and document["node_type"] == "array":
            return _layout_3(document)
        if version == 2 and path.name == ".zarray":
            return _layout_2(document)
    except Refused:
        raise
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as exc:
        raise Refused("its metadata are not those of a Zarr array") from exc
    raise Refused("it is no Zarr array of format 2 or 3")


def _check_npy(file: IO[bytes], size: int) -> int:
    """Numbers of a ``.npy`` file of so many bytes, whose header may promise no more than these."""
    version = np.lib.format.read_magic(file)
    width = 2 if version == (1, 0) else 4
    length = int.from_bytes(file.read(width), "little")
    if length > MOST_METADATA:
        raise Refused(f"its header has more than {MOST_METADATA} bytes")
    file.seek(-width, io.SEEK_CUR)
    header = np.lib.format
    read = header.read_array_header_1_0 if width == 2 else header.read_array_header_2_0
    shape, _, kind = read(file)
    whole = kind.itemsize * math.prod(shape)
    if whole > size - file.tell():
        raise Refused(f"its shape promises {whole} bytes, and there are {size - file.tell()}")
    return math.prod(shape)


def most_numbers(stored: int) -> int:
    """Most numbers that archives of so many bytes may hold."""
    return (MOST_ARCHIVE + ARCHIVE_RATIO * stored) // 8


def check_archive(path: Path) -> None:
    """Refuse an archive that expands beyond all proportion, or arrays that promise too much.

    The path is that of a ``.npy`` or ``.npz`` file or of a checkpoint.
    """
    stored = path.stat().st_size
    if not zipfile.is_zipfile(path):
        with path.open("rb") as file:
            begins = file.read(len(np.lib.format.MAGIC_PREFIX))
            file.seek(0)
            if begins == np.lib.format.MAGIC_PREFIX:
                _check_npy(file, stored)
        return
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        whole = sum(member.file_size for member in members)
        if whole > MOST_ARCHIVE + ARCHIVE_RATIO * stored:
            raise Refused(f"it expands from {stored} to {whole} bytes")
        numbers = 0
        for member in members:
            if member.filename.endswith(".pkl") and member.file_size > MOST_PICKLE:
                raise Refused(f"its list of tensors has more than {MOST_PICKLE} bytes")
            if member.filename.endswith(".npy"):
                with archive.open(member) as inner:
                    numbers += _check_npy(inner, member.file_size)
        if numbers > most_numbers(stored):
            raise Refused(f"it expands from {stored} bytes to {numbers} numbers")


@contextmanager
def reading(path: str, what: str, allowed: str, fields: Sequence[str] = ()) -> Iterator[None]:
    """Say in one sentence why the body cannot read the array at a path."""
    try:
        yield
    except HdicaError:
        raise
    except MemoryError as exc:
        raise no_room(f"{what} = {Path(path).name!r}") from exc
    # Readers of damaged files raise whatever they run into.
    except Exception as exc:
        why = str(exc) if isinstance(exc, Refused) else "it is damaged"
        raise HdicaError(
            f"{what} = {Path(path).name!r} cannot be read ({why}; {allowed})", fields
        ) from None


def open_array(path: Path) -> Any:
    """An array on disk of real numbers, of which rows are read when they are indexed.

    A memory map of a ``.npy`` file, or an array of Zarr of the folder of one of format 2 or 3.
    Refused if it is neither, is damaged, or is encoded in a way that is not on the lists above.
    """
    if path.is_dir():
        with extras():
            import zarr

        layout = _layout(path)
        layout.check(path)
        try:
            return zarr.open_array(str(path), mode="r", zarr_format=layout.version)
        except MemoryError:
            raise
        # Zarr raises whatever it runs into.
        except Exception as exc:
            raise Refused("Zarr cannot open it") from exc
    try:
        check_archive(path)
        rows = np.load(path, mmap_mode="r", allow_pickle=False)
    except MemoryError:
        raise
    # Readers of damaged files raise whatever they run into.
    except Exception as exc:
        raise Refused("it is no .npy file, or a damaged one") from exc
    if not isinstance(rows, np.ndarray):
        raise Refused("it is an archive of arrays, not a .npy file")
    return rows
