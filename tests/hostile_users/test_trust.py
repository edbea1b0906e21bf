"""Whether others could put something in the place of a file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hdica.process import private
from hdica.process.private import doubt, make_folders, open_umask, writable


def test_every_folder_on_the_way_counts(common: Path) -> None:
    folder = common / "mine" / "inner"
    folder.mkdir(parents=True)
    (folder / "file").touch()
    assert doubt(folder) == doubt(folder / "file") == ""
    (folder / "file").chmod(0o666)
    assert doubt(folder / "file") == f"others can write to {folder / 'file'}"
    folder.parent.chmod(0o777)
    assert doubt(folder) == f"others can write to {folder.parent}"
    folder.parent.chmod(0o1777)
    assert doubt(folder) == ""
    # Into it others can still put what was not there before.
    assert doubt(folder.parent) == f"others can write to {folder.parent}"
    assert doubt(folder.parent, holds=True) == ""


def test_links_count_with_what_they_lead_to(common: Path) -> None:
    for name in ("good", "open"):
        (common / name).mkdir()
    (common / "open").chmod(0o777)
    (common / "good" / "back").symlink_to("../open/../good")
    (common / "good" / "straight").symlink_to(common / "good")
    (common / "good" / "round").symlink_to("round")
    assert doubt(common / "good" / "straight") == ""
    assert doubt(common / "good" / "back") == f"others can write to {common / 'open'}"
    assert doubt(common / "good" / "round").endswith("leads through too many links")
    with pytest.raises(FileNotFoundError):
        doubt(common / "absent")


def test_a_group_counts_unless_it_is_the_users_own(
    common: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = common / "shared"
    folder.mkdir()
    folder.chmod(0o775)
    monkeypatch.setattr(private, "_alone_in", lambda group: False)
    assert writable(folder.stat())
    monkeypatch.setattr(private, "_alone_in", lambda group: group == folder.stat().st_gid)
    assert not writable(folder.stat())
    folder.chmod(0o777)
    assert writable(folder.stat())


def test_the_group_of_root_is_nobodys_own() -> None:
    assert not private._alone_in(0)
    assert not private._alone_in(2**31 - 5)


@pytest.mark.parametrize(("mask", "open_to"), [(0, True), (0o020, True), (0o022, False)])
def test_the_umask_is_looked_at_and_stays(mask: int, open_to: bool) -> None:
    before = os.umask(mask)
    try:
        assert open_umask() == open_to
        assert os.umask(mask) == mask
    finally:
        os.umask(before)


def test_folders_are_made_for_one_user_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_folders(tmp_path / "a/b/c", 0o700)
        make_folders(tmp_path / "a/b/c", 0o755)
        (tmp_path / "file").touch()
        with pytest.raises(FileExistsError):
            make_folders(tmp_path / "file")
    finally:
        os.umask(before)
    modes = [(tmp_path / name).stat().st_mode & 0o777 for name in ("a", "a/b", "a/b/c")]
    assert modes == [0o755, 0o755, 0o700]
