"""Files written whole or not at all, and read only where they are regular files.

A new file is written beside its place and takes its name once its content is on the disk; when a
function returns, the name is on the disk, too. Folders stay open, so that no link is followed, not
even one that is put there meanwhile. Any number of processes may write into one folder.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from hdica.errors import HdicaError, Removed, Unwritable

SYNC = "HDICA_SYNC"  # environment variable: "off" where files need not outlive the power
_ON, _OFF = ("", "on", "1", "yes", "true"), ("off", "0", "no", "false")
PARTIAL = re.compile(r"\.hdica-\d+-[0-9a-f]{8}\.partial")  # names of files being written
NO_ROOM = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS})
"""Errors that every further file would meet, too."""
MAX_BYTES = 2**30  # largest file that is read: those of a store are a thousand times smaller
TRIES = 3  # how often a file is written anew whose partial file somebody has removed
WAIT_SECONDS, POLL_SECONDS = 30.0, 0.01  # for another process that replaces files; between tries
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class DamageError(HdicaError):
    """Stored data that is missing or was changed; the sentence names file and points."""


class TornError(DamageError):
    """Stored data that a power loss or a full disk cut short: the next run computes it again."""


def syncing() -> bool:
    """Whether files are to reach the disk before anything relies on them."""
    text = os.environ.get(SYNC, "")
    if (word := text.strip().lower()) not in _ON + _OFF:
        raise HdicaError(f"{SYNC} = {text!r} is not allowed (on or off)")
    return word in _ON


@contextmanager
def _open(path: str | Path, flags: int, above: int | None = None) -> Iterator[int]:
    """Descriptor of a file or folder; ``path`` is a name in the open folder ``above``, if any."""
    descriptor = os.open(path, flags, dir_fd=above)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def sync(descriptor: int) -> None:
    """Wait until the content of an open file is on the disk."""
    if syncing():
        os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk; some file systems cannot do that."""
    try:
        with _open(folder, _FOLDER) as descriptor:
            sync(descriptor)
    except OSError as exc:
        if exc.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise


def sync_tree(root: Path) -> None:
    """Wait until everything below a folder is on the disk, except for the folder's own name."""
    for folder, _, names in os.walk(root, topdown=False) if syncing() else ():
        for name in names:
            with _open(Path(folder, name), _READ) as descriptor:
                os.fsync(descriptor)
        sync_folder(Path(folder))


def make_folder(folder: Path) -> None:
    """Make a folder and those above it where they are missing; their names reach the disk."""
    # A process that was killed may have made it, without its name on the disk: sync in any case.
    missing = [folder]
    while not missing[-1].parent.is_dir():
        missing.append(missing[-1].parent)
    for each in reversed(missing):
        each.mkdir(exist_ok=True)
        sync_folder(each.parent)


def lockable(path: Path) -> BinaryIO:
    """Open a file that can be locked, made if need be; a link is refused."""
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.fdopen(os.open(path, flags, 0o644), "r+b", buffering=0)


