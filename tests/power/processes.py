"""Which file a descriptor of a process means, and where in it the next byte goes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from tests.power.trace import Call, Unsupported, unhexed

DESCRIPTOR = re.compile(r"(-?\d+|AT_FDCWD)(?:<((?:\\x[0-9a-f]{2})*)>)?(\(deleted\))?")
SHARED_FILES, SHARED_FOLDER = "CLONE_FILES", "CLONE_FS"


@dataclass
class Description:
    """An open file, shared by all descriptors that were copied from the first.

    Parameters
    ----------
    node
        Number of the file or folder.
    append
        Whether every write goes to the end.
    offset
        Where the next byte goes, if not to the end.
    """

    node: int
    append: bool = False
    offset: int = 0


@dataclass
class Cwd:
    """The folder that a process is in."""

    path: str


@dataclass
class Process:
    """A process, or a thread."""

    cwd: Cwd
    open: dict[int, Description] = field(default_factory=dict)

    def child(self, flags: str) -> Process:
        """A process that it makes, with what the two share."""
        cwd = self.cwd if SHARED_FOLDER in flags else Cwd(self.cwd.path)
        return Process(cwd, self.open if SHARED_FILES in flags else dict(self.open))


@dataclass(frozen=True)
class Argument:
    """A descriptor as a call names it.

    Parameters
    ----------
    number
        The descriptor; -100 for the folder that the process is in.
    path
        What the system calls the file now, empty if it says nothing.
    deleted
        Whether it has no name any more.
    """

    number: int
    path: str
    deleted: bool


def descriptor(text: str) -> Argument:
    """A descriptor of a trace, such as ``5</\\x74\\x6d\\x70>``."""
    found = DESCRIPTOR.fullmatch(text)
    if not found:
        raise Unsupported(f"this is no descriptor: {text[:80]}")
    number = -100 if found[1] == "AT_FDCWD" else int(found[1])
    path = unhexed(found[2] or "").decode()
    return Argument(number, path, bool(found[3]))


@dataclass
class Processes:
    """All processes of a trace."""

    cwd: str
    known: dict[int, Process] = field(default_factory=dict)

    def of(self, number: int) -> Process:
        """One of them; the first is there from the beginning."""
        if not self.known:
            self.known[number] = Process(Cwd(self.cwd))
        if number not in self.known:
            raise Unsupported(f"nobody has made process {number}")
        return self.known[number]

    def made(self, call: Call) -> None:
        """A call that makes a process has begun."""
        if call.failed or call.result.startswith("?"):
            return
        flags = call.inner if "clone" in call.name else ""
        self.known[call.returned] = self.of(call.process).child(flags)
