"""Where the stores of a study lie, which places are for their files alone, and who writes there.

One process at a time plans, publishes or repairs: it has locked the working store, and the lock's
file says who it is. The system drops the lock with the process, however that ends.
"""

from __future__ import annotations

import fcntl
import os
import pwd
import re
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from hdica.errors import HdicaError, path_of, printable
from hdica.store.files import Folder, lockable, make_folder, no_link, opened, try_lock, written

METADATA = "zarr.json"
LOCK, STUDY = ".lock", "study.json"  # of a working store: its lock, and the study of the last run
REFINED = "refined.json"  # of a working store: which cells a refinement has chosen
LONGEST_NAME = 200  # bytes of a store's name: file systems allow 255 for its manifest, too
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
_OWN = re.compile(
    r"\.?(?P<name>.+?)\.(?:(?P<zarr>zarr)(?:\.partial|\.old)?|work|shards|manifest\.json)",
    re.IGNORECASE,
)
"""Names of everything that belongs to a store."""


def results_path(out: str | Path) -> Path:
    """Path of the published store."""
    path = path_of(out, "results", "results/first.zarr")
    name, needed = str(out), ""
    if path.suffix != ".zarr":
        needed = "the name must end in .zarr"
    elif len(os.fsencode(path.name)) > LONGEST_NAME:
        name = f"{path.name[:50]}...zarr"
        needed = f"a name of at most {LONGEST_NAME} bytes, for its manifest has a longer one"
    # Both would be folders of that name in the working directory, which nobody means.
    elif _ADDRESS.match(name):
        needed = "a path of this machine is needed, and no address"
    elif path.parts[0].startswith("~"):
        needed = f"write out which folder {path.parts[0]} is"
    if needed:
        raise HdicaError(f"results {name!r} is not allowed ({needed})")
    return no_link(path)


def work_path(out: str | Path) -> Path:
    """Folder of the working store, beside the published one."""
    return no_link(results_path(out).with_suffix(".work"))


def manifest_path(out: str | Path) -> Path:
    """The manifest of the published store, written last."""
    return no_link(results_path(out).with_suffix(".manifest.json"))


def shard_records(out: str | Path) -> list[Path]:
    """Records that the workflow writes of finished shards, beside the published store."""
    return sorted(no_link(results_path(out).with_suffix(".shards")).glob("[!.]*.json"))


def partial_path(out: str | Path) -> Path:
    """Where a new published store is written before it takes its place."""
    return results_path(out).with_name(f".{Path(out).name}.partial")


def previous_path(out: str | Path) -> Path:
    """Where the published store before the current one stays until the next publication."""
    return results_path(out).with_name(f".{Path(out).name}.old")


def refuse_own(path: str | Path, what: str = "") -> None:
    """Refuse to write something else to a place of a store that exists or may come to exist.

    Such places are both stores with all inside them, the manifest and records of shards. ``what``
    names the setting.
    """
    # Links and .. lead elsewhere, and a name may be that of a store before or after they do.
    ways = dict.fromkeys((os.path.abspath(path), os.path.realpath(path)))
    for way in map(Path, ways):
        for place in (way, *way.parents):
            if _is_own(place, place == way):
                where = f"{what} = {str(path)!r}" if what else str(path)
                raise HdicaError(
                    f"{where} is not allowed ({place} is for the files of a store alone: take "
                    "another name than *.zarr, *.work, *.shards and *.manifest.json)"
                )


def _is_own(place: Path, last: bool) -> bool:
    """Whether a path belongs to a store: its ``last`` part by its name alone, unless a folder."""
    if (match := _OWN.fullmatch(place.name)) is None:
        return False
    if last and (match["zarr"] or not place.is_dir()):
        return True
    if match["zarr"] and _is_store(place):
        return True
    # Some file systems do not distinguish upper and lower case.
    begin = f"{match['name']}.".casefold()
    names = [name for name in names_in(place.parent) if name.casefold().startswith(begin)]
    return any(_is_store(place.with_name(name)) for name in names)


def _is_store(folder: Path) -> bool:
    """Whether a folder is a published or a working store, or an array of somebody else."""
    files = {".zarr": (METADATA, ".zarray", ".zgroup"), ".work": (LOCK, STUDY)}
    return any((folder / name).exists() for name in files.get(folder.suffix.lower(), ()))


