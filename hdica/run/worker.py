"""A process that computes blocks, and that can be ended whatever a point is doing.

A block has a limit, from the budget of its points: of processor time, so that a busy machine or a
job that its cluster suspends fails no point, and of time in which the process does nothing. At the
limit the process is ended and the block goes again point by point, each within a limit of its own.
So a point that exceeds its budget, or that ends its process by itself, fails alone.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe as pipe_ends
from multiprocessing.connection import Connection
from typing import Any, NoReturn, TypeAlias, TypeVar

import psutil

from hdica.errors import HdicaError, Incomplete, OutOfMemory
from hdica.process.progress import compilations
from hdica.run.block import Block, Results, commit, compute, compute_and_commit, failure
from hdica.run.console import HEEDED, unbroken
from hdica.run.processes import FORKS
from hdica.run.settings import BUDGET
from hdica.status import of_machine
from hdica.store.files import in_words

Result = TypeVar("Result")
Pipe: TypeAlias = "Connection[Any, Any]"  # an end of one
FACTOR, BLOCK_FACTOR = 100.0, 10.0
"""How many times longer than the plan says a point, and a block, may take where that is more: the
cost models do not know that a user's formulas may cost a hundred times a polynomial."""
LOADING, COMPILING = 5.0, 60.0  # more seconds for a new process, and for one that compiles
POLL_SECONDS, LOOKS = 1.0, 10  # longest between two looks, and looks before a limit
IDLE_SHARE = 0.01  # share of a processor below which a process does nothing
STOPPED = (psutil.STATUS_STOPPED, psutil.STATUS_TRACING_STOP)
ENDED = ("", psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
FAULTS = frozenset(
    getattr(signal, name)
    for name in ("SIGSEGV", "SIGFPE", "SIGABRT", "SIGTRAP", "SIGSYS")
    if hasattr(signal, name)
)
"""Signals that end a process for what it does itself. SIGBUS (a disk failed below a file) and
SIGILL (a processor lacks an instruction) come from outside: elsewhere the point has its result."""
_PR_SET_PDEATHSIG = 1
HELPLESS = 97  # exit status of a process that could not serve its parent
UNKNOWN = 2**31  # status of a process for which somebody else has waited


@dataclass(frozen=True)
class Care:
    """Limits of whatever is computed."""

    budget: float = BUDGET  # seconds of a processor that any point may take, or do nothing
    memory: int = 0  # bytes that a process may take; 0 for no limit


class Ended(Exception):
    """A process has ended, or was ended, before it had a result; the message says how.

    It is the point's ``own`` fault or that of its machine; ``late`` is one beyond its limit, and
    ``short`` one that lacked memory.
    """

    def __init__(self, message: str, own: bool, late: bool = False, short: bool = False) -> None:
        super().__init__(message)
        self.own, self.late, self.short = own, late, short


class Worker:
    """A fork of this process that computes one block after the other; the next call renews it."""

    def __init__(self) -> None:
        self._child: tuple[int, Pipe] | None = None
        self._fresh = True

    def call(
        self, function: Callable[[Block], Result], block: Block, limit: float, memory: int = 0
    ) -> Result:
        """Result of a function of a block, computed in the process.

        It may take ``limit`` seconds of a processor, or do nothing for as long, and ``memory``
        bytes, 0 for no limit; :class:`Ended` if the process ends, or exceeds one of these.
        """
        self._fresh = self._child is None
        pid, pipe = self._child or self._fork()
        try:
            pipe.send((function, block))
            kind, value = self._answer(pid, pipe, limit + LOADING * self._fresh, memory)
        except (EOFError, ConnectionError):
            raise self._ended() from None
        except BaseException:  # a limit, or a signal: nobody wants the result any more
            self.close()
            raise
        if kind == "error":
            raise value
        if kind == "raised":
            raise Ended(value[0], own=value[1])
        return value

    def _fork(self) -> tuple[int, Pipe]:
        """Start the process: one like this that waits for blocks, at the other end of a pipe."""
        parent = os.getpid()
        # Callbacks of a fork would swallow what a signal raises, and nobody would know the process.
        with unbroken(), warnings.catch_warnings():
            # Of the other threads, whose locks the child does not need.
            warnings.simplefilter("ignore", DeprecationWarning)
            pipes: tuple[Pipe, ...] = ()
            try:
                ours, theirs = pipes = pipe_ends()
                pid = os.fork()
            except OSError as exc:  # no more processes, files or memory
                for pipe in pipes:
                    pipe.close()
                raise Ended(f"none could be started: {in_words(exc)}", own=False) from exc
            if pid == 0:
                _serve(parent, theirs)
            theirs.close()
            self._child = pid, ours
        return pid, ours

    def _answer(self, pid: int, pipe: Pipe, limit: float, memory: int) -> tuple[str, Any]:
        """What the process answers, within its limits."""
        every = min(POLL_SECONDS, limit / LOOKS)
        begun = before = _used(pid)[0]
        idle, more = 0.0, COMPILING
        while True:
            if pipe.poll(every):
                kind, value = pipe.recv()
                if kind != "compiling":
                    return kind, value
                limit, more = limit + more, 0.0
            now, state = _used(pid)
            # By looks, not by the clock: a job that was suspended for an hour has not been idle.
            quiet = now - before < IDLE_SHARE * every and state not in STOPPED
            idle, before = idle + every if quiet else 0.0, now
            if max(now - begun, idle) > limit:
                raise Ended(f"{limit:.6g} s were not enough", own=True, late=True)
            if memory and (bytes_used := _own_memory(pid)) > memory:
                used = f"{bytes_used / 2**20:.0f} MiB were in use"
                raise Ended(f"beyond its memory ({used})", own=False, short=True)

    def close(self) -> None:
        """End the process."""
        if self._child is not None:
            with suppress(ProcessLookupError):
                os.kill(self._child[0], signal.SIGKILL)
            self._wait()

    def _ended(self) -> Ended:
        """How the process ended that has closed its pipe; one that goes on without it is killed."""
        assert self._child is not None
        until = time.monotonic() + LOADING
        while _used(self._child[0])[1] not in ENDED:
            if time.monotonic() > until:
                self.close()
                return Ended("it let go of the process that waits for it", own=True)
            time.sleep(0.01)
        status = self._wait()
        if status == HELPLESS:
            text = "its process could not begin: too few files or too little memory"
            return Ended(text, own=False)
        if status == UNKNOWN:
            return Ended("nobody knows how", own=False)
        if status >= 0:
            return Ended(f"exit status {status}", own=True)
        # SIGKILL is how Linux ends a process when the memory of its machine, or job, is used up.
        short = -status == signal.SIGKILL
        return Ended(signal.Signals(-status).name, own=-status in FAULTS, short=short)

    def _wait(self) -> int:
        """Wait for the end of the process; its status, negative for a signal."""
        assert self._child is not None
        (pid, pipe), self._child = self._child, None
        pipe.close()
        try:
            return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        except ChildProcessError:  # the caller ignores its children, or has waited for it
            return UNKNOWN


class InPlace(Worker):
    """Computes in this process and without limits: under a debugger, or where nothing forks."""

    def call(
        self, function: Callable[[Block], Result], block: Block, limit: float, memory: int = 0
    ) -> Result:
        """Result of a function of a block."""
        return function(block)


def _used(pid: int) -> tuple[float, str]:
    """Seconds of a processor that a process has used, and its state; none if nothing is left."""
    with suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        times = process.cpu_times()
        return times.user + times.system, str(process.status())
    return 0.0, ""


def _own_memory(pid: int) -> int:
    """Bytes that a process shares with no other: what it has of its parent does not count."""
    with suppress(psutil.NoSuchProcess):
        return int(psutil.Process(pid).memory_full_info().uss)
    return 0


def _serve(parent: int, pipe: Pipe) -> NoReturn:
    """What the fork does until its parent has no more for it, or ends."""
    try:
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        for number in HEEDED:
            signal.signal(number, signal.SIG_IGN)  # the parent decides
        # What the parent has open is let go of: a connection ends for its peer when all copies do.
        # The numbers stay in use, since objects of the parent may yet close them.
        null = os.open(os.devnull, os.O_RDWR)
        for name in os.listdir("/proc/self/fd"):
            if int(name) > 2 and int(name) not in (pipe.fileno(), null):
                with suppress(OSError):
                    os.dup2(null, int(name))
        with suppress(EOFError), compilations(lambda name: pipe.send(("compiling", name))):
            while os.getppid() == parent:
                pipe.send(_result(*pipe.recv()))
        os._exit(0)
    finally:  # too few files or too little memory to begin with
        os._exit(HELPLESS)


def _result(function: Callable[[Block], object], block: Block) -> tuple[str, Any]:
    try:
        return "result", function(block)
    except HdicaError as exc:
        return "error", exc
    except BaseException as exc:  # also SystemExit, or one whose text cannot be read
        return "raised", (failure(exc), not of_machine(exc))


def run_block(
    block: Block, care: Care, worker: Worker, note: Callable[[str], None] = lambda text: None
) -> None:
    """Compute and commit a block; where it has ended its process, point by point.

    ``Incomplete`` means that points stay pending; the others are committed.
    """
    hindrance: Incomplete | None = None
    if block.size > 1:
        limit = max(care.budget, BLOCK_FACTOR * block.seconds)
        try:
            worker.call(compute_and_commit, block, limit, care.memory)
            return
        except Ended as why:
            note(f"a block of {block.label} is computed point by point ({why})")
    for place in range(block.size):
        point = block.point(place)
        limit, results = max(care.budget, FACTOR * point.seconds), Results.empty(point)
        try:
            results = worker.call(compute, point, limit, care.memory)
        except Ended as why:
            text = f"it has ended the process that computed it ({why})"
            if why.late:
                text = (
                    f"over its budget: {limit:.6g} s of processor time were not enough, and the "
                    f"plan says {point.seconds:.2g} s (take this value out, or raise "
                    "cluster.budget and --retry-failed)"
                )
            if why.own:
                results.fail(0, text)
            else:
                results.leave(0, (OutOfMemory if why.short else Incomplete)(text))
        hindrance, results.hindrance = results.hindrance or hindrance, None
        # At once: a run that is ended before the block is does not wait for it again.
        commit(point, results)
    if hindrance is not None:
        raise hindrance


_OF_THREAD = threading.local()


def run_on_worker(block: Block, care: Care) -> None:
    """Compute and commit a block in a process of the calling thread of a Dask worker."""
    if not hasattr(_OF_THREAD, "worker"):
        _OF_THREAD.worker = new_worker()
    run_block(block, care, _OF_THREAD.worker)


def new_worker() -> Worker:
    """A worker of this process; a debugger wants the blocks in the process that it looks at."""
    return Worker() if FORKS and sys.gettrace() is None else InPlace()
