"""What ``strace`` tells of a command: its system calls, each with where it began and ended.

Every text is asked for in hexadecimal, names of open files included, so that a line is told apart
without looking into quotes.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

STRACE = shutil.which("strace")
CALLS = (
    "open", "openat", "openat2", "creat", "open_by_handle_at", "memfd_create",
    "write", "pwrite64", "writev", "pwritev", "pwritev2", "splice", "tee", "vmsplice",
    "copy_file_range", "sendfile", "truncate", "ftruncate", "fallocate", "lseek", "mmap", "ioctl",
    "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat",
    "mkdir", "mkdirat", "mknod", "mknodat", "rmdir", "unlink", "unlinkat",
    "fsync", "fdatasync", "sync_file_range", "syncfs", "sync",
    "dup", "dup2", "dup3", "fcntl", "chdir", "fchdir", "chroot", "mount", "umount2", "unshare",
    "clone", "clone3", "fork", "vfork", "io_uring_setup", "io_submit",
)  # fmt: skip
"""Everything by which a process of Linux can change names or contents of files, and what is needed
to know which file a descriptor means."""
LONGEST = 2**25
"""Most bytes of a text that are told."""

LINE = re.compile(r"(\d+) +(.*)", re.DOTALL)
UNFINISHED = " <unfinished ...>"
RESUMED = re.compile(r"<\.\.\. \w+ resumed>(.*)", re.DOTALL)
ENDED = re.compile(r"\+\+\+ (?:exited|killed)")
CALL = re.compile(r"(\w+)\((.*)\) += (.*)", re.DOTALL)
TOKEN = re.compile(r'"[^"]*"|[][{}(),]|[^]["{}(),]+')


class Unsupported(Exception):
    """A call whose effect on the disk is not modelled, or a trace that cannot be read."""


@dataclass(frozen=True)
class Call:
    """A system call that has returned.

    Parameters
    ----------
    process
        Who made it; a thread has a number of its own.
    name
        Its name.
    inner
        Its arguments as they are written.
    result
        What it returned, as it is written.
    began, ended
        Lines of the trace.
    """

    process: int
    name: str
    inner: str
    result: str
    began: int
    ended: int

    @property
    def arguments(self) -> list[str]:
        """The arguments, one by one."""
        found, depth = [""], 0
        for token in TOKEN.findall(self.inner):
            if token == "," and not depth:
                found.append("")
                continue
            depth += (token in "[{(") - (token in "]})")
            found[-1] += token
        return [one.strip() for one in found]

    @property
    def failed(self) -> bool:
        """Whether it returned an error."""
        return self.result.startswith("-1 ")

    @property
    def returned(self) -> int:
        """The number that it returned."""
        return int(re.split(r"[ <]", self.result, maxsplit=1)[0], 0)


def why_not() -> str:
    """Why commands cannot be traced here, empty if they can."""
    if STRACE is None:
        return "needs strace: install the Debian package strace"
    done = subprocess.run([STRACE, "-o", os.devnull, "true"], capture_output=True, text=True)
    return f"strace may not trace here: {done.stderr.strip()}" if done.returncode else ""


def strace(
    command: list[str], told: Path, folder: Path, environment: dict[str, str]
) -> subprocess.Popen[bytes]:
    """Start a command with all its processes under ``strace``.

    Parameters
    ----------
    command
        What to run.
    told
        File for the trace.
    folder
        Where to run it.
    environment
        Its environment.
    """
    assert STRACE is not None, why_not()
    options = ["-f", "-y", "-xx", "-s", str(LONGEST), "--seccomp-bpf", "-e", "signal=none"]
    traced = [STRACE, *options, "-e", f"trace={','.join(CALLS)}", "-o", str(told), "--"]
    return subprocess.Popen([*traced, *command], cwd=folder, env=environment)


def trace_lines(told: Path) -> list[str]:
    """Lines of a trace: texts in it are hexadecimal, so that a line ends where it ends."""
    return told.read_text(encoding="ascii").split("\n")[:-1]


def calls(lines: list[str]) -> Iterator[Call]:
    """The calls of a trace, in the order in which they returned."""
    begun: dict[int, tuple[int, str]] = {}
    for number, line in enumerate(lines):
        process, text = _split(line)
        if ENDED.match(text):
            begun.pop(process, None)
        elif text.endswith(UNFINISHED):
            begun[process] = number, text.removesuffix(UNFINISHED)
        elif resumed := RESUMED.fullmatch(text):
            where, first = begun.pop(process)
            yield _call(process, first + resumed[1], where, number)
        elif not text.startswith(("---", "+++")):
            yield _call(process, text, number, number)


def _split(line: str) -> tuple[int, str]:
    found = LINE.fullmatch(line)
    if not found:
        raise Unsupported(f"a line of the trace is none of its own: {line[:200]}")
    return int(found[1]), found[2]


def _call(process: int, text: str, began: int, ended: int) -> Call:
    found = CALL.fullmatch(text)
    if not found:
        raise Unsupported(f"a call cannot be read: {text[:200]}")
    return Call(process, found[1], found[2], found[3], began, ended)


def text_of(argument: str) -> bytes:
    """Bytes of a text of the trace.

    Raises
    ------
    Unsupported
        If it was cut, or is no text.
    """
    if not (argument.startswith('"') and argument.endswith('"')):
        raise Unsupported(f"a text was expected, or all of it: {argument[:80]}")
    return unhexed(argument[1:-1])


def unhexed(text: str) -> bytes:
    """Bytes behind ``\\x68\\x69``."""
    return bytes.fromhex(text.replace("\\x", ""))


def hexed(content: bytes) -> str:
    """As such bytes stand in a trace."""
    return "".join(f"\\x{byte:02x}" for byte in content)
