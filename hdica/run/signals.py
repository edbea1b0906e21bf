"""How a run hears that it is to stop: SIGTERM from a scheduler of jobs, SIGINT from a keyboard."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, TypeVar

from hdica.errors import Stopped

HEEDED: dict[signal.Signals, Any] = {
    signal.SIGTERM: signal.SIG_DFL,
    signal.SIGINT: signal.default_int_handler,
}
"""Signals that end a run, and how they are handled where nobody else handles them."""

Result = TypeVar("Result")


class _Unbroken:
    """The main thread's section that a signal does not break, and the signal that waits for it."""

    depth = 0
    waiting: Stopped | None = None


@contextmanager
def heeding() -> Iterator[list[Stopped]]:
    """Raise :class:`~hdica.errors.Stopped` in the body when a signal says to stop, once.

    Later signals are ignored until the body has ended: it is ending already. Only the main thread
    can do this, and only for signals that nobody else handles; otherwise nothing is changed. The
    list is empty, or has what was raised.
    """
    stops: list[Stopped] = []
    if threading.current_thread() is not threading.main_thread():
        yield stops
        return
    ours = [number for number, usual in HEEDED.items() if signal.getsignal(number) == usual]

    def stop(number: int, frame: object) -> None:
        if not stops:
            stops.append(Stopped(number))
            if _Unbroken.depth:
                _Unbroken.waiting = stops[0]
                return
        elif _Unbroken.waiting is None:
            return
        # Raised once, or for the second time while the first waits.
        _Unbroken.waiting = None
        raise stops[0]

    for number in ours:
        signal.signal(number, stop)
    try:
        yield stops
    finally:
        for number in ours:
            signal.signal(number, HEEDED[number])


@contextmanager
def unbroken() -> Iterator[None]:
    """Let a signal wait for the end of the body, which would leave something half made behind it.

    A second signal does not wait. Other threads than the main one hear no signals.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    _Unbroken.depth += 1
    try:
        yield
    finally:
        _Unbroken.depth -= 1
    if not _Unbroken.depth and _Unbroken.waiting is not None:
        waiting, _Unbroken.waiting = _Unbroken.waiting, None
        raise waiting


def aside(function: Callable[..., Result], *arguments: Any, seconds: float | None = None) -> Result:
    """Result of a function that another thread computes while this one heeds signals.

    A compiled kernel looks at no signal for as long as it runs. Without ``seconds`` the wait is for
    ever.
    """
    future: Future[Result] = Future()

    def compute() -> None:
        try:
            future.set_result(function(*arguments))
        except BaseException as exc:
            future.set_exception(exc)

    threading.Thread(target=compute, daemon=True).start()
    return future.result(seconds)
