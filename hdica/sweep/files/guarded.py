"""A store on disk that is read and written inside its folder alone, and takes nothing on trust.

Zarr believes what a store says of itself: other formats, whose filters may unpickle; links; arrays
of any size. Here a file is looked at before Zarr sees it.
"""

from __future__ import annotations

import asyncio
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype, default_buffer_prototype
from zarr.storage import LocalStore

from hdica.sweep.files.disk import make_folder
from hdica.sweep.files.frames import FrameError, check_size, unpacked
from hdica.sweep.files.paths import DamageError, inside, parts_of, read_regular, write_whole
from hdica.sweep.files.sealed import parsed, unsealed

METADATA = "zarr.json"
MOST_CHUNK = 2**30
"""Most bytes of a chunk, decoded."""
SIZES = {
    "bool": 1, "int8": 1, "uint8": 1, "int16": 2, "uint16": 2, "int32": 4, "uint32": 4,
    "float32": 4, "int64": 8, "uint64": 8, "float64": 8, "string": None,
}  # fmt: skip
"""Types that stores hold, with the bytes of a value; texts have no fixed size."""
CHAINS = (("bytes", "zstd", "crc32c"), ("vlen-utf8", "zstd", "crc32c"))
"""Codecs that stores use."""


def array_of(key: str) -> str:
    """The array that a file ``group/array/c/0/1`` is a chunk of, empty for other files."""
    parts = key.split("/")
    while parts and parts[-1].isdigit():
        parts.pop()
    return "/".join(parts[:-1]) if len(parts) > 1 and parts[-1] == "c" else ""


@dataclass(frozen=True)
class Chunks:
    """What the metadata of an array say of its chunks."""

    shape: tuple[int, ...]  # of the array
    chunk: tuple[int, ...]
    dims: tuple[str, ...]  # their names
    size: int | None  # bytes of a chunk, decoded; None for texts

    @property
    def counts(self) -> tuple[int, ...]:
        """Chunks along each dimension."""
        return tuple(-(-n // c) for n, c in zip(self.shape, self.chunk, strict=True))

    def check(self, raw: bytes) -> None:
        """Refuse a file that would decode to anything but a chunk."""
        if self.size is not None:
            check_size(raw, self.size)
            return
        # Texts begin with their number, for each of which a decoder takes memory at once.
        count = int.from_bytes(unpacked(raw, None)[:4], "little")
        if count != math.prod(self.chunk):
            raise FrameError(f"it has {count} texts and not {math.prod(self.chunk)}")


def chunks_of(metadata: dict[str, Any], path: Path) -> Chunks:
    """What the metadata of an array, of the file ``path``, say of its chunks."""
    try:
        grid, kind = metadata["chunk_grid"], metadata["data_type"]
        shape, chunk = tuple(metadata["shape"]), tuple(grid["configuration"]["chunk_shape"])
        dims = tuple(metadata.get("dimension_names") or ())
        names = tuple(codec["name"] for codec in metadata["codecs"])
        ours = (
            _is_plain(metadata)
            and all(type(n) is int and n >= 0 for n in (*shape, *chunk))
            and len(shape) == len(chunk)
            and 0 not in chunk
            and all(isinstance(dim, str) for dim in dims)
            and names in CHAINS
            and (kind == "string") == (names[0] == "vlen-utf8")
        )
    except (KeyError, TypeError, AttributeError, ValueError) as exc:
        raise DamageError(f"{path} is damaged (its metadata cannot be read)") from exc
    if not ours:
        raise DamageError(f"{path} describes an array such as hdica never writes")
    if math.prod(chunk) * (SIZES[kind] or 1) > MOST_CHUNK:
        raise DamageError(f"{path} asks for chunks of more than {MOST_CHUNK} bytes")
    size = SIZES[kind]
    return Chunks(shape, chunk, dims, None if size is None else size * math.prod(chunk))


def _is_plain(metadata: dict[str, Any]) -> bool:
    """Whether an array is of the one format, grid and naming of files that is written."""
    key = metadata["chunk_key_encoding"]
    separator = (key.get("configuration") or {}).get("separator", "/")
    return bool(
        metadata["zarr_format"] == 3
        and metadata["chunk_grid"]["name"] == "regular"
        and (key["name"], separator) == ("default", "/")
        and isinstance(metadata["data_type"], str)
        and metadata["data_type"] in SIZES
        and not metadata.get("storage_transformers")
    )


def members(document: dict[str, Any], path: Path) -> dict[str, dict[str, Any]]:
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


def _put(path: Path, content: bytes) -> None:
    make_folder(path.parent)
    write_whole(path, content)


class GuardedStore(LocalStore):
    """A Zarr store in a folder.

    Every method raises :class:`~hdica.sweep.files.paths.DamageError`, naming the file, for links,
    for metadata that were changed or are not ours, and for chunks that would decode to another
    size. If ``nested``, the metadata of every member have a digest, and not the root's alone.
    """

    def __init__(self, root: Path | str, *, read_only: bool = False, nested: bool = True) -> None:
        super().__init__(root, read_only=read_only)
        self.nested = nested
        self.arrays: dict[str, Chunks] = {}

    def with_read_only(self, read_only: bool = False) -> Self:
        """The same store, writable or not."""
        return type(self)(self.root, read_only=read_only, nested=self.nested)

    def load(self, key: str) -> bytes | None:
        """Content of a file, None if it is missing."""
        path = inside(self.root, key)
        raw = read_regular(path)
        if raw is not None:
            self.check(key, path, raw)
        return raw

    def check(self, key: str, path: Path, raw: bytes) -> None:
        """Refuse the content of a file that is not as it should be."""
        if path.name == METADATA:
            self._learn(key, path, raw)
            return
        chunks = self.arrays.get(array_of(key))
        if chunks is not None:
            try:
                chunks.check(raw)
            except FrameError as exc:
                raise DamageError(f"{path} is damaged, {exc}") from exc

    def _learn(self, key: str, path: Path, raw: bytes) -> None:
        """Check metadata, and keep what they say of chunks."""
        sealed = self.nested or key == METADATA
        document = unsealed(raw, path) if sealed else parsed(raw, path)
        here = key.rpartition("/")[0]
        if document.get("zarr_format") != 3:
            raise DamageError(f"{path} is not of Zarr's format 3, which is the only one written")
        if document.get("node_type") == "array":
            self.arrays[here] = chunks_of(document, path)
        for name, node in members(document, path).items():
            if node.get("node_type") == "array":
                self.arrays[f"{here}/{name}" if here else name] = chunks_of(node, path)

    async def get(
        self,
        key: str,
        prototype: BufferPrototype | None = None,
        byte_range: ByteRequest | None = None,
    ) -> Buffer | None:
        """Content of a file, as Zarr asks for it; None if it is missing."""
        raw = await asyncio.to_thread(self.load, key)
        if raw is None:
            return None
        if byte_range is not None:
            return await super().get(key, prototype, byte_range)
        return (prototype or default_buffer_prototype()).buffer.from_bytes(raw)

    async def set(self, key: str, value: Buffer) -> None:
        """Write a file, whole or not at all; it is on the disk then."""
        self._check_writable()
        path = inside(self.root, key)
        await asyncio.to_thread(_put, path, value.to_bytes())

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Write a file that is not there yet."""
        inside(self.root, key)
        await super().set_if_not_exists(key, value)

    async def delete(self, key: str) -> None:
        """Remove a file."""
        inside(self.root, key)
        await super().delete(key)

    async def delete_dir(self, prefix: str) -> None:
        """Remove a folder."""
        inside(self.root, prefix)
        await super().delete_dir(prefix)
