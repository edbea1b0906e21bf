"""First passages of the chain of the overlap: when abs(Q) first reaches a level, or falls to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.projected.chain import ChainRule, overlap_at_start
from hdica.finite.random.streams import RUN, Stream, run_length
from hdica.finite.random.width import LANES
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]


class Passage(NamedTuple):
    """How a chain ended."""

    first: int  # steps until abs(Q) was at the level, or -1
    steps: int  # made: those until the passage, the most allowed, or those before a divergence
    diverged: str  # why it stopped before, or empty


@dataclass(eq=False)
class _Lane:
    """A chain while it runs, with the sources of its present run of steps."""

    index: int
    draw: Callable[[int], Array]
    done: int = 0
    begun: int = 0
    last: int = 0
    source: Array = field(default_factory=lambda: np.empty(0))

    def reach(self) -> None:
        """Draw the next run if the present one is used up."""
        if self.done >= self.last:
            self.begun, self.last = self.done, self.done + run_length(self.done)
            self.source = self.draw(self.last - self.begun)

    def drawn(self, width: int) -> Array:
        """Sources of the next steps, shape (width,)."""
        return self.source[self.done - self.begun :][:width]


class _Race:
    """Eight chains at a time, with new ones in the places of those that are through."""

    def __init__(
        self,
        rule: ChainRule,
        n: int,
        streams: Sequence[Stream],
        level: float,
        most: int,
        falling: bool,
    ) -> None:
        self.rule, self.n, self.streams, self.most = rule, n, streams, most
        self.sign = -1.0 if falling else 1.0
        self.high, self.way = self.sign * level, np.full(LANES, self.sign)
        self.generators = np.zeros(4 * LANES, dtype=np.uint64)
        self.state = np.tile([[1.0], [0.0]], LANES)
        self.parameters = np.tile([[0.0], [1.0], [0.0]], LANES)
        self.level, self.first = np.full(LANES, np.inf), np.full(LANES, -1)
        terms, called = rule.terms, rule.nonlinearity
        self.terms = np.empty((0, LANES)) if terms is None else np.tile(terms[:, None], LANES)
        self.f = called.compiled_pair.address if terms is None and called is not None else 0
        self.room = np.zeros((2, RUN, LANES))
        self.lanes: list[_Lane | None] = [None] * LANES
        self.found: dict[int, Passage] = {}
        self.waiting = list(range(len(streams)))[::-1]

    def fill(self, lane: int) -> None:
        """Begin the next chain in a lane, or leave it where it is."""
        self.lanes[lane], self.level[lane], self.first[lane] = None, np.inf, -1
        self.state[:, lane], self.parameters[:, lane] = (1.0, 0.0), (0.0, 1.0, 0.0)
        while self.waiting and self.lanes[lane] is None:
            index = self.waiting.pop()
            stream = self.streams[index]
            q = overlap_at_start(self.rule, self.n, stream)
            there = self.sign * abs(q) >= self.high
            if there or self.most <= 0:  # it may be there already
                self.found[index] = Passage(0 if there else -1, 0, "")
                continue
            self.state[:, lane] = q, np.sqrt(max(0.0, 1.0 - q * q))
            self.parameters[:, lane], self.level[lane] = self.rule.parameters(self.n), self.high
            state = stream("noise").bit_generator.state["state"]["state"]
            self.generators[lane::LANES] = state
            self.lanes[lane] = _Lane(index, self.rule.sources(stream("source")))

    def advance(self, made: NDArray[np.int64], width: int) -> None:
        """As many steps as every chain has sources for."""
        from hdica.finite.projected.passage_kernels import passage_steps

        source, tau = self.room[:, :width]
        fixed = self.rule.schedule.constant
        for lane, chain in enumerate(self.lanes):
            if chain is not None:
                source[:, lane] = chain.drawn(width)
                when = (chain.done + np.arange(width)) / self.n
                tau[:, lane] = self.rule.schedule.value(when) if fixed is None else fixed
        passage_steps(
            self.generators,
            self.state,
            self.n,
            source,
            tau,
            self.parameters,
            self.terms,
            self.f,
            self.way,
            self.level,
            self.first,
            made,
        )

    def close(self, lane: int, chain: _Lane, made: int, width: int) -> None:
        """Go on with a chain, or write down how it ended."""
        if self.first[lane] >= 0:  # and what it does afterwards does not matter
            first = chain.done + int(self.first[lane])
            self.found[chain.index] = Passage(first, first, "")
        elif made < width:
            step = chain.done + made
            why = f"{self.rule.why(self.n)} at step {step} (t = {step / self.n:.6g})"
            self.found[chain.index] = Passage(-1, step, why)
        elif chain.done + width >= self.most:
            self.found[chain.index] = Passage(-1, chain.done + width, "")
        else:
            chain.done += width
            return
        self.fill(lane)

    def run(self) -> None:
        """All chains, to their ends."""
        made = np.zeros(LANES, dtype=np.int64)
        for lane in range(LANES):
            self.fill(lane)
        while any(chain is not None for chain in self.lanes):
            check_deadline()
            alive = [(lane, c) for lane, c in enumerate(self.lanes) if c is not None]
            for _, chain in alive:
                chain.reach()
            width = min(min(c.last, self.most) - c.done for _, c in alive)
            self.advance(made, width)
            for lane, chain in alive:
                self.close(lane, chain, int(made[lane]), width)


def passages(
    rule: ChainRule,
    n: int,
    streams: Sequence[Stream],
    level: float,
    most: int,
    falling: bool = False,
) -> list[Passage]:
    """First passages of chains up to a level, or falls to it, exact in law, eight at a time.

    A chain takes the path that :func:`hdica.finite.projected.chain.run_together` gives it on the
    same stream, whatever runs beside it. It is given up after ``most`` steps.

    Raises
    ------
    HdicaError
        If n is below 3, or a step takes several samples.
    """
    if n < 3:
        raise HdicaError(f"n = {n} is not allowed for first passages of the chain (n >= 3)")
    if rule.batch != 1:
        raise HdicaError(f"batch = {rule.batch} is not allowed for first passages of the chain (1)")
    race = _Race(rule, n, streams, level, most, falling)
    race.run()
    return [race.found[index] for index in range(len(streams))]
