"""Certificates that others could read or exchange, also under an open umask."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hdica.errors import HdicaError
from hdica.run.cluster import connect
from hdica.run.processes import read_certificates
from hdica.run.settings import SlurmSettings, cluster_settings
from hdica.run.slurm import shared_folder
from tests.hostile_users.conftest import Stranger
from tests.sweep.fake_slurm import FakeSlurm
from tests.sweep.outside import make_certificates


def modes(folder: Path) -> dict[str, str]:
    """Permissions of everything below a folder."""
    return {
        str(path.relative_to(folder)): f"{stat.S_IMODE(path.stat().st_mode):o}"
        for path in folder.rglob("*")
    }


@pytest.mark.deep
def test_another_user_reads_no_key_of_a_cluster_in_jobs(
    stranger: Stranger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = FakeSlurm(tmp_path / "slurm")
    fake.install()
    for name, value in fake.environment().items():
        monkeypatch.setenv(name, value)
    shared = stranger.common / "shared"
    how = {"interface": "lo", "shared_folder": str(shared)}
    before = os.umask(0)
    try:
        with connect(cluster_settings({"mode": "slurm", "slurm": how}), 1):
            (key,) = shared.glob("tls-*/key.pem")
            assert "PRIVATE KEY" in key.read_text()
            found = stranger.common / "found"
            stranger.does(f"cat {shared}/tls-*/* {key} >{found} || true; mv {key.parent} . || true")
            assert found.read_bytes() == b""
            assert key.exists()
    finally:
        os.umask(before)
        fake.end()
    assert not list(shared.glob("tls-*"))


@pytest.mark.parametrize("name", [".", "ca.pem", "cert.pem"])
def test_certificates_that_others_can_exchange_are_told(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "certs"
    make_certificates(folder)
    (folder / name).chmod(0o777)
    with pytest.warns(UserWarning, match="others can write to .*, and could run commands"):
        read_certificates(str(folder))


def test_the_shared_folder_of_jobs_is_for_its_user_and_group(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        made = shared_folder(SlurmSettings(shared_folder=str(tmp_path / "logs/slurm")))
    finally:
        os.umask(before)
    assert modes(tmp_path) == {"logs": "775", "logs/slurm": "775"}
    made.chmod(0o777)
    with pytest.raises(HdicaError, match=r"slurm.shared_folder = .*\(all users can write to it"):
        shared_folder(SlurmSettings(shared_folder=str(made)))
    made.chmod(0o1777)
    assert shared_folder(SlurmSettings(shared_folder=str(made))) == made
