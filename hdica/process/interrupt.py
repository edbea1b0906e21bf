"""Ending a computation that has had its time, in whichever thread it is and whatever it is at.

No thread can be killed, a signal is heard by Python's main thread alone, and neither is heard in
the middle of a compiled kernel. So what is to be ended computes in a thread of its own, and
whoever wants the result waits: a wait ends after any time, in every thread, and Ctrl-C ends it at
once. The thread is then ended by an exception that CPython raises in it between two bytecodes,
just as Ctrl-C would in the main thread. Engines return to Python often enough for that: their
kernels make some steps a call, and SciPy's solvers call back. It is raised nowhere inside an import
or a compilation, nor in other code that holds locks of the whole process: whoever came to such a
lock after that would wait for ever. A kernel that never returns is left behind, at the lowest
priority there is. A child process could be killed, but to fork beside the threads of a notebook may
hang, to start one anew takes seconds, and what it compiles and caches would be lost with it;
sweeps, which must go on, do fork (:mod:`hdica.sweep.run.apart`).
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from typing import Any, Generic, TypeVar

Result = TypeVar("Result")
AGAIN = 0.5
"""Seconds after which a thread that goes on is told again: code may have swallowed the first."""
SOON = 0.005
"""Seconds after which to look again whether a thread may be told."""
GUARDED = frozenset(
    {"importlib", "llvmlite", "logging", "numba", "threading", "warnings", "weakref"}
)
"""Packages whose Python code holds locks, or changes what the whole process has one of."""
_LEAST_PRIORITY = 19
_UNDISTURBED = 0.2
"""Seconds that a look at another thread has before Python would let that thread go on."""
_ONE_LOOK = threading.Lock()


class Late(BaseException):
    """Raised in a thread whose computation is to end.

    It is no ordinary exception, so that nothing takes it for a failure of its own.
    """


class Beside(Generic[Result]):
    """A computation in a thread of its own, in the context of whoever starts it."""

    def __init__(self, function: Callable[..., Result], *arguments: Any) -> None:
        self._function, self._arguments = function, arguments
        self._ended, self._lock, self._told = threading.Event(), threading.Lock(), False
        self._clock: int | None = None
        self._value: Any = None
        self._raised: BaseException | None = Late()
        context = copy_context()
        self._thread = threading.Thread(target=context.run, args=(self._compute,), daemon=True)
        self._thread.start()

    def _compute(self) -> None:
        with suppress(AttributeError, OSError):  # not on every system
            self._clock = time.pthread_getcpuclockid(threading.get_ident())
        with suppress(Late):
            try:
                self._value = self._function(*self._arguments)
                self._raised = None
            except BaseException as exc:
                self._raised = exc
        while not self._ended.is_set():
            # Under the lock, so that nothing is raised in a thread that has ended, whose number
            # may be another's by then. What comes too late is raised here: taken back, it would
            # leave CPython's note that some exception is due, with which 3.11 never returns from
            # a function that is profiled or traced.
            with suppress(Late), self._lock:
                if self._told:
                    self._told = False
                    _raise_in(self._thread, Late)
                self._ended.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Whether it has ended after at most some seconds."""
        return self._ended.wait(seconds)

    def processor_time(self) -> float:
        """Seconds of a processor that its thread has used; all that went by where nobody knows."""
        with suppress(OSError):  # it has just ended
            return time.monotonic() if self._clock is None else time.clock_gettime(self._clock)
        return 0.0

    def end(self, seconds: float, guarded: float = 0.0) -> bool:
        """Raise :class:`Late` in it until it ends; whether it has after some seconds.

        If it goes on, it is told again and again for as long as it does. It has longer, by
        ``guarded`` seconds, where nothing may be raised in it, as while it compiles.
        """
        with _unsaid():
            ended = self._told_to_end(time.monotonic() + seconds, guarded)
        if not ended:
            threading.Thread(target=self._leave_behind, daemon=True).start()
        return ended

    def _told_to_end(self, deadline: float, guarded: float) -> bool:
        while not self._ended.is_set():
            told = self._tell()
            left = deadline - time.monotonic() + (0.0 if told else guarded)
            if left <= 0:
                return False
            self.wait(min(AGAIN if told else SOON, left))
        return True

    def _tell(self) -> bool:
        """Raise :class:`Late` in it, if it may be raised where it is now; whether it was."""
        with self._lock:
            if self._ended.is_set():
                return True
            with _undisturbed():
                if _guarded(self._thread):
                    return False
                self._told = True
                _raise_in(self._thread, Late)
                return True

    def _leave_behind(self) -> None:
        """Let a thread that goes on have little of what others want, and tell it to the end."""
        while not self._ended.is_set():
            if self._tell():  # nobody must wait for a lock that is held at the lowest priority
                with suppress(AttributeError, OSError, TypeError):  # Linux alone does this
                    os.setpriority(os.PRIO_PROCESS, self._thread.native_id or 0, _LEAST_PRIORITY)
            self.wait(AGAIN)

    @property
    def raised(self) -> BaseException | None:
        """What it ended with, None if it has a result; :class:`Late` if it had to be ended."""
        return self._raised

    def result(self) -> Result:
        """What it has computed; raises what it has raised."""
        if self._raised is not None:
            raise self._raised
        value: Result = self._value
        return value


@contextmanager
def _unsaid() -> Iterator[None]:
    """Say nothing of :class:`Late` where Python itself drops it, as in the end of an object."""
    before = sys.unraisablehook

    def hook(unraisable: Any) -> None:
        if unraisable.exc_type is not Late:
            before(unraisable)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        if sys.unraisablehook is hook:
            sys.unraisablehook = before


def _raise_in(thread: threading.Thread, what: type[BaseException]) -> None:
    """Let CPython raise an exception in a thread at its next bytecode."""
    number = ctypes.c_ulong(thread.ident or 0)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(number, ctypes.py_object(what))


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Look at another thread while it stands still.

    Python lets one thread run at a time. One that has just begun to runs undisturbed until another
    has waited for the switch interval, which is longer here than any look takes.
    """
    with _ONE_LOOK:
        before = sys.getswitchinterval()
        sys.setswitchinterval(_UNDISTURBED)
        try:
            time.sleep(SOON / 5)  # whoever waits for its turn has it now
            yield
        finally:
            sys.setswitchinterval(before)


def _guarded(thread: threading.Thread) -> bool:
    """Whether a thread is at something that must not be cut short."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None and frame.f_code is not Beside._compute.__code__:
        if str(frame.f_globals.get("__name__")).partition(".")[0] in GUARDED:
            return True
        frame = frame.f_back
    return False
