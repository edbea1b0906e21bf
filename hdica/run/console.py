"""A run and its user: progress on standard error, and the signals that end the run.

On a terminal there is a bar, in a log sparse lines. SIGTERM comes from a scheduler of jobs, SIGINT
from a keyboard.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from typing import TextIO, TypeVar

from hdica.errors import HdicaError, Stopped
from hdica.process.progress import Pace

QUIET_SECONDS = 10.0  # at most one line in this time
CELLS = 20  # of the bar in a line for a terminal that others write to, too
Wanted = bool | TextIO | None
"""False for silence, None for standard error; a stream is a terminal that gets lines as well."""


class Progress:
    """Reports of a run while it goes on: here none at all."""

    def advance(self, points: int, seconds: float) -> None:
        """Report that ``points`` more points are stored, ``seconds`` by the plan."""

    def note(self, text: str) -> None:
        """Report something that somebody who waits should know."""


class Lines(Progress):
    """One line now and then about points to compute, on each of some streams.

    ``first`` comes before the first point, if it takes long. The streams are those of logs and,
    with a bar in each line, of terminals that several runs share.
    """

    def __init__(self, name: str, pace: Pace, first: str, streams: dict[TextIO, bool]) -> None:
        self.name, self.pace, self.streams = name, pace, streams
        self.last = time.monotonic()
        self.note(f"{pace.points} points to compute{first and f' ({first})'}")

    def _write(self, stream: TextIO, text: str) -> None:
        # That nobody reads it, or that its disk is full, is no reason to give up.
        with suppress(OSError, ValueError):
            stream.write(f"{self.name}: {text}\n")
            stream.flush()

    def advance(self, points: int, seconds: float) -> None:
        """Count points and write a line if the last one is old enough."""
        pace, now = self.pace, time.monotonic()
        pace.advance(points, seconds)
        if now - self.last >= QUIET_SECONDS and pace.done < pace.points:
            self.last = now
            full = CELLS * pace.done // pace.points
            bar = f"{'█' * full}{'░' * (CELLS - full)} "
            for stream, drawn in self.streams.items():
                text = f"{pace.done} of {pace.points} points, {pace.text()}"
                self._write(stream, f"{bar if drawn else ''}{text}")

    def note(self, text: str) -> None:
        """Write it at once."""
        for stream in self.streams:
            self._write(stream, text)

    def close(self) -> None:
        """Write the last line."""
        took = time.monotonic() - self.pace.started
        self.note(f"{self.pace.done} of {self.pace.points} points computed in {took:.1f} s")


@contextmanager
def report(
    name: str,
    points: int,
    seconds: float,
    progress: Wanted = None,
    workers: int = 1,
    first: str = "",
) -> Iterator[Progress]:
    """Show the progress of a run on stderr: a bar on a terminal, sparse lines elsewhere.

    The ``points`` cost ``seconds`` on one core by the plan, and have so many ``workers``. ``first``
    comes before the first point and takes long, such as compiling.
    """
    if progress is False or not points:
        yield Progress()
        return

    pace, streams = Pace(points, seconds, workers), {sys.stderr: False}
    if progress is not None and progress is not True:
        streams[progress] = True
    elif sys.stderr.isatty():
        with _bar(name, pace, first) as bar:
            yield bar
        return
    lines = Lines(name, pace, first, streams)
    try:
        yield lines
    finally:
        lines.close()


@contextmanager
def _bar(name: str, pace: Pace, first: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, Task, TextColumn
    from rich.progress import Progress as RichProgress
    from rich.text import Text

    class Rate(ProgressColumn):
        max_refresh = 0.5

        def render(self, task: Task) -> Text:
            return Text(first if first and not pace.done else pace.text())

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("points"),
        Rate(),
    )
    with RichProgress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task(name, total=pace.points)

        class Bar(Progress):
            def advance(self, points: int, seconds: float) -> None:
                pace.advance(points, seconds)
                shown.advance(task, points)

            def note(self, text: str) -> None:
                shown.console.print(f"{name}: {text}", markup=False, highlight=False)

        yield Bar()


HEEDED: dict[signal.Signals, signal._HANDLER] = {
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

    Only the main thread does, for signals that nobody else handles. The list is empty, or has what
    was raised.
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
    """Let a signal wait for the end of a body of the main thread; a second one does not wait."""
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


def aside(
    function: Callable[..., Result], *arguments: object, seconds: float | None = None
) -> Result:
    """Result of a function that another thread computes while this one heeds signals.

    The wait ends after some ``seconds``, if they are set.
    """
    future: Future[Result] = Future()

    def compute() -> None:
        try:
            future.set_result(function(*arguments))
        except BaseException as exc:
            future.set_exception(exc)

    threading.Thread(target=compute, daemon=True).start()
    return future.result(seconds)


@contextmanager
def logged(path: str) -> Iterator[TextIO]:
    """Send everything that a job of a workflow and its children print to a log file.

    A mistake of the user's, or a signal to stop, ends the job with one sentence there. The body
    gets the standard error of before, where somebody may wait for the job.
    """
    with ExitStack() as opened:
        log = opened.enter_context(open(path, "w", buffering=1))
        shown = opened.enter_context(open(os.dup(sys.stderr.fileno()), "w", buffering=1))
        # Descriptors, not sys.stderr: the processes of a local cluster inherit only those.
        os.dup2(log.fileno(), sys.stdout.fileno())
        os.dup2(log.fileno(), sys.stderr.fileno())
        try:
            yield shown
        except HdicaError as exc:
            sys.exit(str(exc))
        except Stopped as exc:
            sys.stderr.write(f"{exc}\n")
            sys.exit(exc.status)
