"""A Dask cluster whose workers are Slurm jobs: ``cluster: {mode: slurm}``."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.commands import BOUND, SECONDS, ask, ended, set_node, wait_for
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
def driving(site: Site, **changes: Any) -> Iterator[subprocess.Popen[str]]:
    """A run that submits two workers, as its only process on the login node."""
    slurm = {**WORKERS, "shared_folder": str(site.folder), **changes}
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


def workers(what: str = "%N") -> dict[str, str]:
    """Running jobs and their nodes, or what else squeue says of them."""
    lines = ask("squeue", "--noheader", "--states=running", f"--format=%i {what}").splitlines()
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


def test_an_array_of_workers_gives_the_bits_of_one_process_though_a_task_is_killed(
    slurm: Path, site: Site, undisturbed: Undisturbed
) -> None:
    with driving(site, array=True) as process:
        site.begun(4)
        first = sorted(workers())
        number = first[0].partition("_")[0]
        assert first == [f"{number}_0", f"{number}_1"]
        ask("scancel", "--signal=KILL", "--full", first[0])
        assert summary(process) == {"pending": 0, "lost": []}
    assert undisturbed.same_bits(site.out)
    wait_for(lambda: not workers(), "the end of the workers")
    assert len(list(site.folder.glob(f"hdica-*-{number}_?.log"))) == 2


def test_a_node_is_avoided_and_names_of_digits_reach_slurm(
    slurm: Path, site: Site, undisturbed: Undisturbed
) -> None:
    changes = {"exclude": "hd1", "requeue": False, "account": 1234, "queue": 12}
    with driving(site, **changes) as process:
        wait_for(lambda: len(workers()) == 1, "a worker")
        # The second job waits for the node that the first has.
        assert list(workers().values()) == ["hd2"]
        (job,) = workers()
        assert workers("%P")[job] == "12"
        about = ask("scontrol", "show", "job", job)
        assert "Account=1234 " in about
        assert "Requeue=0 " in about
        assert "ExcNodeList=hd1\n" in about
        assert summary(process) == {"pending": 0, "lost": []}
    assert undisturbed.same_bits(site.out)


def test_a_job_whose_time_is_over_is_followed_by_a_longer_one(
    slurm: Path, site: Site, undisturbed: Undisturbed
) -> None:
    changes = {"minimum": 1, "maximum": 1, "walltime": "00:02:00", "retry": {"walltime": 3}}
    with driving(site, **changes) as process:
        site.begun(4)
        assert list(workers("%l").values()) == ["2:00"]
        (job,) = workers()
        # As if a block took longer than the time that is left for it.
        ask("scancel", "--signal=STOP", "--full", job)
        ask("scontrol", "update", f"JobId={job}", "EndTime=now")
        assert ended(job) == ["TIMEOUT"]
        wait_for(lambda: list(workers("%l").values()) == ["6:00"], "a longer job")
        assert set(workers("%m").values()) == {"1G"}
        assert summary(process) == {"pending": 0, "lost": []}
    assert undisturbed.same_bits(site.out)
