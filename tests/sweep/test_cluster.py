"""Where blocks are computed, and what the processes of a local cluster know."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hdica.sweep import cluster, runner
from hdica.sweep.block import BlockSummary
from hdica.sweep.cluster import THREAD_VARIABLES, cluster_settings, connect
from hdica.sweep.progress import Silent
from hdica.sweep.runner import RunSummary, run
from hdica.sweep.spread import Task
from hdica.sweep.study import study_from
from tests.sweep import toy

TODO = [Task(Path("segment"), block, 10, 0.1) for block in range(20)]


def here(monkeypatch: pytest.MonkeyPatch, how: dict[str, Any], taken: float = 0.1) -> int:
    """How many of 20 blocks are computed here that the model says take 0.1 s each."""
    clock = [0.0]

    def compute(path: Path, block: int) -> BlockSummary:
        clock[0] += taken
        return BlockSummary(10, {"done": 10}, taken)

    monkeypatch.setattr(runner, "compute_block", compute)
    monkeypatch.setattr(runner.time, "perf_counter", lambda: clock[0])
    summary = RunSummary()
    begun = runner._here(TODO, cluster_settings(how), summary, Silent())
    assert summary.computed == 10 * begun
    return begun


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
    "how", [{"workers": 2, "mode": "local"}, {"address": "tcp://127.0.0.1:1", "workers": 2}]
)
def test_where_processes_are_asked_for_nothing_is_computed_here(
    how: dict[str, Any], cold: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert here(monkeypatch, how) == 0


def test_loading_takes_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(cluster.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(cluster, "FORKS", False)
    cluster.start_loading.cache_clear()
    assert cluster.start_seconds() == cluster.COLD_START
    cluster.start_loading()
    monkeypatch.setattr(cluster, "FORKS", True)
    assert cluster.start_seconds() == cluster.COLD_START
    clock[0] += cluster.COLD_START + 0.1
    assert cluster.start_seconds() == cluster.WARM_START
    cluster.start_loading.cache_clear()


def environment(name: str) -> str | None:
    return os.environ.get(name)


def loaded() -> list[str]:
    return sorted(name for name in cluster.PRELOADED if name in sys.modules)


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
            if cluster.FORKS:
                assert list(client.run(loaded).values()) == [sorted(cluster.PRELOADED)] * 2


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
