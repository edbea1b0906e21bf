"""Runs of one store at the same time: they share its points, and know that they are not alone."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from hdica.sweep.files.disk import make_folder
from hdica.sweep.files.locks import lockable, taken
from hdica.sweep.files.paths import work_path
from hdica.sweep.run import working_lock
from hdica.sweep.run.holder import wait_for

MARK = ".running"
"""File of a working store that each of its runs holds locked, together with the others."""


def _first(mark: BinaryIO) -> bool:
    try:
        fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


@contextmanager
def taking_part(out: str | Path) -> Iterator[bool]:
    """Mark a working store as one that a run is computing; whether no other run is.

    The system drops the mark with the process that holds it, however it ends. Where a file system
    has no locks, nobody knows to be alone. Who is removes what killed runs have left, and what
    workers have left at the end that were killed while the run went on.
    """
    work = work_path(out)
    make_folder(work)
    with lockable(work / MARK, 0o644) as mark:
        alone = _first(mark)
        if alone:
            with working_lock.locked(out):
                sweep_up(work)
        # From here on others may join. Those wait for the first, which holds the store's lock until
        # all is removed, or waits for it.
        wait_for(lambda: taken(mark, shared=True), work, working_lock.LOCK_SECONDS)
        yield alone
        if alone and _first(mark):
            sweep_up(work)


def sweep_up(work: Path) -> int:
    """Remove files that killed writers did not come to rename; returns how many.

    Nothing ever reads them. Nobody else may be writing.
    """
    found = 0
    for folder, _, names in os.walk(work):
        for name in names:
            if name.endswith(".partial"):
                Path(folder, name).unlink(missing_ok=True)
                found += 1
    return found
