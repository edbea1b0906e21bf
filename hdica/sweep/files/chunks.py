"""Read an array with one number a place whole: file by file, past Zarr's own reader.

Zarr takes a fraction of a millisecond for every chunk, and a study of expensive points has a chunk
a block. Who asks what is still to do would wait for hundreds of thousands of them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from zarr.codecs import Crc32cCodec

from hdica.sweep.files.frames import FrameError, unpacked
from hdica.sweep.files.paths import inside, read_regular

if TYPE_CHECKING:
    from hdica.sweep.files.store import Working


def every_place(working: Working, name: str) -> NDArray[Any]:
    """Values of an array at all places; the fill value where no block was written.

    Parameters
    ----------
    working
        An open segment.
    name
        ``"status"`` or ``"cpu_seconds"``.

    Raises
    ------
    DamageError
        If a chunk does not decode, its checksum is wrong, or it is no regular file.
    """
    array, block = working.array(name), working.block
    size = block * array.dtype.itemsize
    crc = any(isinstance(codec, Crc32cCodec) for codec in array.compressors)
    found = np.full(working.size, array.fill_value, dtype=array.dtype)
    for number, path in _written(working, name):
        span = slice(number * block, (number + 1) * block)
        try:
            raw = unpacked(read_regular(path) or b"", size, crc)
            found[span] = np.frombuffer(raw, array.dtype)
        except FrameError:
            # Removed meanwhile, or damaged: the usual reader says which, and of what.
            found[span] = working.read(name, span)
    return found


def _written(working: Working, name: str) -> Iterator[tuple[int, Path]]:
    """Blocks that have a chunk, with its file; whatever else lies there is not looked at."""
    folder, blocks = inside(working.path, f"{name}/c"), working.blocks
    if not folder.is_dir():
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.isascii() and entry.name.isdigit():
                block = int(entry.name)
                # Beyond the last one: of an append that has not ended.
                if entry.name == str(block) and block < blocks:
                    yield block, Path(entry.path)
