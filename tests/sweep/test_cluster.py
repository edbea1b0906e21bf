"""Where blocks are computed, and what the processes of a local cluster know."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import psutil
import pytest

from hdica.run import processes, runner
from hdica.run.block import Block
from hdica.run.cluster import connect
from hdica.run.console import Progress
from hdica.run.plan import Task
from hdica.run.processes import THREAD_VARIABLES
from hdica.run.runner import run
from hdica.run.settings import cluster_settings
from hdica.run.worker import Care
from hdica.study.study import study_from
from tests.sweep import toy


def here(monkeypatch: pytest.MonkeyPatch, how: dict[str, Any], taken: float = 0.1) -> int:
    """How many of 20 blocks are computed here that the model says take 0.1 s each."""
    clock = [0.0]

    def compute(block: Block, *_: Any) -> None:
        clock[0] += taken

    monkeypatch.setattr(runner.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(runner, "run_block", compute)
    block = SimpleNamespace(size=1, seconds=0.1)
    monkeypatch.setattr(runner, "block_of", lambda placed, points: block)
    segment = SimpleNamespace(seconds_per_point=0.1)
    placed = SimpleNamespace(segment=segment, path=Path("segment"))
    todo = [Task(placed, np.array([k])) for k in range(20)]  # type: ignore[arg-type]
    some = runner._Run(None, [], todo, cluster_settings(how), Care())  # type: ignore[arg-type]
    return 20 - len(some._here(Progress()))


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """No libraries are loaded for workers; notes when that begins."""
    begun: list[str] = []
    monkeypatch.setattr(runner, "start_seconds", lambda: 1.8)
    monkeypatch.setattr(runner, "start_loading", lambda: begun.append("loading"))
    return begun


def test_what_takes_no_longer_than_a_start_is_computed_here(
    cold: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert here(monkeypatch, {"workers": 2}) == 20
    assert cold


def test_a_cluster_with_its_libraries_loaded_is_used_at_once(
    cold: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "start_seconds", lambda: 0.25)
    assert here(monkeypatch, {"workers": 2}) == 0
    assert not cold


def test_what_turns_out_slow_goes_to_a_cluster_and_what_turns_out_fast_does_not(
    cold: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The first block does not count: it may have loaded code. After the second it is known.
    assert here(monkeypatch, {"workers": 2}, taken=1.0) == 2
    assert here(monkeypatch, {"workers": 2}, taken=0.001) == 20


@pytest.mark.parametrize("how", [{"workers": 1}, {"workers": 8, "mode": "serial"}])
def test_one_process_is_never_left(
    how: dict[str, Any], cold: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert here(monkeypatch, how, taken=100.0) == 20
    assert not cold


@pytest.mark.parametrize(
    "how",
    [
        {"workers": 2, "mode": "local"},
        {"address": "tcp://127.0.0.1:1", "workers": 2},
        {"mode": "slurm"},
    ],
)
def test_where_processes_are_asked_for_nothing_is_computed_here(
    how: dict[str, Any], cold: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert here(monkeypatch, how) == 0


def test_loading_takes_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(processes.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(processes, "FORKS", False)
    processes.start_loading.cache_clear()
    assert processes.start_seconds() == processes.COLD_START
    processes.start_loading()
    monkeypatch.setattr(processes, "FORKS", True)
    assert processes.start_seconds() == processes.COLD_START
    clock[0] += processes.COLD_START + 0.1
    assert processes.start_seconds() == processes.WARM_START
    processes.start_loading.cache_clear()


def environment(name: str) -> str | None:
    return os.environ.get(name)


def loaded() -> list[str]:
    return sorted(name for name in processes.PRELOADED if name in sys.modules)


@pytest.mark.deep
def test_workers_have_one_thread_their_libraries_and_the_environment_of_now(
    toy_workers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = cluster_settings({"mode": "local", "workers": 2})
    for word in ("early", "late"):
        # The second cluster forks from a server that was started with the first word.
        monkeypatch.setenv("TOY_WORD", word)
        with connect(settings) as client:
            assert set(client.run(environment, "TOY_WORD").values()) == {word}
            for name in THREAD_VARIABLES:
                assert set(client.run(environment, name).values()) == {"1"}
            if processes.FORKS:
                assert list(client.run(loaded).values()) == [sorted(processes.PRELOADED)] * 2


def looked_in() -> list[str]:
    """Where a worker looks for modules."""
    return sys.path


def listening(process: psutil.Process) -> set[str]:
    """Addresses that a process listens on."""
    found = process.net_connections(kind="inet")
    return {f"{c.laddr.ip} {c.laddr.port}" for c in found if c.status == psutil.CONN_LISTEN}


def test_a_local_cluster_listens_on_loopback_alone() -> None:
    import dask
    import distributed  # noqa: F401  (its defaults must be there)

    here = psutil.Process()
    before, before_it = listening(here), (list(sys.path), dask.config.get("temporary-directory"))
    with connect(cluster_settings({"mode": "local", "workers": 2})) as client:
        workers = [psutil.Process(pid) for pid in client.run(os.getpid).values()]
        found = {"driver": listening(here) - before}
        found |= {f"worker {worker.pid}": listening(worker) for worker in workers}
        # Nothing is ever loaded from where Dask keeps its files.
        more = {path for one in client.run(looked_in).values() for path in one} - {*before_it[0]}
        assert not [path for path in more if "dask" in path]
    assert (sys.path, dask.config.get("temporary-directory")) == before_it
    # The driver's: scheduler and nannies. A worker's: itself. None has web pages.
    assert {place: len(sockets) for place, sockets in found.items()} == {
        "driver": 3,
        **{f"worker {worker.pid}": 1 for worker in workers},
    }
    hosts = {socket.split()[0] for sockets in found.values() for socket in sockets}
    assert hosts == {"127.0.0.1"}


def test_a_stopped_process_of_another_run_hinders_nobody(tmp_path: Path) -> None:
    """Dask has one lock for all of a machine, and whoever is stopped may be holding it."""
    import dask
    import distributed  # noqa: F401  (its defaults must be there before ours come and go)
    import locket

    scratch = tmp_path / "dask-scratch-space"
    scratch.mkdir()
    with (
        dask.config.set({"temporary-directory": str(tmp_path)}),
        locket.lock_file(str(scratch / "global.lock")),
        connect(cluster_settings({"mode": "local", "workers": 1})) as client,
    ):
        assert client.submit(sum, [1, 2]).result(timeout=30) == 3
        assert [path.name for path in scratch.iterdir()] == ["global.lock"]


def memory_settings() -> list[Any]:
    """What a worker makes of memory that runs short."""
    import dask

    return [dask.config.get(f"distributed.worker.memory.{name}") for name in ("pause", "terminate")]


def limit(dask_worker: Any) -> int | None:
    """Bytes that a worker or its nanny allows."""
    found: int | None = dask_worker.memory_manager.memory_limit
    return found


def test_memory_is_a_limit_that_restarts_and_never_pauses() -> None:
    settings = cluster_settings({"mode": "local", "workers": 1, "memory": "1GiB"})
    with connect(settings) as client:
        (worker,) = client.scheduler_info()["workers"].values()
        assert worker["memory_limit"] == 2**30
        assert list(client.run(memory_settings).values()) == [[False, 1.0]]
        assert list(client.run(limit, nanny=True).values()) == [2**30]


def test_without_a_limit_workers_have_none_and_no_more_start_than_there_are_blocks() -> None:
    with connect(cluster_settings({"mode": "local", "workers": 2}), 1) as client:
        (worker,) = client.scheduler_info()["workers"].values()
        assert not worker["memory_limit"]


@pytest.mark.deep
def test_a_run_on_processes_counts_what_the_store_says(out: Path, toy_workers: None) -> None:
    study = study_from(toy.study(grid={"tau": [0.1, 0.13, 0.17], "Q0": [0.5]}))
    local = {"mode": "local", "workers": 2}
    summary = run(study, out, cluster=local, progress=False, block=4)
    assert summary.computed == 36 + 3 + 1
    assert summary.counts == {"done": 16, "diverged": 12, "failed": 12}
    assert 0 <= summary.cpu_seconds < 10
    assert run(study, out, cluster=local, progress=False).computed == 0
    retried = run(study, out, cluster=local, progress=False, retry_failed=True)
    assert (retried.computed, retried.counts["failed"]) == (12, 12)


@pytest.mark.deep
@pytest.mark.parametrize(
    ("command", "absent"),
    [
        ("--help", ["numpy", "pydantic.types", "zarr"]),
        ("validate", ["numba", "zarr", "xarray", "pandas", "distributed", "scipy.optimize"]),
        ("plan", ["numba", "xarray", "pandas", "distributed", "scipy.optimize", "scipy.stats"]),
    ],
)
def test_a_command_does_not_wait_for_what_it_does_not_use(
    command: str, absent: list[str], tmp_path: Path
) -> None:
    root = Path(__file__).parents[2]
    study = root / "config/studies/tiny.yaml"
    arguments = {
        "--help": ["--help"],
        "validate": ["validate", str(study)],
        "plan": ["plan", str(study), "--out", str(tmp_path / "tiny.zarr"), "--json"],
    }[command]
    code = (
        "import sys; from hdica.cli import call; "
        f"code = call({arguments!r}); "
        f"sys.exit(code or ' '.join(name for name in {absent!r} if name in sys.modules) or 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
    assert (done.returncode, done.stderr) == (0, "")
