"""Modules that another user leaves where Dask and Python would look for them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from hdica.process.private import LOCK
from hdica.run.processes import NODE
from tests.faults.bench import wait_for
from tests.hostile_users.conftest import Stranger
from tests.sweep.fake_slurm import FakeSlurm
from tests.sweep.outside import make_certificates

pytestmark = [pytest.mark.faults, pytest.mark.deep]

HDICA = str(Path(sys.executable).parent / "hdica")
STUDY = {
    "study": "small",
    "title": "A study on two processes",
    "system": "OnlineICA",
    "parameters": {"source": "uniform", "nonlinearity": "x**3"},
    "grid": {"tau": [0.02, 0.05], "Q0": [0.5, 0.8]},
    "times": [0, 1],
    "methods": {"chain": {"n": [100], "seeds": 8}, "ode": {}},
}
LOCAL = {"mode": "local", "workers": 2}
NAMES = ("typer", "pandas", "xarray", "sympy", "signal", "multiprocessing", "selectors", "hdica")


def watched(stranger: Stranger, seen: Path) -> dict[str, str]:
    """The environment of processes that tell where they look for modules."""
    place = {"TMPDIR": str(stranger.common), "WATCH_FILE": str(seen)}
    return {**os.environ, **place, "PYTHONPATH": str(Path(__file__).parent / "watch")}


def run(
    stranger: Stranger, folder: Path, cluster: dict[str, Any], **variables: str
) -> list[list[str]]:
    """Run the study where the stranger waits; role, folder and verdict of what was looked in."""
    study, config, seen = (folder / name for name in ("small.yaml", "config.yaml", "seen"))
    study.write_text(json.dumps(STUDY))
    config.write_text(json.dumps({"cluster": cluster}))
    done = subprocess.run(
        [HDICA, "run", str(study), "--out", str(folder / "small.zarr"), "--config", str(config)],
        cwd=stranger.common,
        env={**watched(stranger, seen), **variables},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in seen.read_text().splitlines()]


def harmless(stranger: Stranger, seen: list[list[str]], before: list[str], *roles: str) -> None:
    """Nothing of the stranger was run, nothing could have been, and nothing of ours is left."""
    assert stranger.ran == []
    assert {role for role, _, _ in seen} >= {"driver", "worker", "tracker", *roles}
    assert [line for line in seen if line[2]] == []
    assert sorted(os.listdir(stranger.common)) == before


def test_a_planted_module_is_run_by_no_process(stranger: Stranger, tmp_path: Path) -> None:
    stranger.plants(stranger.common / "dask-scratch-space", *NAMES)
    stranger.plants(stranger.common, *NAMES)  # which is the current folder, too
    before = sorted(os.listdir(stranger.common))
    harmless(stranger, run(stranger, tmp_path, LOCAL), before, "forkserver")


def test_a_planted_link_is_not_followed_with_certificates_either(
    stranger: Stranger, tmp_path: Path
) -> None:
    stranger.plants(stranger.common / "theirs", *NAMES)
    for name in ("dask-scratch-space", "dask-scratch-space-0"):
        stranger.does(f"ln -s theirs {name}")
    before = sorted(os.listdir(stranger.common))
    make_certificates(tmp_path / "certs")
    seen = run(stranger, tmp_path, {**LOCAL, "tls": str(tmp_path / "certs")})
    harmless(stranger, seen, before, "forkserver")


def running(client: Any) -> bool:
    """Whether all that watch over workers have started."""
    # A function of this module would be looked up where it cannot be imported.
    status = client.run(lambda dask_worker: dask_worker.status.name, nanny=True)
    return set(status.values()) == {"running"}


def test_a_scheduler_and_workers_of_ones_own_run_nothing_of_it(
    stranger: Stranger, tmp_path: Path
) -> None:
    """Started as the manual says, and ended by SIGTERM to the scheduler."""
    from distributed import Client

    stranger.plants(stranger.common / "dask-scratch-space", *NAMES)
    stranger.plants(stranger.common, *NAMES)
    before = sorted(os.listdir(stranger.common))
    file, seen, log = (tmp_path / name for name in ("scheduler.json", "seen", "log"))
    started = [
        subprocess.Popen(
            [sys.executable, "-P", "-m", NODE, *words, "--scheduler-file", str(file)],
            cwd=stranger.common,
            env=watched(stranger, seen),
            stdout=subprocess.DEVNULL,
            stderr=log.open("a"),
        )
        for words in (
            ("scheduler", "--host", "127.0.0.1", "--port", "0"),
            ("worker", "--nworkers", "2", "--nthreads", "1"),
        )
    ]
    try:
        wait_for(file.exists, "the scheduler")
        with Client(scheduler_file=str(file)) as client:
            client.wait_for_workers(2, timeout=60)
            assert client.submit(sum, [1, 2]).result(timeout=60) == 3
            # Workers serve before those that watch over them have started: ended then, they fail.
            wait_for(lambda: running(client), "the start of the workers")
        started[0].terminate()
        assert [one.wait(60) for one in started] == [0, 0], log.read_text()
    finally:
        for one in started:
            one.kill()
            one.wait()
    lines = [line.split("\t") for line in seen.read_text().splitlines()]
    assert {role for role, _, _ in lines} >= {"node", "worker", "tracker"}
    assert [line for line in lines if line[2]] == []
    assert (stranger.ran, sorted(os.listdir(stranger.common))) == ([], before)


def test_jobs_of_slurm_run_nothing_of_it_either(stranger: Stranger, tmp_path: Path) -> None:
    for folder in ("dask-scratch-space", "site/dask-scratch-space", "."):
        stranger.plants(stranger.common / folder, *NAMES)
    before = sorted(os.listdir(stranger.common))
    slurm = FakeSlurm(tmp_path / "slurm")
    slurm.install()
    # Killed runs have left their keys.
    left = tmp_path / "shared/tls-abcdefgh"
    left.mkdir(parents=True)
    (left / LOCK).touch()
    how = {"interface": "lo", "cores": 2, "memory": "1GiB", "shared_folder": str(left.parent)}
    site = {"DASK_TEMPORARY_DIRECTORY": str(stranger.common / "site")}
    try:
        cluster = {"mode": "slurm", "slurm": how}
        seen = run(stranger, tmp_path, cluster, **slurm.environment(), **site)
        wait_for(lambda: not slurm.running(), "the end of all jobs")
    finally:
        slurm.end()
    harmless(stranger, seen, before, "node")
    assert not list(left.parent.glob("tls-*"))
    # Slurm was given scripts that only their owner can reach.
    assert {path.read_text().split("/")[3][:6] for path in slurm.folder.glob("**/given")} == {
        "hdica-"
    }
