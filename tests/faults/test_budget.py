"""Points that take for ever or end their process: they fail, and their neighbours are stored."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from hdica.run import worker
from hdica.run.runner import run
from hdica.store.results import open_results, status
from hdica.study.study import study_from
from tests.faults import trouble
from tests.faults.bench import LOCAL, SERIAL, Bench, content
from tests.faults.cluster import Cluster

pytestmark = [pytest.mark.faults, pytest.mark.deep]

ONE = {"grid": {"tau": [0.1, 0.3, 0.2], "Q0": [0.5]}, "methods": {"walk": {"n": [10], "seeds": 1}}}
"""Three points in one block; the one in the middle has its trouble."""
BUDGET = {"budget": 0.4}
LOADING = 2.0
"""Seconds more for a new process: here it is a fork, which has nothing to load."""
OVER = "over its budget: 0.4 s of processor time were not enough, and the plan says 1e-05 s"
NO_RESPITE = {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "0"}


@pytest.fixture(autouse=True)
def _nothing_to_load(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    bench.variables |= {trouble.LOADING: str(LOADING)}
    monkeypatch.setattr(worker, "LOADING", LOADING)


def troubled(bench: Bench, kind: str, cluster: dict[str, Any], why: str, **changes: Any) -> None:
    """One point of a block fails for its trouble, the others are stored, and it can be retried."""
    bench.study = content(0.0, **{**ONE, **changes})
    bench.trouble.write_text(kind)
    run = bench.start({**cluster, **BUDGET})
    assert run.ended() == 1, run.text
    assert bench.met()
    assert "1 point failed; the reasons are in the variable" in run.sentence
    run.gone()
    found = status(bench.out)
    counts = [found.total(word) for word in ("done", "failed", "pending")]
    assert counts == [2, 1, 0]
    (method,) = bench.study["methods"]
    bad = open_results(bench.out)[method].sel(tau=0.3)
    assert str(bad.reason.item()).startswith(why), bad.reason.item()
    assert bad.Q.isnull().all()


@pytest.mark.parametrize("kind", ["loop", "swallow", "integrate", "spin", "clutch", "hang"])
def test_a_point_over_its_budget_fails_alone_in_the_run_itself(bench: Bench, kind: str) -> None:
    troubled(bench, kind, SERIAL, OVER)


@pytest.mark.parametrize("kind", ["loop", "spin", "hang"])
def test_a_point_over_its_budget_fails_alone_in_a_worker(bench: Bench, kind: str) -> None:
    bench.variables |= NO_RESPITE
    troubled(bench, kind, {**LOCAL, "workers": 1}, OVER)


def test_a_block_with_many_points_over_their_budget_ends(bench: Bench) -> None:
    """Each is committed at once, and the patience of the run begins anew with it."""
    seeds = {"walk": {"n": [10], "seeds": 6}}
    bench.study = content(0.0, **{**ONE, "methods": seeds})
    bench.trouble.write_text("loop")
    run = bench.start({**LOCAL, "workers": 1, **BUDGET, "patience": 10 * LOADING})
    assert run.ended() == 1, run.text
    assert "6 points failed; the reasons are in the variable" in run.sentence
    found = status(bench.out)
    assert [found.total(word) for word in ("done", "failed", "pending")] == [12, 6, 0]


def test_a_job_that_was_suspended_is_no_fault_of_its_point(bench: Bench) -> None:
    """It lasts longer than reading a block and its first point may take."""
    bench.study = content(0.0, **ONE)
    bench.trouble.write_text("pause")
    run = bench.start({**SERIAL, **BUDGET})

    def stopped() -> list[psutil.Process]:
        return [one for one in run.session() if one.status() == psutil.STATUS_STOPPED]

    run.until(lambda: bool(stopped()), "a process that is stopped")
    time.sleep(LOADING + 3 * BUDGET["budget"] + 2)
    for one in stopped():
        one.resume()
    assert run.ended() == 0, run.text
    run.gone()
    bench.whole()


def test_what_failed_for_its_budget_is_tried_again_on_request(bench: Bench) -> None:
    troubled(bench, "loop", SERIAL, OVER)
    bench.trouble.unlink()
    before = len(bench.calls)
    assert bench.start(SERIAL).ended() == 1
    assert len(bench.calls) == before
    assert bench.start(SERIAL, "--retry-failed").ended() == 0
    assert len(bench.calls) == before + 1
    bench.whole()


def test_a_point_over_its_budget_fails_alone_in_workers_elsewhere(bench: Bench) -> None:
    with Cluster(bench, 1) as cluster:
        troubled(bench, "spin", cluster.settings, OVER)


@pytest.mark.parametrize("where", [SERIAL, {**LOCAL, "workers": 1}], ids=["itself", "worker"])
def test_a_point_that_ends_its_process_fails_alone(bench: Bench, where: dict[str, Any]) -> None:
    bench.variables |= NO_RESPITE
    troubled(bench, "crash", where, "it has ended the process that computed it (SIGSEGV)")


@pytest.mark.parametrize("kind", ["loop", "swallow", "spin", "clutch", "crash"])
def test_a_point_is_found_among_those_that_are_computed_together(bench: Bench, kind: str) -> None:
    why = "it has ended the process" if kind == "crash" else OVER
    troubled(bench, kind, SERIAL, why, methods={"herd": {"n": [10], "seeds": 1}})


@pytest.mark.parametrize("kind", ["loop", "spin"])
def test_a_session_goes_on_without_the_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    file, out = tmp_path / "trouble.txt", tmp_path / "toy.zarr"
    file.write_text(kind)
    monkeypatch.setenv(trouble.VARIABLE, str(file))
    study = study_from(content(0.0, **ONE))
    summary = run(study, out, progress=False, cluster={**SERIAL, **BUDGET})
    assert summary.counts == {"done": 2, "failed": 1}
    assert (summary.computed, summary.complete) == (3, True)
    file.unlink()
    assert run(study, out, progress=False, retry_failed=True).counts["done"] == 1
