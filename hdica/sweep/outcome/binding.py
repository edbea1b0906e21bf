"""Bind the chunks of a working store from before there were commit records to their places."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray
from zarr.codecs import Crc32cCodec

from hdica.sweep.files import blocks, planned, store
from hdica.sweep.files.attributes import Attributes
from hdica.sweep.files.commits import Mark
from hdica.sweep.files.frames import FrameError, note_in, unpacked
from hdica.sweep.files.guarded import METADATA, GuardedStore
from hdica.sweep.files.paths import DamageError, read_regular, write_text
from hdica.sweep.files.sealed import sealed, unsealed


def bind(path: Path, attributes: dict[str, Any]) -> None:
    """Write the commit record of every block and the digests of what was planned.

    What lies there now is taken for what was written there: nobody noted more. A block whose chunks
    do not decode, or are missing, is left without a record, for ``hdica repair``.

    Parameters
    ----------
    path
        Directory of the segment.
    attributes
        Its attributes, as they will be.
    """
    about = Attributes.model_validate(attributes).model_dump()
    _with_checksums(path / "status" / METADATA)
    planned.bind(_opened(path, about))
    # Anew, because the metadata of the keys have changed.
    working = _opened(path, about)
    for block in range(working.blocks):
        _bind_block(working, block)


def _opened(path: Path, attributes: dict[str, Any]) -> store.Working:
    guarded = GuardedStore(path)
    group = zarr.open_group(guarded, mode="r+", zarr_format=3, use_consolidated=False)
    return store.Working(path, group, attributes)


def _with_checksums(file: Path) -> None:
    """Let CRC32C follow every chunk of an array; those of schema 1 have none."""
    document = unsealed(read_regular(file) or b"", file, old=True)
    if all(codec["name"] != "crc32c" for codec in document["codecs"]):
        codecs = [*document["codecs"], Crc32cCodec().to_dict()]
        write_text(file, sealed({**document, "codecs": codecs}))


def _bind_block(working: store.Working, block: int) -> None:
    raw = read_regular(working.chunk("status", block))
    status = None if raw is None or note_in(raw) else _status(raw, working)
    if status is None:
        return
    marks: dict[str, tuple[Mark, ...]] = {}
    for name in (*working.committed, "reason"):
        content = read_regular(working.chunk(name, block))
        if content is not None:
            marks[name] = (Mark.of(content),)
    if _all_decode(working, block, list(marks)):
        blocks.record(working, block, status, marks)


def _status(raw: bytes, working: store.Working) -> NDArray[np.uint8] | None:
    """Statuses in a file with or without CRC32C behind it, None if it is damaged."""
    for crc in (True, False):
        with suppress(FrameError):
            return np.frombuffer(unpacked(raw, working.layout("status").size, crc), np.uint8)
    return None


def _all_decode(working: store.Working, block: int, names: list[str]) -> bool:
    """Whether the chunks that are there are whole."""
    for name in names:
        layout, raw = working.layout(name), read_regular(working.chunk(name, block))
        try:
            unpacked(raw or b"", layout.size, layout.crc)
        except (FrameError, DamageError):
            return False
    return True
