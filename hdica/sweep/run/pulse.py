"""What a thread that computes a block tells whoever watches it."""

from __future__ import annotations

import struct
import time
from typing import TYPE_CHECKING

from hdica.process.interrupt import Late

if TYPE_CHECKING:
    from hdica.sweep.run.block import Begun

SIZE = 8
"""Bytes in which a pulse is seen by another process."""
NOWHERE, TOGETHER = -1, -2
"""In place of a point: none is being computed, or several at once."""


class Pulse:
    """Which points are being computed, and since when.

    ``shared`` is memory of :data:`SIZE` bytes that another process reads, if one does.
    """

    def __init__(self, shared: memoryview | None = None) -> None:
        self.shared = shared
        self.begun: Begun | None = None
        self.places: tuple[int, ...] = ()
        self.turn, self.since = 0, 0.0
        self.ending = False
        """Whether the thread is being ended: what it raises then says nothing of a point."""
        self._show(NOWHERE)

    def begin(self, places: tuple[int, ...]) -> None:
        """Say that some points are begun, and those before have ended."""
        self.places, self.since = places, time.thread_time()
        self.turn += 1
        self._show(places[0] if len(places) == 1 else TOGETHER)

    def rest(self) -> None:
        """Say that no point is being computed any more."""
        self.places = ()
        self.turn += 1
        self._show(NOWHERE)

    def heed(self, exc: Exception) -> None:
        """Let a thread that is being ended end, whatever its code has made of being told so.

        Code that catches all exceptions, or may not raise some (a generator, StopIteration), turns
        :class:`~hdica.process.interrupt.Late` into another one.
        """
        if self.ending:
            raise Late from exc

    def _show(self, place: int) -> None:
        if self.shared is not None:
            struct.pack_into("q", self.shared, 0, place)


def place_in(shared: memoryview) -> int:
    """The point that the memory of a pulse names."""
    place: int = struct.unpack_from("q", shared, 0)[0]
    return place
