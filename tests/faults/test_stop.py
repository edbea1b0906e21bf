"""Runs that are told to stop, and runs whose driver dies: nothing goes on behind their back."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from hdica.errors import Stopped
from hdica.run.console import aside, heeding, unbroken
from hdica.run.plan import block_size
from hdica.study.segment import segments_of
from hdica.study.study import study_from
from tests.faults.bench import LOCAL, SERIAL, Bench, alive, content, kill
from tests.faults.cluster import Cluster
from tests.faults.workflow import WorkflowBench

pytestmark = [pytest.mark.faults, pytest.mark.deep]

STATUS = {signal.SIGTERM: 143, signal.SIGINT: 130}


def stopped(bench: Bench, cluster: dict[str, Any], number: int, group: bool = False) -> None:
    """Start a run, tell it to stop once it computes, and check how it does."""
    run = bench.start(cluster)
    run.until(lambda: bench.met() or len(bench.calls) > 0, "the first point")
    family = run.session()
    told = time.monotonic()
    (os.killpg if group else os.kill)(run.process.pid, number)
    assert run.ended(20) == STATUS[signal.Signals(number)], run.text
    assert time.monotonic() - told < 8
    name = signal.Signals(number).name
    assert f"hdica: stopped by {name}; " in run.sentence
    assert "points of toy are pending, and a rerun computes them" in run.sentence
    run.gone()
    assert not [one for one in family if alive(one)]
    bench.undamaged()


@pytest.mark.parametrize("number", STATUS, ids=lambda number: number.name)
def test_a_run_on_processes_stops_when_it_is_told(bench: Bench, number: int) -> None:
    stopped(bench, LOCAL, number)
    bench.finish()


def test_a_keyboard_tells_all_processes_at_once(bench: Bench) -> None:
    stopped(bench, LOCAL, signal.SIGINT, group=True)


def test_a_job_scheduler_tells_all_processes_at_once(bench: Bench) -> None:
    stopped(bench, LOCAL, signal.SIGTERM, group=True)


def test_a_run_stops_in_the_middle_of_a_kernel(bench: Bench) -> None:
    bench.study = content(grid={"tau": [0.3], "Q0": [0.5]})
    bench.trouble.write_text("hang")
    stopped(bench, SERIAL, signal.SIGTERM)
    bench.trouble.unlink()
    bench.finish()


def test_a_run_stops_while_its_workers_start(bench: Bench) -> None:
    run = bench.start(LOCAL)
    run.until(lambda: bool(run.workers()), "the first worker")
    kill(run.process, signal.SIGTERM)
    assert run.ended(15) == 143, run.text
    assert run.sentence
    bench.finish()


def test_workers_elsewhere_do_not_go_on_for_a_driver_that_died_or_stopped(bench: Bench) -> None:
    bench.study = content(0.01, methods={"walk": {"n": [10], "seeds": 160}})
    with Cluster(bench) as cluster:
        for number in (signal.SIGKILL, signal.SIGTERM):
            before = len(bench.calls)
            run = bench.start(cluster.settings)
            run.until(lambda seen=before: len(bench.calls) > seen, "the first point")
            kill(run.process, number)
            assert run.ended(10) == (-9 if number == signal.SIGKILL else 143), run.text
            settled = -1
            while settled != len(bench.calls):
                settled = len(bench.calls)
                time.sleep(1)
            # Each worker ended the block that it had begun.
            walk = segments_of(study_from(bench.study))[0]
            assert settled - before <= 2 * block_size(walk)
            assert settled < 960
            bench.undamaged()
    bench.finish()


def test_a_signal_is_heeded_once_and_handlers_are_restored() -> None:
    before = {number: signal.getsignal(number) for number in STATUS}

    def twice() -> None:
        with heeding() as told:
            try:
                os.kill(os.getpid(), signal.SIGTERM)
                time.sleep(5)
            finally:
                os.kill(os.getpid(), signal.SIGINT)
                assert [one.status for one in told] == [143]

    with pytest.raises(Stopped, match="stopped by SIGTERM"):
        twice()
    assert {number: signal.getsignal(number) for number in STATUS} == before


def test_a_signal_waits_for_what_must_not_be_left_half_made() -> None:
    made: list[str] = []

    def make(signals: int) -> None:
        with heeding():
            with unbroken():
                for _ in range(signals):
                    os.kill(os.getpid(), signal.SIGTERM)
                    time.sleep(0.01)
                made.append("whole")
            made.append("more")

    with pytest.raises(Stopped, match="stopped by SIGTERM"):
        make(1)
    assert made == ["whole"]
    with pytest.raises(Stopped, match="stopped by SIGTERM"):
        make(2)
    assert made == ["whole"]
    make(0)
    assert made == ["whole", "whole", "more"]


def test_a_signal_that_somebody_else_handles_is_left_to_them() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        with heeding() as told:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.01)
        assert (heard, told) == ([signal.SIGTERM], [])
    finally:
        signal.signal(signal.SIGTERM, before)


def test_only_the_main_thread_heeds_signals() -> None:
    found: list[bool] = []

    def elsewhere() -> None:
        before = signal.getsignal(signal.SIGTERM)
        with heeding():
            found.append(signal.getsignal(signal.SIGTERM) == before)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join(5)
    assert found == [True]


def test_what_another_thread_computes_comes_back_as_it_is() -> None:
    assert aside(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        aside(divmod, 1, 0)
    with pytest.raises(TimeoutError):
        aside(time.sleep, 1.0, seconds=0.01)


def test_a_job_of_the_workflow_says_in_its_log_that_it_was_stopped(tmp_path: Path) -> None:
    with WorkflowBench.made(tmp_path) as bench:
        run = bench.start()
        run.until(lambda: bench.done() > 0, "the first block")
        os.killpg(run.process.pid, signal.SIGTERM)
        assert run.ended(30) != 0, run.text
        run.gone()
        log = (tmp_path / "logs/long/shard-0-of-1.log").read_text()
        assert "stopped by SIGTERM; " in log
        assert "points of long are pending, and a rerun computes them" in log
        assert "Traceback" not in log
        bench.finish()
