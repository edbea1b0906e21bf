"""A second look: what is found while a study is being published may be neither old nor new.

The first look takes no lock, so that nobody waits for readers, and it works where nothing can be
written. Only what is found to be wrong while something changes is looked at again, under a lock
that keeps publications out, if one can be had.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from hdica.errors import HdicaError
from hdica.sweep.files.guarded import METADATA
from hdica.sweep.files.locks import taken
from hdica.sweep.files.paths import manifest_path, results_path, work_path
from hdica.sweep.outcome.commit import is_moving
from hdica.sweep.run.working_lock import LOCK

WAIT = 20.0
"""How many seconds after the first look another one may begin."""
TURN, PAUSE = 1.0, 0.002
"""Least time to wait for a publication to end before a further look, and between two tries."""

Found = TypeVar("Found")
State = tuple[tuple[int, ...] | None, ...]


def settled(
    path: str | Path,
    look: Callable[[], Found],
    is_fine: Callable[[Found], bool] = lambda found: True,
) -> Found:
    """What a look finds, once it is no matter of a publication that goes on meanwhile.

    ``look`` reads the store and is called again if need be; what ``is_fine`` is believed at once.
    """
    if Path(path).suffix != ".zarr":
        return look()
    turn, deadline = 0.0, math.inf
    while True:
        began = time.monotonic()
        with _quiet(path, turn) as undisturbed:
            before = _state(path)
            try:
                found = look()
            except (HdicaError, OSError):
                if undisturbed or not _may_have_moved(path, before):
                    raise
            else:
                if is_fine(found) or undisturbed or not _may_have_moved(path, before):
                    return found
        ended = time.monotonic()
        if ended > deadline:
            raise HdicaError(f"{path} is still being published (ask once more when that has ended)")
        # Who looks for long may wait for long, rather than look in vain again.
        turn, deadline = max(TURN, ended - began), min(deadline, ended + WAIT)


def _may_have_moved(path: str | Path, before: State) -> bool:
    """Whether the store has changed since then, or is about to.

    As long as it has its manifest nothing moves: that goes first, and comes last.
    """
    if _state(path) != before:
        return True
    if before[0] is None and is_moving(path):
        with _quiet(path) as undisturbed:
            return not undisturbed
    return False


def _state(path: str | Path) -> State:
    """What is another one as soon as a store was published."""
    root = results_path(path)
    return tuple(map(_about, (manifest_path(path), root, root / METADATA)))


def _about(path: Path) -> tuple[int, ...] | None:
    try:
        found = os.lstat(path)
    except OSError:
        return None
    # Not its time alone: two files may be written within one tick of the clock.
    return (found.st_dev, found.st_ino, found.st_ctime_ns, found.st_mtime_ns, found.st_size)


@contextmanager
def _quiet(path: str | Path, seconds: float | None = None) -> Iterator[bool]:
    """Keep publications out for the body, if none goes on: whether that is so.

    One that goes on is waited for, some seconds; 0 keeps nobody out. Nothing is written: where
    there is no lock nobody has published yet, or can.
    """
    descriptor = None
    if seconds != 0:
        with suppress(OSError):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            descriptor = os.open(work_path(path) / LOCK, flags)
    if descriptor is None:
        yield seconds != 0
        return
    try:
        yield _taken(descriptor, time.monotonic() + (seconds or 0))
    finally:
        os.close(descriptor)


def _taken(descriptor: int, deadline: float) -> bool:
    """Lock a file together with others, until some moment; whether that was possible."""
    while not taken(descriptor, shared=True):
        if time.monotonic() > deadline:
            return False
        time.sleep(PAUSE)
    return True
