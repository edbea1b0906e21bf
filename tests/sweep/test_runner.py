from __future__ import annotations

import signal
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hdica.errors import HdicaError, Incomplete, OutOfMemory, Unwritable
from hdica.run import runner, worker
from hdica.run.block import block_of, compute
from hdica.run.console import report
from hdica.run.plan import block_points, plan, tasks
from hdica.run.runner import run
from hdica.run.settings import ClusterSettings
from hdica.run.worker import Care
from hdica.status import DIVERGED, DONE, FAILED, PENDING
from hdica.store import working
from hdica.store.files import make_folder
from hdica.store.publish import publish
from hdica.store.results import open_results
from hdica.store.working import place
from hdica.study.study import Study, study_from
from tests.sweep import toy
from tests.sweep.conftest import made, values

GROWN = {"tau": [0.05, 0.1, 0.2, 0.3, 0.4], "Q0": [0.25, 0.4, 0.5]}


@pytest.fixture
def study() -> Study:
    return study_from(toy.study())


@pytest.fixture
def expected(study: Study, tmp_path: Path) -> dict[str, bytes]:
    """What one undisturbed process publishes."""
    return made(study, tmp_path / "expected" / "toy.zarr")


@pytest.mark.parametrize("number", range(1, toy.CLOSES + 1))
def test_a_point_fails_alone_whatever_it_raises(
    out: Path, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "LOADING", 0.5)
    methods = {"walk": {"n": [10], "seeds": 1}}
    grid = {"tau": [0.1, 0.2], "Q0": [0.5]}
    constants = {"source": "laplace", "constants": {"trouble": number}}
    study = study_from(toy.study(parameters=constants, grid=grid, methods=methods))
    summary = run(study, out, progress=False)
    assert summary.counts == {"done": 1, "failed": 1}
    publish(study, out)
    reason = str(open_results(out)["walk"].sel(tau=0.1).reason.item())
    name = "" if number == toy.CLOSES else type(toy.TROUBLES[number - 1]).__name__
    assert name in reason
    assert reason.isprintable()


