"""Private folders: for one user alone, held while their process lives, removed by the next."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from hdica.errors import HdicaError
from hdica.process import private
from hdica.process.private import private_folder, remove_ended
from tests.hostile_users.conftest import NOBODY, Stranger

HOLD = """\
import sys, time
from pathlib import Path
from hdica.process.private import private_folder
{how} as folder:
    print(folder, flush=True)
    sys.stdin.read()
"""


def holding(base: Path) -> tuple[subprocess.Popen[str], Path]:
    """A process that holds a private folder until it is ended."""
    code = HOLD.format(how=f"with private_folder(Path({str(base)!r}), 'test-')")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", code], **pipes)  # type: ignore[call-overload]
    return process, Path(process.stdout.readline().strip())


def test_it_is_for_its_owner_alone_and_gone_at_the_end(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with private_folder(tmp_path, "test-") as made:
            assert stat.S_IMODE(made.stat().st_mode) == 0o700
            (made / "folder").mkdir()
            (made / "folder" / "file").touch()
    finally:
        os.umask(before)
    assert not list(tmp_path.iterdir())


def test_what_a_killed_process_left_is_removed_and_what_a_living_one_has_is_not(
    tmp_path: Path,
) -> None:
    living, kept = holding(tmp_path)
    killed, left = holding(tmp_path)
    (left / "folder").mkdir()
    (left / "folder" / "file").touch()
    os.kill(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert left.is_dir()
    assert remove_ended(tmp_path, "test-") == 1
    assert list(tmp_path.iterdir()) == [kept]
    assert remove_ended(tmp_path, "test-") == 0
    living.communicate("")
    assert not kept.exists()


def test_only_what_is_ours_is_removed_and_no_link_is_followed(
    stranger: Stranger, tmp_path: Path
) -> None:
    base = stranger.common
    (tmp_path / private.LOCK).touch()
    (tmp_path / "precious").touch()
    stranger.does(f"mkdir -m 777 test-aaaaaaaa && ln -s {tmp_path}/{private.LOCK} test-aaaaaaaa/")
    stranger.does(f"ln -s {tmp_path} test-bbbbbbbb")
    for name in ("test-cccccccc", "test-dddddddd", "test-eeeeeeee.ended", "test-mine"):
        (base / name).mkdir()
    (base / "test-cccccccc" / private.LOCK).symlink_to(tmp_path / private.LOCK)
    (base / "test-eeeeeeee.ended" / "file").touch()
    (base / "test-ffffffff").mkdir()
    (base / "test-ffffffff" / "no-lock-in-it").touch()
    # The empty one was made and not yet locked; the last but one was being removed.
    assert remove_ended(base, "test-") == 2
    left = {path.name for path in base.iterdir()}
    named = {"test-aaaaaaaa", "test-bbbbbbbb", "test-cccccccc", "test-ffffffff", "test-mine"}
    assert left == named
    assert (tmp_path / "precious").exists()


def test_none_is_taken_from_those_who_begin_and_end_at_the_same_time(tmp_path: Path) -> None:
    def often(_: int) -> None:
        for _ in range(60):
            with private_folder(tmp_path, "test-") as made:
                (made / "file").touch()
                remove_ended(tmp_path, "test-")
                assert (made / "file").exists()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(often, range(8)))
    remove_ended(tmp_path, "test-")
    assert not list(tmp_path.iterdir())


@pytest.fixture
def usual(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The place of temporary files, and none besides."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(private, "ELSEWHERE", ())
    return tmp_path


def test_a_place_where_others_can_exchange_folders_is_not_used(
    usual: Path, common: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert private._base() == (usual, "")
    usual.chmod(0o777)
    assert private._base() == (None, f"others can write to {usual}")
    with pytest.raises(HdicaError, match=r"TMPDIR = '.*' is not allowed \(others can write to"):
        private.scratch.__wrapped__()
    monkeypatch.setattr(private, "ELSEWHERE", (str(common),))
    code = "from hdica.process import private; print(private.scratch())"
    done = subprocess.run(
        [sys.executable, "-c", f"import os; os.environ['TMPDIR'] = {str(usual)!r}; {code}"],
        capture_output=True,
        text=True,
    )
    assert Path(done.stdout.strip()).parent == Path("/tmp")
    assert f"others can write to {usual}: temporary files go to /tmp" in done.stderr
    assert not Path(done.stdout.strip()).exists()


def test_a_place_of_another_user_is_not_used(usual: Path, stranger: Stranger) -> None:
    stranger.does("mkdir -m 1777 theirs && mkdir -m 1777 theirs/inside && ln -s /tmp link")
    for name in ("theirs", "theirs/inside"):
        tempfile.tempdir = str(stranger.common / name)
        assert private._base() == (None, f"{stranger.common}/theirs belongs to user {NOBODY}")
    tempfile.tempdir = str(stranger.common / "link")
    assert private._base() == (None, f"{stranger.common}/link belongs to user {NOBODY}")
    tempfile.tempdir = str(stranger.common)
    assert private._base() == (stranger.common, "")
