"""Files that carry their digests, so that a change of any byte shows: JSON documents, blocks.

Zarr's metadata keep the digest of a document among their attributes. The manifest of a published
store is such a document beside it, written last. The workflow follows it, because Snakemake deletes
outputs of failed jobs.

The file of a block of points has their keys, statuses and results, each part with its digest. It is
written beside its place and renamed when it is on the disk: the rename is its commit, and a listing
of the folder is what is done. Its name is the digest of the keys of its points, so that a file that
was exchanged with another one, copied from another store or put back from before holds other points
than its name says, or the same numbers.

Layout: ``MAGIC``, the length of the header (8 bytes, little-endian), the header (JSON), its sha256,
and then every array as a zstd frame, in the order in which the header lists them, each with its
sha256 there. The first arrays are those that a listing needs: keys, statuses, times.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
from numcodecs.zstd import Zstd
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hdica.errors import HdicaError, one_sentence
from hdica.status import STATUS_NAMES
from hdica.store.files import MAX_BYTES, DamageError, TornError, read_regular, regular, write_whole
from hdica.store.paths import manifest_path
from hdica.version import __version__

Document = dict[str, Any]  # a JSON object
SCHEMA_VERSION = 3  # layout of the stores
DIGEST = "digest"
VERSION = "schema_version"
MAGIC = b"hdica block 1\n\0\0"
NAME = re.compile(r"[0-9a-f]{32}\.block")
FIRST = ("key", "status", "cpu_seconds")  # arrays at the beginning, read without the others
HEAD_BYTES = 2**15  # bytes that are read first: mostly the header with the first arrays
DIGEST_BYTES = 32
_ZSTD = Zstd(level=1, checksum=True)
_DTYPES = ("|u1", "<i4", "<i8", "<f8")
Arrays = dict[str, NDArray[Any]]


class SchemaError(HdicaError):
    """A store of another layout than this version writes; the sentence says what to do."""


def _about(document: Document) -> Document:
    """Where a document keeps its digest: Zarr's metadata among their attributes."""
    if "node_type" not in document:
        return document
    attributes = document.setdefault("attributes", {})
    return attributes if isinstance(attributes, dict) else {}  # then it has no digest


def sealed(document: Document) -> str:
    """Text of a document with its digest: that of the text in which the digest is empty."""
    whole: Document = json.loads(json.dumps(document))
    about = _about(whole)
    about[DIGEST] = ""
    unsigned = json.dumps(whole, indent=1) + "\n"
    about[DIGEST] = hashlib.sha256(unsigned.encode()).hexdigest()
    return json.dumps(whole, indent=1) + "\n"


def parsed(raw: bytes, path: Path) -> Document:
    """A JSON object."""
    try:
        document = json.loads(raw)
    except (ValueError, RecursionError) as exc:
        if not raw.rstrip(b"\0 \n").endswith(b"}") or raw.endswith(b"\0"):
            raise TornError(f"{path} is damaged (not valid JSON: it is cut short)") from exc
        raise DamageError(f"{path} is damaged (not valid JSON)") from exc
    if not isinstance(document, dict):
        raise DamageError(f"{path} is damaged (not a JSON object)")
    return document


def unsealed(raw: bytes, path: Path) -> Document:
    """The document behind the sealed text of a file."""
    document = parsed(raw, path)
    about = _about(document)
    version = about.get(VERSION, SCHEMA_VERSION)
    newer = isinstance(version, int) and version > SCHEMA_VERSION
    digest = about.get(DIGEST)
    digest = digest if isinstance(digest, str) and len(digest) == 64 else "none"
    without = raw.replace(digest.encode(errors="replace"), b"")
    if hashlib.sha256(without).hexdigest() != digest:
        hint = f"; or a version of hdica newer than {__version__} wrote it" if newer else ""
        raise DamageError(f"{path} is damaged, its digest is wrong{hint}")
    if newer:
        writer = str(about.get("hdica_version", "a newer version"))
        raise SchemaError(
            f"{path} has schema {version}, written by hdica {writer}, and this is hdica "
            f"{__version__}, which reads up to schema {SCHEMA_VERSION} (install a newer hdica)"
        )
    if version != SCHEMA_VERSION:
        raise SchemaError(
            f"{path} has schema {version}, of an earlier version of hdica (remove it, and the next "
            "run computes it anew)"
        )
    return document


