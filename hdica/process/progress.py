"""One line on a terminal while a call takes longer than two seconds.

Engines say what they are at with :func:`tell`, which costs next to nothing where nobody listens;
functions that a person calls listen with :func:`shown`. In a sweep, in a test or with standard
error in a file nobody does.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

PATIENCE = 2.0
"""Seconds before the line appears."""
_P = ParamSpec("_P")
_R = TypeVar("_R")


class _Line:
    """The line, from the moment at which it is worth a look."""

    def __init__(self) -> None:
        self.since = time.monotonic()
        self.status: Any = None

    def say(self, text: str) -> None:
        if self.status is None and time.monotonic() - self.since < PATIENCE:
            return
        from rich.markup import escape

        if self.status is None:
            from rich.console import Console

            self.status = Console(stderr=True).status("")
            self.status.start()
        self.status.update(escape(text))

    def end(self) -> None:
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


def shown(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """A function whose longer calls show on a terminal what they are at."""

    @wraps(function)
    def called(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if _LINE.get() is not None or not sys.stderr.isatty():
            return function(*args, **kwargs)
        line = _Line()
        token = _LINE.set(line)
        try:
            return function(*args, **kwargs)
        finally:
            _LINE.reset(token)
            line.end()

    return called
