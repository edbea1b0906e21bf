"""First passages of Hebbian ICA: when a projection first comes near a source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdica.finite.random.streams import RUN, Stream, run_length
from hdica.finite.random.width import LANES
from hdica.finite.record import not_finite
from hdica.ingredients.schedules import Schedule
from hdica.process.progress import check_deadline
from hdica.systems.hebbian_ica.finite.rule import (
    Array,
    ChainState,
    Draw,
    HebbianRule,
    address,
    check_dimension,
    draws,
    unwatched,
)


class Passage(NamedTuple):
    """How a chain came near the sources.

    On the way to a divergence R grows past any threshold: a run that is near one shows in W'W
    alone.
    """

    first_any: int  # steps until some abs(R_ij) reaches the threshold, or -1
    first_all: int  # steps until each of the fewer kind has such an R_ij, or -1
    R: Array  # (K, M) at first_all, else at the last step; NaN if diverged
    steps: int  # made: first_all, the most allowed, or those before a divergence
    diverged: str  # why it stopped before first_all, or empty


@dataclass(eq=False)
class _Lane:
    """A chain while it runs, with the sources of its present run of steps."""

    index: int
    draw: list[Draw]
    schedule: Schedule
    done: int = 0
    first: int = 0
    last: int = 0
    source: Array = field(default_factory=lambda: np.empty((0, 0)))
    eta: float | Array = 0.0

    def reach(self, n: int) -> None:
        """Draw the next run if the present one is used up."""
        if self.done < self.last:
            return
        size = run_length(self.done)
        self.first, self.last = self.done, self.done + size
        self.source = np.stack([draw(size) for draw in self.draw], axis=1)
        fixed = self.schedule.constant
        when = (self.done + np.arange(size)) / n
        self.eta = self.schedule.value(when) if fixed is None else fixed

    def sizes(self, width: int) -> float | Array:
        """Step sizes of the next steps: one number where they do not change."""
        first = self.done - self.first
        return self.eta[first : first + width] if isinstance(self.eta, np.ndarray) else self.eta

    def drawn(self, width: int) -> Array:
        """Sources of the next steps, shape (width, M)."""
        first = self.done - self.first
        return self.source[first : first + width]


class _Race:
    """Eight chains at a time, with new ones in the places of those that are through."""

    def __init__(
        self, rule: HebbianRule, n: int, streams: Sequence[Stream], level: float, most: int
    ) -> None:
        self.rule, self.n, self.streams, self.level, self.most = rule, n, streams, level, most
        self.chains, self.watch = ChainState.idle([rule]), unwatched(rule.shape)
        self.generators = np.zeros(4 * LANES, dtype=np.uint64)
        self.lanes: list[_Lane | None] = [None] * LANES
        self.found: dict[int, Passage] = {}
        self.waiting = list(range(len(streams)))[::-1]
        self.room = np.zeros((2, RUN, rule.shape[1], LANES))

    def fill(self, lane: int) -> None:
        """Begin the next chain in a lane, or leave it idle."""
        self.lanes[lane] = None
        while self.waiting and self.lanes[lane] is None:
            index = self.waiting.pop()
            stream = self.streams[index]
            self.chains.put(lane, self.rule, self.n, stream)
            state = stream("noise").bit_generator.state["state"]["state"]
            self.generators[lane::LANES] = state
            levels, first, _, begun = self.watch
            levels[:, lane], first[:, lane], begun[lane] = self.level, -1, 0
            self.lanes[lane] = _Lane(index, draws(self.rule, stream), self.rule.step_size(self.n))
            self.look_at_start(lane)
        if self.lanes[lane] is None:
            self.watch[0][:, lane] = np.inf

    def look_at_start(self, lane: int) -> None:
        """A start may be there already."""
        levels, first, kept, _ = self.watch
        k, m = self.rule.shape
        size = np.abs(self.chains.seen(lane)["R"]).max(axis=1 if k <= m else 0)
        for place, reached in enumerate((size.max(), size.min())):
            if reached >= self.level:
                first[place, lane], levels[place, lane] = 0, np.inf
        kept[:, lane] = self.chains.seen(lane)["R"].ravel()
        self.close(lane, "")

    def close(self, lane: int, diverged: str) -> None:
        """Write down a chain that is through, and leave its lane."""
        chain, (_, first, kept, _) = self.lanes[lane], self.watch
        assert chain is not None
        through = first[1, lane] >= 0
        if not (through or diverged or chain.done >= self.most):
            return
        if through:  # and what the chain does afterwards does not matter
            r, steps = kept[:, lane].reshape(self.rule.shape).copy(), int(first[1, lane])
            diverged = ""
        else:
            r, steps = self.chains.seen(lane)["R"].copy(), chain.done
        passage = Passage(int(first[0, lane]), int(first[1, lane]), r, steps, diverged)
        self.found[chain.index] = passage
        self.lanes[lane] = None

    def advance(self, steps: NDArray[np.int64], width: int) -> None:
        """As many steps as every chain has sources for."""
        from hdica.systems.hebbian_ica.finite.chain_kernels import hebbian_chain_steps

        k, m = self.rule.shape
        source, eta = self.room[:, :width]
        for lane, chain in enumerate(self.lanes):
            if chain is not None:
                source[:, :, lane], eta[:, 0, lane] = chain.drawn(width), chain.sizes(width)
                self.watch[3][lane] = chain.done
        hebbian_chain_steps(
            self.generators,
            self.chains.state,
            (k, m, self.n - m - k),
            source.reshape(width, -1),
            eta.reshape(width, -1),
            self.chains.law,
            address(self.rule.nonlinearity),
            self.watch,
            steps,
        )

    def run(self) -> None:
        """All chains, to their ends."""
        made = np.zeros(LANES, dtype=np.int64)
        for lane in range(LANES):
            self.fill(lane)
        while any(chain is not None for chain in self.lanes):
            check_deadline()
            alive = [(lane, c) for lane, c in enumerate(self.lanes) if c is not None]
            for _, chain in alive:
                chain.reach(self.n)
            width = min(min(c.last, self.most) - c.done for _, c in alive)
            self.advance(made, width)
            for lane, chain in alive:
                chain.done += int(made[lane])
                why = ""
                if made[lane] < width:
                    why = f"{not_finite()} at step {chain.done} (t = {chain.done / self.n:.6g})"
                    self.chains.state[: self.watch[2].shape[0], lane] = np.nan
                self.close(lane, why)
                if self.lanes[lane] is None:
                    self.fill(lane)


def passages(
    rule: HebbianRule, n: int, streams: Sequence[Stream], threshold: float, most_steps: int
) -> list[Passage]:
    """First passages of chains, exact in law, eight at a time.

    A chain takes the path that :func:`hdica.systems.hebbian_ica.finite.rule.run_chains` gives it
    on the same stream, whatever runs beside it. It is given up after ``most_steps``.
    """
    check_dimension(rule, n, "chain")
    race = _Race(rule, n, streams, threshold, most_steps)
    race.run()
    return [race.found[index] for index in range(len(streams))]
