"""What is in the file of a chunk: a zstd frame with a checksum, and CRC32C of the whole file.

The frame says how many bytes it decodes to, and its checksum covers those bytes; a few bits of the
frame itself mean nothing to a decoder. CRC32C covers every bit of the file.

A note may stand behind the frame, in what the format calls a skippable frame: every decoder passes
it by.
"""

from __future__ import annotations

import struct

from numcodecs.checksum32 import CRC32C
from numcodecs.zstd import Zstd
from zarr.codecs import Crc32cCodec, ZstdCodec

MAGIC = b"\x28\xb5\x2f\xfd"
CHECKSUM_BYTES = 4
MOST_TEXT = 2**28
"""Most bytes of a chunk of texts, whose size only the chunk itself knows."""

LEVEL = 3
"""How hard zstd tries."""
NOTE = b"\x50\x2a\x4d\x18"
"""First bytes of a skippable frame."""

_ZSTD, _CRC32C = Zstd(level=LEVEL, checksum=True), CRC32C(location="end")


class FrameError(ValueError):
    """A chunk that is not as it was written; the message is the part of a sentence."""


def codec() -> list[ZstdCodec | Crc32cCodec]:
    """Compression with a checksum, and a checksum of what is on disk.

    The default codec lets three of four bit flips through; zstd's checksum alone still decodes
    a file in which one of its unused bits has changed.
    """
    return [ZstdCodec(level=LEVEL, checksum=True), Crc32cCodec()]


def frame_size(raw: bytes) -> int:
    """How many bytes a zstd frame says that it decodes to."""
    if raw[:4] != MAGIC or len(raw) < 6:
        raise FrameError("its checksum is wrong")
    descriptor = raw[4]
    single, width = descriptor & 0x20, (1, 2, 4, 8)[descriptor >> 6]
    if descriptor & 0x1B or not descriptor & 0x04 or not (single or descriptor >> 6):
        raise FrameError("its checksum is wrong")
    start = 5 if single else 6
    size = int.from_bytes(raw[start : start + width], "little")
    return size + 256 if width == 2 else size


def unpacked(raw: bytes, size: int | None) -> bytes:
    """Bytes behind the file of a chunk, with every checksum compared.

    There must be ``size`` of them; None for texts, of which there may be :data:`MOST_TEXT`.
    """
    check_size(raw, size)
    try:
        return bytes(_ZSTD.decode(_CRC32C.decode(raw)))
    except (RuntimeError, ValueError, MemoryError) as exc:
        raise FrameError("its checksum is wrong") from exc


def check_size(raw: bytes, size: int | None) -> None:
    """Refuse the file of a chunk that would decode to another size, before any memory is taken."""
    claimed = frame_size(raw)
    if claimed > MOST_TEXT if size is None else claimed != size:
        most = f"at most {MOST_TEXT}" if size is None else f"{size}"
        raise FrameError(f"it would decode to {claimed} bytes and not to {most}")


def packed(content: bytes, note: bytes = b"") -> bytes:
    """The file of a chunk as :func:`codec` writes it, bit for bit if there is no note.

    A note stands behind the frame; its length is repeated at its end, where it is looked for.
    """
    raw = bytes(_ZSTD.encode(content))
    if note:
        size = struct.pack("<I", len(note))
        raw += NOTE + struct.pack("<I", len(note) + len(size)) + note + size
    return bytes(_CRC32C.encode(raw))


def note_in(raw: bytes) -> bytes:
    """The note in the file of a chunk, which ends with CRC32C; empty if there is none."""
    end = len(raw) - CHECKSUM_BYTES
    if end < 12:
        return b""
    size = int.from_bytes(raw[end - 4 : end], "little")
    start = end - 4 - size
    head = NOTE + struct.pack("<I", size + 4)
    return raw[start : end - 4] if start >= 8 and raw[start - 8 : start] == head else b""


def is_torn(raw: bytes) -> bool:
    """Whether the file of a chunk lacks its end, as a power loss leaves it.

    It is empty, ends in zeros where there is a checksum, or before its frame does.
    """
    if not raw.rstrip(b"\0") or raw.endswith(bytes(CHECKSUM_BYTES)):
        return True
    if raw[:4] != MAGIC or len(raw) < 6:
        return MAGIC.startswith(raw[:4])
    descriptor = raw[4]
    width = (0, 1, 2, 4)[descriptor & 3] + (1 if descriptor & 0x20 and not descriptor >> 6 else 0)
    place = 5 + (not descriptor & 0x20) + width + (0, 2, 4, 8)[descriptor >> 6]
    while place + 3 <= len(raw):
        header = int.from_bytes(raw[place : place + 3], "little")
        # A block of kind 1 is one byte, however often it is repeated.
        place += 3 + (1 if header >> 1 & 3 == 1 else header >> 3)
        if header & 1:
            return _ends_early(raw, place + CHECKSUM_BYTES)
    return True


def _ends_early(raw: bytes, end: int) -> bool:
    """Whether a file whose frame ends there lacks a part of its note or of its CRC32C."""
    if raw[end : end + 4] == NOTE:
        end += 8 + int.from_bytes(raw[end + 4 : end + 8], "little")
    return end + CHECKSUM_BYTES > len(raw)
