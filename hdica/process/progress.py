"""What a call reports while it computes, and when it must end.

Engines report what they do with :func:`tell`, and call :func:`check_deadline` where two reports can
be a second apart. Nothing else ends a computation that has had its time. Functions of the API show
the reports with :func:`shown`: one line on a terminal, once a call has taken two seconds.
"""

from __future__ import annotations

import inspect
import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from hdica.errors import HdicaError, OutOfTime

PATIENCE = 2.0  # seconds before the line appears
REFRESH = 0.1  # seconds between two looks at what was reported last
QUIET = 10.0  # seconds between two lines where there is no terminal
USUAL = 120.0  # seconds that a call may take unless the caller says otherwise
LONGEST = 1e9  # seconds to which a timeout is shortened, so that the clock can be added to it
P = ParamSpec("P")
Result = TypeVar("Result")
Text = str | Callable[[], str]  # a report, or a function that makes it where somebody reads it


class DeadlinePassed(BaseException):
    """The call has had its time: no ordinary exception, so that no engine goes on after it."""


@dataclass
class Call:
    """A call with a deadline, which is a time of the monotonic clock, and its last report."""

    deadline: float
    last: Text = ""


CALL: ContextVar[Call | None] = ContextVar("hdica_call", default=None)
"""The call in whose context this runs, None without a deadline."""


def check_deadline() -> None:
    """Raise :class:`DeadlinePassed` where the call has had its time."""
    call = CALL.get()
    if call is not None and time.monotonic() > call.deadline:
        raise DeadlinePassed


def tell(what: Text) -> None:
    """Report what is being done, and check the deadline."""
    if (call := CALL.get()) is not None:
        call.last = what
        check_deadline()
    if (line := _LINE.get()) is not None:
        line.say(what if isinstance(what, str) else what())


def counted(points: int, seconds: float) -> Callable[[int, float], None]:
    """A function that reports how many of some points are done, how fast, and how long it takes.

    Its arguments are the number of points since the last call, and the ``seconds`` that the cost
    model says of them.
    """
    pace = Pace(points, seconds)

    def done(more: int, planned: float) -> None:
        pace.advance(more, planned)
        tell(lambda: f"{pace.done} of {pace.points} points, {pace.text()}")

    return done


