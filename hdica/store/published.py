"""The files of a published store: every file is compared with its digest when it is read.

A checksum says that a chunk is whole, not that it belongs there. The digest of every file is in
``digests.json``, whose own digest is in the root's metadata, which hold a digest of themselves: so
these name everything in a store, and their digest is its version.

A store that is open stays what it was opened as. When its study is published anew, files are read
from the store before the current one, which stays, hidden, until the next publication.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import math
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numcodecs.checksum32 import CRC32C
from numcodecs.zstd import Zstd
from zarr.abc.store import ByteRequest
from zarr.codecs import Crc32cCodec, ZstdCodec
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype
from zarr.storage import LocalStore

from hdica.store.files import DamageError, inside, parts_of, read_regular, walk, write_whole
from hdica.store.paths import METADATA, partial_path, previous_path
from hdica.store.sealed import Document, frame_size, parsed, sealed, unsealed, write_sealed

DIGESTS, BOUND = "digests.json", "digests"  # the file, and the root's attribute with its digest
VERSION_LETTERS = 16  # letters of the root's digest that name a version
MAX_CHUNK = 2**30  # most bytes of a chunk, decoded
MAX_TEXT = 2**28  # most bytes of a chunk of texts, whose size only the chunk itself says
SIZES = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4,
    "float32": 4, "int64": 8, "uint64": 8, "float64": 8, "string": None,
}  # fmt: skip
"""Types of published arrays, with the bytes of a value; texts have no fixed size."""
CODECS = (("bytes", "zstd", "crc32c"), ("vlen-utf8", "zstd", "crc32c"))
UNREADABLE = (ValueError, RuntimeError, OSError, TypeError, KeyError)
"""What Zarr and its codecs raise where files are not as they were written."""
WRONG = "its checksum is wrong"
_ZSTD, _CRC32C = Zstd(), CRC32C(location="end")


def codec() -> list[ZstdCodec | Crc32cCodec]:
    """Compression with a checksum, and a checksum of what is on disk, for readers without hdica."""
    # The default codec lets three of four bit flips through, zstd's checksum those of unused bits.
    return [ZstdCodec(level=3, checksum=True), Crc32cCodec()]


def digest(content: bytes) -> str:
    """sha256 of the content of a file."""
    return hashlib.sha256(content).hexdigest()


def file_digest(path: Path) -> str:
    """sha256 of a file."""
    if (content := read_regular(path)) is None:
        raise FileNotFoundError(2, "No such file or directory", str(path))
    return digest(content)


def bind(root: Path) -> dict[str, str]:
    """Write the digests of a finished store into it; the digest of every file, these included."""
    names = (name for name in walk(root)[0] if name not in (METADATA, DIGESTS))
    inner = {name: file_digest(root / name) for name in names}
    write_sealed(root / DIGESTS, {"files": inner})
    document = json.loads(read_regular(root / METADATA) or b"{}")
    document["attributes"][BOUND] = file_digest(root / DIGESTS)
    write_whole(root / METADATA, sealed(document).encode())
    return inner | {name: file_digest(root / name) for name in (DIGESTS, METADATA)}


def bound_digests(root: Path) -> dict[str, str]:
    """Digest of every file of a store, as the store itself says."""
    path = root / METADATA
    if (raw := read_regular(path)) is None:
        raise DamageError(f"{path} is missing (all points)")
    if (named := (unsealed(raw, path).get("attributes") or {}).get(BOUND)) is None:
        raise DamageError(f"{path} is damaged (it does not name the digests of all points)")
    return {**named_digests(root, named), DIGESTS: named, METADATA: digest(raw)}


def named_digests(root: Path, expected: str | None = None) -> dict[str, str]:
    """Digest of every file that the digests of a store name, if theirs is the expected one."""
    file = inside(root, DIGESTS)
    if (text := read_regular(file)) is None:
        raise DamageError(f"{file} is missing (the digests of all points)")
    if expected is not None and digest(text) != expected:
        raise DamageError(f"{file} is damaged, {WRONG} (the digests of all points)")
    files = unsealed(text, file).get("files")
    if not isinstance(files, dict) or not all(map(parts_of, files)):
        raise DamageError(f"{file} is damaged (it names what cannot be a file of the store)")
    return files


def version_of(files: dict[str, str]) -> str:
    """Version of a store whose files have these digests: the same content is the same version."""
    return files[METADATA][:VERSION_LETTERS]


@dataclass(frozen=True)
class Chunks:
    """The chunks of an array, by its metadata."""

    shape: tuple[int, ...]  # of the array
    chunk: tuple[int, ...]
    dims: tuple[str, ...]  # their names
    size: int | None  # bytes of a chunk, decoded; None for texts

    def check(self, raw: bytes) -> None:
        """Refuse the file of a chunk that would decode to another size, before memory is taken."""
        size = frame_size(raw)
        if size < 0:
            raise ValueError(WRONG)
        if size > MAX_TEXT if self.size is None else size != self.size:
            most = f"at most {MAX_TEXT}" if self.size is None else f"{self.size}"
            raise ValueError(f"it would decode to {size} bytes and not to {most}")
        if self.size is None:
            # Texts begin with their number, for each of which a decoder takes memory at once.
            try:
                count = int.from_bytes(_ZSTD.decode(_CRC32C.decode(raw))[:4], "little")
            except (RuntimeError, ValueError) as exc:
                raise ValueError(WRONG) from exc
            if count != math.prod(self.chunk):
                raise ValueError(f"it has {count} texts and not {math.prod(self.chunk)}")

    def slices(self, index: tuple[int, ...]) -> tuple[slice, ...]:
        """Where a chunk lies in the array."""
        return tuple(
            slice(i * c, min((i + 1) * c, s))
            for i, c, s in zip(index, self.chunk, self.shape, strict=True)
        )


def chunks_of(metadata: Document, path: Path) -> Chunks:
    """The chunks of an array, from its metadata in the file ``path``.

    Zarr believes what metadata say: other codecs, which may run code, and arrays of any size.
    """
    try:
        grid, kind = metadata["chunk_grid"], metadata["data_type"]
        key = metadata["chunk_key_encoding"]
        shape, chunk = tuple(metadata["shape"]), tuple(grid["configuration"]["chunk_shape"])
        dims = tuple(metadata.get("dimension_names") or ())
        codecs = tuple(each["name"] for each in metadata["codecs"])
        separator = (key.get("configuration") or {}).get("separator", "/")
        ours = (
            metadata["zarr_format"] == 3
            and (grid["name"], key["name"], separator) == ("regular", "default", "/")
            and kind in SIZES
            and not metadata.get("storage_transformers")
            and all(type(n) is int and n >= 0 for n in (*shape, *chunk))
            and len(shape) == len(chunk)
            and 0 not in chunk
            and all(isinstance(dim, str) for dim in dims)
            and codecs in CODECS
            and (kind == "string") == (codecs[0] == "vlen-utf8")
        )
    except (KeyError, TypeError, AttributeError, ValueError) as exc:
        raise DamageError(f"{path} is damaged (its metadata cannot be read)") from exc
    if not ours:
        raise DamageError(f"{path} describes an array such as hdica never writes")
    size = SIZES[kind]
    if math.prod(chunk) * (size or 1) > MAX_CHUNK:
        raise DamageError(f"{path} asks for chunks of more than {MAX_CHUNK} bytes")
    return Chunks(shape, chunk, dims, None if size is None else size * math.prod(chunk))


def members(document: Document, path: Path) -> dict[str, Document]:
    """Metadata of all members that those of a group hold, by name."""
    inline = document.get("consolidated_metadata") or {}
    nodes = inline.get("metadata", {}) if isinstance(inline, dict) else None
    if not isinstance(nodes, dict):
        raise DamageError(f"{path} is damaged (its metadata cannot be read)")
    for name, node in nodes.items():
        plain = isinstance(node, dict) and node.get("zarr_format") == 3
        parts = parts_of(name)
        if not plain or not parts or not all(part.isidentifier() for part in parts):
            raise DamageError(f"{path} describes {name[:80]!r}, such as hdica never writes")
    return nodes


def _identity(folder: Path) -> tuple[int, int] | None:
    """What differs once another folder has taken a folder's name; None if there is none."""
    with suppress(OSError):
        about = folder.stat()
        return about.st_ino, about.st_ctime_ns
    return None


