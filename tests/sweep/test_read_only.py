"""A finished study on a file system that cannot be written: a real one, mounted read-only."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hdica.cli import call
from hdica.store.paths import manifest_path, work_path
from hdica.store.results import open_results
from hdica.store.working import place
from hdica.study.study import study_from
from tests.sweep import flips
from tests.sweep.conftest import values

MISSING = "it takes root and mount to make a file system read-only: chmod does not stop root"


@contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """Mount a folder over itself, read-only."""
    mount, place = shutil.which("mount"), str(folder)
    if os.geteuid() or mount is None:
        pytest.skip(MISSING)
    if subprocess.run([mount, "--bind", place, place], capture_output=True).returncode:
        pytest.skip(MISSING)
    try:
        subprocess.run([mount, "-o", "remount,bind,ro", place], check=True)
        with pytest.raises(OSError, match="Read-only file system"):
            (folder / "anything").touch()
        yield
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


@pytest.fixture
def yaml(out: Path, tmp_path: Path) -> str:
    out.parent.mkdir()
    flips.made(out)
    file = tmp_path / "toy.yaml"
    file.write_text(json.dumps(flips.CONTENT))
    return str(file)


@pytest.mark.deep
@pytest.mark.parametrize("left", ["all of it", "no working store", "no manifest"])
def test_a_finished_study_is_whole_where_nothing_can_be_written(
    out: Path, tmp_path: Path, yaml: str, left: str, capsys: pytest.CaptureFixture[str], calls: Path
) -> None:
    before = values(out)
    if left == "no working store":
        shutil.rmtree(work_path(out))
    if left == "no manifest":
        manifest_path(out).unlink()
    whole = left != "no manifest"
    capsys.readouterr()
    with read_only(out.parent):
        assert call(["verify", str(out)]) == (0 if whole else 1)
        said = capsys.readouterr()
        assert f"{out} is {'whole' if whole else 'incomplete'}: 55 points" in said.out
        for command in ("run", "publish"):
            code = call([command, yaml, "--out", str(out)])
            assert code == (0 if whole else 1)
            told = "is up to date: 55 points" if whole else "cannot be written: read-only"
            assert told in capsys.readouterr().err
        reads = [["status"], ["query", "--to", "csv"], ["report", "--out", str(tmp_path)]]
        for command in reads[: 3 if left == "all of it" else 2]:
            assert call([command[0], str(out), *command[1:]]) == 0
        assert values(out) == before
    assert calls.read_text() == ""


def test_one_that_is_not_finished_says_that_nothing_can_be_written(
    out: Path, yaml: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.rmtree(place(study_from(flips.CONTENT), out)[0].path)
    with read_only(out.parent):
        assert call(["verify", str(out)]) == 1
        capsys.readouterr()
        assert call(["run", yaml, "--out", str(out)]) == 1
        assert "cannot be written: read-only file system" in capsys.readouterr().err


OTHER_USER = """
import os, sys
from tests.sweep import toy
toy.register()
from hdica.cli import call
commands = [command.split() for command in sys.argv[1:]]
for command in commands:
    call(command)  # the other user may not be allowed to read what is imported here
os.setgroups([]); os.setgid(65534); os.setuid(65534)
print([call(command) for command in commands])
"""


@pytest.mark.deep
def test_a_finished_study_of_another_user_is_whole(out: Path, yaml: str, tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("it takes root to be somebody else")
    for folder in (tmp_path, *tmp_path.parents):
        # Those that pytest has made, one more where tests share processes.
        if folder.stat().st_uid == 0 and len(folder.relative_to(folder.anchor).parts) > 1:
            folder.chmod(0o755)
    commands = [
        f"verify {out}", f"run {yaml} --out {out}", f"publish {yaml} --out {out}",
        f"status {out}", f"query {out} --to csv",
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", OTHER_USER, *commands],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": "/nonexistent"},
    )
    assert done.stdout.splitlines()[-1:] == ["[0, 0, 0, 0, 0]"], done.stderr
    assert open_results(out)
