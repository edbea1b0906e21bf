"""Which points a file of a published store holds, and how to take them back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import zarr

from hdica.sweep import store


def _chunk(name: str) -> tuple[str, str, tuple[int, ...]] | None:
    """Group, array and chunk index of a file ``group/array/c/0/1``, None for other files."""
    parts = name.split("/")
    if len(parts) < 3 or parts[2] != "c":
        return None
    return parts[0], parts[1], tuple(int(p) for p in parts[3:])


def _metadata(root: Path, group: str, array: str) -> dict[str, Any] | None:
    try:
        text = (root / group / array / "zarr.json").read_text(encoding="utf-8")
        found: dict[str, Any] = json.loads(text)
    except (OSError, ValueError):
        return None
    return found


def _slices(metadata: dict[str, Any], index: tuple[int, ...]) -> tuple[slice, ...]:
    shape = metadata["shape"]
    chunks = metadata["chunk_grid"]["configuration"]["chunk_shape"]
    return tuple(
        slice(i * c, min((i + 1) * c, s)) for i, c, s in zip(index, chunks, shape, strict=True)
    )


def describe(root: Path, name: str) -> str:
    """Which points a file holds, for a person; empty if it holds none.

    Parameters
    ----------
    root
        The published store.
    name
        The file, relative to it.
    """
    place = _chunk(name)
    if place is None:
        return ""
    group, array, index = place
    metadata, status = _metadata(root, group, array), _metadata(root, group, "status")
    if metadata is None or status is None:
        return ""
    dims, points = _dims(metadata), _dims(status)
    if array in dims or array not in {"status", *_point_arrays(root, group)}:
        return f"coordinate {array} of {group}"
    parts = []
    for dim, span in zip(dims, _slices(metadata, index), strict=True):
        if dim in points:
            parts.append(f"{dim} {_range(root / group / dim, span)}")
    return f"points of {group}: {', '.join(parts)}" if parts else f"the point of {group}"


def _dims(metadata: dict[str, Any] | None) -> list[str]:
    """Dimensions of an array; its metadata does not name them if there are none."""
    return list((metadata or {}).get("dimension_names") or [])


def _range(path: Path, span: slice) -> str:
    try:
        values = np.asarray(zarr.open_array(path, mode="r")[:])[span]
    except (OSError, ValueError, RuntimeError, KeyError):
        return f"number {span.start} to {span.stop - 1}"
    first, last = values[0], values[-1]
    return f"{first}" if len(values) == 1 else f"{first} to {last}"


def _point_arrays(root: Path, group: str) -> list[str]:
    """Arrays of a group that have a value for every point, ``status`` first."""
    status = _metadata(root, group, "status")
    if status is None:
        return []
    points = _dims(status)
    found = ["status"]
    for path in sorted((root / group).iterdir()):
        metadata = _metadata(root, group, path.name) if path.is_dir() else None
        dims = _dims(metadata)
        known = path.name in points or path.name in {"status", "step"}
        if metadata and not known and dims[: len(points)] == points and path.name not in dims:
            found.append(path.name)
    return found


def can_forget(root: Path, name: str) -> bool:
    """Whether a file holds values of points, so that these can be made pending."""
    place = _chunk(name)
    return place is not None and place[1] in _point_arrays(root, place[0])


def forget(root: Path, names: list[str]) -> None:
    """Make every point of some files pending: status 0, all its values NaN.

    Parameters
    ----------
    root
        The published store.
    names
        Files for which :func:`can_forget` holds.
    """
    places = [place for place in map(_chunk, names) if place is not None]
    opened = zarr.open_group(root, mode="r+", use_consolidated=False)
    # Damaged chunks first, each written whole: writing a part of one would have to read it.
    for group, array, index in places:
        target = store.opened_array(opened, f"{group}/{array}")
        metadata = _metadata(root, group, array) or {}
        file = root.joinpath(group, array, "c", *(str(i) for i in index))
        file.unlink(missing_ok=True)
        target[_slices(metadata, index) or ...] = target.fill_value
    for group, array, index in places:
        metadata = _metadata(root, group, array) or {}
        depth = len(_dims(_metadata(root, group, "status")))
        slices = _slices(metadata, index)[:depth]
        for name in _point_arrays(root, group):
            target = store.opened_array(opened, f"{group}/{name}")
            target[slices or ...] = target.fill_value


def status_counts(root: Path) -> dict[str, dict[str, int]]:
    """How many points of each group have each status."""
    opened = zarr.open_group(root, mode="r", use_consolidated=False)
    return {
        name: store.status_counts(np.asarray(store.opened_array(opened, f"{name}/status")[...]))
        for name, _ in opened.groups()
    }