def try_lock(file: int | BinaryIO, shared: bool = False) -> bool:
    """Lock a file without waiting; whether that was possible, or no file has locks there."""
    try:
        fcntl.flock(file, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as exc:
        return not isinstance(exc, BlockingIOError)
    return True


@dataclass(frozen=True)
class Folder:
    """An open folder."""

    path: Path  # for sentences
    descriptor: int

    def check(self, name: str) -> os.stat_result | None:
        """Refuse what is no regular file in the place of a file; None if nothing is there."""
        path = no_link(self.path / name)
        try:
            about = os.stat(name, dir_fd=self.descriptor, follow_symlinks=False)
        except FileNotFoundError:
            return None
        if stat.S_ISDIR(about.st_mode):
            raise HdicaError(f"{path} is a folder (move it away, or take another name)")
        if not stat.S_ISREG(about.st_mode):
            raise HdicaError(f"{path} is no regular file, and is not replaced (take another name)")
        return about

    def names(self) -> list[str]:
        """Names of everything in the folder."""
        return sorted(os.listdir(self.descriptor))

    def read(self, name: str, most: int) -> bytes:
        """The first ``most`` bytes of a regular file; empty if there is no such file."""
        with suppress(OSError):
            descriptor = os.open(name, _READ, dir_fd=self.descriptor)
            with os.fdopen(descriptor, "rb") as file:
                if stat.S_ISREG(os.fstat(descriptor).st_mode):
                    return file.read(most)
        return b""

    def remove(self, name: str) -> None:
        """Remove a file if it is there."""
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.descriptor)

    def place(self, partial: str, name: str) -> None:
        """Put a new file in its place."""
        os.rename(partial, name, src_dir_fd=self.descriptor, dst_dir_fd=self.descriptor)

    def sync(self) -> None:
        """Wait until the names in the folder are on the disk, where the file system can do that."""
        with suppress(OSError):
            sync(self.descriptor)

    def write(self, name: str, content: bytes, mode: int = 0o666) -> None:
        """Write a file, whole or not at all; it is on the disk when this returns."""
        for attempt in range(TRIES):
            # Without locks, another process may have removed it as a leftover.
            again = nullcontext() if attempt == TRIES - 1 else suppress(FileNotFoundError)
            with self.beside(name, content, mode) as partial, again:
                self.place(partial, name)
                break
        self.sync()

    @contextmanager
    def beside(self, name: str, content: bytes, mode: int = 0o666) -> Iterator[str]:
        """Name of a new file, whole and on the disk, removed at the end if it was not placed."""
        before = self.check(name)
        partial, descriptor = self._new(mode)
        try:
            with os.fdopen(descriptor, "wb") as file:
                if before is not None:  # the permissions of the file whose place it takes
                    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
                file.write(content)
                file.flush()
                # Some file systems report only now that there is no room.
                sync(descriptor)
                yield partial
        finally:
            self.remove(partial)

    def try_out(self) -> None:
        """Make a file and remove it, to find early that a folder cannot be written."""
        partial, descriptor = self._new(0o666)
        os.close(descriptor)
        self.remove(partial)

    def _new(self, mode: int) -> tuple[str, int]:
        """A new partial file, locked as long as it is open."""
        while True:
            partial = f".hdica-{os.getpid()}-{secrets.token_hex(4)}.partial"
            descriptor = os.open(partial, _NEW, mode, dir_fd=self.descriptor)
            # Until it was locked, another process may have removed it as a leftover.
            if try_lock(descriptor) and os.fstat(descriptor).st_nlink:
                return partial, descriptor
            os.close(descriptor)

    def remove_partials(self) -> None:
        """Remove the partial files of killed writers, which nobody has locked."""
        for name in filter(PARTIAL.fullmatch, self.names()):
            with suppress(OSError), _open(name, _READ, self.descriptor) as descriptor:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self.remove(name)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other processes from placing files meanwhile, so that sets of files do not mix."""
        deadline = time.monotonic() + WAIT_SECONDS
        while not try_lock(self.descriptor):
            if time.monotonic() > deadline:
                raise Unwritable(
                    f"{self.path} has been locked for {WAIT_SECONDS:.0f} s by another process that "
                    "writes it (end that process if it hangs)"
                )
            time.sleep(POLL_SECONDS)
        try:
            yield
        finally:
            with suppress(OSError):
                fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    def below(self, name: str, made: bool = True) -> AbstractContextManager[Folder]:
        """A folder inside this one, made if need be unless it has to exist, for the body."""
        path = no_link(self.path / name)
        with suppress(FileExistsError):
            if made:
                os.mkdir(name, dir_fd=self.descriptor)
        return opened(path, name, os.O_NOFOLLOW, self.descriptor)


@contextmanager
def opened(
    path: Path, name: str = "", flags: int = 0, above: int | None = None
) -> Iterator[Folder]:
    """An existing folder, or the one of a name in the folder ``above``, for the body."""
    try:
        descriptor = os.open(name or path, _FOLDER | flags, dir_fd=above)
    except NotADirectoryError as exc:
        raise _no_folder(path) from exc
    except FileNotFoundError as exc:
        raise HdicaError(f"{path} does not exist (make that folder first)") from exc
    try:
        yield Folder(path, descriptor)
    finally:
        os.close(descriptor)


def remove_partials(folder: Path) -> None:
    """Remove what killed writers have left in a folder of a store, if it is there."""
    with suppress(OSError, HdicaError), opened(folder, flags=os.O_NOFOLLOW) as content:
        content.remove_partials()


def _no_folder(path: Path) -> HdicaError:
    file = next((p for p in (path, *path.parents) if p.exists() and not p.is_dir()), path)
    return HdicaError(f"{file} is no folder (move it away, or take another name)")


def stands(path: Path) -> bool:
    """Whether a folder, or a link to one, is there already."""
    nearest = next(p for p in (path, *path.parents) if os.path.lexists(p))
    if not nearest.is_dir() and not nearest.is_symlink():
        raise _no_folder(path)
    return nearest == path


@contextmanager
def made(path: Path) -> Iterator[Folder]:
    """A folder, made if need be with those above it, for the body."""
    try:
        no_link(path).mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as exc:
        raise _no_folder(path) from exc
    with opened(path, flags=os.O_NOFOLLOW) as folder:
        yield folder


def write_whole(path: Path, content: bytes, mode: int = 0o666) -> None:
    """Write a file, whole or not at all, into a folder that exists; it is on the disk then."""
    with _open(path.parent, _FOLDER) as descriptor:
        Folder(path.parent, descriptor).write(path.name, content, mode)


@contextmanager
def regular(path: Path) -> Iterator[int]:
    """Descriptor of a regular file to read; whatever else stands there is damage."""
    strange = DamageError(f"{path} is damaged, it is no regular file")
    try:
        descriptor = os.open(path, _READ)
    except OSError as exc:
        if path.is_symlink() or path.is_socket():
            raise strange from exc
        raise
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise strange
        yield descriptor
    finally:
        os.close(descriptor)


def read_regular(path: Path, most: int = MAX_BYTES) -> bytes | None:
    """Content of a regular file, None if there is none."""
    try:
        with regular(path) as descriptor:
            if (size := os.fstat(descriptor).st_size) > most:
                raise DamageError(f"{path} has {size} bytes (at most {most} are read)")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return None


def no_link(path: Path) -> Path:
    """The path itself, if no link stands there."""
    if path.is_symlink():
        raise HdicaError(f"{path} is a link, which is not followed (give the place it leads to)")
    return path


def parts_of(name: str) -> tuple[str, ...]:
    """Folders and file of a name inside a store; empty if the name could lead elsewhere."""
    parts = name.split("/")
    unsafe = any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in parts)
    return () if unsafe or PurePosixPath(name).is_absolute() else tuple(parts)


def inside(root: Path, name: str) -> Path:
    """Path of a file of a store; links on the way are refused."""
    if not (parts := parts_of(name)):
        raise DamageError(f"{root} names the file {name!r}, which cannot be one of its own")
    path = root
    for part in parts:
        path = path / part
        if path.is_symlink():
            raise DamageError(f"{path} is a link, which is not followed")
    return path


def stamp(path: Path) -> tuple[int, ...] | None:
    """What changes when a file or folder is replaced or written; None if nothing is there."""
    with suppress(OSError):
        about = os.lstat(path)
        return (about.st_dev, about.st_ino, about.st_mtime_ns, about.st_size)
    return None


def discard(path: Path) -> None:
    """Remove a file, a folder or a link; the target of a link stays."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def discard_inside(root: Path, name: str) -> None:
    """Remove a file of a store, or the first thing on the way to it that is no folder."""
    path = root
    for part in parts_of(name):
        path = path / part
        if path.is_symlink() or not path.is_dir():
            break
    discard(path)