class Republished(DamageError):
    """A store of which nothing is damaged, but which has been published twice since."""


class PublishedStore(LocalStore):
    """A published store as it was when it was opened, with the digest of every file.

    Links, files that differ from their digests and metadata such as hdica never writes are a
    :class:`~hdica.store.files.DamageError` that names the file and the points.
    """

    def __init__(self, root: Path, digests: dict[str, str]) -> None:
        super().__init__(root, read_only=True)
        self.digests = digests
        self.arrays: dict[str, Chunks] = {}

    def __getstate__(self) -> Document:
        # A worker may have been started in another folder.
        return {**self.__dict__, "root": self.root.absolute()}

    def __setstate__(self, state: Document) -> None:
        self.__dict__.update(state)

    def load(self, key: str) -> bytes | None:
        """Content of a file; None for one that is not in the store."""
        while True:
            # A store that is exchanged between two looks may show neither of its contents.
            folder = _identity(self.root)
            try:
                return self._look(key)
            except DamageError:
                if _identity(self.root) == folder:
                    raise

    def _look(self, key: str) -> bytes | None:
        expected, why, folders = self.digests.get(key), "", [self.root]
        if self.root.suffix == ".zarr" and not self.root.name.startswith("."):
            # The store before the current one lies in the first until it has its name.
            folders += [partial_path(self.root), previous_path(self.root)]
        for folder in folders:
            try:
                path = inside(folder, key)
                raw = read_regular(path)
            except DamageError as exc:
                why = why or str(exc)
                continue
            if raw is not None and digest(raw) == expected:
                self._learn(key, path, raw)
                return raw
            if folder == self.root and raw is not None:
                why = f"{path} is damaged, {WRONG}"
                if expected is None:
                    why = f"{path} does not belong to {folder} (its digests lack it)"
        if not why and expected is None and array_of(key) not in self.arrays:
            return None
        root, is_another = self.root / METADATA, False
        with suppress(DamageError, OSError):  # then it is no other whole store that lies here
            raw = read_regular(root)
            is_another = (
                not self.root.exists()
                if raw is None
                else (digest(raw) != self.digests.get(METADATA) and bool(unsealed(raw, root)))
            )
        if is_another:
            raise Republished(f"{self.root} was published anew since it was opened (open it again)")
        points = describe(Path(self.root), key)
        raise DamageError(f"{why or f'{self.root / key} is missing'} ({points})")

    def _learn(self, key: str, path: Path, raw: bytes) -> None:
        """Check metadata, and remember what they say of chunks; check the size of a chunk."""
        if path.name == METADATA:
            document = unsealed(raw, path) if key == METADATA else parsed(raw, path)
            here = key.rpartition("/")[0]
            if document.get("zarr_format") != 3:
                text = f"{path} is not of Zarr's format 3, which is the only one written"
                raise DamageError(text)
            nodes = {here: document} if document.get("node_type") == "array" else {}
            for name, node in members(document, path).items():
                if node.get("node_type") == "array":
                    nodes[f"{here}/{name}" if here else name] = node
            self.arrays |= {name: chunks_of(node, path) for name, node in nodes.items()}
        elif (chunks := self.arrays.get(array_of(key))) is not None:
            try:
                chunks.check(raw)
            except ValueError as exc:
                raise DamageError(f"{path} is damaged, {exc}") from exc

    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """Content of a file, as Zarr asks for it; None if it is missing."""
        if (raw := await asyncio.to_thread(self.load, key)) is None:
            return None
        buffer = (prototype or default_buffer_prototype()).buffer.from_bytes(raw)
        if byte_range is not None:
            from zarr.storage._utils import _normalize_byte_range_index

            start, stop = _normalize_byte_range_index(buffer, byte_range)
            return buffer[start:stop]
        return buffer


