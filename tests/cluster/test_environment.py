"""``make slurm``: an environment apart, since the executor asks for a controller at every start."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.cluster.conftest import VENV, Site
from tests.test_makefile import installs, make
from tests.test_packaging import PROJECT, ROOT, locked, name_and_bound

ADDED = (ROOT / "requirements-slurm.lock").read_text()
PROFILE = "workflow/profiles/slurm"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in (
        *("Makefile", "pyproject.toml", "requirements.lock"),
        *("requirements-test.lock", "requirements-slurm.lock"),
    ):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    return tmp_path


def added() -> set[str]:
    """Every package that the Slurm lock adds."""
    return locked(ADDED)


def test_the_lock_names_no_address_and_no_index() -> None:
    assert not re.search(r"://|http|www\.|\.(org|com|io|net)\b|^-|@", ADDED, re.MULTILINE)


def test_every_added_requirement_is_pinned_and_hashed() -> None:
    requirements = ADDED.replace("\\\n", " ").splitlines()
    assert requirements
    for line in requirements:
        assert re.match(r"[a-z0-9.-]+==\S+ ", line), line[:60]
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", line), line[:60]


def test_the_lock_adds_the_extra_and_repeats_nothing() -> None:
    declared = {name_and_bound(d)[0] for d in PROJECT["optional-dependencies"]["slurm"]}
    assert declared <= added() | locked()
    assert "snakemake-executor-plugin-slurm" in added()
    assert not added() & locked()


def test_make_slurm_installs_the_executor_alone_on_top_of_the_other_environment(
    folder: Path,
) -> None:
    python = f"PYTHON={folder / 'python3'}"
    (folder / ".venv/bin").mkdir(parents=True)
    for name in ("dask", "hdica", "snakemake"):
        (folder / ".venv/bin" / name).write_text(f"#!{folder}/.venv/bin/python\nrun()\n")
    done, calls = make(folder, "slurm", python)
    assert done.returncode == 0, done.stderr
    *below, executor = installs(calls)
    assert [call.split()[-1] for call in below] == ["requirements.lock", "."]
    assert executor.endswith("--require-hashes --no-deps -r requirements-slurm.lock")
    script = folder / ".venv-slurm/bin/snakemake"
    assert script.read_text() == f"#!{folder}/.venv-slurm/bin/python\nrun()\n"
    assert make(folder, "slurm", python)[1] == []
    with (folder / "requirements-slurm.lock").open("a") as lock:
        lock.write("# changed\n")
    assert installs(make(folder, "slurm", python)[1]) == [executor]


@pytest.mark.deep
def test_without_the_executor_only_its_profile_is_refused_in_one_sentence(site: Site) -> None:
    assert find_spec("snakemake_executor_plugin_slurm") is None
    assert "slurm" not in (site.folder / "profiles/default/config.yaml").read_text().lower()
    done = subprocess.run(
        [str(Path(sys.executable).parent / "snakemake"), "-n", "--profile", PROFILE],
        cwd=site.folder,
        env=site.environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "invalid choice: 'slurm'" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr


@pytest.mark.deep
@pytest.mark.slurm
def test_the_two_locks_fit_together() -> None:
    if not (VENV / "bin/python").exists():
        pytest.skip("needs the Python packages for Slurm: make slurm")
    command = [str(VENV / "bin/python"), "-m", "pip", "check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
