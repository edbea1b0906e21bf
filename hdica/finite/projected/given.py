"""Projected rules on samples that are given: x <- x + (tau/sqrt n) <w(u) y>, then phi, |x|^2 = n.

A step reads its rows and the estimate once, so that NumPy is as fast as memory; sums are NumPy's
own and no threads', so that a run has the same bits on any machine's BLAS.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.finite.observe import OVERLAP, PENALTY, Observation
from hdica.finite.random.streams import Stream
from hdica.finite.record import Track, Values, record
from hdica.ingredients.formula import Formula
from hdica.ingredients.quadrature import dot
from hdica.ingredients.schedules import Schedule

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GivenRule:
    """A rule as it acts on samples.

    Parameters
    ----------
    weight
        w of the projections u = x.y/sqrt(n), shape (batch,): -f(u), or u.
    shrink
        ``shrink(x, moved, tau)``: the moved estimate after phi has acted, before its length is
        restored; x is where the step began.
    schedule
        Step sizes tau(k/n).
    phi
        The regularizer, for R.
    batch
        Samples of one step.
    """

    weight: Callable[[Array], Array]
    shrink: Callable[[Array, Array, float], Array]
    schedule: Schedule
    phi: Formula
    batch: int


@dataclass(frozen=True, eq=False)
class Rows:
    """Samples as a run reads them.

    Parameters
    ----------
    read
        ``read(first, last)``: rows in their order, shape (last - first, n).
    taken
        ``taken(places)``: rows in any order.
    count, n
        Samples and their entries.
    block
        Rows to read at a time; no number depends on it.
    shuffled
        Whether every pass has an order of its own, drawn from the stream ``"order"``.
    passes
        How many times the samples are seen.
    """

    read: Callable[[int, int], Array]
    taken: Callable[[NDArray[np.int64]], Array]
    count: int
    n: int
    block: int
    shuffled: bool = False
    passes: int = 1

    def steps(self, batch: int) -> int:
        """Steps of a batch that the samples are enough for."""
        return self.count * self.passes // batch

    def one_by_one(self, stream: Stream) -> Iterator[Array]:
        """Every sample, shape (n,), pass after pass."""
        rng = stream("order") if self.shuffled else None
        for _ in range(self.passes):
            order = None if rng is None else rng.permutation(self.count)
            for first in range(0, self.count, self.block):
                last = min(first + self.block, self.count)
                yield from (
                    self.read(first, last) if order is None else self.taken(order[first:last])
                )


SLOWER = 10
"""How much longer NumPy takes for a number than a kernel, that of reading it included."""


@dataclass(eq=False)
class _Run:
    """The estimate, and the projections of the last n samples."""

    rule: GivenRule
    rows: Iterator[Array]
    x: Array
    last: deque[float]
    seen: int = 0

    def advance(self, source: Array, tau: Array) -> NDArray[np.int64]:
        """As many steps as there are step sizes, while the update is finite."""
        for made, rate in enumerate(tau[:, 0].tolist()):
            if not self._step(rate):
                return np.array([made])
        return np.array([len(tau)])

    def _step(self, tau: float) -> bool:
        root = math.sqrt(self.x.size)
        rows = [next(self.rows) for _ in range(self.rule.batch)]
        u = np.array([dot(self.x, row) for row in rows]) / root
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            weights = tau / root / len(rows) * self.rule.weight(u)
            moved = self.x.copy()
            for weight, row in zip(weights, rows, strict=True):
                moved += weight * row
            moved = self.rule.shrink(self.x, moved, tau)
            length = math.sqrt(dot(moved, moved))
        if not 0 < length < math.inf:
            return False
        np.multiply(moved, root / length, out=self.x)
        self.last.extend(u.tolist())
        self.seen += len(rows)
        return True

    def moments(self) -> dict[str, float]:
        """Means of u^2 and u^4 over the last n samples, each at the x that it met."""
        square = np.square(np.fromiter(self.last, dtype=float)) if self.last else np.full(1, np.nan)
        return {"second": float(np.mean(square)), "fourth": float(np.mean(square * square))}


def run_given(
    rule: GivenRule,
    rows: Rows,
    times: Array,
    x: Array,
    xi: Array | None,
    stream: Stream,
    full: bool,
) -> Values:
    """A rule on samples from the estimate x on.

    Parameters
    ----------
    rule, rows
        What is done, and on which samples.
    times
        Shape (T,), in steps per dimension; the last within what the samples are enough for.
    x
        First estimate, shape (n,), |x|^2 = n.
    xi
        The feature, shape (n,), |xi|^2 = n, for the overlap; None if it is not known.
    stream
        For the order of the samples.
    full
        Whether the estimate itself is kept at every time, as ``loading``.

    Returns
    -------
    tuple
        Values over the times (overlap, penalty, ``largest``, ``second``, ``fourth``, ``samples``,
        ``loading``), and empty or why the run stopped.
    """
    n = rows.n
    run = _Run(rule, rows.one_by_one(stream), x.copy(), deque(maxlen=n))

    def seen() -> dict[str, float | Array]:
        found: dict[str, float | Array] = {} if xi is None else {OVERLAP: dot(xi, run.x) / n}
        found[PENALTY] = float(np.mean(run.x * rule.phi.value(run.x)))
        found["largest"] = float(np.max(run.x * run.x)) / n
        return found | run.moments() | {"samples": run.seen} | ({"loading": run.x} if full else {})

    track = Track(Observation(seen), None, rule.schedule)
    return record(run.advance, [track], times, n, numbers=SLOWER * n * rule.batch)[0]
