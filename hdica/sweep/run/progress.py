"""Progress of a run: a bar on a terminal, sparse lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

QUIET_SECONDS = 10.0
"""At most one line in this time."""


class Progress:
    """What a run tells while it goes on: here nothing at all."""

    def advance(self, points: int, seconds: float) -> None:
        """Say that ``points`` more points are stored, of which the plan said ``seconds``."""

    def note(self, text: str) -> None:
        """Say something that somebody who waits should know."""


class Lines(Progress):
    """One line now and then about ``points`` to compute, which the plan says cost ``seconds``."""

    def __init__(self, name: str, points: int, seconds: float, stream: TextIO) -> None:
        self.name, self.points, self.seconds, self.stream = name, points, seconds, stream
        self.done, self.done_seconds = 0, 0.0
        self.started = self.last = time.monotonic()
        self._say(f"{points} points to compute")

    def _say(self, text: str) -> None:
        self.stream.write(f"{self.name}: {text}\n")
        self.stream.flush()

    def advance(self, points: int, seconds: float) -> None:
        """Count points and say so if the last line is old enough."""
        self.done += points
        self.done_seconds += seconds
        now = time.monotonic()
        if now - self.last >= QUIET_SECONDS and self.done < self.points:
            self.last = now
            share = self.done_seconds / self.seconds if self.seconds else 1.0
            left = (now - self.started) * (1 - share) / share if share > 0 else 0.0
            self._say(f"{self.done} of {self.points} points, about {left:.0f} s left")

    def note(self, text: str) -> None:
        """Say it at once."""
        self._say(text)

    def close(self) -> None:
        """Say the last line."""
        took = time.monotonic() - self.started
        self._say(f"{self.done} of {self.points} points computed in {took:.1f} s")


@contextmanager
def report(
    name: str, points: int, seconds: float, progress: bool | None = None
) -> Iterator[Progress]:
    """Show the progress of a run on stderr: a bar on a terminal, sparse lines elsewhere.

    ``points`` are to be computed, which the plan says cost ``seconds``. With ``progress=False``
    nothing is shown.
    """
    if progress is False or not points:
        yield Progress()
    elif sys.stderr.isatty():
        with _bar(name, points) as bar:
            yield bar
    else:
        lines = Lines(name, points, seconds, sys.stderr)
        try:
            yield lines
        finally:
            lines.close()


@contextmanager
def _bar(name: str, points: int) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("points"),
        TimeRemainingColumn(),
    )
    with RichProgress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task(name, total=points)

        class Bar(Progress):
            def advance(self, points: int, seconds: float) -> None:
                shown.advance(task, points)

            def note(self, text: str) -> None:
                shown.console.print(f"{name}: {text}", markup=False, highlight=False)

        yield Bar()
