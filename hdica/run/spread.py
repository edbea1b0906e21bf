"""Spread blocks over the workers of a Dask scheduler."""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from hdica.errors import HdicaError, Incomplete
from hdica.run.block import Block
from hdica.run.signals import aside
from hdica.run.worker import Care, run_on_worker

WINDOW = 4
"""Blocks in flight a worker."""
LOOK = 10.0
"""Seconds after which workers that have come or gone are noticed."""
SLACK = 10
"""How many times longer than the cost model says a block may take before it counts as hung."""
MAX_NAMED = 8
"""Blocks in flight that a sentence names."""
NO_SCHEDULER = "the Dask scheduler was lost"


@dataclass(frozen=True)
class Patience:
    """How long to wait while no block ends.

    At least so many seconds, and :data:`SLACK` times what the longest block in flight should take.
    They begin anew when the working store changes: points over their budget are committed at once.
    """

    seconds: float = math.inf
    for_workers: bool = True  # time without any does not count: they may come later, from a queue
    note: Callable[[str], None] = lambda text: None  # reports that there are none
    committed: Callable[[], int] = lambda: 0  # files that the working store has of the blocks

    def limit(self, blocks: Iterable[Block]) -> float:
        """Seconds to wait for one of some blocks."""
        return max(self.seconds, SLACK * max(block.seconds for block in blocks))


def spread(
    client: Any,
    blocks: Iterator[Block],
    care: Care,
    patience: Patience,
    compute: Callable[[Block, Care], Any] = run_on_worker,
) -> Iterator[tuple[Block, Exception | None]]:
    """Keep every worker busy through a sliding window of blocks; yield them as they end.

    They start in their order, each only when it is sent, and come with the exception with which
    their computation ended, if any.
    """
    from distributed import as_completed

    running: dict[Any, Block] = {}
    waiting: deque[Block] = deque()

    def submit(count: int) -> list[Any]:
        while len(waiting) < count and (block := next(blocks, None)) is not None:
            waiting.append(block)
        some = [waiting.popleft() for _ in range(min(count, len(waiting)))]
        futures: list[Any] = client.map(compute, some, care=care, pure=False) if some else []
        running.update(zip(futures, some, strict=True))
        return futures

    looked, width = time.monotonic(), _width(client, WINDOW)
    ended = as_completed(submit(width))
    # In batches, because each message to the scheduler costs the driver a millisecond.
    while running:
        batch = _wait(client, ended, running, patience)
        if time.monotonic() - looked > LOOK:
            looked, width = time.monotonic(), _width(client, WINDOW)
        outcomes = [(running.pop(future), _failure(future)) for future in batch]
        ended.update(submit(max(0, width - len(running))))
        yield from outcomes


def _wait(client: Any, ended: Any, running: dict[Any, Block], patience: Patience) -> list[Any]:
    """Futures that have ended: at least one."""
    look = min(LOOK, patience.seconds / 4)
    since, asked, committed = time.monotonic(), False, -1
    while not (batch := _batch(ended, look)):
        if committed < 0:
            committed = patience.committed()
        limit = patience.limit(running.values())
        late = time.monotonic() - since >= limit
        if patience.for_workers and (late or not asked):
            asked = True
            if _threads(client) == 0:
                patience.note("the scheduler has no workers; waiting for them")
                since = time.monotonic()
                continue
        if late and committed != (now := patience.committed()):
            since, committed = time.monotonic(), now
        elif late:
            raise Incomplete(_stuck([*running.values()], limit))
    return batch


def _batch(ended: Any, seconds: float) -> list[Any]:
    """Futures that have ended, after at most some seconds; none if none has."""
    deadline = time.monotonic() + seconds
    while not ended.has_ready() and time.monotonic() < deadline:
        with ended.thread_condition:
            # What ends between the question and this line is noticed after a tenth of a second.
            ended.thread_condition.wait(0.1)
    batch: list[Any] = ended.next_batch(block=False)
    return batch


def _stuck(blocks: list[Block], limit: float) -> str:
    """The sentence that no block ends, and which are in flight."""
    named = [f"{block.size} points of {block.label}" for block in blocks[:MAX_NAMED]]
    more = f" and {len(blocks) - MAX_NAMED} more" if len(blocks) > MAX_NAMED else ""
    return f"no block has ended for {limit:.0f} s, in flight: {', '.join(named)}{more}"


def _threads(client: Any) -> int | None:
    """Threads of all workers that there are now, None if the scheduler does not say."""
    with suppress(Exception):
        return sum(aside(client.nthreads, seconds=LOOK).values())
    return None


def _width(client: Any, before: int) -> int:
    """Blocks to have in flight for the workers that there are now; as before if that is unknown."""
    threads = _threads(client)
    return before if threads is None else WINDOW * max(1, threads)


def _failure(future: Any) -> Exception | None:
    """Why an ended future has no result; None if it has one.

    The result itself stays where it is: to fetch it from each of a thousand workers would cost the
    scheduler more than all the rest. Where a worker dies with a result, Dask calls the future lost
    and computes it again; what the result stands for was committed before.
    """
    if future.status in ("finished", "lost"):
        return None
    try:
        return future.exception() or HdicaError(NO_SCHEDULER)
    except Exception as exc:
        return exc
