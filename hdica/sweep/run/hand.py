"""What a process does with a block that it is handed: in a thread, or in a process of its own."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from hdica.errors import Incomplete
from hdica.sweep.run.apart import Companion
from hdica.sweep.run.block import BlockSummary
from hdica.sweep.run.watch import ALARMS, attempt, left_behind
from hdica.sweep.workers.care import Care
from hdica.sweep.workers.local import FORKS

_OWN = threading.local()
Compute = Callable[[Path, int, Care], BlockSummary]


def compute(path: Path, block: int, care: Care) -> BlockSummary:
    """Compute a block beside this thread, or apart from this process where that is safer."""
    if not (care.apart or left_behind()):
        return attempt(path, block, care, killable=_killable())
    if not FORKS:
        raise Incomplete("a kernel did not return, and only on Linux is there a way around it")
    # One a thread of a worker, and for its life: it ends with the thread.
    if not hasattr(_OWN, "companion"):
        _OWN.companion = Companion()
    found: BlockSummary = _OWN.companion.compute(path, block, care)
    return found


def _killable() -> bool:
    """Whether this process is a Dask worker that its nanny would start anew."""
    dask = sys.modules.get("distributed")
    if dask is None or any(signal.getsignal(one) != signal.SIG_DFL for one in ALARMS):
        return False
    with suppress(ValueError):  # no worker at all
        return dask.get_worker().nanny is not None
    return False


@contextmanager
def in_place(own: bool) -> Iterator[Compute]:
    """What computes blocks where the driver of a run is.

    If the process is its ``own`` and has nothing else to do, a fork of it computes, which may be
    killed whatever a point is at; otherwise a thread, so that what is compiled is there for the
    next run.
    """
    # Whoever looks on with a debugger wants the blocks here.
    if own and FORKS and sys.gettrace() is None:
        with closing(Companion()) as other:
            yield other.compute
        return
    try:
        yield compute
    finally:
        made: Companion | None = getattr(_OWN, "companion", None)
        if made is not None:
            made.close()
