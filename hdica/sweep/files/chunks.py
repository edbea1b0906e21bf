"""Read an array with one number a place whole, block by block of those that have a file.

A study of expensive points has a chunk a block, and few of the blocks that it will have. Who asks
what is still to do would wait for hundreds of thousands of files that are not there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hdica.sweep.files import blocks
from hdica.sweep.files.paths import inside

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
    """
    array = working.array(name)
    found = np.full(working.size, array.fill_value, dtype=array.dtype)
    for number in _written(working):
        values = blocks.chunk(working, name, number)
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