def walk(root: Path) -> tuple[list[str], list[str]]:
    """Names of every regular file below a folder but partial ones, and of strange things."""
    files: list[str] = []
    strange: list[str] = []
    folders = [""]
    for folder in folders:
        with os.scandir(root / folder) as entries:
            for entry in entries:
                name = f"{folder}{entry.name}"
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{name}/")
                elif not entry.is_file(follow_symlinks=False):
                    strange.append(name)
                elif not PARTIAL.fullmatch(entry.name):
                    files.append(name)
    return sorted(files), sorted(strange)


def in_words(exc: OSError) -> str:
    """What the system reports of an error, to stand inside a sentence."""
    text = exc.strerror or str(exc) or type(exc).__name__
    return text[:1].lower() + text[1:]


@contextmanager
def written(path: str | Path, then: str = "", own: bool = False) -> Iterator[None]:
    """State in one sentence, which ``then`` ends, why the body cannot write its files.

    A folder of the run's ``own`` was removed meanwhile if anything in it is missing.
    """
    try:
        yield
    except OSError as exc:
        if own and isinstance(exc, FileNotFoundError | NotADirectoryError):
            raise removed(path) from exc
        raise Unwritable(f"{path} cannot be written: {in_words(exc)}{then}") from exc


def removed(path: str | Path) -> Removed:
    """The error that somebody has removed what a run writes to."""
    return Removed(f"{path} was removed while the run went on; a rerun computes it anew")
