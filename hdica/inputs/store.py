"""Patches that do not fit in memory: a Zarr array in a folder of this process, read by Dask.

The only module below the sweep that knows a store; nothing in it outlives the process.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.process.private import private_folder, scratch

Array = NDArray[np.float64]
PREFIX = "patches-"
"""Begin of the names of folders of patches."""


@contextmanager
def kept_blocks(blocks: Iterable[Array], count: int, entries: int) -> Iterator[Any]:
    """Blocks of rows on disk, as one Dask array of shape (count, entries), while the body runs.

    Parameters
    ----------
    blocks
        Arrays of ``entries`` columns and of as many rows as the first, the last of at most as
        many: those of :func:`hdica.inputs.images.patch_blocks`.
    count
        Rows of all blocks together.
    entries
        Columns.

    Yields
    ------
    dask.array.Array
        Its chunks are the blocks. It is computed on one thread unless the scheduler says other.

    Raises
    ------
    ValueError
        If the blocks have other rows than ``count`` in all.
    """
    import dask.array
    import zarr

    with private_folder(scratch(), PREFIX) as folder:
        kept: Any = None
        filled = 0
        for block in blocks:
            if kept is None:
                kept = zarr.create_array(
                    str(folder / "patches.zarr"),
                    shape=(count, entries),
                    chunks=(min(len(block), count), entries),
                    dtype="float64",
                    compressors=None,  # pixels in [0, 1] as float64 are read faster than unpacked
                )
            kept[filled : filled + len(block)] = block
            filled += len(block)
        if kept is None or filled != count:
            raise ValueError(f"{filled} rows were given, not {count}")
        yield dask.array.from_zarr(str(folder / "patches.zarr"))


def blocks_of(kept: Any) -> Iterator[Array]:
    """The blocks of such an array, one after the other in memory."""
    for block in kept.blocks:
        yield np.asarray(block.compute(scheduler="synchronous"))
