"""Snakemake's Slurm executor with the shipped profile."""

from __future__ import annotations

import os
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from tests.cluster.commands import BOUND, ask
from tests.cluster.conftest import NAME, Site, Undisturbed
from tests.workflow.conftest import rules

SECONDS = 300
"""For a build of some forty seconds, on a machine that may be busy."""
pytestmark = [pytest.mark.slurm, pytest.mark.deep, pytest.mark.timeout(SECONDS + 120)]

PROFILE = ("--profile", "workflow/profiles/slurm")
MANIFEST = f"results/{NAME}.manifest.json"
# What differs between the site of the profile and two nodes of one processor without accounts.
HERE = ("--set-threads", "shard=1", "--latency-wait", "5", "--slurm-status-command", "squeue")
OFTEN = ("--slurm-init-seconds-before-status-checks", "8")
TWO_SHARDS = ("--config", "shards=2")
BUILD = (MANIFEST, *PROFILE, *HERE, *OFTEN, *TWO_SHARDS)


def jobs_of(site: Site) -> Counter[tuple[str, str]]:
    """Rule and state of every Slurm job that was submitted from a folder."""
    lines = ask("squeue", "--noheader", "--states=all", "--format=%Z|%k|%T").splitlines()
    found = (line.split("|") for line in lines)
    here = str(site.folder)
    return Counter(
        (comment.split("_")[1], state) for where, comment, state in found if where == here
    )


def sizes_of(site: Site) -> list[str]:
    """Walltime and memory of the Slurm jobs of shards, in the order in which they came."""
    lines = ask("squeue", "--noheader", "--states=all", "--format=%Z|%k|%A|%l %m").splitlines()
    found = (line.split("|") for line in lines)
    here = str(site.folder)
    shards = ((int(n), size) for where, k, n, size in found if where == here and "_shard_" in k)
    return [size for _, size in sorted(shards)]


def running_shard(site: Site) -> str:
    """The number of a Slurm job that computes a shard."""
    lines = ask("squeue", "--noheader", "--states=running", "--format=%i|%Z|%k").splitlines()
    found = (line.split("|") for line in lines)
    here = str(site.folder)
    return next(job for job, where, comment in found if where == here and "_shard_" in comment)


@contextmanager
def snakemake(site: Site, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """Snakemake in the background, all that it says in ``snakemake.log``."""
    with (site.folder / "snakemake.log").open("w") as said:
        process = subprocess.Popen(
            [*BOUND, *site.command(*arguments)],
            cwd=site.folder,
            env=site.environment(),
            stdout=said,
            stderr=subprocess.STDOUT,
            text=True,
        )
        try:
            yield process
        finally:
            kill(process)


def kill(process: subprocess.Popen[str]) -> None:
    """End Snakemake and its children with SIGKILL; its Slurm jobs are none of them."""
    if process.poll() is None:
        for one in (*psutil.Process(process.pid).children(recursive=True), process):
            os.kill(one.pid, signal.SIGKILL)
        process.wait()


def said(site: Site) -> str:
    return (site.folder / "snakemake.log").read_text()


def test_the_profile_lists_its_jobs_and_makes_nothing(slurm: Path, site: Site) -> None:
    planned = site.jobs("-n", *PROFILE, *HERE, *TWO_SHARDS)
    assert planned == {"shard": {NAME}, "publish": {NAME}, "report": {NAME}}
    assert not (site.folder / "results").exists()
    assert not jobs_of(site)


@pytest.mark.parametrize(
    ("more", "sizes"),
    [
        ("", ["4:00:00 2000M"] * 2 + ["8:00:00 4000M"]),
        (
            "cluster: {slurm: {memory: 1GiB, walltime: '00:20:00', retry: {memory: 3}}}",
            ["20:00 1G"] * 2 + ["40:00 3G"],
        ),
    ],
    ids=["profile", "configuration"],
)
def test_a_study_is_built_though_one_of_its_shards_is_cancelled_which_then_asks_for_more(
    slurm: Path, site: Site, undisturbed: Undisturbed, more: str, sizes: list[str]
) -> None:
    site.config(f"studies: [{NAME}]\n{more}\n")
    with snakemake(site, *BUILD) as process:
        site.begun(4)
        ask("scancel", running_shard(site))
        process.wait(SECONDS)
    assert process.returncode == 0, said(site)
    assert rules(said(site)) == {"shard": {NAME}, "publish": {NAME}}
    jobs = jobs_of(site)
    assert jobs.pop(("shard", "CANCELLED")) == 1
    assert jobs == {("shard", "COMPLETED"): 2, ("publish", "COMPLETED"): 1}
    assert sizes_of(site) == sizes
    assert undisturbed.same_bits(site.out)


def test_a_killed_snakemake_leaves_jobs_that_a_plain_rerun_does_not_disturb(
    slurm: Path, site: Site, undisturbed: Undisturbed
) -> None:
    with snakemake(site, *BUILD) as process:
        site.begun(2)
        kill(process)
    assert not (site.folder / MANIFEST).exists()
    assert jobs_of(site) == {("shard", "RUNNING"): 2}
    with snakemake(site, *BUILD) as process:
        process.wait(SECONDS)
    assert process.returncode == 0, said(site)
    assert undisturbed.same_bits(site.out)
