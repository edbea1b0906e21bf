"""The lock of a working store: one process at a time plans, publishes or repairs.

The system drops the lock with the process that has it, however that ends. The lock's file says who
has it, for whoever has to wait.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from hdica.errors import HdicaError, printable
from hdica.store.files import Folder, lockable, make_folder, no_link, opened, try_lock
from hdica.store.paths import LOCK, work_path

LOCK_SECONDS = 900.0
"""Longest wait for another process that plans, publishes or repairs the same store."""
PATIENCE, QUIET_SECONDS, POLL_SECONDS = 0.5, 10.0, 0.05
"""Seconds of waiting before a message, between two messages, and between two tries."""
MAX_LETTERS = 200
SOMEBODY = "another process that plans, publishes or repairs it"
RUNNING = ".running"
"""File of a working store that every run has locked, together with the others."""
_COMMAND: ContextVar[str] = ContextVar("hdica_command", default="")


@contextmanager
def acting(command: str) -> Iterator[None]:
    """Name the command of this process, for the body."""
    token = _COMMAND.set(command)
    try:
        yield
    finally:
        _COMMAND.reset(token)


def command_line(arguments: Sequence[str]) -> str:
    """The command of ``hdica``, without the names of files."""
    return " ".join(["hdica", *[word for word in arguments if not word.startswith("-")][:1]])


def _this_process() -> str:
    command = _COMMAND.get() or Path(sys.argv[0]).name or "Python"
    user = str(os.geteuid())
    with suppress(KeyError):
        user = pwd.getpwuid(os.geteuid()).pw_name
    now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return f"{command} (pid {os.getpid()} on {socket.gethostname()}, user {user}) since {now}"


@contextmanager
def locked(out: str | Path) -> Iterator[Path]:
    """Lock the working store for the body, which gets its path.

    A wait is reported on standard error, with the process that has the lock.
    """
    work = work_path(out)
    with _locked_file(work) as file:
        with suppress(OSError):
            file.truncate(0)
            os.pwrite(file.fileno(), _this_process().encode(), 0)
        try:
            yield work
        finally:
            with suppress(OSError):
                file.truncate(0)


def _locked_file(work: Path) -> BinaryIO:
    """The lock's file, locked; another one where somebody has removed it meanwhile."""
    while True:
        make_folder(work)
        path = no_link(work / LOCK)
        file = lockable(path, 0o644)
        try:
            wait_for(lambda: try_lock(file), work, LOCK_SECONDS)  # noqa: B023
            if _is_at(file, path):
                return file
        except BaseException:
            file.close()
            raise
        file.close()


def _is_at(file: BinaryIO, path: Path) -> bool:
    """Whether an open file is the one of a path."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.lstat(path))
    except FileNotFoundError:
        return False


def _holder(work: Path) -> str:
    """The process that has the lock of a working store, as its file says."""
    text = ""
    with suppress(OSError, ValueError, HdicaError), opened(work, flags=os.O_NOFOLLOW) as folder:
        text = folder.read(LOCK, MAX_LETTERS).decode()
    return printable(" ".join(text.split())) or SOMEBODY


def wait_for(lock: Callable[[], bool], work: Path, seconds: float) -> None:
    """Wait until a lock is taken, and report on standard error who has it.

    Also where no progress is shown: a command that stands still for no reason is ended. ``lock``
    tries to take it, without waiting.
    """
    began = time.monotonic()
    next_line, shown = began + PATIENCE, ""
    while not lock():
        now = time.monotonic()
        if now - began >= seconds:
            raise HdicaError(
                f"{work} has been locked for {seconds:.0f} s by {_holder(work)} "
                "(wait for that process, or end it if it hangs)"
            )
        if now >= next_line:
            next_line, before, shown = now + QUIET_SECONDS, shown, _holder(work)
            if shown != before:
                _say(f"waiting for {work}: locked by {shown}")
        time.sleep(POLL_SECONDS)


def _say(text: str) -> None:
    # That nobody listens is no reason to give up.
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(printable(text) + "\n")
        sys.stderr.flush()


@contextmanager
def running(out: str | Path) -> Iterator[bool]:
    """Mark a working store as being computed, for the body; whether no other run is computing it.

    Where a file system has no locks, no run can be sure to be the only one.
    """
    work = work_path(out)
    make_folder(work)
    with lockable(no_link(work / RUNNING), 0o644) as mark:
        alone = _alone(mark)
        wait_for(lambda: try_lock(mark, shared=True), work, LOCK_SECONDS)
        yield alone


def _alone(file: object) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # type: ignore[arg-type]
    except OSError:
        return False
    return True


def remove_partials(folder: Path) -> None:
    """Remove what killed writers have left in a folder of a store, if it is there."""
    with suppress(OSError, HdicaError), opened(folder, flags=os.O_NOFOLLOW) as there:
        Folder.remove_partials(there)
