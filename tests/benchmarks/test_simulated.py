"""Simulated workers are as many as said, and their blocks as long as the planner makes them."""

import asyncio
from collections import Counter

import pytest

from benchmarks import scaling, scheduler, simulated
from hdica.run.plan import block_points

ASLEEP = Counter()
"""How many sleep now, and how many did at most."""


async def counted(block, care):
    """A nap that ends when four have begun, so that fewer at a time would never end."""
    ASLEEP["now"] += 1
    ASLEEP["most"] = max(ASLEEP["most"], ASLEEP["now"])
    while ASLEEP["most"] < 4:
        await asyncio.sleep(0.01)
    await asyncio.sleep(block.seconds)
    ASLEEP["now"] -= 1


@pytest.mark.parametrize(("threads", "connections"), [(1, 4), (2, 2), (50, 1)])
def test_workers_share_connections(threads, connections, monkeypatch):
    with simulated.sleepers(4, threads) as client:
        assert sorted(client.nthreads().values()) == [4 // connections] * connections
        ASLEEP.clear()
        monkeypatch.setattr(simulated, "_nap", counted)
        # Four at a time, twice.
        assert simulated.wall(client, 8, 0.1) >= 0.2
        assert ASLEEP == {"now": 0, "most": 4}


def test_workers_are_divided_evenly_over_connections():
    for workers in {*scaling.SIMULATED, *scheduler.WORKERS}:
        assert workers % min(workers, simulated.THREADS) == 0


def test_a_block_that_fails_is_an_error(monkeypatch):
    async def broken(block, care):
        raise ZeroDivisionError

    with simulated.sleepers(1) as client:
        monkeypatch.setattr(simulated, "_nap", broken)
        with pytest.raises(ZeroDivisionError):
            simulated.wall(client, 2, 0.0)


def test_the_planner_makes_longer_blocks_for_many_workers():
    assert simulated.planned_seconds(10) == 2
    assert simulated.planned_seconds(1000) == 8
    assert block_points(0.1, 800_000, workers=10) == 20
    assert block_points(0.1, 800_000, workers=1000) == 80


def test_what_is_asked_of_the_scheduler_is_less_than_it_can_do():
    (one,) = scheduler.driven(4, (0.1,), empty=100)
    assert (one.workers, one.seconds, one.asked) == (4, 0.1, 40)
    assert one.over >= 1
    assert one.rate > 0