def read_sealed(path: Path) -> Document | None:
    """Content of a sealed file without its digest and version, None if there is no file."""
    if (raw := read_regular(path)) is None:
        return None
    content = unsealed(raw, path)
    return {key: value for key, value in content.items() if key not in (DIGEST, VERSION)}


def sealed_text(content: Document) -> str:
    """Text of a file that :func:`read_sealed` reads."""
    return sealed({VERSION: SCHEMA_VERSION, **content})


def write_sealed(path: Path, content: Document) -> None:
    """Write a document with its version and its digest, whole or not at all."""
    write_whole(path, sealed_text(content).encode())


WITHDRAWN = "hdica repair withdraws it, and hdica run publishes again"


class Manifest(BaseModel):
    """What a manifest must say: study, numerical code, points by status, version."""

    model_config = ConfigDict(extra="allow")

    study: str
    study_hash: str
    full_hash: str
    kernel_version: str
    counts: dict[str, dict[str, Annotated[int, Field(ge=0)]]] = Field(
        description="points by method and status"
    )
    version: str = Field(pattern="^[0-9a-f]{16}$", description="names the store's whole content")


def read_manifest(out: str | Path) -> Document | None:
    """The manifest of a published store, None if there is none."""
    path = manifest_path(out)
    try:
        if (content := read_sealed(path)) is not None:
            Manifest.model_validate(content)
    except DamageError as exc:
        raise DamageError(f"{exc} (the digests of all points; {WITHDRAWN})") from exc
    except ValidationError as exc:
        why = one_sentence(exc, "manifest")
        raise DamageError(f"{path} is damaged: {why} ({WITHDRAWN})") from exc
    return content


def count_in(manifest: Document, status: str) -> int:
    """Points that a manifest counts as pending, or as failed."""
    return sum(counts.get(status, 0) for counts in manifest["counts"].values())


def status_counts(status: NDArray[np.uint8]) -> dict[str, int]:
    """How many points have each status, by its name; those that are left out are none."""
    counts = np.bincount(status.reshape(-1), minlength=len(STATUS_NAMES)).tolist()
    return dict(zip(STATUS_NAMES, counts, strict=False))


class Block(NamedTuple):
    """Content of a block file: what it is about, and some of its arrays, by name."""

    about: dict[str, Any]
    arrays: Arrays


def name_of(keys: NDArray[np.bytes_]) -> str:
    """Name of the file of a block, from the keys of its points in their order."""
    return hashlib.sha256(np.ascontiguousarray(keys, "S32").tobytes()).hexdigest()[:32] + ".block"


def keys_in(arrays: Mapping[str, NDArray[Any]]) -> NDArray[np.bytes_]:
    """Keys of the points of a block, dtype ``S32``."""
    return np.ascontiguousarray(arrays["key"]).view("S32").reshape(-1)


def encoded(about: Mapping[str, Any], keys: NDArray[np.bytes_], arrays: Arrays) -> bytes:
    """Content of the file of a block.

    ``about`` are segment, system, method and versions, as JSON; ``keys`` those of its points, dtype
    ``S32``; ``arrays`` are status, times, seeds and results by name, point by point.
    """
    raw = np.ascontiguousarray(keys, dtype="S32").view(np.uint8).reshape(-1, 32)
    whole: Arrays = {"key": raw, **arrays}
    parts, listed = [], []
    for name in dict.fromkeys((*FIRST, *whole)):
        values = np.ascontiguousarray(whole[name])
        frame = bytes(_ZSTD.encode(values.tobytes()))
        digest = hashlib.sha256(frame).hexdigest()
        listed.append([name, values.dtype.str, list(values.shape), len(frame), digest])
        parts.append(frame)
    header = json.dumps({**about, "arrays": listed}, separators=(",", ":")).encode()
    head = MAGIC + struct.pack("<Q", len(header)) + header
    return b"".join([head, hashlib.sha256(head).digest(), *parts])


def write_block(
    folder: Path, about: Mapping[str, Any], keys: NDArray[np.bytes_], arrays: Arrays
) -> Path:
    """Commit a block: its file, of the digest of its keys, on the disk when this returns."""
    path = folder / name_of(keys)
    write_whole(path, encoded(about, keys, arrays))
    return path


