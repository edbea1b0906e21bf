"""Files for people, reports and the answers of queries: written whole or not at all.

A new file comes beside the old one and takes its place by a rename once it is on disk. Folders are
held by their descriptors, so that no link is followed, not even one that is put there meanwhile.
Any number of processes may write into one folder.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from hdica.errors import HdicaError, Unwritable
from hdica.sweep.files.disk import sync
from hdica.sweep.files.locks import taken
from hdica.sweep.files.paths import no_link, refuse_own
from hdica.sweep.files.writing import written

PARTIAL = re.compile(r"\.hdica-\d+-[0-9a-f]{8}\.partial")
"""Names of files that are being written; short, for that of the file itself may be very long."""
ALONE_SECONDS = 30.0
"""Longest wait for another process that puts files in their places, which takes milliseconds."""
LOOK = 0.01
"""Seconds between looks at whether it has."""
FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True)
class Folder:
    """An open folder."""

    path: Path  # for sentences
    descriptor: int

    def check(self, name: str) -> os.stat_result | None:
        """What stands in the place of a file; None if nothing does."""
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
        """Everything in the folder."""
        return sorted(os.listdir(self.descriptor))

    def read(self, name: str, most: int) -> bytes:
        """The beginning of a regular file, of ``most`` bytes; empty if there is no such file."""
        with suppress(OSError):
            descriptor = os.open(name, OLD, dir_fd=self.descriptor)
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
        """Bring to disk which files the folder has, where the file system can."""
        with suppress(OSError):
            sync(self.descriptor)

    @contextmanager
    def beside(self, name: str, content: bytes) -> Iterator[str]:
        """Name of a new file, whole and on disk, which goes at the end if it was not placed."""
        before = self.check(name)
        partial, descriptor = self._new()
        try:
            with os.fdopen(descriptor, "wb") as file:
                if before is not None:
                    # What others could not read stays so.
                    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
                file.write(content)
                file.flush()
                # Some file systems say only now that there is no room.
                sync(descriptor)
                yield partial
        finally:
            self.remove(partial)

    def try_out(self) -> None:
        """Make a file and remove it, so that a folder that cannot be written is found early."""
        partial, descriptor = self._new()
        os.close(descriptor)
        self.remove(partial)

    def _new(self) -> tuple[str, int]:
        """A new file that is locked for as long as it is open."""
        while True:
            partial = f".hdica-{os.getpid()}-{secrets.token_hex(4)}.partial"
            descriptor = os.open(partial, NEW, 0o666, dir_fd=self.descriptor)
            # Until it was locked, another process may have taken it for one that was left.
            if taken(descriptor) and os.fstat(descriptor).st_nlink:
                return partial, descriptor
            os.close(descriptor)

    def sweep_up(self) -> None:
        """Remove what killed writers have left; what a living one writes is locked."""
        for name in filter(PARTIAL.fullmatch, self.names()):
            with suppress(OSError):
                descriptor = os.open(name, OLD, dir_fd=self.descriptor)
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self.remove(name)
                finally:
                    os.close(descriptor)

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let nobody else place files meanwhile, so that sets of files do not mix."""
        deadline = time.monotonic() + ALONE_SECONDS
        while not taken(self.descriptor):
            if time.monotonic() > deadline:
                raise Unwritable(
                    f"{self.path} has been held for {ALONE_SECONDS:.0f} s by another process that "
                    "writes it (end that process if it hangs)"
                )
            time.sleep(LOOK)
        try:
            yield
        finally:
            with suppress(OSError):
                fcntl.flock(self.descriptor, fcntl.LOCK_UN)

    @contextmanager
    def below(self, name: str) -> Iterator[Folder]:
        """A folder in this one, made if need be, until the end of the body."""
        path = no_link(self.path / name)
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=self.descriptor)
        with _opened(path, name, os.O_NOFOLLOW, self.descriptor) as found:
            yield found

    @contextmanager
    def inside(self, name: str) -> Iterator[Folder]:
        """A folder that is in this one, until the end of the body; nothing is made.

        ``OSError`` if there is none of that name, or a link or a file.
        """
        descriptor = os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=self.descriptor)
        try:
            yield Folder(self.path / name, descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _opened(path: Path, name: str | Path, flags: int, above: int | None = None) -> Iterator[Folder]:
    try:
        descriptor = os.open(name, FOLDER | flags, dir_fd=above)
    except NotADirectoryError as exc:
        raise _no_folder(path) from exc
    except FileNotFoundError as exc:
        raise HdicaError(f"{path} does not exist (make that folder first)") from exc
    try:
        yield Folder(path, descriptor)
    finally:
        os.close(descriptor)


def _no_folder(path: Path) -> HdicaError:
    other = next((p for p in (path, *path.parents) if p.exists() and not p.is_dir()), path)
    return HdicaError(f"{other} is no folder (move it away, or take another name)")


def stands(path: Path) -> bool:
    """Whether a folder, or a link to one, is there already."""
    nearest = next(p for p in (path, *path.parents) if os.path.lexists(p))
    if not nearest.is_dir() and not nearest.is_symlink():
        raise _no_folder(path)
    return nearest == path


@contextmanager
def made(path: Path) -> Iterator[Folder]:
    """A folder, made if need be with those above it, until the end of the body."""
    try:
        no_link(path).mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as exc:
        raise _no_folder(path) from exc
    with _opened(path, path, os.O_NOFOLLOW) as found:
        yield found


@contextmanager
def _around(path: Path) -> Iterator[Folder]:
    """The folder in which a file goes that a user has named; links may lead to it."""
    if path.name in ("", ".."):
        raise HdicaError(f"{path} is a folder (give the name of a file)")
    refuse_own(path)
    with _opened(path.parent, path.parent, 0) as found:
        yield found


def check_file(path: Path) -> None:
    """Refuse a place where no file can be written, before the work for its content."""
    with written(path), _around(path) as folder:
        folder.check(path.name)
        folder.try_out()


def write_file(path: Path, content: bytes) -> None:
    """Write a file, whole or not at all, in a folder that has to be there."""
    with written(path), _around(path) as folder:
        folder.sweep_up()
        with folder.beside(path.name, content) as partial:
            folder.place(partial, path.name)
        folder.sync()
