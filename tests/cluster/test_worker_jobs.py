"""A Dask cluster whose workers are Slurm jobs: ``cluster: {mode: slurm}``."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.cluster.commands import BOUND, SECONDS, ask, set_node, wait_for
from tests.cluster.conftest import VENV, Site, Undisturbed
from tests.workflow.conftest import ROOT

pytestmark = [pytest.mark.slurm, pytest.mark.deep]

WORKERS = {
    "queue": "hd",
    "cores": 1,
    "processes": 1,
    "memory": "1GiB",
    "walltime": "00:10:00",
    "minimum": 2,
    "maximum": 2,
    "interface": "lo",
}


@contextmanager
def driving(site: Site) -> Iterator[subprocess.Popen[str]]:
    """A run that submits two workers, as its only process on the login node."""
    slurm = {**WORKERS, "shared_folder": str(site.folder)}
    cluster = json.dumps({"mode": "slurm", "slurm": slurm})
    where = (str(site.folder / site.study_file), str(site.out))
    process = subprocess.Popen(
        [*BOUND, str(VENV / "bin/python"), "-m", "tests.cluster.drive", *where, cluster],
        cwd=ROOT,
        env=site.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def summary(process: subprocess.Popen[str]) -> dict[str, object]:
    """What a run says at its end."""
    stdout, stderr = process.communicate(timeout=SECONDS)
    assert process.returncode == 0, stderr
    found: dict[str, object] = json.loads(stdout.splitlines()[-1])
    return found


def workers() -> dict[str, str]:
    """Running jobs and their nodes."""
    lines = ask("squeue", "--noheader", "--states=running", "--format=%i %N").splitlines()
    return dict(line.split() for line in lines)


def test_two_worker_jobs_give_the_bits_of_one_process(
    slurm: Path, site: Site, undisturbed: Undisturbed
) -> None:
    with driving(site) as process:
        wait_for(lambda: len(workers()) == 2, "two workers")
        assert sorted(workers().values()) == ["hd1", "hd2"]
        assert summary(process) == {"pending": 0, "lost": []}
    assert undisturbed.same_bits(site.out)
    wait_for(lambda: not workers(), "the end of the workers")


def test_a_cancelled_worker_costs_nothing(
    slurm: Path, site: Site, undisturbed: Undisturbed
) -> None:
    with driving(site) as process:
        site.begun(4)
        ask("scancel", "--signal=KILL", "--full", next(iter(workers())))
        assert summary(process) == {"pending": 0, "lost": []}
    assert undisturbed.same_bits(site.out)


def test_a_drained_node_keeps_its_worker(slurm: Path, site: Site, undisturbed: Undisturbed) -> None:
    with driving(site) as process:
        site.begun(4)
        set_node("hd1", "drain")
        assert summary(process) == {"pending": 0, "lost": []}
    assert undisturbed.same_bits(site.out)


def test_a_killed_run_is_resumed(slurm: Path, site: Site, undisturbed: Undisturbed) -> None:
    with driving(site) as process:
        site.begun(4)
        process.kill()
    wait_for(lambda: not workers(), "the end of the workers")
    assert undisturbed.pending_in(site) > 0
    with driving(site) as process:
        assert summary(process) == {"pending": 0, "lost": []}
    assert undisturbed.same_bits(site.out)
