"""What stays on the disk when the power fails: files, and the folders that name them.

A file is on the disk after ``fsync`` of the file, and its name after ``fsync`` of its folder. Until
then a power loss may leave it empty, full of zeros, cut short, under its old name or nowhere.
"""

from __future__ import annotations

import ctypes
import errno
import os
import uuid
from collections.abc import Iterable
from pathlib import Path

from hdica.errors import HdicaError

SWITCH = "HDICA_SYNC"
"""Variable of the environment: ``off`` on a scratch disk whose files need not outlive the power."""
_MEANS = dict.fromkeys(("", "on", "1", "yes", "true"), True)
_MEANS |= dict.fromkeys(("off", "0", "no", "false"), False)


def syncing() -> bool:
    """Whether files are to reach the disk before they are relied upon."""
    said = os.environ.get(SWITCH, "")
    if (found := _MEANS.get(said.strip().lower())) is None:
        raise HdicaError(f"{SWITCH} = {said!r} is not allowed (on or off)")
    return found


def sync(descriptor: int) -> None:
    """Wait until what an open file or folder holds is on the disk."""
    if syncing():
        os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk; some file systems cannot be asked."""
    if not syncing():
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    except OSError as exc:
        if exc.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(descriptor)


def sync_tree(root: Path) -> None:
    """Wait until everything below a folder is on the disk, the folder's own name excepted."""
    if not syncing():
        return
    for folder, _, names in os.walk(root, topdown=False):
        for name in names:
            descriptor = os.open(Path(folder, name), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_folder(Path(folder))


def sync_names(root: Path) -> None:
    """The same for the folders alone, where the files are links to some that are on the disk."""
    if not syncing():
        return
    for folder, _, _ in os.walk(root, topdown=False):
        sync_folder(Path(folder))
    sync_folder(root.parent)
    sync_folder(root.parent.parent)


def exchange(one: Path, other: Path) -> bool:
    """Let two folders take each other's name at once; False where the system cannot."""
    try:
        rename = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    here = -100  # relative to the working directory, as in <fcntl.h>
    return not rename(here, os.fsencode(one), here, os.fsencode(other), 2)


def make_folder(folder: Path) -> None:
    """Make a folder and those above it where they are missing; their names reach the disk.

    The one that is there may be of a process that was killed before its name was on the disk: the
    folder above it is asked in any case.
    """
    missing = [folder]
    while not missing[-1].parent.is_dir():
        missing.append(missing[-1].parent)
    for one in reversed(missing):
        one.mkdir(exist_ok=True)
        sync_folder(one.parent)


def write_partial(path: Path, content: bytes, mode: int = 0o666) -> Path:
    """Write a temporary sibling of a file, with everything on the disk but its name; where it is.

    Its name ends in ``.partial`` and nobody else's does like it, on whichever machine.
    """
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.partial")
    # O_EXCL never writes through a link.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(partial, flags, mode), "wb") as file:
            file.write(content)
            file.flush()
            sync(file.fileno())
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return partial


def write_all(files: Iterable[tuple[Path, bytes]], mode: int = 0o666) -> None:
    """Write files, each whole or not at all; at the end all of them are on the disk.

    Their folders are there. Permissions are less those that the user masks, from the beginning.
    """
    partials: list[tuple[Path, Path]] = []
    try:
        for path, content in files:
            partials.append((write_partial(path, content, mode), path))
        for partial, path in partials:
            partial.replace(path)
    except BaseException:
        for partial, _ in partials:
            partial.unlink(missing_ok=True)
        raise
    for folder in dict.fromkeys(path.parent for _, path in partials):
        sync_folder(folder)
