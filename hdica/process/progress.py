"""One line on a terminal while a call takes longer than two seconds.

Engines say what they are at with :func:`tell`, which costs next to nothing where nobody listens;
functions that a person calls listen with :func:`shown`. In a sweep, in a test or with standard
error in a file nobody does, unless the caller asks for it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from hdica.errors import HdicaError
from hdica.process.compiled import heard
from hdica.process.pace import Pace

PATIENCE = 2.0
"""Seconds before the line appears."""
QUIET = 10.0
"""Seconds between two lines where there is no terminal."""
_P = ParamSpec("_P")
_R = TypeVar("_R")


class _Line:
    """The line, from the moment at which it is worth a look; where no terminal is, several."""

    def __init__(self) -> None:
        self.text, self.ended, self.last = "", False, 0.0
        self.status: Any = None
        self.plain = not sys.stderr.isatty()
        self.lock = threading.Lock()
        # What was told last may be all that is told.
        self.timer = threading.Timer(PATIENCE, self._appear)
        self.timer.daemon = True
        self.timer.start()

    def say(self, text: str) -> None:
        with self.lock:
            self.text = text
            if self.last:
                self._show()

    def _appear(self) -> None:
        with self.lock:
            self.last = -QUIET
            if self.text and not self.ended:
                self._show()

    def _show(self) -> None:
        now = time.monotonic()
        if self.plain:
            if now - self.last >= QUIET:
                self.last = now
                sys.stderr.write(f"hdica: {self.text}\n")
            return
        from rich.markup import escape

        if self.status is None:
            from rich.console import Console

            self.status = Console(stderr=True).status("")
            self.status.start()
        self.status.update(escape(self.text))

    def end(self) -> None:
        self.timer.cancel()
        with self.lock:
            self.ended = True
            if self.status is not None:
                self.status.stop()


_LINE: ContextVar[_Line | None] = ContextVar("hdica_progress", default=None)
_LAST: ContextVar[list[str | Callable[[], str]] | None] = ContextVar("hdica_last", default=None)


def tell(what: str | Callable[[], str]) -> None:
    """Say what is being done, if somebody listens; what gives the sentence is called only then."""
    last = _LAST.get()
    if last is not None:
        last[:] = [what]
    line = _LINE.get()
    if line is not None:
        line.say(what if isinstance(what, str) else what())


@contextmanager
def remembered() -> Iterator[Callable[[], str]]:
    """Remember what is told in the body; what was told last, empty if nothing was."""
    last: list[str | Callable[[], str]] = []
    token = _LAST.set(last)

    def said() -> str:
        return "".join(what if isinstance(what, str) else what() for what in last)

    try:
        yield said
    finally:
        _LAST.reset(token)


@contextmanager
def counted(points: int, seconds: float) -> Iterator[Callable[[int, float], None]]:
    """Tell how many of some points are done, how fast, and how long the others take.

    The body calls what it is given with the number of points that have been done, and the seconds
    that the cost model said of them; of all of them it says ``seconds``.
    """
    pace = Pace(points, seconds)

    def done(more: int, planned: float) -> None:
        pace.advance(more, planned)
        tell(lambda: f"{pace.done} of {pace.points} points, {pace.said()}")

    yield done


def check_progress(wanted: Any) -> bool | None:
    """Whether to show progress, or a sentence why this does not say so."""
    if wanted is None or isinstance(wanted, bool):
        return wanted
    raise HdicaError(
        f"progress = {wanted!r} is not allowed (True, False, or None for terminals alone)"
    )


def shown(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function whose longer calls show what they are at, and that numba compiles.

    They do on a terminal; with the keyword ``progress`` everywhere or nowhere.
    """

    @wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        wanted = check_progress(kwargs.get("progress"))
        if wanted is False:
            with _silent():
                return function(*args, **kwargs)
        if _LINE.get() is not None or not (wanted or sys.stderr.isatty()):
            return function(*args, **kwargs)
        line = _Line()
        token = _LINE.set(line)
        try:
            with heard(lambda name: line.say(f"compiling {name}, once on this machine")):
                return function(*args, **kwargs)
        finally:
            _LINE.reset(token)
            line.end()

    return called


@contextmanager
def _silent() -> Iterator[None]:
    """Nobody listens in the body."""
    token = _LINE.set(None)
    try:
        yield
    finally:
        _LINE.reset(token)
