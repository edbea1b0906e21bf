"""How far a computation has come, how fast it goes, and how long it still takes."""

from __future__ import annotations

import time


def span(seconds: float) -> str:
    """A time to wait, for a person: ``8 s``, ``12 min``, ``3.2 h``."""
    if seconds < 120:
        return f"{max(1.0, seconds):.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


class Pace:
    """Points of which the cost model foretells the time, corrected by what they have taken.

    Until a first part is done the model alone is asked. That part may have had to load or even to
    compile code: from the second on it does not count.

    Parameters
    ----------
    points
        How many there are.
    seconds
        What the cost model says of all of them together, on one core.
    workers
        How many share the work.
    """

    def __init__(self, points: int, seconds: float, workers: int = 1) -> None:
        self.points, self.workers = points, workers
        self.seconds = max(seconds / workers, 1e-9)
        self.done, self._modelled = 0, 0.0
        self.started = time.monotonic()
        self._first: tuple[float, int, float] | None = None  # when the first part was done, of what

    def advance(self, points: int, seconds: float) -> None:
        """Say that more points are done, of which the model said ``seconds``."""
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

    def said(self) -> str:
        """Rate and time left, in words."""
        left = f"about {span(self.left)} left"
        return f"{self.rate:.3g} points/s, {left}" if self.rate else left
