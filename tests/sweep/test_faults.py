"""Processes are killed with SIGKILL while they compute; no number may change or be lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from hdica.sweep.integrity import verify
from hdica.sweep.publish import publish
from hdica.sweep.runner import run
from hdica.sweep.status import status
from hdica.sweep.study import Study, study_from
from tests.sweep import toy
from tests.sweep.conftest import values

pytestmark = pytest.mark.faults

ROOT = Path(__file__).parents[2]
LOCAL = json.dumps({"mode": "local", "workers": 2})
SLOW = toy.study(
    parameters={"constants": {"sleep": 0.03}},
    methods={"walk": {"n": [10], "seeds": 14}, "line": {}},
    save={"snapshots": [0.5], "x": [-1, 0, 1], "functionals": {"mse": "(x - xi)**2"}},
)


@pytest.fixture
def study() -> Study:
    return study_from(SLOW)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("DASK_DISTRIBUTED__WORKER__PRELOAD", '["tests.sweep.preload"]')


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path, out: Path, environment: None) -> Iterator[Start]:
    """Start a run of a study in a process group of its own."""
    started = []

    def begin(study: Study, cluster: str = LOCAL) -> subprocess.Popen[str]:
        file = tmp_path / f"{study.study}.json"
        file.write_text(study.model_dump_json(exclude_none=True))
        command = [sys.executable, "-m", "tests.sweep.drive", str(file), str(out), cluster]
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def wait_for(condition: Callable[[], bool], what: str, seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"{what} did not happen within {seconds} s"
        time.sleep(0.02)


def done(out: Path) -> int:
    try:
        return status(out).total("done")
    except ValueError:
        return 0


def workers(process: subprocess.Popen[str]) -> list[psutil.Process]:
    children = psutil.Process(process.pid).children(recursive=True)
    forked = [child for child in children if child.ppid() != process.pid]
    return forked or [child for child in children if "spawn_main" in " ".join(child.cmdline())]


def undisturbed(study: Study, tmp_path: Path) -> dict[str, bytes]:
    fast = tmp_path / "undisturbed" / "toy.zarr"
    run(study, fast, progress=False)
    publish(study, fast)
    return values(fast)


def test_a_killed_worker_costs_its_block_alone(
    study: Study, start: Start, out: Path, tmp_path: Path
) -> None:
    process = start(study)
    wait_for(lambda: done(out) > 0, "the first block")
    victim = workers(process)[0]
    victim.kill()
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    assert json.loads(stdout) == {"pending": 0, "lost": []}
    assert verify(out).code == 0
    assert values(out) == undisturbed(study, tmp_path)


def test_a_killed_run_resumes_where_it_was(
    study: Study, start: Start, out: Path, tmp_path: Path, calls: Path
) -> None:
    process = start(study)
    wait_for(lambda: done(out) > 0, "the first block")
    orphans = workers(process)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    wait_for(lambda: not any(w.is_running() for w in orphans), "the end of the workers", 20)
    verdict = verify(out)
    assert verdict.code == 1, verdict.damaged
    left = status(out).total("pending")
    assert 0 < left < 90
    calls.write_text("")
    assert run(study, out, progress=False).computed == left
    assert len(calls.read_text().splitlines()) == left
    publish(study, out)
    assert verify(out).code == 0
    assert values(out) == undisturbed(study, tmp_path)


def test_a_point_that_kills_its_worker_leaves_the_rest_alone(
    start: Start, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    methods = {"walk": {"n": [10], "seeds": 8}, "line": {}}
    study = study_from(toy.study(grid={"tau": [0.1, 0.19], "Q0": [0.5]}, methods=methods))
    process = start(study)
    stdout, stderr = process.communicate(timeout=120)
    assert process.returncode == 0, stderr
    summary = json.loads(stdout)
    assert summary["pending"] >= 8
    assert "killed again and again" in summary["lost"][0]
    found = status(out)
    assert found.total("pending") == summary["pending"]
    assert found.total("done") == 18 - summary["pending"]
    assert verify(out).code == 1


@pytest.fixture
def scheduler(tmp_path: Path, environment: None) -> Iterator[tuple[str, list[psutil.Process]]]:
    """A Dask scheduler with two workers, as on a cluster."""
    file = tmp_path / "scheduler.json"
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": tmp_path}
    dask = [sys.executable, "-m", "dask"]
    where = ["--scheduler-file", str(file), "--host", "127.0.0.1"]
    commands = [
        [*dask, "scheduler", *where, "--port", "0", "--no-dashboard"],
        [*dask, "worker", *where, "--nworkers", "2", "--nthreads", "1", "--no-dashboard"],
    ]
    processes = [psutil.Popen(command, **quiet) for command in commands]
    yield str(file), processes
    for process in processes:
        family = [process, *process.children(recursive=True)] if process.is_running() else []
        for member in family:
            member.kill()
        process.wait()


def test_a_killed_scheduler_ends_the_run_and_loses_nothing(
    study: Study,
    scheduler: tuple[str, list[psutil.Process]],
    start: Start,
    out: Path,
    tmp_path: Path,
) -> None:
    file, processes = scheduler
    wait_for(Path(file).exists, "the scheduler")
    process = start(study, json.dumps({"scheduler_file": file}))
    wait_for(lambda: done(out) > 0, "the first block")
    processes[0].kill()
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    summary = json.loads(stdout)
    assert "the Dask scheduler was lost" in summary["lost"][0]
    assert summary["pending"] > 0
    assert verify(out).code == 1
    run(study, out, progress=False)
    publish(study, out)
    assert values(out) == undisturbed(study, tmp_path)
