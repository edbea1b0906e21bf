"""The lock of a working store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from hdica.sweep.files.disk import make_folder
from hdica.sweep.files.paths import LOCK, no_link, work_path
from hdica.sweep.run.holder import noted, wait_for

LOCK_SECONDS = 900.0
"""Longest wait for another process that plans, publishes or repairs the same store."""


@contextmanager
def locked(out: str | Path) -> Iterator[Path]:
    """Hold the working store's lock: one process plans, publishes or repairs at a time.

    Waiting for it is told on standard error, with who holds it.
    """
    work = work_path(out)
    make_folder(work)
    # The system drops the lock with the process that holds it, however it ends.
    lock = FileLock(no_link(work / LOCK))

    def taken() -> bool:
        with suppress(Timeout):
            lock.acquire(timeout=0)
        return lock.is_locked

    wait_for(taken, work, LOCK_SECONDS)
    try:
        with noted(work):
            yield work
    finally:
        lock.release()
