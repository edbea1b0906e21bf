"""Spread blocks over the workers of a Dask scheduler."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from hdica.errors import HdicaError
from hdica.sweep.block import compute_block

WINDOW = 4
"""Blocks in flight a worker."""
LOOK = 10.0
"""Seconds after which workers that have come or gone are noticed."""
NO_SCHEDULER = "the Dask scheduler was lost"


@dataclass(frozen=True)
class Task:
    """One block to compute.

    Parameters
    ----------
    path
        Segment.
    block
        Index of the block in it.
    points
        Pending points.
    seconds
        What the cost model says of them.
    """

    path: Path
    block: int
    points: int
    seconds: float


def spread(
    client: Any, todo: list[Task], compute: Callable[[Path, int], Any] = compute_block
) -> Iterator[tuple[Task, Exception | None]]:
    """Keep every worker busy through a sliding window of blocks; yield them as they end.

    Parameters
    ----------
    client
        Of a Dask scheduler.
    todo
        Blocks, in the order in which they are to start.
    compute
        What a worker does with path and index of a block.

    Yields
    ------
    Task, Exception or None
        A block, and what its computation ended with if it did not end well.
    """
    from distributed import as_completed

    waiting = iter(todo)
    running: dict[Any, Task] = {}

    def submit(count: int) -> list[Any]:
        some = list(islice(waiting, count))
        where = [task.path for task in some], [task.block for task in some]
        futures: list[Any] = client.map(compute, *where, pure=False) if some else []
        running.update(zip(futures, some, strict=True))
        return futures

    looked, width = time.monotonic(), _width(client, WINDOW)
    ended = as_completed(submit(width))
    # In batches, because each message to the scheduler costs the driver a millisecond.
    for batch in ended.batches():
        if time.monotonic() - looked > LOOK:
            looked, width = time.monotonic(), _width(client, WINDOW)
        ended.update(submit(max(0, width - len(running) + len(batch))))
        for future in batch:
            yield running.pop(future), _failure(future)


def _width(client: Any, before: int) -> int:
    """Blocks to have in flight for the workers that there are now; as before if nobody knows."""
    with suppress(Exception):
        return WINDOW * max(1, sum(client.nthreads().values()))
    return before


def _failure(future: Any) -> Exception | None:
    """Why an ended future has no result; None if it has one.

    The result itself stays where it is: to fetch it from each of a thousand workers would cost
    the scheduler more than all the rest.
    """
    if future.status == "finished":
        return None
    try:
        return future.exception() or HdicaError(NO_SCHEDULER)
    except Exception as exc:
        return exc
