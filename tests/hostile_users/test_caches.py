"""Compiled code in folders that others can write to, and what an open umask does to ours."""

from __future__ import annotations

import os
import pickle
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hdica.process import cache_folders, private
from hdica.process.cache_folders import close_caches, settle
from hdica.process.compile_cache import folders
from tests.hostile_users.conftest import NOBODY, Stranger

PACKAGE = Path(cache_folders.__file__).parents[1]
WHERE = "limits/mean_field/density/__pycache__"
"""Where numba keeps what the scripts of this file compile."""
pytestmark = pytest.mark.faults


class Bait:
    """Makes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.file), "w")


def compiled(package: Path, cache: Path, umask: int = 0o022, **variables: str) -> str:
    """Load one compiled function in a fresh process; what is said."""
    code = "import hdica.limits.mean_field.density.interpolation as d; print(d.__file__)"
    given = {"PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(cache), **variables}
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=package.parent,
        env={**os.environ, **given},
        umask=umask,
        capture_output=True,
        text=True,
        timeout=250,
    )
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()).is_relative_to(package)
    return done.stderr


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Where numba keeps the function of this package, below NUMBA_CACHE_DIR."""
    folder = tmp_path_factory.mktemp("names")
    assert compiled(PACKAGE, folder, NUMBA_CACHE_DIR=str(folder)) == ""
    found = [path.relative_to(folder) for path in folder.rglob("*.nb[ic]")]
    assert {path.suffix for path in found} == {".nbi", ".nbc"}
    return found


@pytest.fixture
def copy(common: Path) -> Path:
    """The package as somebody installs it, without anything compiled."""
    to = common / "site" / "hdica"
    shutil.copytree(PACKAGE, to, ignore=shutil.ignore_patterns("__pycache__"))
    return to


def open_to_others(folder: Path) -> list[str]:
    """What others could write to, below a folder that they can enter."""
    found, rest = [], [folder]
    while rest:
        path = rest.pop()
        about = path.lstat()
        if about.st_mode & 0o022 and not stat.S_ISLNK(about.st_mode):
            found.append(str(path))
        if path.is_dir() and about.st_mode & 0o011:
            rest.extend(path.iterdir())
    return found


def test_an_index_of_numba_that_another_user_left_is_not_run(
    stranger: Stranger, names: list[Path], tmp_path: Path
) -> None:
    cache, ran = stranger.common / "numba", stranger.common / "ran"
    for name in names:
        stranger.does(f"mkdir -p -m 777 {(cache / name).parent}")
        stranger.writes(cache / name, pickle.dumps(Bait(ran)))
    said = compiled(PACKAGE, tmp_path, NUMBA_CACHE_DIR=str(cache))
    assert not ran.exists()
    assert f"{cache} belongs to user {NOBODY}: compiled functions are kept in {tmp_path}" in said
    (ours,) = (tmp_path / "hdica").iterdir()
    assert stat.S_IMODE(ours.stat().st_mode) == 0o700
    assert sorted(p.relative_to(ours) for p in ours.rglob("*.nb[ic]")) == sorted(names)


@pytest.mark.deep
def test_a_folder_inside_of_a_good_one_counts_too(
    stranger: Stranger, names: list[Path], tmp_path: Path
) -> None:
    cache, ran = stranger.common / "numba", stranger.common / "ran"
    cache.mkdir()
    for name in names:
        (cache / name).parent.mkdir(exist_ok=True)
        (cache / name).parent.chmod(0o777)
        stranger.writes(cache / name, pickle.dumps(Bait(ran)))
    said = compiled(PACKAGE, tmp_path, NUMBA_CACHE_DIR=str(cache))
    assert not ran.exists()
    assert f"others can write to {cache / names[0].parent}: compiled functions are" in said


@pytest.mark.deep
def test_compiled_code_beside_the_sources_that_others_left_is_not_run(
    stranger: Stranger, names: list[Path], copy: Path, tmp_path: Path
) -> None:
    ran = stranger.common / "ran"
    for folder in (copy / "limits/mean_field/density", copy):
        (folder / "__pycache__").mkdir(mode=0o777)
        (folder / "__pycache__").chmod(0o777)
    planted = [copy / WHERE / name.name for name in names]
    for path in planted:
        stranger.writes(path, pickle.dumps(Bait(ran)))
    (copy / WHERE / "theirs").symlink_to(tmp_path)
    said = compiled(copy, tmp_path)
    assert not ran.exists()
    assert f"of user {NOBODY} is deleted: it may have been run" in said
    assert tmp_path.is_dir()
    assert open_to_others(copy) == []
    # It is closed now, and used again.
    assert all(path.stat().st_uid == os.getuid() for path in planted)
    assert compiled(copy, tmp_path) == ""


@pytest.mark.deep
def test_an_open_umask_opens_no_folder_of_compiled_code(copy: Path, tmp_path: Path) -> None:
    said = compiled(copy, tmp_path, umask=0)
    assert "the umask lets others write to files in" in said
    assert compiled(copy, tmp_path, umask=0) == ""
    assert open_to_others(copy) == []
    assert open_to_others(tmp_path / "hdica") == []
    assert len(list((tmp_path / "hdica").rglob("*.nb[ic]"))) == 2
    assert (copy / WHERE).is_dir()
    assert not list(copy.rglob("*.nb[ic]"))


def test_a_folder_of_another_user_is_left_to_him(stranger: Stranger, copy: Path) -> None:
    theirs = copy / "finite/__pycache__"
    theirs.mkdir()
    theirs.chmod(0o777)
    stranger.writes(theirs / "x.nbi", b"")
    os.chown(theirs, NOBODY, NOBODY)
    close_caches(copy)
    assert stat.S_IMODE(theirs.stat().st_mode) == 0o777
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(copy.parent / "caches"))
        patch.setenv("NUMBA_CACHE_DIR", "")  # and so it is restored
        patch.delitem(sys.modules, "numba.core.config", raising=False)
        with pytest.warns(UserWarning, match=f"finite/__pycache__ belongs to user {NOBODY}"):
            chosen = settle.__wrapped__(copy)
        assert chosen is not None
        assert chosen.parent == copy.parent / "caches/hdica"
        assert os.environ["NUMBA_CACHE_DIR"] == str(chosen)


def test_without_a_home_they_are_kept_as_long_as_the_process_lives(
    copy: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")  # and so it is restored
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.setattr(cache_folders, "_can_write", lambda folder: False)
    monkeypatch.delitem(sys.modules, "numba.core.config", raising=False)
    with pytest.warns(UserWarning, match="there is no folder for them in a home"):
        assert settle.__wrapped__(copy) == private.scratch()
    assert not Path("not").exists()


def test_an_installation_of_root_is_good_for_everybody(stranger: Stranger, copy: Path) -> None:
    for folder in folders(copy):
        (folder / "__pycache__").mkdir()
    script = (
        "import os, sys; from pathlib import Path; "
        "from hdica.process.cache_folders import settle; "
        f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY}); "
        f"os.environ['XDG_CACHE_HOME'] = {str(stranger.common / 'nobody')!r}; "
        f"print(settle(Path({str(copy)!r})))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "None\n", "")
