"""Compute blocks in a fork of this process, which may be killed, or may kill itself.

It is used where a point must not end more than itself: by a run that has its process to itself,
and by any process once a kernel in it did not return, or once a block has ended its workers.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import warnings
from contextlib import suppress
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, NoReturn

from hdica.errors import HdicaError, Incomplete
from hdica.sweep.files import store
from hdica.sweep.run.block import Again, BlockSummary, begin_block
from hdica.sweep.run.pulse import NOWHERE, SIZE, TOGETHER, place_in
from hdica.sweep.run.signals import HEEDED
from hdica.sweep.run.watch import ALARMS, attempt, forget, left_behind
from hdica.sweep.workers.care import Care, over_budget

OWN_FAULTS = frozenset(
    getattr(signal, name)
    for name in ("SIGSEGV", "SIGFPE", "SIGABRT", "SIGTRAP", "SIGSYS")
    if hasattr(signal, name)
)
"""Signals by which a process ends for what it does itself; others come from outside.

SIGBUS says that a disk or a memory failed below a file, SIGILL that a processor lacks what some
library or cache was compiled for: elsewhere the point has its result.
"""
_PR_SET_PDEATHSIG = 1


class Companion:
    """A fork of this process that computes one block after the other.

    It ends with the thread that has started it. A new one is forked where it has ended.
    """

    def __init__(self) -> None:
        self._shared = memoryview(mmap.mmap(-1, SIZE))
        self._child: tuple[int, Any] | None = None

    def compute(self, path: Path, block: int, care: Care) -> BlockSummary:
        """Compute a block there."""
        _, pipe = self._child = self._child or _forked(self._shared)
        try:
            pipe.send((path, block, care))
            summary, raised, spent = pipe.recv()
        except (EOFError, OSError):
            raise _buried(path, block, care, place_in(self._shared), self._end()) from None
        if spent:
            self.close()
        if raised is not None:
            raise raised
        found: BlockSummary = summary
        return found

    def close(self) -> None:
        """End it."""
        if self._child is not None:
            with suppress(ProcessLookupError):
                os.kill(self._child[0], signal.SIGKILL)
            self._end()

    def _end(self) -> int:
        """Wait for its end; its status as :func:`os.waitstatus_to_exitcode` says it."""
        assert self._child is not None
        (pid, pipe), self._child = self._child, None
        pipe.close()
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def _forked(shared: memoryview) -> tuple[int, Any]:
    """A process like this one that waits for blocks, and the pipe to it."""
    (ours, theirs), parent = Pipe(), os.getpid()
    with warnings.catch_warnings():
        # Of the other threads, whose locks the child does not need.
        warnings.simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid == 0:
        ours.close()
        _serve(parent, theirs, shared)
    theirs.close()
    return pid, ours


def _serve(parent: int, pipe: Any, shared: memoryview) -> NoReturn:
    """What the fork does until its parent has no more for it, or ends."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in HEEDED:
            signal.signal(number, signal.SIG_IGN)  # the parent decides
        for number in ALARMS:
            signal.signal(number, signal.SIG_DFL)
        forget()
        while os.getppid() == parent:
            pipe.send(_answer(shared, *pipe.recv()))
    except (EOFError, OSError):
        os._exit(0)
    finally:
        os._exit(1)


def _answer(
    shared: memoryview, path: Path, block: int, care: Care
) -> tuple[BlockSummary | None, Exception | None, bool]:
    """What became of a block, and whether this process is not to be used any more."""
    try:
        return attempt(path, block, care, shared, killable=True), None, False
    except HdicaError as exc:
        return None, exc, left_behind()
    except BaseException as exc:
        text = " ".join(f"{type(exc).__name__}: {exc}".split())
        return None, HdicaError(text), left_behind()


def _how(status: int) -> str:
    """How a process has ended, in a few words."""
    return f"exit status {status}" if status >= 0 else signal.Signals(-status).name


def _buried(path: Path, block: int, care: Care, place: int, status: int) -> HdicaError:
    """Store what is known of the point that has ended a process; what is to be raised then."""
    label = f"block {block} of {path.name}"
    if place == NOWHERE:
        return Incomplete(f"the process that computed {label} has ended ({_how(status)})")
    if place == TOGETHER:
        return Again(f"{label}: its points together have ended a process", singly=True)
    begun = begin_block(path, block)
    if begun.data.status[place] != store.PENDING:
        return Again(f"{label}: its process has ended ({_how(status)})")
    if -status == signal.SIGALRM and place not in care.alarmed:
        # By the clock: a job that is suspended for an hour, or a machine that swaps, has used none
        # of the point's processor time. A kernel that waits for ever meets the alarm once more.
        return Again(f"{label}: a point is begun again, its process rested", alarmed=(place,))
    if -status in ALARMS:
        planned = begun.work.seconds((place,))
        reason = over_budget(care.limit(planned), planned)
    else:
        reason = f"it has ended the process that computed it ({_how(status)})"
    if status < 0 and -status not in OWN_FAULTS and -status not in ALARMS:
        # Killed, perhaps for want of memory, or ended by its machine: elsewhere it has its result.
        return Again(f"{label}: a point is left out, {reason}", without=((place, reason),))
    begun.data.fail(place, reason)
    begun.data.cpu_seconds[place] = 0.0
    return Again(f"{label}: a point failed, {reason}", begun.commit())
