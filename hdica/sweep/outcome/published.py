"""The files of a published store: read with every checksum compared, told apart, taken back."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import numpy as np
import zarr

from hdica.sweep.files import store
from hdica.sweep.files.guarded import METADATA, Chunks, GuardedStore, array_of, chunks_of
from hdica.sweep.files.manifest import digest, file_digest
from hdica.sweep.files.paths import DamageError, discard_inside, inside, read_regular
from hdica.sweep.files.places import UNREADABLE, WRONG
from hdica.sweep.files.sealed import parsed, unsealed
from hdica.sweep.outcome.versions import hold, is_version

NUMBER = re.compile(r"[0-9]+")


class PublishedStore(GuardedStore):
    """A published store whose files are compared with their digests whenever one is read.

    It may be a version, which is not removed as long as this object lives. ``newest`` is then the
    published store: its files have to be the same as long as it has not been published anew.
    """

    def __init__(
        self,
        root: Path | str,
        digests: dict[str, str],
        *,
        read_only: bool = True,
        newest: Path | None = None,
    ) -> None:
        super().__init__(root, read_only=read_only, nested=False)
        self.digests, self.newest = digests, newest
        self._held = hold(self.root) if is_version(self.root) else None

    def with_read_only(self, read_only: bool = False) -> Self:
        """The same store, writable or not."""
        return type(self)(self.root, self.digests, read_only=read_only, newest=self.newest)

    def __getstate__(self) -> dict[str, Any]:
        # A worker may have been started in another folder.
        newest = None if self.newest is None else self.newest.absolute()
        return {**self.__dict__, "_held": None, "root": self.root.absolute(), "newest": newest}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._held = hold(self.root) if is_version(self.root) else None

    @property
    def is_gone(self) -> bool:
        """Whether it was a version, and is there no more."""
        return is_version(self.root) and not self.root.is_dir()

    def load(self, key: str) -> bytes | None:
        """Content of a file; a chunk that is missing is damage, since Zarr would read NaN."""
        raw = super().load(key)
        if raw is None and array_of(key) in self.arrays:
            if self.is_gone or self._is_another():
                raise _republished(self.root)
            raise DamageError(f"{self.root / key} is missing{self._points(key)}")
        if raw is not None and self.newest is not None:
            self.compare_newest(key)
        return raw

    def check(self, key: str, path: Path, raw: bytes) -> None:
        """Refuse the content of a file that is not as it was published."""
        expected = self.digests.get(key)
        if digest(raw) != expected:
            if self._is_another():
                raise _republished(self.root)
            shown = self._named(key, path)
            if expected is None:
                root = shown.parents[key.count("/")]
                raise DamageError(f"{shown} does not belong to {root} (its digests lack it)")
            raise DamageError(f"{shown} is damaged, {WRONG}{self._points(key)}")
        super().check(key, path, raw)

    def _is_another(self) -> bool:
        """Whether another store lies here than the one that was opened."""
        return not is_version(self.root) and _differs(self.root, self.digests)

    def _named(self, key: str, path: Path) -> Path:
        """The file as its user knows it: that of the newest store, if it is the same."""
        if self.newest is not None:
            with suppress(OSError):
                if os.path.samestat(os.lstat(self.newest / key), os.lstat(path)):
                    return self.newest / key
        return path

    def compare_newest(self, key: str) -> None:
        """Refuse a file of the newest store that is not as it was published.

        Who reads it with other tools would read it as data. What is a link to the same file has
        been compared already, and what was published anew is no more of this version.
        """
        if self.newest is None:
            return
        file = self.newest / key
        try:
            if os.path.samestat(os.lstat(inside(self.newest, key)), os.lstat(self.root / key)):
                return
            right = file_digest(file) == self.digests.get(key)
            why = "" if right else f"{file} is damaged, {WRONG}"
        except FileNotFoundError:
            why = f"{file} is missing"
        except (DamageError, OSError) as exc:
            why = str(exc)
        if not why:
            return
        if _differs(self.newest, self.digests):
            self.newest = None
            return
        raise DamageError(f"{why}{self._points(key)}")

    def _points(self, key: str) -> str:
        points = describe(Path(self.root), key)
        return f" ({points})" if points else ""


class Republished(DamageError):
    """A store that is not there any more as it was opened; nothing of it is damaged."""


def _republished(root: Path) -> Republished:
    return Republished(f"{root} was published anew since it was opened (open it again)")


def _differs(root: Path, digests: dict[str, str]) -> bool:
    """Whether the metadata at a store's root are whole, and others than those known of it."""
    path = root / METADATA
    try:
        raw = read_regular(path)
        if raw is None or digest(raw) == digests.get(METADATA):
            return raw is None and not root.exists()
        return bool(unsealed(raw, path))
    except (DamageError, OSError):
        return False


