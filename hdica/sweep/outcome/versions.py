"""Versions of a published store: folders that never change, for whoever reads while it does.

``results/tiny.versions/<version>.zarr`` has the same files as ``results/tiny.zarr`` had when it was
published, by hard links, so that nothing is on disk twice. Who reads a version holds a lock on it,
which the system drops with the process, and what somebody holds is not removed.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from hdica.errors import HdicaError
from hdica.sweep.files.disk import sync_folder
from hdica.sweep.files.guarded import METADATA
from hdica.sweep.files.locks import taken
from hdica.sweep.files.manifest import DIGESTS, file_digest
from hdica.sweep.files.paths import DamageError, discard, no_link, results_path, walk

FOLDER = ".versions"
VERSION = re.compile(r"[0-9a-f]{16}\.zarr")
LEFT = re.compile(r"\.[0-9a-f]{16}\.zarr\.(partial|old)")
"""Names of what a killed publication leaves among the versions."""
OURS = re.compile(rf"{re.escape(DIGESTS)}|(\w+/){{0,2}}zarr\.json|\w+/\w+/c(/\d+)*")
"""Names of the files that a published store has."""
NO_LINKS = frozenset(
    {errno.EPERM, errno.EACCES, errno.ENOSYS, errno.EOPNOTSUPP, errno.EXDEV, errno.EMLINK}
)
"""What file systems say that have no hard links."""
TRIES, PAUSE = 20, 0.01
"""How often, and after how many seconds, a version is asked for that is just being removed."""


def versions_path(out: str | Path) -> Path:
    """Folder of the versions of a published store, beside it."""
    return no_link(results_path(out).with_suffix(FOLDER))


def checked_path(out: str | Path) -> Path:
    """Folder of the versions of a published store that is to be changed."""
    folder = versions_path(out)
    if is_version(Path(out)):
        newest = Path(out).parent.with_suffix(".zarr")
        raise HdicaError(f"{out} is a version of {newest} and never changes (give {newest})")
    if folder.exists() and not folder.is_dir():
        raise HdicaError(f"{folder} is no folder (move it away)")
    return folder


def version_folder(out: str | Path, version: str) -> Path | None:
    """Folder of a version, None if there is none."""
    folder = versions_path(out) / f"{version}.zarr"
    return folder if version and not folder.is_symlink() and folder.is_dir() else None


def is_version(root: Path) -> bool:
    """Whether a path is that of a version."""
    return root.parent.suffix == FOLDER and bool(VERSION.fullmatch(root.name))


def versions_in(out: str | Path) -> list[Path]:
    """Every version that is there."""
    return sorted(p for p in _entries(out) if VERSION.fullmatch(p.name) and _is_folder(p))


def strangers_in(out: str | Path) -> list[Path]:
    """What lies among the versions and is none: it is never touched."""
    known = {*versions_in(out), *leftovers_in(out)}
    return sorted(path for path in _entries(out) if path not in known)


def _entries(out: str | Path) -> list[Path]:
    folder = versions_path(out)
    return list(folder.iterdir()) if folder.is_dir() else []


def leftovers_in(out: str | Path) -> list[Path]:
    """What killed publications have left among the versions."""
    return [path for path in _entries(out) if LEFT.fullmatch(path.name) and _is_folder(path)]


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


class Held:
    """A version that is not removed as long as this object lives.

    ``descriptor`` is of a file of it, locked together with others; it is closed with the object.
    """

    def __init__(self, descriptor: int) -> None:
        self.file = os.fstat(descriptor)
        self._end = weakref.finalize(self, os.close, descriptor)

    def is_there(self, folder: Path) -> bool:
        """Whether the version is still where it was."""
        try:
            return os.path.samestat(self.file, os.lstat(folder / METADATA))
        except OSError:
            return False


_HELD: weakref.WeakValueDictionary[Path, Held] = weakref.WeakValueDictionary()


def hold(folder: Path) -> Held | None:
    """Keep a version from being removed; None if it is gone.

    Where the file system has no locks, nobody knows who reads it, and it may go.
    """
    # One for all readers of a process: Dask unpickles a store for every task.
    held = _HELD.get(folder)
    if held is None or not held.is_there(folder):
        held = _locked(folder)
        if held is not None:
            _HELD[folder] = held
    return held


def _locked(folder: Path) -> Held | None:
    # A regular file, because NFS has no locks of folders.
    path = folder / METADATA
    for _ in range(TRIES):
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        except OSError:
            return None
        held = Held(descriptor)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(PAUSE)
            continue
        except OSError:
            return held
        if held.is_there(folder):
            return held
    return None


def cloned(root: Path, target: Path) -> None:
    """Make a copy of a store without copying its files, where that is possible.

    They are only ever replaced, so that a change of one shows in neither.
    """
    strange = walk(root)[1]
    if strange:
        raise DamageError(f"{root / strange[0]} is no regular file")
    _linked(root, target, else_copy=True)


def _linked(root: Path, target: Path, else_copy: bool) -> None:
    target.mkdir()
    made = {target}
    for name in walk(root)[0]:
        file = target / name
        if file.parent not in made:
            file.parent.mkdir(parents=True, exist_ok=True)
            made.add(file.parent)
        try:
            os.link(root / name, file, follow_symlinks=False)
        except OSError as exc:
            if not else_copy or exc.errno not in NO_LINKS:
                raise
            shutil.copy2(root / name, file, follow_symlinks=False)


def make_version(root: Path, out: str | Path, version: str, files: dict[str, str]) -> Path | None:
    """Make the folder of a version of a finished store; None where there are no hard links.

    The caller holds the lock of the store.
    """
    folder = checked_path(out)
    target = folder / f"{version}.zarr"
    if target.is_symlink() or (target.exists() and not target.is_dir()):
        raise HdicaError(f"{target} is no version of {out} (move it away)")
    if target.is_dir() and _is_whole(target, files):
        return target
    folder.mkdir(exist_ok=True)
    partial = folder / f".{target.name}.partial"
    discard(partial)
    try:
        _linked(root, partial, else_copy=False)
    except OSError as exc:
        discard(partial)
        if exc.errno not in NO_LINKS:
            raise
        with suppress(OSError):
            folder.rmdir()
        return None
    if target.is_dir():
        # It was damaged. Who reads it goes on in the new one, which is the same.
        _set_aside(target)
    partial.replace(target)
    return target


def _is_whole(folder: Path, files: dict[str, str]) -> bool:
    try:
        found, strange = walk(folder)
        return (
            not strange
            and found == sorted(files)
            and all(file_digest(folder / name) == expected for name, expected in files.items())
        )
    except (DamageError, OSError):
        return False


def _set_aside(folder: Path) -> None:
    """Remove a version, whole: by a rename first."""
    old = folder.with_name(f".{folder.name}.old")
    discard(old)
    folder.replace(old)
    # Or a power loss might take the rename back, and leave a version without some of its files.
    sync_folder(old.parent)
    discard(old)


def remove(folder: Path, although_read: bool = False) -> bool:
    """Remove a version that nobody reads and that holds nobody else's files; whether it is gone.

    With ``although_read`` it goes even if somebody reads it, who is told so by his next read. The
    caller holds the lock of the store.
    """
    files, strange = walk(folder)
    if strange or not all(map(OURS.fullmatch, files)):
        return False
    with _alone(folder / METADATA) as nobody_reads:
        if nobody_reads or although_read:
            _set_aside(folder)
        return nobody_reads or although_read


@contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Whether nobody else holds a file locked, nor comes to it during the body."""
    descriptor = _opened(path)
    if descriptor is None:
        yield True
        return
    try:
        yield taken(descriptor)
    finally:
        os.close(descriptor)


def _opened(path: Path) -> int | None:
    """A file to lock alone: for writing, which NFS wants of who does, though nothing is written."""
    for flags in (os.O_RDWR, os.O_RDONLY):
        with suppress(OSError):
            return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    return None


def remove_old(out: str | Path, keep: set[str]) -> None:
    """Remove what killed publications left, and all versions neither to keep nor being read.

    The caller holds the lock of the store.
    """
    for left in leftovers_in(out):
        discard(left)
    for folder in versions_in(out):
        if folder.stem not in keep:
            remove(folder)
