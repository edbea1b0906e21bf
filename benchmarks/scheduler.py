"""Where does the Dask scheduler saturate, and how far below that do our blocks stay?

Simulated workers (``benchmarks.simulated``) take blocks through our sliding window. Blocks that do
nothing say how many a second the scheduler can pass on; blocks as long as the planner makes them
say what is lost to it; and on the largest cluster blocks of other lengths say how much room there
is. No number of a study depends on any of it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

from benchmarks.simulated import THREADS, planned_seconds, sleepers, wall

WORKERS, FEW_WORKERS = (1, 3, 10, 30, 100, 300, 1000), (1, 4)
LENGTHS, SHORT = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0), (0.05, 0.1)
EMPTY = 4000
"""Blocks that do nothing, at least; four a worker where there are more."""
ROUNDS = 4
"""Blocks a worker that sleep: as few as the planner leaves where there is little work."""


@dataclass(frozen=True)
class Driven:
    """What the scheduler does for a number of workers.

    Parameters
    ----------
    workers
        How many.
    rate
        Blocks a second that do nothing: the scheduler is saturated.
    cpu
        Processor seconds of such a block, in scheduler, driver and workers together.
    seconds
        Length of a block.
    over
        Wall time of :data:`ROUNDS` such blocks a worker over what they sleep.
    """

    workers: int
    rate: float
    cpu: float
    seconds: float
    over: float

    @property
    def asked(self) -> float:
        """Blocks a second that keep the workers busy."""
        return self.workers / self.seconds


def driven(
    workers: int, lengths: tuple[float, ...], empty: int = EMPTY, threads: int = THREADS
) -> list[Driven]:
    """The rate of empty blocks, and what blocks of some lengths lose.

    Parameters
    ----------
    workers
        How many simulated ones.
    lengths
        Seconds of a block.
    empty
        Blocks that do nothing, at least.
    threads
        Workers that share a connection, at most.
    """
    count = max(empty, 4 * workers)
    with sleepers(workers, threads) as client:
        before = time.process_time()
        rate = count / wall(client, count, 0.0)
        cpu = (time.process_time() - before) / count
        walls = [wall(client, ROUNDS * workers, seconds) for seconds in lengths]
    pairs = zip(lengths, walls, strict=True)
    return [Driven(workers, rate, cpu, s, took / (ROUNDS * s)) for s, took in pairs]


def measure(small: bool = False) -> dict[str, Any]:
    """Every number of workers with planned blocks, and the most with blocks of other lengths."""
    counts, lengths = (FEW_WORKERS, SHORT) if small else (WORKERS, LENGTHS)
    empty = 50 if small else EMPTY

    def planned(workers: int) -> tuple[float, ...]:
        return SHORT[:1] if small else (planned_seconds(workers),)

    return {
        "rounds": ROUNDS,
        "planned": [vars(one) for count in counts for one in driven(count, planned(count), empty)],
        "lengths": [vars(one) for one in driven(counts[-1], lengths, empty)],
    }


def tables(found: dict[str, Any]) -> list[str]:
    """What was measured, in Markdown."""
    planned = [Driven(**one) for one in found["planned"]]
    lengths = [Driven(**one) for one in found["lengths"]]
    lines = [
        "| workers | block | blocks a second that keep them busy | that the scheduler can pass on "
        "| share of that | processor time of one | wall time over ideal |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [f"| {one.workers} | {one.seconds:g} s | {_driven(one)} |" for one in planned]
    most = lengths[0].workers
    lines += [
        "",
        f"{most} workers, blocks of other lengths:",
        "",
        "| block | blocks a second that keep them busy | that the scheduler can pass on "
        "| share of that | processor time of one | wall time over ideal |",
        "|---:|---:|---:|---:|---:|---:|",
    ]
    lines += [f"| {one.seconds:g} s | {_driven(one)} |" for one in lengths]
    return lines


def _driven(one: Driven) -> str:
    share = 100 * one.asked / one.rate
    passed = f"{one.asked:.3g} | {one.rate:.0f} | {share:.3g} %"
    return f"{passed} | {1e3 * one.cpu:.2g} ms | {one.over:.3f}"
