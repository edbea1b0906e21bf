"""Workers that take too much memory, that hang, or that were stopped; clocks that jump."""

from __future__ import annotations

import os
import re
import signal
import struct
import time
from contextlib import suppress
from pathlib import Path

import pytest

from hdica.run.runner import run
from hdica.run.worker import POLL_SECONDS
from hdica.store.results import status
from hdica.study.study import study_from
from tests.faults.bench import LOCAL, SERIAL, Bench, content, kill
from tests.faults.cluster import Cluster

pytestmark = [pytest.mark.faults, pytest.mark.deep]

FEW = {
    "grid": {"tau": [0.1, 0.3], "Q0": [0.5]},
    "methods": {"walk": {"n": [10], "seeds": 8}, "line": {}},
}
DAY = 86_400.0


def test_a_worker_that_takes_too_much_memory_is_named_as_such(bench: Bench) -> None:
    bench.study = content(**FEW)
    bench.trouble.write_text("eat")
    greedy = bench.start({**LOCAL, "memory": "400MiB"})
    assert greedy.ended() == 1, greedy.text
    assert "it has ended the process that computed it (beyond its memory (" in greedy.sentence
    assert "points are pending" in greedy.sentence
    found = status(bench.out)
    assert 8 <= found.total("pending") < 18
    assert found.total("failed") == 0
    bench.trouble.unlink()
    bench.finish()


def test_the_memory_of_a_session_does_not_count_against_its_points(tmp_path: Path) -> None:
    """A block is computed in a fork, which begins with all that its parent has."""
    session = bytearray(os.urandom(2**20) * 400)
    one = {"grid": {"tau": [0.1], "Q0": [0.5]}, "methods": {"walk": {"n": [10], "seeds": 1}}}
    study = study_from(content(3 * POLL_SECONDS, **one))
    summary = run(
        study, tmp_path / "toy.zarr", progress=False, cluster={**SERIAL, "memory": "300MiB"}
    )
    assert summary.complete
    assert summary.counts == {"done": summary.computed}
    assert len(session) == 400 * 2**20


def test_a_run_in_which_no_block_ends_gives_up_and_names_them(bench: Bench) -> None:
    bench.study = content(**FEW)
    bench.trouble.write_text("hang")
    hung = bench.start({**LOCAL, "patience": 3})
    hung.until(bench.met, "the hang")
    began = time.monotonic()
    assert hung.ended() == 1, hung.text
    assert 3 <= time.monotonic() - began < 12
    assert re.search(r"no block has ended for 3 s, in flight: \d+ points of ", hung.sentence)
    assert "points of toy are pending, and a rerun computes them" in hung.sentence
    bench.trouble.unlink()
    bench.finish()


def test_a_worker_that_was_stopped_is_replaced(bench: Bench) -> None:
    # Dask looks for heartbeats every five minutes unless it is told otherwise.
    bench.variables["DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL"] = "1s"
    run = bench.start(LOCAL)
    run.until(lambda: bench.done() > 0, "the first block")
    victim = run.workers()[0]
    assert kill(victim, signal.SIGSTOP)
    assert run.ended() == 0, run.text
    run.gone()
    bench.whole()


def test_a_worker_that_stays_stopped_does_not_outlive_its_run(bench: Bench) -> None:
    run = bench.start({"mode": "local", "workers": 1, "patience": 3})
    run.until(lambda: bench.done() > 0, "the first block")
    assert kill(run.workers()[0], signal.SIGSTOP)
    assert run.ended() == 1, run.text
    assert "no block has ended for" in run.sentence
    bench.finish()


def test_a_scheduler_that_was_stopped_ends_the_run(bench: Bench) -> None:
    with Cluster(bench) as cluster:
        run = bench.start({**cluster.settings, "patience": 3})
        run.until(lambda: bench.done() > 0, "the first block")
        assert cluster.scheduler is not None
        assert kill(cluster.scheduler, signal.SIGSTOP)
        assert run.ended(60) == 1, run.text
        assert "no block has ended for" in run.sentence
    bench.finish()


@pytest.mark.parametrize("jump", [DAY, -DAY], ids=["ahead", "back"])
def test_a_clock_that_jumps_changes_nothing(bench: Bench, jump: float) -> None:
    clock = bench.folder / "clock"
    clock.write_bytes(struct.pack("d", 0.0))
    patched = Path(__file__).parent / "clock"
    path = os.pathsep.join((str(patched), bench.environment()["PYTHONPATH"]))
    bench.variables |= {"PYTHONPATH": path, "CLOCK_FILE": str(clock)}
    run = bench.start({**LOCAL, "patience": 5})
    run.until(lambda: bench.done() > 0, "the first block")
    with clock.open("r+b") as shared:
        shared.write(struct.pack("d", jump))
    now = time.time() + jump
    for file in bench.out.parent.rglob("*"):
        with suppress(FileNotFoundError):  # renamed meanwhile
            os.utime(file, (now, now))
    code = run.ended()
    # Dask counts on the clock: after a jump back it may wait for a day, and then patience ends.
    assert code == 0 or (code == 1 and "no block has ended" in run.sentence), run.text
    bench.finish()
