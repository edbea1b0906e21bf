"""Folders for this user alone, and the removal of those whose process was killed.

Each holds a file that its process keeps locked. The system drops the lock with the process, however
it ends: whoever comes next and gets the lock knows that nobody needs the folder any more.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import stat
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from hdica.errors import HdicaError
from hdica.process.trust import doubt

LOCK = ".held"
"""File of a private folder that its process holds locked."""
ENDED = ".ended"
"""End of the name of a folder that is being removed."""
SCRATCH = "hdica-"
"""Begin of the names of folders for the files of a process."""
ELSEWHERE = ("/tmp", "/var/tmp")
"""Where such a folder is made if it is not safe where the environment says."""

_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def private_folder(base: Path, prefix: str) -> Iterator[Path]:
    """A folder in ``base`` that only this user can enter, removed at the end.

    Those that killed processes of this user have left beside it are removed, too.
    """
    remove_ended(base, prefix)
    made, held = _held(base, prefix)
    try:
        yield made
    finally:
        _discard(made, held)


def _held(base: Path, prefix: str) -> tuple[Path, int]:
    """A new folder, and its lock."""
    while True:
        made = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
        # Until it is locked, another process may take it for one that a killed process has left.
        with suppress(FileNotFoundError):
            about = made.lstat()
            if about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) & 0o077:
                made.rmdir()
                raise HdicaError(f"{made} is not for its owner alone although it was made so")
            held = os.open(made / LOCK, _FLAGS | os.O_CREAT, 0o600)
            if _lock(held) and _leads_to(made / LOCK, held):
                return made, held
            os.close(held)


def _discard(folder: Path, held: int) -> None:
    """Remove a folder whose lock is held; from now on nobody is to lock it."""
    ended = folder
    if not folder.name.endswith(ENDED):
        with suppress(OSError):
            ended = folder.rename(folder.with_name(folder.name + ENDED))
    os.close(held)  # or NFS would keep it
    shutil.rmtree(ended, ignore_errors=True)


def _lock(held: int) -> bool:
    """Lock a file; False if another process has. Where files cannot be locked, nobody has."""
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        return exc.errno not in (errno.EWOULDBLOCK, errno.EACCES)
    return True


def _leads_to(path: Path, held: int) -> bool:
    """Whether a path still leads to an open file."""
    with suppress(FileNotFoundError):
        return os.path.samestat(os.lstat(path), os.fstat(held))
    return False


def remove_ended(base: Path, prefix: str) -> int:
    """Remove private folders whose process has ended without removing them; returns how many.

    Only folders of this user are looked into, and no link is followed.
    """
    name = re.compile(re.escape(prefix) + r"[a-z0-9_]{8}(?:\.ended)?")
    found: list[str] = []
    with suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            if name.fullmatch(entry.name) and entry.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    if entry.stat(follow_symlinks=False).st_uid == os.getuid():
                        found.append(entry.path)
    return sum(_removed(Path(path)) for path in found)


def _removed(folder: Path) -> bool:
    """Remove a private folder unless a process holds it; whether that was done."""
    try:
        held = os.open(folder / LOCK, _FLAGS)
    except FileNotFoundError:
        if folder.name.endswith(ENDED):
            shutil.rmtree(folder, ignore_errors=True)
            return True
        with suppress(OSError):  # ended before it was locked; or somebody else's, and not empty
            folder.rmdir()
            return True
        return False
    except OSError:
        return False
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:  # it is in use, or there are no locks
        os.close(held)
        return False
    _discard(folder, held)
    return True


def _base() -> tuple[Path | None, str]:
    """Where temporary files go, if anywhere, and what is to be said against the usual place.

    Nobody else may replace what the user makes there.
    """
    usual = Path(tempfile.gettempdir())
    against = _no_base(usual)
    for base in (usual, *map(Path, ELSEWHERE)):
        if not _no_base(base):
            return base, against
    return None, against


def _no_base(base: Path) -> str:
    """Why a folder is no place for temporary files; empty if it is one."""
    try:
        why = doubt(base, holds=True)
    except OSError as exc:
        return f"{base} cannot be looked at ({exc.strerror})"
    return why or ("" if os.access(base, os.W_OK | os.X_OK) else f"{base} cannot be written to")


@cache
def scratch() -> Path:
    """The folder of this process for what it and its children keep in files while they run.

    It is removed when the process ends, and by the next run of the same user if it was killed.
    """
    from multiprocessing.util import Finalize

    base, against = _base()
    if base is None:
        raise HdicaError(f"TMPDIR = {tempfile.gettempdir()!r} is not allowed ({against})")
    if against:
        warnings.warn(f"{against}: temporary files go to {base}", stacklevel=2)
    made = private_folder(base, SCRATCH)
    folder = made.__enter__()
    # After multiprocessing has removed what it has in it, and never in a fork.
    Finalize(None, made.__exit__, (None, None, None), exitpriority=-200)
    return folder


def remove_ended_scratch() -> None:
    """Remove what killed processes of this user have left in the place of temporary files."""
    base, _ = _base()
    if base is not None:
        remove_ended(base, SCRATCH)
