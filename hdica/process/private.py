"""What no other user of the machine can read, exchange or put something into.

Whoever can put code into a file that is imported or loaded, or under its name, runs commands as the
user. Private folders are for the files of one process, which keeps a file in it locked. The system
drops the lock with the process: who gets it afterwards knows that nobody needs the folder.
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

ROOT = 0
MOST_LINKS = 40  # links on the way to a file, as many as Linux follows
LOCK = ".held"  # file of a private folder that its process has locked
ENDED = ".ended"  # end of the name of a folder that is being removed
SCRATCH = "hdica-"  # begin of the names of folders for the files of a process
ELSEWHERE = ("/tmp", "/var/tmp")  # where the place of the environment is not safe
_FLAGS = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC


def doubt(path: Path, holds: bool = False) -> str:
    """Why others could change what lies at a path that exists; empty if they cannot.

    Every folder and every link on the way counts. In a folder that only ``holds`` what the user
    makes in it, as ``/tmp``, it is enough that others cannot touch that.
    """
    at, rest, links = Path("/"), list(path.absolute().parts[1:]), 0
    while True:
        about = os.lstat(at)
        if about.st_uid not in (ROOT, os.getuid()):
            return f"{at} belongs to user {about.st_uid}"
        if stat.S_ISLNK(about.st_mode):
            links += 1
            if links > MOST_LINKS:
                return f"{path} leads through too many links"
            at, rest = Path("/"), [*(at.parent / os.readlink(at)).parts[1:], *rest]
            continue
        sticky = stat.S_ISDIR(about.st_mode) and about.st_mode & stat.S_ISVTX
        if writable(about) and not (sticky and (rest or holds)):
            return f"others can write to {at}"
        if not rest:
            return ""
        at = at.parent if (name := rest.pop(0)) == ".." else at / name


def writable(about: os.stat_result) -> bool:
    """Whether others than the owner and root may write to what is described."""
    mode = about.st_mode
    return bool(mode & stat.S_IWOTH or (mode & stat.S_IWGRP and not _alone_in(about.st_gid)))


def _alone_in(group: int) -> bool:
    """Whether a group is the user's own: some systems give each user one, of the user's name."""
    import grp
    import pwd

    try:
        user, about = pwd.getpwuid(os.getuid()), grp.getgrgid(group)
    except KeyError:
        return False
    own = group != ROOT and about.gr_name == user.pw_name and user.pw_gid == group
    return own and set(about.gr_mem) <= {user.pw_name}


def open_umask() -> bool:
    """Whether others may write to what this process makes with the usual permissions."""
    mask = None
    with suppress(OSError):  # where the system says it without a change that threads would notice
        mask = re.search(rb"^Umask:\s*([0-7]+)", Path("/proc/self/status").read_bytes(), re.M)
    if mask is not None:
        bits = int(mask[1], 8)
    else:
        bits = os.umask(0o077)
        os.umask(bits)
    return not bits & stat.S_IWOTH or not (bits & stat.S_IWGRP or _alone_in(os.getgid()))


def make_folders(path: Path, mode: int = 0o755) -> None:
    """Make a folder and the missing ones above it, which all may enter whatever the mode."""
    if not path.parent.exists():
        make_folders(path.parent, mode | 0o055)
    try:
        path.mkdir(mode=mode)
    except FileExistsError:
        if not path.is_dir():
            raise


@contextmanager
def private_folder(base: Path, prefix: str) -> Iterator[Path]:
    """A folder in ``base`` for this user alone, removed at the end, as are those of killed ones."""
    remove_ended(base, prefix)
    made, lock = _locked(base, prefix)
    try:
        yield made
    finally:
        _discard(made, lock)


def _locked(base: Path, prefix: str) -> tuple[Path, int]:
    """A new folder, and its lock."""
    while True:
        made = Path(tempfile.mkdtemp(prefix=prefix, dir=base))
        # Until it is locked, another process may take it for one that a killed process has left.
        with suppress(FileNotFoundError):
            about = made.lstat()
            if about.st_uid != os.getuid() or stat.S_IMODE(about.st_mode) & 0o077:
                made.rmdir()
                raise HdicaError(f"{made} is not for its owner alone although it was made so")
            lock = os.open(made / LOCK, _FLAGS | os.O_CREAT, 0o600)
            if _lock(lock) is not False:
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.lstat(made / LOCK), os.fstat(lock)):
                        return made, lock
            os.close(lock)


def _lock(file: int) -> bool | None:
    """Lock a file; False if another process has, None where files cannot be locked."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as exc:
        return False if exc.errno in (errno.EWOULDBLOCK, errno.EACCES) else None
    return True


def _discard(folder: Path, lock: int) -> None:
    """Remove a folder that this process has locked; from now on nobody is to lock it."""
    ended = folder
    if not folder.name.endswith(ENDED):
        with suppress(OSError):
            ended = folder.rename(folder.with_name(folder.name + ENDED))
    os.close(lock)  # or NFS would keep it
    shutil.rmtree(ended, ignore_errors=True)


def remove_ended(base: Path, prefix: str) -> int:
    """Remove private folders of this user whose process has ended without it; returns how many."""
    name, count = re.compile(re.escape(prefix) + r"[a-z0-9_]{8}(?:\.ended)?"), 0
    with suppress(OSError):
        for folder in filter(name.fullmatch, os.listdir(base)):
            with suppress(OSError):
                about = os.lstat(base / folder)
                if stat.S_ISDIR(about.st_mode) and about.st_uid == os.getuid():
                    count += _removed(base / folder)
    return count


def _removed(folder: Path) -> bool:
    """Remove a private folder unless a process has it; whether that was done."""
    try:
        lock = os.open(folder / LOCK, _FLAGS)
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
    if not _lock(lock):
        os.close(lock)
        return False
    _discard(folder, lock)
    return True


@cache
def scratch() -> Path:
    """The folder of this process for files, removed when it ends, or by the next run if killed."""
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


def _base() -> tuple[Path | None, str]:
    """Where temporary files go, if anywhere, and why not in the usual place."""
    reasons: list[str] = []
    for base in map(Path, (tempfile.gettempdir(), *ELSEWHERE)):
        try:
            why = doubt(base, holds=True)
            if not why and not os.access(base, os.W_OK | os.X_OK):
                why = f"{base} cannot be written to"
        except OSError as exc:
            why = f"{base} cannot be looked at ({exc.strerror})"
        reasons.append(why)
        if not why:
            return base, reasons[0]
    return None, reasons[0]


HOST = "127.0.0.1"
LOOPBACK = (HOST, "localhost", "[::1]")
_LOOPBACK = re.compile(
    rf"(?:{'|'.join(map(re.escape, LOOPBACK))})(?::[0-9]{{1,5}})?", re.IGNORECASE
)
NO_HOST = f"answers under {', '.join(LOOPBACK[:-1])} and {LOOPBACK[-1]} alone"


def is_loopback(host: str) -> bool:
    """Whether a header ``Host`` is a loopback name, with any port: a tunnel may have another."""
    return _LOOPBACK.fullmatch(host) is not None


def is_same(origin: str | None, host: str) -> bool:
    """Whether a request with a header ``Origin`` is of a page that has the same name and port."""
    return origin is None or origin.lower().partition("://")[2] == host.lower()
