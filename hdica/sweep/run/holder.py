"""Who holds the lock of a working store, told to whoever has to wait for it.

The note beside the lock is for people: what excludes others is the lock alone, which the system
drops with its process. A note that a killed process has left is not shown.
"""

from __future__ import annotations

import json
import os
import pwd
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path

from hdica.errors import HdicaError, printable
from hdica.sweep.files.paths import discard, read_regular

NOTE = ".lock.json"
"""File beside the lock that says who holds it."""
MOST_BYTES, MOST_LETTERS = 4096, 80
"""Size of a note, and of a text in it, beyond which it is none of ours."""
PATIENCE = 0.5
"""Seconds of waiting before it is said."""
QUIET_SECONDS = 10.0
"""Seconds before another holder is named: shards that start together pass the lock on quickly."""
LOOK = 0.05
"""Seconds between looks at the lock."""
SOMEBODY = "another process that plans, publishes or repairs it"
_COMMAND: ContextVar[str] = ContextVar("hdica_command", default="")


@dataclass(frozen=True)
class Holder:
    """A process that holds a lock."""

    command: str  # what it was called as
    pid: int
    host: str
    user: str
    since: float  # when it took the lock, in seconds since 1970
    began: str  # when it was started, as its machine counts; "" if it does not say

    def __str__(self) -> str:
        since, now = datetime.fromtimestamp(self.since, UTC), datetime.now(UTC)
        day = "" if since.date() == now.date() else f"{since:%Y-%m-%d} "
        who = f"{self.command} (pid {self.pid} on {self.host}, user {self.user})"
        return printable(f"{who} since {day}{since:%H:%M:%S} UTC")

    def gone(self) -> bool:
        """Whether this machine knows that the process has ended."""
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except (ProcessLookupError, OverflowError):
            return True
        except PermissionError:
            pass
        # A number is used again, but not with the same beginning.
        began = _began(self.pid)
        return bool(began and self.began) and began != self.began


def _began(pid: int) -> str:
    """When a process was started, in ticks since the machine was; "" where that is not told."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return ""


def _user() -> str:
    with suppress(KeyError):
        return pwd.getpwuid(os.geteuid()).pw_name
    return str(os.geteuid())


def _own() -> Holder:
    command = _COMMAND.get() or Path(sys.argv[0]).name or "Python"
    pid = os.getpid()
    return Holder(command, pid, socket.gethostname(), _user(), time.time(), _began(pid))


@contextmanager
def acting(command: str) -> Iterator[None]:
    """Name what this process was called as, until the end of the body."""
    token = _COMMAND.set(command)
    try:
        yield
    finally:
        _COMMAND.reset(token)


def command_line(arguments: Sequence[str]) -> str:
    """What ``hdica`` was called as, without the names of files."""
    return " ".join(["hdica", *[word for word in arguments if not word.startswith("-")][:1]])


@contextmanager
def noted(work: Path) -> Iterator[None]:
    """Say beside a lock that this process holds it, which it must.

    Where that cannot be written, nothing is said, and nothing wrong either.
    """
    note = work / NOTE
    with suppress(OSError):
        _write(note, json.dumps(asdict(_own())).encode())
    try:
        yield
    finally:
        with suppress(OSError):
            discard(note)


def _write(note: Path, content: bytes) -> None:
    # What a killed process has left may be somebody else's file, or no file.
    discard(note)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(note, flags, 0o644)
    with os.fdopen(descriptor, "wb") as file:
        # It holds nothing that a list of processes does not tell everybody.
        os.fchmod(descriptor, 0o644)
        file.write(content)


def holder(work: Path) -> Holder | None:
    """Who says to hold the lock of a working store; None if nobody living does."""
    try:
        content = json.loads(read_regular(work / NOTE, MOST_BYTES) or b"null")
        found = Holder(**content)
        kinds = {"pid": int, "since": float}
        values = asdict(found)
        sound = all(type(values[f.name]) is kinds.get(f.name, str) for f in fields(Holder))
        short = all(len(str(value)) <= MOST_LETTERS for value in values.values())
        # It has to be a moment, too.
        return found if sound and short and str(found) and not found.gone() else None
    except (OSError, ValueError, TypeError, OverflowError, RecursionError):
        return None


def wait_for(taken: Callable[[], bool], work: Path, seconds: float) -> None:
    """Wait until a lock is taken, at most so long, and say on standard error who holds it.

    Also where no progress is to be shown: a command that stands still for no reason is ended.
    ``taken`` tries to take it, without waiting.
    """
    began = time.monotonic()
    next_line, named = began + PATIENCE, ""
    while not taken():
        now = time.monotonic()
        if now - began >= seconds:
            raise HdicaError(
                f"{work} has been held for {seconds:.0f} s by {holder(work) or SOMEBODY} "
                "(wait for that process, or end it if it hangs)"
            )
        if now >= next_line:
            next_line, before, named = now + QUIET_SECONDS, named, str(holder(work) or SOMEBODY)
            if named != before:
                _say(f"waiting for {work}: held by {named}")
        time.sleep(LOOK)


def _say(text: str) -> None:
    # That nobody listens is no reason to give up.
    with suppress(OSError, ValueError, AttributeError):
        sys.stderr.write(printable(text) + "\n")
        sys.stderr.flush()
