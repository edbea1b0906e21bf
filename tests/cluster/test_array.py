"""Shards of ``hdica run`` as an array job, and what may happen to it on a cluster."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cluster.commands import ask, ended, field, resume_nodes, set_node, states, submit
from tests.cluster.conftest import NAME, POINTS, Site, Undisturbed

pytestmark = [pytest.mark.slurm, pytest.mark.deep]

SCRIPT = "workflow/profiles/slurm/array.sbatch"
FITTING = ("--cpus-per-task=1", "--time=10")


def array(site: Site, tasks: str, shards: int, *options: str) -> int:
    """Submit the shipped script as a user does; the job's number."""
    what = (SCRIPT, site.study_file, site.results, str(shards))
    return submit(site.folder, site.environment(), f"--array={tasks}", *FITTING, *options, *what)


def publish_after(site: Site, job: int) -> int:
    """Submit the job that publishes once all shards are there."""
    wrap = f"hdica publish {site.study_file} --out {site.results}"
    options = (f"--dependency=afterok:{job}", "--output=publish.log", "--wrap", wrap)
    return submit(site.folder, site.environment(), *FITTING, *options)


def finish(site: Site, tasks: str, shards: int) -> None:
    """Submit again what is missing, and publish."""
    job = array(site, tasks, shards)
    assert set(ended(job)) == {"COMPLETED"}
    site.publish()


def log(site: Site, job: int, task: int) -> str:
    return (site.folder / f"hdica-{job}_{task}.log").read_text()


def asked(site: Site, job: int, task: int) -> int:
    """Points that a task had to compute."""
    (found,) = re.findall(rf"^{NAME}: (\d+) points to compute", log(site, job, task), re.MULTILINE)
    return int(found)


def test_an_array_of_shards_gives_the_bits_of_one_process(
    slurm: Path, site: Site, undisturbed: Undisturbed
) -> None:
    job = array(site, "0-1", 2)
    last = publish_after(site, job)
    assert states(last) == ["PENDING"]
    assert ended(job) == ["COMPLETED", "COMPLETED"], log(site, job, 0)
    assert set(field(job, "%N").values()) == {"hd1", "hd2"}
    parts = [asked(site, job, task) for task in (0, 1)]
    assert all(parts)
    assert sum(parts) == POINTS
    assert ended(last) == ["COMPLETED"]
    assert undisturbed.same_bits(site.out)


def test_a_cancelled_task_is_submitted_again_alone(
    slurm: Path, site: Site, undisturbed: Undisturbed
) -> None:
    job = array(site, "0-1", 2)
    site.begun(4)
    ask("scancel", f"{job}_0")
    assert ended(job) == ["CANCELLED", "COMPLETED"]
    assert undisturbed.pending_in(site) > 0
    finish(site, "0", 2)
    assert undisturbed.same_bits(site.out)


def test_a_drained_node_ends_its_task_and_gets_no_other(
    slurm: Path, site: Site, undisturbed: Undisturbed
) -> None:
    job = array(site, "0-2", 3)
    site.begun(2)
    set_node("hd1", "drain")
    assert ended(job) == ["COMPLETED"] * 3, log(site, job, 0)
    assert sorted(field(job, "%N").values()) == ["hd1", "hd2", "hd2"]
    site.publish()
    assert undisturbed.same_bits(site.out)


def test_a_task_on_a_lost_node_is_submitted_again(
    slurm: Path, site: Site, undisturbed: Undisturbed
) -> None:
    job = array(site, "0-1", 2, "--no-requeue")
    site.begun(4)
    (lost,) = (name for name, node in field(job, "%N").items() if node == "hd1")
    set_node("hd1", "down")
    assert sorted(ended(job)) == ["COMPLETED", "NODE_FAIL"]
    site.deserted()
    assert undisturbed.pending_in(site) > 0
    resume_nodes()
    finish(site, lost.split("_")[1], 2)
    assert undisturbed.same_bits(site.out)


def test_walltime_ends_a_task_and_the_next_goes_on(
    slurm: Path, site: Site, undisturbed: Undisturbed
) -> None:
    job = array(site, "0-1", 2, "--time=1")
    site.begun(4)
    # The limit has come, and the task is still in a block: Slurm looks every half minute.
    ask("scontrol", "update", f"JobId={job}_0", "EndTime=now")
    ask("scancel", "--signal=STOP", "--full", f"{job}_0")
    assert ended(job) == ["TIMEOUT", "COMPLETED"]
    assert undisturbed.pending_in(site) > 0
    finish(site, "0", 2)
    assert undisturbed.same_bits(site.out)


def test_the_script_says_how_it_is_used(slurm: Path, site: Site) -> None:
    job = submit(site.folder, site.environment(), "--array=0", *FITTING, SCRIPT, site.study_file)
    assert ended(job) == ["FAILED"]
    assert log(site, job, 0).startswith("usage: sbatch --array=0-15")