def test_late_points_are_stored_before_their_block_ends(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Late(worker.Worker):
        def call(self, function: Any, block: Any, limit: float, memory: int = 0) -> Any:
            if block.size > 1:
                raise worker.Ended("too long", own=True, late=True)
            if len(asked) == 2:
                raise Unwritable("the run ends")
            asked.append(block)
            if len(asked) == 2:
                raise worker.Ended("too long", own=True, late=True)
            return function(block)

    asked: list[Any] = []
    study = study_from(toy.study(methods={"walk": {"n": [10], "seeds": 4}}))
    (placed,) = place(study, out)
    make_folder(placed.path)
    with pytest.raises(Unwritable):
        worker.run_block(block_of(placed, np.arange(4)), runner.Care(1.0, 0), Late())
    assert placed.again().statuses[:4].tolist() == [DONE, FAILED, PENDING, PENDING]


@pytest.mark.parametrize(("parameters", "tau"), [({}, 0.19), ({"megabytes": 300}, 0.1)])
def test_a_process_that_lacked_memory_is_called_so_and_its_point_stays_pending(
    parameters: dict[str, float], tau: float, out: Path
) -> None:
    """Killed as Linux kills what a machine has no memory for, or beyond its own limit."""
    content = toy.study(
        parameters={"constants": parameters},
        grid={"tau": [tau]},
        methods={"walk": {"n": [10], "seeds": 1}},
    )
    (placed,) = place(study_from(content), out)
    make_folder(placed.path)
    with pytest.raises(OutOfMemory), closing(worker.new_worker()) as process:
        worker.run_block(block_of(placed, np.arange(1)), Care(60.0, 250 * 2**20), process)
    assert placed.again().statuses.tolist() == [PENDING]


def test_a_caller_that_ignores_its_children_is_no_hindrance(
    study: Study, out: Path, expected: dict[str, bytes]
) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert made(study, out) == expected
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_looks_for_blocks_of_others_take_no_more_than_their_share(
    study: Study, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, looks, slow, each_block = [0.0], [0], 1.0, 20.0
    listed = working.list_blocks

    def slow_listing(folder: Path) -> Any:
        clock[0] += slow
        looks[0] += 1
        return listed(folder)

    placed = place(study, out)
    assert all(each.statuses.size for each in placed)
    todo = runner.tasks(placed, block=1)
    monkeypatch.setattr(runner.time, "monotonic", lambda: clock[0])
    one = runner._Run(study, placed, todo, runner.cluster_settings(None, 1), runner.Care(1.0, 0))
    monkeypatch.setattr(working, "list_blocks", slow_listing)
    with report("toy", 1, 1.0, False, 1, "") as shown:
        for _ in one._blocks(todo, shown):
            clock[0] += each_block
    share = looks[0] * slow / (len(todo) * each_block)
    assert 0 < share < 1.5 * runner.LOOK_SHARE


@pytest.mark.deep
@pytest.mark.parametrize("block", [1, 5, 7, 4096])
def test_the_size_of_blocks_changes_no_bit(
    study: Study, out: Path, expected: dict[str, bytes], block: int
) -> None:
    assert made(study, out, block=block) == expected


@pytest.mark.deep
def test_the_order_of_blocks_changes_no_bit(
    study: Study, out: Path, expected: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = runner.tasks
    shuffle = np.random.default_rng(3).permutation

    def shuffled(*arguments: Any) -> list[runner.Task]:
        found = real(*arguments)
        return [found[i] for i in shuffle(len(found))]

    monkeypatch.setattr(runner, "tasks", shuffled)
    assert made(study, out, block=4) == expected


def test_two_processes_change_no_bit(
    study: Study, out: Path, expected: dict[str, bytes], toy_workers: None
) -> None:
    assert made(study, out, block=4, cluster={"mode": "local", "workers": 2}) == expected


@pytest.mark.deep
def test_shards_in_any_order_change_no_bit(
    study: Study, out: Path, expected: dict[str, bytes]
) -> None:
    computed = [run(study, out, shard=(i, 3), progress=False, block=4).computed for i in (2, 0, 1)]
    assert min(computed) > 0
    assert sum(computed) == 79
    publish(study, out)
    assert values(out) == expected


def test_a_rerun_computes_nothing(study: Study, out: Path, calls: Path) -> None:
    assert run(study, out, progress=False).computed == 79
    assert len(calls.read_text().splitlines()) == 79
    assert run(study, out, progress=False).computed == 0
    assert len(calls.read_text().splitlines()) == 79


@pytest.mark.deep
def test_a_grown_grid_computes_its_new_points_alone(study: Study, out: Path, calls: Path) -> None:
    run(study, out, progress=False)
    calls.write_text("")
    methods = {"walk": {"n": [10, 20, 30], "seeds": 8}, "line": {}, "steady": {}}
    larger = study_from(toy.study(grid=GROWN, methods=methods))
    summary = run(larger, out, progress=False)
    assert summary.computed == 15 * 3 * 8 + 15 - 72 - 6
    assert len(calls.read_text().splitlines()) == summary.computed
    publish(larger, out)
    alone = out.with_name("alone.zarr")
    assert values(out) == made(larger, alone)


def test_a_study_that_shrinks_publishes_what_it_says(study: Study, out: Path) -> None:
    run(study_from(toy.study(grid=GROWN)), out, progress=False)
    assert run(study, out, progress=False).computed == 0
    publish(study, out)
    assert open_results(out)["line"].sizes == {"tau": 3, "Q0": 2, "time": 3}


def test_other_times_and_other_kernels_are_computed_anew(out: Path, calls: Path) -> None:
    run(study_from(toy.study()), out, progress=False)
    assert run(study_from(toy.study(times=[0, 1])), out, progress=False).computed == 79
    toy.register(kernel="8")
    assert run(study_from(toy.study()), out, progress=False).computed == 79


def test_a_point_that_fails_or_diverges_is_recorded_and_the_rest_goes_on(out: Path) -> None:
    study = study_from(toy.study(grid={"tau": [0.1, 0.13, 0.17], "Q0": [0.5]}))
    summary = run(study, out, progress=False)
    assert summary.counts == {"done": 16, "diverged": 12, "failed": 12}
    publish(study, out)
    walk = open_results(out)["walk"].to_dataset()
    bad = walk.sel(tau=0.13)
    assert (bad.status == FAILED).all()
    assert bad.Q.isnull().all()
    reason = "ZeroDivisionError: step size 0.13 is unlucky"
    assert set(bad.reason.values.ravel().tolist()) == {reason}
    gone = walk.sel(tau=0.17)
    assert (gone.status == DIVERGED).all()
    assert gone.Q.isel(time=slice(0, -1)).notnull().all()
    assert gone.Q.isel(time=-1).isnull().all()
    assert set(gone.reason.values.ravel().tolist()) == {"diverged at step 7, time 0.5"}
    assert (walk.sel(tau=0.1).reason == "").all()


def test_failed_points_are_tried_again_only_on_request(
    out: Path, calls: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    study = study_from(toy.study(grid={"tau": [0.1, 0.13], "Q0": [0.5]}))
    run(study, out, progress=False)
    assert run(study, out, progress=False).computed == 0
    calls.write_text("")
    summary = run(study, out, progress=False, retry_failed=True)
    assert summary.counts == {"failed": 12}
    assert len(calls.read_text().splitlines()) == 12
    publish(study, out)
    assert (open_results(out)["walk"].sel(tau=0.1).status == DONE).all()


def test_a_result_of_the_wrong_shape_fails_its_point(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    method = toy.make()["line"]
    object.__setattr__(method, "run", lambda *_: toy.PointResult({"Q": np.ones(3), "twice": 1.0}))
    toy.lend(monkeypatch, method)
    study = study_from(toy.study(methods={"line": {}}))
    assert run(study, out, progress=False).counts["failed"] == 6
    (line,) = place(study, out)
    assert "expected (3,)" in line.read("reason", np.array([0]), "", object)[0]


def test_a_worker_with_other_code_computes_nothing(study: Study, out: Path) -> None:
    block = block_of(place(study, out)[0], np.arange(3))
    toy.register(kernel="8")
    with pytest.raises(HdicaError, match="this process runs kernel 8 of Toy.walk"):
        compute(block)


def test_a_plan_says_what_a_run_does_and_writes_nothing(study: Study, out: Path) -> None:
    made = plan(study, out)
    assert not out.parent.exists()
    assert (made.points, made.pending) == (79, 79)
    assert [(s.method, s.n, s.points) for s in made.segments] == [
        ("walk", 10, 36),
        ("walk", 30, 36),
        ("line", None, 6),
        ("steady", None, 1),
    ]
    run(study, out, progress=False)
    assert plan(study, out).pending == 0
    assert plan(study_from(toy.study(grid=GROWN)), out).pending == 15 * 2 * 6 + 15 - 72 - 6


@pytest.mark.parametrize(
    ("seconds", "points", "block"),
    [
        (1e-7, 2000, 2000),
        (1e-7, 10_000, 4096),
        (1e-3, 100, 100),
        (1e-3, 4000, 200),
        (1e-3, 1_000_000, 2000),
        (10.0, 100, 1),
        (0.05, 100_000, 40),
        (1.0, 10**6, 15),
        (1.0, 10**8, 60),
    ],
)
def test_a_block_is_worth_its_task(seconds: float, points: int, block: int) -> None:
    """0.2 to 2 s of work, 64 blocks where the work allows it, and at most a minute for 65,536."""
    assert block_points(seconds, points) == block


def test_blocks_for_many_workers_are_longer() -> None:
    assert block_points(1.0, 10**5, workers=100) == 2
    assert block_points(1.0, 320_000, workers=2000) == 16


@pytest.mark.parametrize(("size", "block"), [(100, 2000), (2**14, 1024), (2**23, 2), (10**9, 1)])
def test_a_block_of_large_points_is_small(size: int, block: int) -> None:
    assert block_points(1e-3, 10**6, size) == block


def test_a_block_has_what_a_kernel_computes_side_by_side() -> None:
    given = {"study": "lanes", "system": "OnlineICA", "parameters": {"tau": 0.05}, "times": [1e5]}
    few = study_from({**given, "methods": {"chain": {"n": 10**6, "seeds": 48}}})
    asked = plan(few).segments[0]
    assert asked.points == 48
    assert asked.blocks == 6  # of eight chains, although one alone takes minutes
    other = study_from({**given, "methods": {"vector": {"n": 10**4, "seeds": 3}}})
    assert plan(other).segments[0].blocks == 3


@pytest.mark.parametrize("shard", [(-1, 2), (2, 2), (0, 0)])
def test_a_wrong_shard_is_refused(study: Study, out: Path, shard: tuple[int, int]) -> None:
    with pytest.raises(HdicaError, match=r"0 <= i < m"):
        run(study, out, shard=shard)


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        ({"mode": "loacl"}, "cluster: mode = 'loacl' is not allowed"),
        ({"wokers": 2}, "did you mean 'workers'"),
        ({"workers": 0}, "cluster: workers = 0 is not allowed"),
        ({"scheduler_file": "absent.json"}, "scheduler_file = 'absent.json' does not exist"),
        ({"mode": "scheduler"}, "mode = 'scheduler' needs an address or a scheduler_file"),
    ],
)
def test_wrong_cluster_settings_are_refused(
    study: Study, out: Path, cluster: dict[str, Any], message: str
) -> None:
    with pytest.raises(HdicaError, match=message):
        run(study, out, cluster=cluster, progress=False)


def test_no_scheduler_is_one_sentence(study: Study, out: Path) -> None:
    import dask
    import distributed  # noqa: F401  (its defaults must be there before ours come and go)

    with (
        dask.config.set({"distributed.comm.timeouts.connect": "0.2s"}),
        pytest.raises(HdicaError, match="no Dask scheduler answers at tcp://127.0.0.1:9"),
    ):
        run(study, out, cluster={"address": "tcp://127.0.0.1:9"}, progress=False)


def test_a_segment_whose_files_vanish_first_was_removed_all_the_same(
    study: Study, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``rm -r`` removes a folder last: when a block cannot be written, it may stand yet."""

    def write(folder: Path, *rest: Any) -> None:
        raise FileNotFoundError(2, "No such file or directory", str(folder))

    monkeypatch.setattr("hdica.run.block.write_block", write)
    with pytest.raises(
        Incomplete, match=r"walk-n10-\w+ was removed while the run went on; a rerun"
    ):
        run(study, out, progress=False)


def test_the_environment_of_workers_has_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    from hdica.run.processes import THREAD_VARIABLES, for_children

    monkeypatch.setenv("OMP_NUM_THREADS", "8")
    monkeypatch.delenv("NUMBA_NUM_THREADS", raising=False)
    with for_children():
        assert {os.environ[name] for name in THREAD_VARIABLES} == {"1"}
    assert os.environ["OMP_NUM_THREADS"] == "8"
    assert "NUMBA_NUM_THREADS" not in os.environ


def test_folders_that_somebody_has_removed_have_no_files(study: Study, out: Path) -> None:
    """A run that waits for its blocks looks at what they have committed, and raises no error."""
    placed = place(study, out)
    todo = tasks(placed, (0, 1), False, None, 1)
    waiting = runner._Run(study, placed, todo, ClusterSettings(), Care())
    assert not any(each.path.exists() for each in placed)
    assert waiting._committed() == 0