class _Line(threading.Thread):
    """Shows the last report. A thread: the first report of a long call may be its only one."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.text, self.ended = "", threading.Event()
        self.start()

    def say(self, text: str) -> None:
        self.text = text

    def run(self) -> None:
        self.ended.wait(PATIENCE)
        while not (self.text or self.ended.wait(REFRESH)):
            pass
        if self.ended.is_set():
            return
        if not sys.stderr.isatty():
            before = ""
            while True:
                if self.text != before:
                    before = self.text
                    sys.stderr.write(f"hdica: {before}\n")
                if self.ended.wait(QUIET):
                    return
        from rich.console import Console
        from rich.markup import escape

        with Console(stderr=True).status(escape(self.text)) as status:
            while not self.ended.wait(REFRESH):
                status.update(escape(self.text))
            status.update(escape(self.text))


_LINE: ContextVar[_Line | None] = ContextVar("hdica_progress", default=None)


def shown(function: Callable[P, Result]) -> Callable[P, Result]:
    """A function whose longer calls show on a terminal what they do, and what numba compiles.

    With the keyword ``progress`` they do everywhere or nowhere.
    """

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> Result:
        with _reporting(kwargs.get("progress")):
            return function(*args, **kwargs)

    return called


@contextmanager
def _reporting(wanted: object) -> Iterator[None]:
    """Show the reports of the body, None for terminals alone, or those of a call around it."""
    if wanted is not None and not isinstance(wanted, bool):
        raise HdicaError(
            f"progress = {wanted!r} is not allowed (True, False, or None for terminals alone)"
        )
    if wanted is not False and (_LINE.get() is not None or not (wanted or sys.stderr.isatty())):
        yield
        return
    line = None if wanted is False else _Line()
    token = _LINE.set(line)
    try:
        if line is None:
            yield
        else:
            with compilations(lambda name: line.say(f"compiling {name}, once on this machine")):
                yield
    finally:
        _LINE.reset(token)
        if line is not None:
            line.ended.set()
            line.join()


@contextmanager
def compilations(begun: Callable[[str], None]) -> Iterator[None]:
    """Call ``begun`` with the name of every function that numba begins to compile in the body."""
    from numba.core import event

    class Listener(event.Listener):
        def on_start(self, event: event.Event) -> None:
            begun(event.data["dispatcher"].py_func.__name__)

        def on_end(self, event: Any) -> None:
            """Report nothing: whatever comes next is reported."""

    listener = Listener()
    event.register("numba:compile", listener)
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)


def span(seconds: float) -> str:
    """A time to wait, for a person: ``8 s``, ``12 min``, ``3.2 h``."""
    if seconds < 120:
        return f"{max(1.0, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


class Pace:
    """Points of which the cost model foretells the time, corrected by what they have taken.

    The model says ``seconds`` of all of them, which so many ``workers`` share, and counts alone
    until a first part is done. That part may have had to compile code: later it does not count.
    """

    def __init__(self, points: int, seconds: float, workers: int = 1) -> None:
        self.points, self.workers = points, workers
        self.seconds = max(seconds / workers, 1e-9)
        self.done, self._modelled = 0, 0.0
        self.started = time.monotonic()
        self._first: tuple[float, int, float] | None = None  # when the first part was done, of what

    def advance(self, points: int, seconds: float) -> None:
        """Report that more points are done, for which the cost model has ``seconds``."""
        self.done += points
        self._modelled += seconds / self.workers
        if self._first is None:
            self._first = time.monotonic(), self.done, self._modelled

    def _since(self) -> tuple[float, int, float]:
        """Seconds, points and modelled seconds that tell the pace."""
        now = time.monotonic()
        if self._first is None:
            return now - self.started, 0, 0.0
        when, points, modelled = self._first
        if self.done > points:
            return now - when, self.done - points, self._modelled - modelled
        return now - self.started, self.done, self._modelled

    @property
    def rate(self) -> float:
        """Points a second; 0 if none is done."""
        took, points, _ = self._since()
        return points / took if took > 0 else 0.0

    @property
    def left(self) -> float:
        """Seconds that it still takes."""
        took, _, modelled = self._since()
        to_do = max(0.0, self.seconds - self._modelled)
        if modelled <= 0:
            return max(0.0, to_do - took)
        return to_do * took / modelled

    def text(self) -> str:
        """Rate and time left, in words."""
        left = f"about {span(self.left)} left"
        return f"{self.rate:.3g} points/s, {left}" if self.rate else left


def check_timeout(seconds: object) -> float | None:
    """A time limit as it is used; HdicaError if it is not allowed."""
    if seconds is None:
        return None
    number = seconds if isinstance(seconds, int | float) and seconds is not True else 0
    if 0 < number < math.inf:
        return float(min(number, LONGEST))
    raise HdicaError(f"timeout = {seconds!r} is not allowed (seconds > 0, or None for no limit)")


def within(seconds: float | None, what: str, compute: Callable[[], Result]) -> Result:
    """Result of ``compute``, which may take some seconds, or any time if they are None.

    ``what`` is for the sentence of :class:`~hdica.errors.OutOfTime`; inside another call the
    deadline is that of the outer one.
    """
    seconds = check_timeout(seconds)
    if seconds is None or CALL.get() is not None:
        return compute()
    call = Call(time.monotonic() + seconds)
    token = CALL.set(call)
    try:
        return compute()
    except DeadlinePassed:
        last = call.last if isinstance(call.last, str) else call.last()
    finally:
        CALL.reset(token)
    usual = " (the default)" if seconds == USUAL else ""
    raise OutOfTime(
        f"{what} took longer than timeout = {seconds:g} s{usual}{f', at {last}' if last else ''}: "
        "give a larger timeout, or None for no limit, or parameters that are less extreme"
    )


def named(function: str, system: object) -> str:
    """A call, for a person: what is computed of which system."""
    dump: Callable[..., Mapping[str, object]] = getattr(system, "model_dump", lambda **_: {})
    changed = sorted(dump(exclude_defaults=True))
    fields = ", ".join(f"{name}={getattr(system, name)!r}" for name in changed)
    text = f"{type(system).__name__}({fields})" if changed else repr(system)
    return f"hdica.{function} of {text if len(text) <= 200 else text[:197] + '...'}"


def limited(function: Callable[P, Result]) -> Callable[P, Result]:
    """A function of a system that takes no longer than its keyword ``timeout`` says."""
    usual = inspect.signature(function).parameters["timeout"].default

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> Result:
        seconds: Any = kwargs.get("timeout", usual)
        what = named(function.__name__, args[0] if args else kwargs.get("system"))
        return within(seconds, what, lambda: function(*args, **kwargs))

    return called
