"""A worker whose lifetime ends: its block is finished there, and begun nowhere else."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

SECONDS = 0.7


def block(path: str, number: int) -> int:
    with Path(path).open("a") as file:
        file.write(f"{number}\n")
    time.sleep(SECONDS)
    return number


async def begun_while_one_closes(worker_class: Any, file: Path) -> Counter[str]:
    """How often each of eight blocks was begun if one of two workers ends its lifetime."""
    import dask
    from distributed import Client, Scheduler, Worker

    quiet = {"dashboard_address": "127.0.0.1:0"}
    with dask.config.set({"distributed.worker.memory.monitor-interval": "50ms"}):
        async with (
            Scheduler(port=0, host="127.0.0.1", protocol="tcp://", **quiet) as scheduler,
            worker_class(scheduler.address, nthreads=1, name="ends", memory_limit="100GiB") as ends,
            Worker(scheduler.address, nthreads=1, name="stays"),
            Client(scheduler.address, asynchronous=True) as client,
        ):
            futures = client.map(block, [str(file)] * 8, range(8), pure=False)
            async with asyncio.timeout(20):
                while not ends.state.executing:
                    await asyncio.sleep(0.01)
                await ends.close_gracefully(reason="worker-lifetime-reached")
                assert await client.gather(futures) == list(range(8))
                assert set(scheduler.workers) != set()
    return Counter(file.read_text().split())


@pytest.mark.deep
def test_a_block_is_ended_where_it_was_begun(tmp_path: Path) -> None:
    from hdica.run.node import DrainingWorker

    begun = asyncio.run(begun_while_one_closes(DrainingWorker, tmp_path / "begun"))
    assert begun == {str(number): 1 for number in range(8)}


@pytest.mark.deep
def test_a_worker_of_dask_gives_it_away(tmp_path: Path) -> None:
    from distributed import Worker

    begun = asyncio.run(begun_while_one_closes(Worker, tmp_path / "begun"))
    assert sum(begun.values()) > 8


@pytest.mark.deep
def test_a_lifetime_drains(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the option that jobs start it with: nobody calls it."""
    from hdica.run.node import DrainingWorker

    async def closes() -> Counter[str]:
        from distributed import Client, Scheduler, Worker

        file = tmp_path / "begun"
        quiet = {"dashboard_address": "127.0.0.1:0"}
        async with (
            Scheduler(port=0, host="127.0.0.1", protocol="tcp://", **quiet) as scheduler,
            DrainingWorker(scheduler.address, nthreads=1, lifetime="1s") as ends,
            Worker(scheduler.address, nthreads=1),
            Client(scheduler.address, asynchronous=True) as client,
        ):
            async with asyncio.timeout(20):
                futures = client.map(block, [str(file)] * 6, range(6), pure=False)
                assert await client.gather(futures) == list(range(6))
                await ends.finished()
                assert len(scheduler.workers) == 1
        return Counter(file.read_text().split())

    assert asyncio.run(closes()) == {str(number): 1 for number in range(6)}
