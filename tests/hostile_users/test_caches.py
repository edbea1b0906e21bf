"""Compiled code in folders that others can write to, and what an open umask does to ours."""

from __future__ import annotations

import hashlib
import importlib.util
import marshal
import os
import pickle
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hdica.process import compile_cache, private
from hdica.process.compile_cache import PACKAGE, close_caches, set_cache_folder
from tests.hostile_users.conftest import NOBODY, Stranger

WHERE = "finite/random/__pycache__"
"""Where numba would keep what the scripts of this file compile."""
pytestmark = pytest.mark.faults


class Bait:
    """Makes a file when it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[object, tuple[str, str]]:
        return open, (str(self.file), "w")


def compiled(package: Path, cache: Path, umask: int = 0o022, **variables: str) -> str:
    """Load one compiled function in a fresh process; what is said."""
    code = "import hdica.finite.random.gaussian as d; print(d.__file__)"
    given = {"PYTHONPATH": str(package.parent), "XDG_CACHE_HOME": str(cache)}
    given |= {"NUMBA_CACHE_DIR": "", "PYTHONDONTWRITEBYTECODE": "", **variables}
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
    """Where the functions of this module are kept, below NUMBA_CACHE_DIR."""
    folder = tmp_path_factory.mktemp("names")
    assert compiled(PACKAGE, folder, NUMBA_CACHE_DIR=str(folder)) == ""
    files = sorted(path.relative_to(folder) for path in folder.rglob("*.nbc"))
    assert files
    assert all(stat.S_IMODE((folder / file.parts[0]).stat().st_mode) == 0o700 for file in files)
    return files


def bait(file: Path) -> bytes:
    """What runs when it is loaded, with its digest, as everybody can make it."""
    content = pickle.dumps(Bait(file))
    return hashlib.sha256(content).digest() + content


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


def test_compiled_code_that_another_user_left_is_not_run(
    stranger: Stranger, names: list[Path], tmp_path: Path
) -> None:
    cache, ran = stranger.common / "numba", stranger.common / "ran"
    for name in names:
        stranger.does(f"mkdir -p -m 777 {(cache / name).parent}")
        stranger.writes(cache / name, bait(ran))
    said = compiled(PACKAGE, tmp_path, NUMBA_CACHE_DIR=str(cache))
    assert not ran.exists()
    assert f"{cache} belongs to user {NOBODY}: compiled functions are kept in {tmp_path}" in said
    (ours,) = (tmp_path / "hdica").iterdir()
    assert stat.S_IMODE(ours.stat().st_mode) == 0o700
    assert sorted(p.relative_to(ours.parent) for p in ours.rglob("*.nbc")) == names


def test_what_lies_in_the_own_folder_is_run(
    stranger: Stranger, names: list[Path], tmp_path: Path
) -> None:
    """Else the other tests would say nothing."""
    cache, ran = tmp_path / "numba", stranger.common / "ran"
    for name in names:
        (cache / name).parent.mkdir(parents=True, exist_ok=True)
        (cache / name).write_bytes(bait(ran))
        (cache / name.parts[0]).chmod(0o700)
    assert compiled(PACKAGE, tmp_path, NUMBA_CACHE_DIR=str(cache)) == ""
    assert ran.exists()


@pytest.mark.deep
@pytest.mark.parametrize(
    ("owner", "mode", "why"),
    [
        (NOBODY, 0o700, f"belongs to user {NOBODY}"),
        (0, 0o777, "others can write to"),
        (0, 0o755, "others can enter"),
    ],
)
def test_the_folder_inside_of_a_good_one_counts_too(
    stranger: Stranger, names: list[Path], tmp_path: Path, owner: int, mode: int, why: str
) -> None:
    cache, ran = stranger.common / "numba", stranger.common / "ran"
    for name in names:
        (cache / name).parent.mkdir(parents=True, exist_ok=True)
        (cache / name).write_bytes(bait(ran))
        folder = cache / name.parts[0]
        os.chown(folder, owner, owner)
        folder.chmod(mode)
    said = compiled(PACKAGE, tmp_path, NUMBA_CACHE_DIR=str(cache))
    assert not ran.exists()
    assert why in said
    assert f"compiled functions are kept in {tmp_path}" in said
    assert str(folder) in said


@pytest.mark.deep
def test_modules_and_functions_beside_the_sources_that_others_left_are_not_run(
    stranger: Stranger, names: list[Path], copy: Path, tmp_path: Path
) -> None:
    ran = stranger.common / "ran"
    for folder in (copy / "finite/random", copy):
        (folder / "__pycache__").mkdir(mode=0o777)
        (folder / "__pycache__").chmod(0o777)
    planted = [copy / WHERE / name.name for name in names]
    for path in planted:
        stranger.writes(path, bait(ran))
    code = compile(f"open({str(ran)!r}, 'w').close()", "planted", "exec")
    module = copy / WHERE / f"gaussian.{sys.implementation.cache_tag}.pyc"
    unchecked = (1).to_bytes(4, "little") + bytes(8)
    stranger.writes(module, importlib.util.MAGIC_NUMBER + unchecked + marshal.dumps(code))
    said = compiled(copy, tmp_path)
    assert not ran.exists()
    assert f"of user {NOBODY} is deleted: it may have been run" in said
    assert open_to_others(copy) == []
    # It is closed now, and used again.
    assert not any(path.exists() for path in planted)
    assert module.stat().st_uid == os.getuid()
    assert compiled(copy, tmp_path) == ""


@pytest.mark.deep
def test_a_link_to_a_folder_is_not_followed(stranger: Stranger, copy: Path, tmp_path: Path) -> None:
    (copy / "finite/__pycache__").mkdir()
    (copy / "finite/__pycache__").chmod(0o777)
    (copy / "finite/__pycache__/theirs").symlink_to(tmp_path)
    tmp_path.chmod(0o777)
    (copy / "limits/__pycache__").symlink_to(tmp_path)
    (tmp_path / "mine").touch()
    close_caches(copy)
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o777
    assert open_to_others(copy) == []


@pytest.mark.deep
def test_an_open_umask_opens_no_folder_of_compiled_code(copy: Path, tmp_path: Path) -> None:
    assert compiled(copy, tmp_path, umask=0) == ""
    assert open_to_others(copy) == []
    assert open_to_others(tmp_path / "hdica") == []
    assert list((tmp_path / "hdica").rglob("*.nbc"))
    assert list((copy / WHERE).glob("*.pyc"))


def test_a_folder_of_another_user_is_left_to_him(stranger: Stranger, copy: Path) -> None:
    theirs = copy / "finite/__pycache__"
    theirs.mkdir()
    theirs.chmod(0o777)
    stranger.writes(theirs / "x.pyc", b"")
    os.chown(theirs, NOBODY, NOBODY)
    close_caches(copy)
    assert stat.S_IMODE(theirs.stat().st_mode) == 0o777
    assert (theirs / "x.pyc").exists()


@pytest.fixture
def nowhere(copy: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A process whose user has no place for caches, and a file beside the sources in their way."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", "")  # and so it is restored
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    monkeypatch.delitem(sys.modules, "numba.core.config", raising=False)
    (copy / "__pycache__").touch()
    return copy


def test_without_a_home_they_lie_beside_the_sources(nowhere: Path) -> None:
    (nowhere / "__pycache__").unlink()
    found = set_cache_folder.__wrapped__(nowhere)
    assert found.parent == nowhere / "__pycache__"
    assert stat.S_IMODE(found.stat().st_mode) == 0o700
    assert not Path("not").exists()


def test_without_any_place_they_are_kept_as_long_as_the_process_lives(nowhere: Path) -> None:
    with pytest.warns(UserWarning, match="not an absolute path; .*as long as this process runs"):
        found = set_cache_folder.__wrapped__(nowhere)
    assert found.parent == private.scratch()
    assert not Path("not").exists()
    # Processes that this one starts have the same, and say nothing.
    assert set_cache_folder.__wrapped__(nowhere) == found == Path(os.environ[compile_cache.PLACE])


def test_an_installation_of_root_is_good_for_everybody(stranger: Stranger, copy: Path) -> None:
    """Each user has a folder of his own, and nothing is said."""
    caches = stranger.common / "nobody"
    script = (
        "import os; from pathlib import Path; "
        "from hdica.process.compile_cache import set_cache_folder; "
        f"os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY}); "
        f"os.environ['XDG_CACHE_HOME'] = {str(caches)!r}; del os.environ['NUMBA_CACHE_DIR']; "
        f"print(set_cache_folder(Path({str(copy)!r})).parent)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, "NUMBA_CACHE_DIR": ""},
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{caches / 'hdica'}\n", "")
    assert (caches / "hdica").stat().st_uid == NOBODY
