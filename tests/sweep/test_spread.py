"""Blocks over workers, as threads of this process where the scheduler is the real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hdica.errors import HdicaError
from hdica.sweep import spread as module
from hdica.sweep.spread import NO_SCHEDULER, Task, spread


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Of a real scheduler with three threads."""
    from distributed import Client, LocalCluster

    quiet = {"processes": False, "dashboard_address": None, "memory_limit": 0}
    with (
        LocalCluster(n_workers=1, threads_per_worker=3, **quiet) as cluster,
        Client(cluster) as connected,
    ):
        yield connected


def blocks(count: int) -> list[Task]:
    return [Task(Path("segment"), block, 1, 1.0) for block in range(count)]


def fail_at_five(path: Path, block: int) -> None:
    if block == 5:
        raise ZeroDivisionError("five")


def test_every_block_is_computed_once_and_failures_are_told(client: Any) -> None:
    told = list(spread(client, blocks(40), fail_at_five))
    assert sorted(task.block for task, _ in told) == list(range(40))
    failures = {task.block: failure for task, failure in told if failure is not None}
    assert list(failures) == [5]
    assert isinstance(failures[5], ZeroDivisionError)


def test_no_block_is_no_work(client: Any) -> None:
    assert list(spread(client, [], fail_at_five)) == []


class Watched:
    """A client that notes how many blocks are in flight."""

    def __init__(self, client: Any) -> None:
        self.client, self.sent, self.sizes = client, 0, []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def map(self, function: Any, *arguments: Any, **how: Any) -> Any:
        self.sent += len(arguments[0])
        return self.client.map(function, *arguments, **how)


def test_a_window_bounds_what_is_in_flight(client: Any) -> None:
    watched = Watched(client)
    for told, _ in enumerate(spread(watched, blocks(100), fail_at_five)):
        # A batch is told one by one, after the blocks that follow it were sent.
        assert watched.sent - told <= 2 * module.WINDOW * 3
    assert watched.sent == 100


def test_workers_that_come_later_get_work(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK", -1.0)
    watched, threads = Watched(client), iter([1, *[25] * 200])
    watched.nthreads = lambda: {"tcp://one": next(threads)}  # type: ignore[attr-defined]
    told = spread(watched, blocks(200), fail_at_five)
    next(told)
    assert watched.sent >= 25 * module.WINDOW
    assert len(list(told)) == 199


def test_a_scheduler_that_does_not_answer_keeps_the_window() -> None:
    def gone() -> dict[str, int]:
        raise OSError("timed out")

    assert module._width(SimpleNamespace(nthreads=gone), 12) == 12
    assert module._width(SimpleNamespace(nthreads=dict), 12) == module.WINDOW


def test_a_future_without_result_or_reason_means_a_lost_scheduler() -> None:
    def refuses() -> None:
        raise RuntimeError("cancelled")

    assert module._failure(SimpleNamespace(status="finished")) is None
    lost = module._failure(SimpleNamespace(status="lost", exception=lambda: None))
    assert isinstance(lost, HdicaError)
    assert str(lost) == NO_SCHEDULER
    cancelled = module._failure(SimpleNamespace(status="cancelled", exception=refuses))
    assert isinstance(cancelled, RuntimeError)
