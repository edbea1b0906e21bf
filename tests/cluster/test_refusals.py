"""``hdica run --config`` with ``mode: slurm``, where Slurm takes no such job or starts none."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.commands import ask, set_node
from tests.cluster.conftest import VENV, Site
from tests.cluster.daemons import NODES

pytestmark = [pytest.mark.slurm, pytest.mark.deep]


def refusal(site: Site, **changes: Any) -> str:
    """The one sentence that a run ends with before it computes anything."""
    slurm = {"interface": "lo", "memory": "1GiB", "walltime": "00:10:00", **changes}
    file = site.folder / "site.yaml"
    file.write_text(json.dumps({"cluster": {"mode": "slurm", "slurm": slurm}}))
    command = [str(VENV / "bin/hdica"), "run", site.study_file, "--out", site.results, "--quiet"]
    done = subprocess.run(
        [*command, "--config", str(file)],
        cwd=site.folder,
        env=site.environment(),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.returncode, done.stdout) == (2, "")
    (sentence,) = done.stderr.splitlines()
    return sentence


@pytest.mark.deep
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"queue": "nope"}, "invalid partition specified: nope"),
        ({"directives": ["--no-such-option"]}, "unrecognized option '--no-such-option'"),
    ],
)
def test_what_slurm_says_against_a_job_is_said_before_anything_is_written(
    slurm: Path, site: Site, changes: dict[str, Any], said: str
) -> None:
    sentence = refusal(site, **changes)
    assert sentence.startswith("hdica: Slurm refuses the jobs of cluster.slurm (")
    assert said in sentence
    assert not site.out.parent.exists()
    assert not ask("squeue", "--noheader")


@pytest.mark.deep
def test_a_job_that_fits_no_node_is_refused_when_it_is_submitted(slurm: Path, site: Site) -> None:
    sentence = refusal(site, memory="900GiB")
    assert sentence.startswith("hdica: Slurm refuses the jobs of cluster.slurm (")
    assert "Requested node configuration is not available" in sentence
    assert site.blocks() == 0


@pytest.mark.deep
def test_jobs_that_do_not_start_in_time_are_named_with_slurms_reason(
    slurm: Path, site: Site
) -> None:
    for node in NODES:
        set_node(node, "drain")
    sentence = refusal(site, queue="hd", startup=5)
    assert "no worker has come from Slurm's queue 'hd' in slurm.startup = 5 s (job " in sentence
    assert " is PENDING: " in sentence
    assert "squeue --name=hdica-" in sentence
    assert str(site.folder / "logs/slurm") in sentence
    assert not ask("squeue", "--noheader")
    # Only what jobs say is left; no certificates.
    assert not list(site.folder.glob("logs/slurm/tls-*"))
