"""Workers that sleep: up to thousands of them, through the real Dask scheduler and our window.

Scheduler, workers and driver share one process, and all but the driver one event loop, so that a
core does what a cluster would have on a thousand machines: a real scheduler does at least as well.
The workers sleep in the event loop, because a thousand threads would wear the process out.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hdica.run.cluster import Patience, spread
from hdica.run.plan import DRIVEN_SECONDS, MOST_SECONDS
from hdica.run.processes import own_dask
from hdica.run.worker import Care

THREADS = 50
"""Simulated workers that share a connection to the scheduler, at most; it divides their number."""


@dataclass(frozen=True)
class _Nap:
    """A block that sleeps: what the window looks at of a block."""

    seconds: float
    size: int = 1
    label: str = "a nap"


async def _nap(block: _Nap, care: Care) -> None:
    await asyncio.sleep(block.seconds)


@contextmanager
def sleepers(workers: int, threads: int = THREADS) -> Iterator[Any]:
    """A client of a cluster of workers that have run one block each at least.

    Parameters
    ----------
    workers
        How many.
    threads
        How many of them share a connection to the scheduler; 1 for one each.
    """
    import dask
    from distributed import Client, LocalCluster

    # A connection takes as many blocks as it has threads: none waits for one of its own.
    more: dict[str, Any] = {"distributed.scheduler.worker-saturation": 1.0}
    size = min(workers, threads)
    with (
        own_dask(),
        dask.config.set(more),
        LocalCluster(
            n_workers=-(-workers // size),
            threads_per_worker=size,
            processes=False,
            dashboard_address=None,
            memory_limit=0,
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(-(-workers // size), timeout=600)
        wall(client, workers, 0.0)
        yield client


def wall(client: Any, blocks: int, seconds: float) -> float:
    """Seconds until so many blocks are done, each of which sleeps for ``seconds``."""
    todo: Any = iter([_Nap(seconds)] * blocks)
    started = time.perf_counter()
    for _, failure in spread(client, todo, Care(), Patience(), _nap):
        if failure is not None:
            raise failure
    return time.perf_counter() - started


def planned_seconds(workers: int) -> float:
    """The longest block that the planner makes for so many workers, in a study of ordinary size."""
    return max(MOST_SECONDS, workers * DRIVEN_SECONDS)
