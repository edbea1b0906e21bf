"""The private Slurm itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster import daemons
from tests.cluster.commands import ended, field, submit
from tests.cluster.conftest import Site

pytestmark = [pytest.mark.slurm, pytest.mark.deep]


def test_two_jobs_run_on_two_nodes_at_once(slurm: Path, site: Site) -> None:
    wrap = ("--wrap", "sleep 1; echo on $SLURMD_NODENAME with $SLURM_CPUS_PER_TASK")
    options = ("--array=0-1", "--cpus-per-task=1", "--output=out-%a", *wrap)
    job = submit(site.folder, site.environment(), *options)
    assert ended(job) == ["COMPLETED", "COMPLETED"]
    said = {(site.folder / f"out-{task}").read_text().strip() for task in (0, 1)}
    assert said == {"on hd1 with 1", "on hd2 with 1"}
    assert set(field(job, "%N").values()) == {"hd1", "hd2"}


def test_another_slurm_is_left_alone(
    slurm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = tmp_path / "slurm.conf"
    theirs.write_text("ClusterName=theirs\n")
    monkeypatch.setattr(daemons, "CONFIGURATION", theirs)
    assert "is left alone" in daemons.refusal()
    with pytest.raises(FileExistsError), daemons._configuration(tmp_path):
        raise AssertionError("it was overwritten")
    assert theirs.read_text() == "ClusterName=theirs\n"
