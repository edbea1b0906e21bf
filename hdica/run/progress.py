"""Progress of a run: a bar on a terminal, sparse lines in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from hdica.process.progress import Pace

QUIET_SECONDS = 10.0
"""At most one line in this time."""
CELLS = 20
"""Of the bar in a line for a terminal that others write to, too."""
Wanted = bool | TextIO | None
"""False for silence, None for standard error; a stream is a terminal that gets lines as well."""


class Progress:
    """What a run tells while it goes on: here nothing at all."""

    def advance(self, points: int, seconds: float) -> None:
        """Say that ``points`` more points are stored, of which the plan said ``seconds``."""

    def note(self, text: str) -> None:
        """Say something that somebody who waits should know."""


class Lines(Progress):
    """One line now and then about points to compute.

    Parameters
    ----------
    name
        What is computed.
    pace
        How far it has come.
    stream
        Where the lines go.
    first
        What there is to do before the first point, empty for nothing that takes long.
    drawn
        Whether a bar is drawn in each line.
    """

    def __init__(
        self, name: str, pace: Pace, stream: TextIO, first: str = "", drawn: bool = False
    ) -> None:
        self.name, self.pace, self.stream, self.drawn = name, pace, stream, drawn
        self.last = time.monotonic()
        self._say(f"{pace.points} points to compute{first and f' ({first})'}")

    def _say(self, text: str) -> None:
        # That nobody reads it, or that its disk is full, is no reason to give up.
        with suppress(OSError, ValueError):
            self.stream.write(f"{self.name}: {text}\n")
            self.stream.flush()

    def advance(self, points: int, seconds: float) -> None:
        """Count points and say so if the last line is old enough."""
        pace = self.pace
        pace.advance(points, seconds)
        now = time.monotonic()
        if now - self.last >= QUIET_SECONDS and pace.done < pace.points:
            self.last = now
            full = CELLS * pace.done // pace.points
            bar = f"{'█' * full}{'░' * (CELLS - full)} " if self.drawn else ""
            self._say(f"{bar}{pace.done} of {pace.points} points, {pace.text()}")

    def note(self, text: str) -> None:
        """Say it at once."""
        self._say(text)

    def close(self) -> None:
        """Say the last line."""
        took = time.monotonic() - self.pace.started
        self._say(f"{self.pace.done} of {self.pace.points} points computed in {took:.1f} s")


class Both(Progress):
    """Lines in a log, and on the terminal of whoever waits for several of them."""

    def __init__(self, *each: Lines) -> None:
        self.each = each

    def advance(self, points: int, seconds: float) -> None:
        """Tell both."""
        for one in self.each:
            one.advance(points, seconds)

    def note(self, text: str) -> None:
        """Tell both."""
        for one in self.each:
            one.note(text)

    def close(self) -> None:
        """Tell both."""
        for one in self.each:
            one.close()


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

    ``points`` are to be computed, which the plan says cost ``seconds`` on one core, by so many
    ``workers``. ``first`` is what comes before the first point and takes long, such as compiling.
    """
    if progress is False or not points:
        yield Progress()
        return

    def pace() -> Pace:
        return Pace(points, seconds, workers)

    terminal = progress if progress not in (None, True) else None
    if terminal is None and sys.stderr.isatty():
        with _bar(name, pace(), first) as bar:
            yield bar
        return
    each = [Lines(name, pace(), sys.stderr, first)]
    if terminal is not None:
        each.append(Lines(name, pace(), terminal, first, drawn=True))  # type: ignore[arg-type]
    lines = Both(*each)
    try:
        yield lines
    finally:
        lines.close()


@contextmanager
def _bar(name: str, pace: Pace, first: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, ProgressColumn, TextColumn
    from rich.progress import Progress as RichProgress
    from rich.text import Text

    class Rate(ProgressColumn):
        max_refresh = 0.5

        def render(self, task: Any) -> Text:
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
