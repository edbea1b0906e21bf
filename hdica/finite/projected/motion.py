"""A feature that moves between the steps of a projected rule on all coordinates.

Entries of xi change places before a step, and what the kernels carry to it, xi.z and x.xi, follows:
an exchange costs a few operations at any n. Numbers of exchanges and pairs are drawn in runs that
are aligned to the absolute step, so that they do not depend on the times of output.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hdica.finite.random.streams import Stream, run_length
from hdica.finite.record import Advance
from hdica.ingredients.quadrature import dot
from hdica.ingredients.schedules import Motion

Array = NDArray[np.float64]
XI_Z, X_Z, X_XI = 1, 2, 3
"""Columns of what is carried from step to step: see :mod:`hdica.finite.projected.vector_kernels`"""


@dataclass(eq=False)
class Moved:
    """The arrays of a run that a motion changes.

    ``xi``: the feature, shape (n,), and ``padded`` the kernels' copy of it; ``x`` and ``z``: the
    estimates, shape (points, >= n), and the noise of the coming step; ``carried``: shape (points,
    4), a row of zeros before the first step.
    """

    xi: Array
    padded: Array
    x: Array
    z: Array
    carried: Array

    def exchange(self, i: int, j: int) -> None:
        """Entries i and j change places."""
        xi, carried = self.xi, self.carried
        change = xi[j] - xi[i]
        if change == 0.0:
            return
        if carried[:, 0].any():
            carried[:, XI_Z] += change * (self.z[i] - self.z[j])
            carried[:, X_XI] += change * (self.x[:, i] - self.x[:, j])
        xi[i], xi[j] = xi[j], xi[i]
        self.padded[i], self.padded[j] = xi[i], xi[j]

    def permute(self, rng: np.random.Generator, share: float) -> None:
        """A share of the entries, rounded to a whole number, is permuted at random."""
        n = self.xi.size
        chosen = rng.permutation(n)[: round(share * n)]
        self.xi[chosen] = self.xi[rng.permutation(chosen)]
        self.padded[:n] = self.xi
        if self.carried[:, 0].any():
            self.carried[:, XI_Z] = dot(self.xi, self.z[:n])
            self.carried[:, X_XI] = [dot(self.xi, row[:n]) for row in self.x]


@dataclass(eq=False)
class _Events:
    """What happens before which step, in order: drawn as far as it is asked for."""

    motion: Motion
    n: int
    rng: np.random.Generator
    drawn: int = 0
    waiting: deque[tuple[int, int, int]] = field(default_factory=deque)
    """Step, i and j of exchanges; i = j = -1 for a jump."""

    def __post_init__(self) -> None:
        # A jump at t comes before the first step k with k/n >= t, as a schedule changes with it.
        steps = (np.ceil(np.array(self.motion.jumps) * self.n * (1 - 1e-12) - 1e-9)).astype(int)
        self.jumps = steps.tolist()

    def before(self, last: int) -> Iterator[tuple[int, int, int]]:
        """Events before steps below ``last`` that were not given yet."""
        while self.drawn < last:
            self._draw()
        while self.waiting and self.waiting[0][0] < last:
            yield self.waiting.popleft()

    def _draw(self) -> None:
        first, size = self.drawn, run_length(self.drawn)
        self.drawn = first + size
        events = [(step, -1, -1) for step in self.jumps if first <= step < self.drawn]
        if self.motion.rate > 0:
            counts = self.rng.poisson(self.motion.rate / 2, size)
            steps = first + np.repeat(np.arange(size), counts)
            i = self.rng.integers(0, self.n, steps.size)
            j = (i + self.rng.integers(1, self.n, steps.size)) % self.n
            events += zip(steps.tolist(), i.tolist(), j.tolist(), strict=True)
        # Stable: a jump comes before the exchanges of its step.
        self.waiting += sorted(events, key=lambda event: event[0])


def moving(advance: Advance, motion: Motion, moved: Moved, stream: Stream) -> Advance:
    """Steps of a kernel, interrupted where the feature moves.

    Parameters
    ----------
    advance
        Steps with a feature that stays, as :func:`hdica.finite.record.record` takes them.
    motion
        How the feature moves.
    moved
        The arrays on which ``advance`` works.
    stream
        Of its generators ``"exchanges"`` and ``"jumps"`` are used.
    """
    events, done = _Events(motion, moved.xi.size, stream("exchanges")), 0
    jumps = stream("jumps")

    def steps(source: Array, tau: Array) -> NDArray[np.int64]:
        nonlocal done
        first, done = done, done + len(tau)
        made, alive = np.zeros(tau.shape[1], dtype=np.int64), np.ones(tau.shape[1], dtype=bool)
        begun = 0
        for event in (*events.before(done), None):
            stop = len(tau) if event is None else event[0] - first
            if stop > begun and alive.any():
                some = advance(source[begun:stop], tau[begun:stop])
                made[alive] += some[alive]
                alive &= some == stop - begun
            begun = stop
            if event is not None and event[1] < 0:
                moved.permute(jumps, motion.share)
            elif event is not None:
                moved.exchange(*event[1:])
        return made

    return steps