def _chunk(name: str) -> tuple[str, str, tuple[int, ...]] | None:
    """Group, array and chunk index of a file ``group/array/c/0/1``, None for other files."""
    parts = name.split("/")
    if len(parts) < 3 or parts[2] != "c" or not all(map(NUMBER.fullmatch, parts[3:])):
        return None
    return parts[0], parts[1], tuple(int(p) for p in parts[3:])


def _array(root: Path, group: str, array: str) -> Chunks | None:
    """What the metadata of an array say of its chunks, None if they cannot be read."""
    try:
        path = inside(root, f"{group}/{array}/{METADATA}")
        raw = read_regular(path)
        return None if raw is None else chunks_of(parsed(raw, path), path)
    except (DamageError, OSError):
        return None


def _slices(chunks: Chunks, index: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(
        slice(i * c, min((i + 1) * c, s))
        for i, c, s in zip(index, chunks.chunk, chunks.shape, strict=True)
    )


def describe(root: Path, name: str) -> str:
    """Which points a file of a published store holds, for a person."""
    place = _chunk(name)
    if place is None:
        group = name.partition("/")[0] if "/" in name else ""
        return f"all points of {group}" if group else "all points"
    group, array, index = place
    chunks, status = _array(root, group, array), _array(root, group, "status")
    if chunks is None or status is None or len(index) != len(chunks.shape):
        return f"points of {group}"
    if array in chunks.dims or array not in {"status", *_point_arrays(root, group)}:
        return f"coordinate {array} of {group}"
    parts = []
    for dim, span in zip(chunks.dims, _slices(chunks, index), strict=True):
        if dim in status.dims:
            parts.append(f"{dim} {_range(root, f'{group}/{dim}', span)}")
    return f"points of {group}: {', '.join(parts)}" if parts else f"the point of {group}"


def _range(root: Path, name: str, span: slice) -> str:
    """Values of a coordinate at some places; their numbers if it cannot be read."""
    guarded = GuardedStore(root, read_only=True, nested=False)
    try:
        values = np.asarray(zarr.open_array(guarded, path=name, mode="r", zarr_format=3)[span])
        first, last = values[0], values[-1]
    except (*UNREADABLE, IndexError):
        return f"number {span.start} to {span.stop - 1}"
    return f"{first}" if len(values) == 1 else f"{first} to {last}"


def _point_arrays(root: Path, group: str) -> list[str]:
    """Arrays of a group that have a value for every point, ``status`` first."""
    status = _array(root, group, "status")
    if status is None:
        return []
    points = status.dims
    found = ["status"]
    for path in sorted((root / group).iterdir()):
        chunks = _array(root, group, path.name) if path.is_dir() else None
        known = path.name in points or path.name in {"status", "step"}
        if chunks is None or known or path.name in chunks.dims:
            continue
        if chunks.dims[: len(points)] == points:
            found.append(path.name)
    return found


def can_forget(root: Path, name: str) -> bool:
    """Whether a file holds values of points, so that these can be made pending."""
    place = _chunk(name)
    if place is None:
        return False
    chunks = _array(root, place[0], place[1])
    whole = chunks is not None and len(chunks.shape) == len(place[2])
    return whole and place[1] in _point_arrays(root, place[0])


def forget(root: Path, names: list[str]) -> None:
    """Make every point of some files pending: status 0, all its values NaN.

    For all of them :func:`can_forget` holds.
    """
    places = [place for place in map(_chunk, names) if place is not None]
    guarded = GuardedStore(root, nested=False)
    opened = zarr.open_group(guarded, mode="r+", zarr_format=3, use_consolidated=False)
    # Damaged chunks first, each written whole: writing a part of one would have to read it.
    for group, array, index in places:
        target = store.opened_array(opened, f"{group}/{array}")
        discard_inside(root, "/".join([group, array, "c", *(str(i) for i in index)]))
        target[_slices(_known(root, group, array), index) or ...] = target.fill_value
    for group, array, index in places:
        depth = len(_known(root, group, "status").dims)
        slices = _slices(_known(root, group, array), index)[:depth]
        for name in _point_arrays(root, group):
            target = store.opened_array(opened, f"{group}/{name}")
            target[slices or ...] = target.fill_value


def _known(root: Path, group: str, array: str) -> Chunks:
    found = _array(root, group, array)
    if found is None:
        path = root / group / array / METADATA
        raise DamageError(f"{path} is damaged (its metadata cannot be read)")
    return found


def status_counts(root: Path) -> dict[str, dict[str, int]]:
    """How many points of each group have each status."""
    guarded = GuardedStore(root, read_only=True, nested=False)
    opened = zarr.open_group(guarded, mode="r", zarr_format=3, use_consolidated=False)
    found: dict[str, dict[str, int]] = {}
    for name in sorted(path.name for path in root.iterdir() if path.is_dir()):
        values: Any = store.opened_array(opened, f"{name}/status")[...]
        found[name] = store.status_counts(np.asarray(values))
    return found