def names_in(folder: Path) -> list[str]:
    """Names in a folder; none where it cannot be read."""
    with suppress(OSError):
        return os.listdir(folder)
    return []


def refuse_file(store: Path) -> None:
    """Refuse a file in the place of a store."""
    if store.exists() and not store.is_dir():
        raise HdicaError(f"{store} is a file and no store (a folder, as results/first.zarr)")


def require_store(out: str | Path) -> None:
    """Refuse results of which there is neither a published nor a working store."""
    root = results_path(out)
    refuse_file(root)
    if not root.is_dir() and not work_path(out).is_dir():
        raise HdicaError(f"{root} does not exist (hdica run writes it)")


@contextmanager
def _around(path: Path) -> Iterator[Folder]:
    """The folder of a file that a user has named; links may lead to it."""
    if path.name in ("", ".."):
        raise HdicaError(f"{path} is a folder (give the name of a file)")
    refuse_own(path)
    with written(path), opened(path.parent) as folder:
        yield folder


def check_file(path: Path) -> None:
    """Refuse a place where no file can be written, before the work for its content."""
    with _around(path) as folder:
        folder.check(path.name)
        folder.try_out()


def write_file(path: Path, content: bytes) -> None:
    """Write a file that a user has named, whole or not at all, into a folder that exists."""
    with _around(path) as folder:
        folder.remove_partials()
        folder.write(path.name, content)


LOCK_SECONDS = 900.0  # for another process that plans, publishes or repairs the same store
PATIENCE, QUIET_SECONDS, POLL_SECONDS = 0.5, 10.0, 0.05  # before and between messages; tries
MAX_LETTERS = 200
SOMEBODY = "another process that plans, publishes or repairs it"
RUNNING = ".running"  # file of a working store that every run has locked, together with the others
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


@contextmanager
def locked(out: str | Path) -> Iterator[Path]:
    """Lock the working store for the body, which gets its path.

    A wait is reported on standard error, with the process that has the lock.
    """
    work, user = work_path(out), str(os.geteuid())
    command = _COMMAND.get() or Path(sys.argv[0]).name or "Python"
    with suppress(KeyError):
        user = pwd.getpwuid(os.geteuid()).pw_name
    with _locked_file(work) as file:
        now = f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
        process = f"{command} (pid {os.getpid()} on {socket.gethostname()}, user {user})"
        with suppress(OSError):
            file.truncate(0)
            os.pwrite(file.fileno(), f"{process} since {now}".encode(), 0)
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
        with ExitStack() as opened_files:
            file = opened_files.enter_context(lockable(path))
            wait_for(lambda: try_lock(file), work, LOCK_SECONDS)  # noqa: B023
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), os.lstat(path)):
                    opened_files.pop_all()
                    return file


def _holder(work: Path) -> str:
    """The process that has the lock of a working store, as its file says."""
    text = ""
    with suppress(OSError, ValueError), opened(work, flags=os.O_NOFOLLOW) as folder:
        text = folder.read(LOCK, MAX_LETTERS).decode()
    return printable(" ".join(text.split())) or SOMEBODY


def wait_for(lock: Callable[[], bool], work: Path, seconds: float) -> None:
    """Wait until ``lock()`` succeeds, and report on standard error who has the lock meanwhile."""
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
                # That standard error is closed is no reason to give up.
                with suppress(OSError, ValueError, AttributeError):
                    sys.stderr.write(printable(f"waiting for {work}: locked by {shown}") + "\n")
                    sys.stderr.flush()
        time.sleep(POLL_SECONDS)


@contextmanager
def running(out: str | Path) -> Iterator[bool]:
    """Mark a working store as being computed, for the body; whether no other run is computing it.

    Where a file system has no locks, no run can be sure to be the only one.
    """
    work = work_path(out)
    make_folder(work)
    with lockable(no_link(work / RUNNING)) as mark:
        alone = False
        with suppress(OSError):
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            alone = True
        wait_for(lambda: try_lock(mark, shared=True), work, LOCK_SECONDS)
        yield alone
