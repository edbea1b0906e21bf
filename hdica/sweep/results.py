"""Open a published store."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hdica.errors import HdicaError
from hdica.sweep.paths import DamageError, work_path

if TYPE_CHECKING:
    import xarray as xr


def array_metadata(root: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Directory and metadata of every array that a published store must have.

    Raises
    ------
    DamageError
        If the consolidated metadata is missing or not JSON.
    """
    try:
        found = json.loads((root / "zarr.json").read_text(encoding="utf-8"))
        nodes = found["consolidated_metadata"]["metadata"]
    except (OSError, ValueError, KeyError, TypeError) as exc:
        raise DamageError(f"{root / 'zarr.json'} is damaged (no consolidated metadata)") from exc
    for name, node in nodes.items():
        if node["node_type"] == "array":
            yield root / name, node


def chunk_files(path: Path, metadata: dict[str, Any]) -> Iterator[tuple[tuple[int, ...], Path]]:
    """Every chunk that an array must have: its index and its file."""
    shape = metadata["shape"]
    chunks = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    counts = [range(math.ceil(s / c)) for s, c in zip(shape, chunks, strict=True)]
    for index in itertools.product(*counts):
        yield index, path.joinpath("c", *(str(i) for i in index))


def check_chunks(root: Path) -> None:
    """Refuse a store with a missing chunk, which would read as NaN.

    Raises
    ------
    DamageError
        Naming the file.
    """
    for path, metadata in array_metadata(root):
        for _, file in chunk_files(path, metadata):
            if not file.exists():
                raise DamageError(f"{file} is missing (run hdica verify to see which points)")


def existing(path: str | Path) -> Path:
    """Path of a published store that is there.

    Raises
    ------
    HdicaError
        If there is none; a run that goes on is mentioned.
    """
    root = Path(path)
    if root.is_dir() and (root / "zarr.json").exists():
        return root
    if root.suffix == ".zarr" and work_path(root).is_dir():
        raise HdicaError(f"{root} is not published yet (see hdica status {root})")
    if root.is_dir():
        raise HdicaError(f"{root} is not a published store (it has no zarr.json)")
    raise HdicaError(f"{root} does not exist (hdica run writes it)")


def open_results(path: str | Path) -> xr.DataTree:
    """Open a published store, lazily.

    Parameters
    ----------
    path
        ``results/<study>.zarr``.

    Returns
    -------
    xarray.DataTree
        One group a method.

    Raises
    ------
    HdicaError
        If there is no such store.
    DamageError
        If a chunk is missing: it would read as NaN.
    """
    import xarray as xr

    root = existing(path)
    check_chunks(root)
    try:
        # Plain arrays, no Dask: many times faster for the small selections of a query.
        return xr.open_datatree(root, engine="zarr", chunks=None, consolidated=True)
    except (ValueError, KeyError, OSError) as exc:
        raise DamageError(f"{root} is damaged (its metadata cannot be read)") from exc
