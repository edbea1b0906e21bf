"""Certificates in folders that others can write to, and under an open umask."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hdica.errors import HdicaError
from hdica.sweep.workers.slurm import SlurmSettings, shared_folder
from hdica.sweep.workers.tls import make_certificates, security


def modes(folder: Path) -> dict[str, str]:
    """Permissions of everything below a folder."""
    return {
        str(path.relative_to(folder)): f"{stat.S_IMODE(path.stat().st_mode):o}"
        for path in folder.rglob("*")
    }


def test_an_open_umask_opens_no_certificate(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).parent / "hdica"), "cluster", "certs", "a/b"]
    subprocess.run(command, cwd=tmp_path, umask=0, check=True, capture_output=True)
    assert modes(tmp_path) == {
        "a": "755", "a/b": "700",
        "a/b/ca.pem": "644", "a/b/cert.pem": "644", "a/b/key.pem": "600",
    }  # fmt: skip


def test_a_folder_that_others_can_write_to_gets_no_certificates(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(HdicaError, match=r"others can write to .*\(chmod go-w .*, or choose"):
        make_certificates(tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", [".", "ca.pem", "cert.pem"])
def test_certificates_that_others_can_exchange_are_told(tmp_path: Path, name: str) -> None:
    make_certificates(tmp_path)
    (tmp_path / name).chmod(0o777)
    with pytest.warns(UserWarning, match="others can write to .*, and whoever does runs commands"):
        security(str(tmp_path))


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