def read_block(path: Path, names: Iterable[str] | None = None) -> Block:
    """Read a block, or some of its arrays, each compared with its digest.

    ``FileNotFoundError`` if there is no such file, ``TornError`` if it is cut short, and
    ``DamageError`` if it was changed or holds other points than its name says.
    """
    with regular(path) as descriptor:
        size, begin = os.fstat(descriptor).st_size, os.pread(descriptor, HEAD_BYTES, 0)
        about, listed, start = _header(descriptor, begin, path, size)
        end = start + sum(each.size for each in listed)
        if size != end:
            raise _damage(path, "its length is wrong", cut=size < end)
        wanted = None if names is None else {*names, "key"}
        arrays: Arrays = {}
        for each in listed:
            stop = start + each.size
            if wanted is None or each.name in wanted:
                inside = stop <= len(begin)
                frame = begin[start:stop] if inside else os.pread(descriptor, each.size, start)
                if hashlib.sha256(frame).hexdigest() != each.digest:
                    cut = frame.endswith(bytes(4))
                    raise _damage(path, f"the digest of {each.name} is wrong", cut)
                if frame_size(frame) != each.bytes:
                    text = f"{each.name} would decode to another size than its header says"
                    raise _damage(path, text)
                values = np.frombuffer(_ZSTD.decode(frame), each.dtype)
                arrays[each.name] = values.reshape(each.shape)
            start = stop
    if name_of(keys_in(arrays)) != path.name:
        raise _damage(path, "it holds other points than its name says")
    return Block(about, arrays)


class _Listed(NamedTuple):
    """An array as the header lists it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size: int  # bytes of its frame
    digest: str

    @property
    def bytes(self) -> int:
        """Bytes of the array in memory."""
        return math.prod(self.shape) * np.dtype(self.dtype).itemsize


def _damage(path: Path, why: str, cut: bool = False) -> DamageError:
    return (TornError if cut else DamageError)(f"{path} is damaged, {why}")


def _header(
    descriptor: int, begin: bytes, path: Path, size: int
) -> tuple[dict[str, Any], list[_Listed], int]:
    """What a file says of itself, its arrays, and the offset of the first of them."""
    fixed = len(MAGIC) + 8
    if len(begin) < fixed or not begin.strip(b"\0"):
        raise _damage(path, "it is cut short", cut=True)
    length = int.from_bytes(begin[len(MAGIC) : fixed], "little")
    start = fixed + length + DIGEST_BYTES
    if not begin.startswith(MAGIC) or length > MAX_BYTES:
        raise _damage(path, "it is no block of this version of hdica")
    if start > size:
        raise _damage(path, "it is cut short", cut=True)
    head = begin[:start] if start <= len(begin) else os.pread(descriptor, start, 0)
    digest = head[-DIGEST_BYTES:]
    if hashlib.sha256(head[:-DIGEST_BYTES]).digest() != digest:
        raise _damage(path, "the digest of its header is wrong", cut=not digest.strip(b"\0"))
    try:
        header = json.loads(head[fixed:-DIGEST_BYTES])
        listed = [_Listed(n, t, tuple(shape), s, d) for n, t, shape, s, d in header.pop("arrays")]
        ours = [each.name for each in listed[: len(FIRST)]] == [*FIRST]
        ours &= len({each.shape[0] for each in listed[: len(FIRST)]}) == 1
        ours &= all(each.dtype in _DTYPES and 0 <= each.bytes <= MAX_BYTES for each in listed)
        ours &= all(type(each.size) is int and each.size >= 0 for each in listed)
    except (ValueError, TypeError, KeyError, AttributeError, IndexError, RecursionError) as exc:
        raise _damage(path, "its header cannot be read") from exc
    if not ours:
        raise _damage(path, "it describes arrays such as hdica never writes")
    return header, listed, start


def frame_size(frame: bytes) -> int:
    """Bytes that a zstd frame says it decodes to, -1 where it does not: a decoder takes as many."""
    if frame[:4] != b"\x28\xb5\x2f\xfd" or len(frame) < 6:
        return -1
    descriptor = frame[4]
    single, width = descriptor & 0x20, (1, 2, 4, 8)[descriptor >> 6]
    if descriptor & 0x1B or not descriptor & 0x04 or not (single or descriptor >> 6):
        return -1
    start = 5 if single else 6
    size = int.from_bytes(frame[start : start + width], "little")
    return size + 256 if width == 2 else size


def as_array(texts: list[str]) -> NDArray[np.uint8]:
    """Texts as an array of a block: the bytes of a JSON list."""
    return np.frombuffer(json.dumps(texts).encode(), dtype=np.uint8)


def texts_in(array: NDArray[Any]) -> list[str]:
    """The texts behind :func:`as_array`."""
    return list(map(str, json.loads(array.tobytes())))
