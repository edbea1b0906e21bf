"""Ending a computation that has had its time, in whichever thread it is and whatever it is at.

No thread can be killed, a signal is heard by Python's main thread alone, and neither is heard in
the middle of a compiled kernel. So what is to be ended computes in a thread of its own, and
whoever wants the result waits: a wait ends after any time, in every thread, and Ctrl-C ends it at
once. The thread is then ended by an exception that CPython raises in it between two bytecodes,
just as Ctrl-C would in the main thread. Engines return to Python often enough for that: their
kernels make some steps a call, and SciPy's solvers call back. A kernel that never returns is left
behind, at the lowest priority there is. A child process could be killed, but to fork beside the
threads of a notebook may hang, to start one anew takes seconds, and what it compiles and caches
would be lost with it; sweeps, which must go on, do fork (:mod:`hdica.sweep.run.apart`).
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
_LEAST_PRIORITY = 19


class Late(BaseException):
    """Raised in a thread whose computation is to end.

    It is no ordinary exception, so that nothing takes it for a failure of its own.
    """


class Beside(Generic[Result]):
    """A computation in a thread of its own, in the context of whoever starts it.

    Parameters
    ----------
    function, arguments
        What to compute.
    """

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
            # may be another's by then; and what was raised too late is taken back.
            with suppress(Late), self._lock:
                if self._told:
                    _raise_in(self._thread, None)
                self._ended.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Whether it has ended after at most some seconds."""
        return self._ended.wait(seconds)

    def processor_time(self) -> float:
        """Seconds of a processor that its thread has used; all that went by where nobody knows."""
        with suppress(OSError):  # it has just ended
            return time.monotonic() if self._clock is None else time.clock_gettime(self._clock)
        return 0.0

    def end(self, seconds: float) -> bool:
        """Raise :class:`Late` in it until it ends; whether it has after some seconds."""
        with _unsaid():
            return self._told_to_end(time.monotonic() + seconds)

    def _told_to_end(self, deadline: float) -> bool:
        while not self._ended.is_set():
            left = deadline - time.monotonic()
            if left <= 0:
                self._leave_behind()
                return False
            with self._lock:
                if not self._ended.is_set():
                    self._told = True
                    _raise_in(self._thread, Late)
            self.wait(min(AGAIN, left))
        return True

    def _leave_behind(self) -> None:
        """Let a thread that cannot be ended have little of what other threads want."""
        with suppress(AttributeError, OSError, TypeError):  # Linux alone does this to a thread
            os.setpriority(os.PRIO_PROCESS, self._thread.native_id or 0, _LEAST_PRIORITY)

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


def _raise_in(thread: threading.Thread, what: type[BaseException] | None) -> None:
    """Let CPython raise an exception in a thread at its next bytecode, or take one back."""
    number = ctypes.c_ulong(thread.ident or 0)
    given = None if what is None else ctypes.py_object(what)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(number, given)