def checked(root: Path, manifest: Document | None, place: Path | None = None) -> PublishedStore:
    """A store that fits its manifest, with its arrays; read from another ``place`` if need be."""
    digests = bound_digests(root)
    if manifest is not None and manifest["version"] != version_of(digests):
        raise DamageError(f"{root / METADATA} is not what its manifest says (all points)")
    store = PublishedStore(place or root, digests)
    if store.load(METADATA) is None:
        raise DamageError(f"{store.root / METADATA} is missing (all points)")
    if not store.arrays:
        raise DamageError(f"{store.root / METADATA} is damaged (no consolidated metadata)")
    return store


def array_of(key: str) -> str:
    """The array that a file ``group/array/c/0/1`` is a chunk of, empty for other files."""
    parts = key.split("/")  # at any depth: a changed store may nest arrays
    while parts and parts[-1].isdecimal():
        parts.pop()
    return "/".join(parts[:-1]) if len(parts) > 1 and parts[-1] == "c" else ""


def chunk_index(name: str) -> tuple[str, str, tuple[int, ...]] | None:
    """Group, array and index of a chunk in a file ``group/array/c/0/1``, None for other files."""
    group, _, array = array_of(name).partition("/")
    if not array or "/" in array:
        return None
    return group, array, tuple(map(int, name.split("/")[3:]))


