"""The script of the page on where it runs: a whole Dask cluster in one Slurm job."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cluster.commands import ended, submit
from tests.cluster.conftest import VENV, Site, Undisturbed
from tests.sweep.outside import make_certificates
from tests.workflow.conftest import ROOT

pytestmark = [pytest.mark.slurm, pytest.mark.deep]

# Two nodes of one processor, instead of four of sixteen.
HERE = ("--partition=hd", "--account=none", "--nodes=2", "--cpus-per-task=1", "--time=10")


def documented(site: Site) -> str:
    """The script as it stands there, for this study and this environment."""
    page = (ROOT / "docs/where-it-runs.md").read_text()
    (script,) = re.findall(r"```bash\n(#!/bin/bash\n.*?)```", page, re.DOTALL)
    changes = {
        "source .venv/bin/activate": f"source {VENV}/bin/activate",
        "sleep 30": "sleep 8",
        "config/studies/tiny.yaml": site.study_file,
        "results/tiny.zarr": site.results,
    }
    for old, new in changes.items():
        assert old in script
        script = script.replace(old, new)
    return script


def test_a_dask_cluster_in_one_job_gives_the_bits_of_one_process(
    slurm: Path, site: Site, undisturbed: Undisturbed
) -> None:
    (site.folder / "dask.sbatch").write_text(documented(site))
    make_certificates(site.folder / "certs")
    job = submit(site.folder, site.environment(), *HERE, "dask.sbatch")
    said = site.folder / f"dask-{job}.log"
    assert ended(job) == ["COMPLETED"], said.read_text()
    assert undisturbed.same_bits(site.out)
