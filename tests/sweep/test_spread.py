"""Blocks over workers, as threads of this process where the scheduler is the real one."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from hdica.errors import HdicaError, Incomplete
from hdica.run import cluster as module
from hdica.run.cluster import NO_SCHEDULER, Patience
from hdica.run.worker import Care

QUIET = {"processes": False, "dashboard_address": None, "memory_limit": 0}


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Of a real scheduler with three threads."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=1, threads_per_worker=3, **QUIET) as cluster,
        Client(cluster) as connected,
    ):
        yield connected


@dataclass(frozen=True)
class Numbered:
    """What the spread looks at of a block, and its number."""

    number: int
    seconds: float = 1.0
    size: int = 1

    @property
    def label(self) -> str:
        return f"number {self.number}"


def blocks(count: int, seconds: float = 1.0) -> list[Any]:
    return [Numbered(number, seconds) for number in range(count)]


def spread(
    client: Any, todo: list[Any], compute: Any, patience: Patience | None = None
) -> Iterator[tuple[Any, Exception | None]]:
    return module.spread(client, iter(todo), Care(), patience or Patience(), compute)


def fail_at_five(block: Numbered, care: Care) -> None:
    if block.number == 5:
        raise ZeroDivisionError("five")


def test_every_block_is_computed_once_and_failures_are_told(client: Any) -> None:
    told = list(spread(client, blocks(40), fail_at_five))
    assert sorted(block.number for block, _ in told) == list(range(40))
    failures = {block.number: failure for block, failure in told if failure is not None}
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
    lost = module._failure(SimpleNamespace(status="pending", exception=lambda: None))
    assert isinstance(lost, HdicaError)
    assert str(lost) == NO_SCHEDULER
    cancelled = module._failure(SimpleNamespace(status="cancelled", exception=refuses))
    assert isinstance(cancelled, RuntimeError)


def test_a_block_is_committed_though_its_worker_dies_after_it() -> None:
    from distributed import Client, LocalCluster, wait

    with (
        LocalCluster(n_workers=1, threads_per_worker=1, **QUIET) as cluster,
        Client(cluster) as connected,
    ):
        future = connected.submit(fail_at_five, Numbered(1), Care())
        wait(future)
        # Not before: no worker is left to compute it once more.
        cluster.scale(0)
        deadline = time.monotonic() + 30
        while future.status == "finished" and time.monotonic() < deadline:
            time.sleep(0.01)
        assert future.status == "lost"
        assert module._failure(future) is None


RELEASED = threading.Event()


def wait_at_five(block: Numbered, care: Care) -> None:
    if block.number == 5:
        RELEASED.wait(20)


def test_a_block_that_never_ends_is_named_once_patience_is_over(client: Any) -> None:
    RELEASED.clear()
    quick = blocks(8, 0.01)
    told = []
    try:
        with pytest.raises(Incomplete) as raised:
            # Long enough for the others to end on a busy machine.
            told += spread(client, quick, wait_at_five, Patience(3.0))
    finally:
        RELEASED.set()
    assert str(raised.value) == "no block has ended for 3 s, in flight: 1 points of number 5"


def test_what_is_committed_meanwhile_counts_as_a_block_that_ends(
    client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    RELEASED.clear()
    monkeypatch.setattr(module, "LOOK", 0.05)
    points = iter([*range(4), *[4] * 100])

    def committed() -> int:
        point = next(points)
        if point == 3:
            RELEASED.set()
        return point

    began, patience = time.monotonic(), Patience(0.3, committed=committed)
    assert len(list(spread(client, [Numbered(5, 0.001)], wait_at_five, patience))) == 1
    assert time.monotonic() - began >= 0.9


def test_long_blocks_are_given_longer() -> None:
    assert Patience(5.0).limit(blocks(3)) == 10.0
    assert Patience(50.0).limit(blocks(3)) == 50.0
    assert Patience().limit(blocks(3)) == math.inf


def test_many_blocks_in_flight_are_not_all_named() -> None:
    said = module._stuck(blocks(20), 7.0)
    assert said.startswith(
        "no block has ended for 7 s, in flight: 1 points of number 0, 1 points of"
    )
    assert said.endswith("1 points of number 7 and 12 more")


def test_time_without_workers_does_not_count(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    RELEASED.clear()
    monkeypatch.setattr(module, "LOOK", 0.05)
    watched, noted = Watched(client), []

    def nobody() -> dict[str, int]:
        return {} if len(noted) < 3 else {"tcp://one": 1}

    watched.nthreads = nobody  # type: ignore[attr-defined]

    def note(text: str) -> None:
        noted.append(text)
        if len(noted) == 3:
            RELEASED.set()

    one = [Numbered(5, 0.001)]
    assert len(list(spread(watched, one, wait_at_five, Patience(0.2, note=note)))) == 1
    assert set(noted) == {"the scheduler has no workers; waiting for them"}


def test_a_scheduler_that_is_silent_is_not_asked_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LOOK", 0.05)
    RELEASED.clear()
    late = SimpleNamespace(nthreads=lambda: {"tcp://one": int(RELEASED.wait(5)) + 1})
    assert module._threads(late) is None
    RELEASED.set()
    assert module._threads(late) == 2