def chunks_in(root: Path, name: str) -> Chunks | None:
    """The chunks of an array of a store, None if its metadata cannot be read."""
    with suppress(DamageError, OSError):
        path = inside(root, f"{name}/{METADATA}")
        if (raw := read_regular(path)) is not None:
            return chunks_of(parsed(raw, path), path)
    return None


def describe(root: Path, name: str) -> str:
    """Which points a file of a published store holds, for a sentence."""
    if (place := chunk_index(name)) is None:
        group, slash, _ = name.partition("/")
        return f"all points of {group}" if slash else "all points"
    group, array, index = place
    chunks, status = chunks_in(root, f"{group}/{array}"), chunks_in(root, f"{group}/status")
    if chunks is None or status is None or len(index) != len(chunks.shape):
        return f"points of {group}"
    if array not in point_arrays(root, group):
        return f"coordinate {array} of {group}"
    parts = [
        f"{dim} {_range(root, f'{group}/{dim}', span)}"
        for dim, span in zip(chunks.dims, chunks.slices(index), strict=True)
        if dim in status.dims
    ]
    return f"points of {group}: {', '.join(parts)}" if parts else f"the point of {group}"


def _range(root: Path, name: str, span: slice) -> str:
    """Values of a coordinate at some places; their numbers if it cannot be read."""
    import zarr

    try:
        values = np.asarray(zarr.open_array(root / name, mode="r", zarr_format=3)[span])
        first, last = values[0], values[-1]
    except (*UNREADABLE, IndexError):
        return f"number {span.start} to {span.stop - 1}"
    return f"{first}" if len(values) == 1 else f"{first} to {last}"


def point_arrays(root: Path, group: str) -> list[str]:
    """Arrays of a group that have a value for every point, ``status`` first."""
    if (status := chunks_in(root, f"{group}/status")) is None:
        return []
    names = ["status"]
    for path in sorted((root / group).iterdir()):
        chunks = chunks_in(root, f"{group}/{path.name}") if path.is_dir() else None
        other = path.name in status.dims or path.name in {"status", "step"}
        if chunks is None or other or path.name in chunks.dims:
            continue
        if chunks.dims[: len(status.dims)] == status.dims:
            names.append(path.name)
    return names
