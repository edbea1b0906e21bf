"""First passages of chains: when overlaps first reach a level, or fall to it.

Chains run eight at a time, with new ones in the places of those that are through.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.projected.chain import ChainRule, lane_polynomials, overlap_at_start
from hdica.finite.random import LANES
from hdica.finite.random.streams import RUN, Stream, run_length
from hdica.ingredients.schedules import Schedule
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]
Draw = Callable[[int], Array]


class Passage(NamedTuple):
    """How a chain ended.

    On the way to a divergence an overlap may grow past any level, where the norm is free: a run
    that is near one shows in the norm alone.
    """

    first: int  # steps until some overlap passed the level, or -1
    last: int  # steps until all that can pass did, or -1: of one overlap the same
    overlaps: Array  # at ``last``, else at the last step; NaN if diverged
    steps: int  # made: ``last``, the most allowed, or those before a divergence
    diverged: str  # why it stopped before ``last``, or empty


class Chains(Protocol):
    """Eight chains in the lanes of a kernel, each watched until it passes a level."""

    n: int
    source: Array  # room for what RUN steps take, shape (RUN, ..., LANES)
    sizes: Array  # room for their step sizes, shape (RUN, LANES)

    def put(self, lane: int, stream: Stream) -> tuple[Draw, Schedule]:
        """Begin a chain in a lane: what continues its sources, and its step sizes."""

    def idle(self, lane: int) -> None:
        """Let a lane stand still, or at least watch it no more."""

    def passed(self, lane: int) -> tuple[int, int]:
        """``first`` and ``last`` of its :class:`Passage` as far as it has come."""

    def overlaps(self, lane: int) -> Array:
        """Its overlaps: those at ``last``, if that was reached."""

    def why(self) -> str:
        """What happened, after a step that did not succeed."""

    def advance(self, begun: NDArray[np.int64], width: int, made: NDArray[np.int64]) -> None:
        """Steps of all lanes, which had made ``begun``; ``made`` are those that succeeded."""


@dataclass(eq=False)
class _Lane:
    """A chain while it runs, with the sources of its present run of steps."""

    index: int
    draw: Draw
    schedule: Schedule
    done: int = 0
    first: int = 0
    last: int = 0
    source: Array = field(default_factory=lambda: np.empty(0))
    size: float | Array = 0.0

    def reach(self, n: int) -> None:
        """Draw the next run if the present one is used up."""
        if self.done < self.last:
            return
        length, fixed = run_length(self.done), self.schedule.constant
        self.first, self.last = self.done, self.done + length
        self.source = self.draw(length)
        when = (self.done + np.arange(length)) / n
        self.size = self.schedule.value(when) if fixed is None else fixed

    def fill(self, source: Array, sizes: Array) -> None:
        """Write what the next steps take, one row a step."""
        part = slice(self.done - self.first, self.done - self.first + len(sizes))
        source[...] = self.source[part]
        sizes[:] = self.size[part] if isinstance(self.size, np.ndarray) else self.size


def race(chains: Chains, streams: Sequence[Stream], most: int) -> list[Passage]:
    """First passages of a chain on every stream, each given up after ``most`` steps.

    A chain takes the path that it has on its stream alone, whatever runs beside it.
    """
    lanes: list[_Lane | None] = [None] * LANES
    passages: dict[int, Passage] = {}
    waiting = list(range(len(streams)))[::-1]

    def close(lane: int, chain: _Lane, diverged: str) -> None:
        """Write down a chain that is through, and leave its lane."""
        first, last = chains.passed(lane)
        if last < 0 and not diverged and chain.done < most:
            return
        overlaps = chains.overlaps(lane)
        if last >= 0:  # and what it does afterwards does not matter
            passages[chain.index] = Passage(first, last, overlaps, last, "")
        else:
            seen = np.full_like(overlaps, np.nan) if diverged else overlaps
            passages[chain.index] = Passage(first, -1, seen, chain.done, diverged)
        lanes[lane] = None

    def fill(lane: int) -> None:
        """Begin the next chain in a lane that is free; it may be through at once."""
        while waiting and lanes[lane] is None:
            index = waiting.pop()
            chain = _Lane(index, *chains.put(lane, streams[index]))
            lanes[lane] = chain
            close(lane, chain, "")
        if lanes[lane] is None:
            chains.idle(lane)

    made, begun = (np.zeros(LANES, dtype=np.int64) for _ in range(2))
    for lane in range(LANES):
        fill(lane)
    while running := [(lane, chain) for lane, chain in enumerate(lanes) if chain is not None]:
        check_deadline()
        for _, chain in running:
            chain.reach(chains.n)
        width = min(min(chain.last, most) - chain.done for _, chain in running)
        for lane, chain in running:
            chain.fill(chains.source[:width, ..., lane], chains.sizes[:width, lane])
            begun[lane] = chain.done
        chains.advance(begun, width, made)
        for lane, chain in running:
            chain.done += int(made[lane])
            why = ""
            if made[lane] < width:
                why = f"{chains.why()} at step {chain.done} (t = {chain.done / chains.n:.6g})"
            close(lane, chain, why)
            if lanes[lane] is None:
                fill(lane)
    return [passages[index] for index in range(len(streams))]


class _Overlaps:
    """Chains of one overlap each, of one rule."""

    def __init__(self, rule: ChainRule, n: int, level: float, falling: bool) -> None:
        self.rule, self.n = rule, n
        self.way = np.full(LANES, -1.0 if falling else 1.0)
        self.high = level * self.way[0]
        self.level = np.full(LANES, np.inf)
        self.first, self.reached = np.full(LANES, -1), np.zeros(LANES)
        self.generators = np.zeros(4 * LANES, dtype=np.uint64)
        self.state, self.parameters = np.zeros((2, LANES)), np.zeros((3, LANES))
        self.terms = lane_polynomials([rule.terms] * LANES)
        self.source, self.sizes = np.zeros((2, RUN, LANES))

    def put(self, lane: int, stream: Stream) -> tuple[Draw, Schedule]:
        q = overlap_at_start(self.rule, self.n, stream)
        self.state[:, lane] = q, np.sqrt(max(0.0, 1.0 - q * q))
        self.parameters[:, lane] = self.rule.parameters(self.n)
        state = stream("noise").bit_generator.state["state"]["state"]
        self.generators[lane::LANES] = state
        there = self.way[lane] * abs(q) >= self.high
        self.first[lane], self.level[lane] = (0, np.inf) if there else (-1, self.high)
        self.reached[lane] = q
        return self.rule.sources(stream("source")), self.rule.schedule

    def idle(self, lane: int) -> None:
        self.level[lane] = np.inf
        self.state[:, lane], self.parameters[:, lane] = (0.0, 1.0), (0.0, 1.0, 0.0)

    def passed(self, lane: int) -> tuple[int, int]:
        first = int(self.first[lane])
        return first, first

    def overlaps(self, lane: int) -> Array:
        return (self.state[0] if self.first[lane] < 0 else self.reached)[lane : lane + 1].copy()

    def why(self) -> str:
        return self.rule.why(self.n)

    def advance(self, begun: NDArray[np.int64], width: int, made: NDArray[np.int64]) -> None:
        from hdica.finite.projected.chain_kernels import chain_steps

        chain_steps(
            *(self.generators, self.state, self.n, self.source[:width], self.sizes[:width]),
            *(self.parameters, self.terms, self.rule.address, None),
            *((self.way, self.level, self.first, begun, self.reached), None, made),
        )


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
    return race(_Overlaps(rule, n, level, falling), streams, most)
