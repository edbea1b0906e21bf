"""Names, links, pipes and sockets: nothing is read or written outside the results folder."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
import zarr

from hdica.errors import HdicaError
from hdica.run.runner import run
from hdica.store.files import DamageError, inside, write_whole
from hdica.store.paths import manifest_path, work_path
from hdica.store.publish import publish
from hdica.store.results import open_results, status
from hdica.store.sealed import sealed, sealed_text
from hdica.store.verify import repair, verify
from hdica.study.study import Study
from tests.sweep import flips
from tests.sweep.conftest import values
from tests.sweep.hostile.lies import walk_of


@pytest.mark.parametrize("name", ["..", "a/../b", "/etc/passwd", "", "a//b", "a\\b", "a\0b", "./a"])
def test_names_that_lead_elsewhere_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(DamageError, match="cannot be one of its own"):
        inside(tmp_path, name)


@pytest.mark.parametrize("name", ["../outside/precious.txt", "/etc/passwd", "a/../../outside/0"])
def test_digests_cannot_name_files_outside_their_store(
    study: Study, out: Path, outside: Path, name: str
) -> None:
    document = json.loads((out / "digests.json").read_text())
    digest = hashlib.sha256(b"precious").hexdigest()
    text = sealed_text({"files": {**document["files"], name: digest}})
    (out / "digests.json").write_text(text)
    root = json.loads((out / "zarr.json").read_text())
    root["attributes"]["digests"] = hashlib.sha256(text.encode()).hexdigest()
    (out / "zarr.json").write_text(sealed(root))
    with pytest.raises(DamageError, match="it names what cannot be a file of the store"):
        open_results(out)
    assert verify(out).code == 3
    repair(out)
    assert not manifest_path(out).exists()


def link_file(target: Path, outside: Path) -> None:
    target.unlink()
    target.symlink_to(outside / "0")


def link_folder(target: Path, outside: Path) -> None:
    shutil.rmtree(target)
    target.symlink_to(outside, target_is_directory=True)


LINKS: list[tuple[str, Callable[[Study, Path], Path]]] = [
    ("a block", lambda s, o: sorted(walk_of(s, o).iterdir())[0]),
    ("a segment", walk_of),
    ("the record of the study", lambda s, o: work_path(o) / "study.json"),
    ("a published chunk", lambda s, o: o / "walk/Q/c/0/0/0/0/0"),
    ("published chunks", lambda s, o: o / "walk/Q/c"),
    ("a published array", lambda s, o: o / "line/twice"),
    ("a published group", lambda s, o: o / "steady"),
    ("the root's metadata", lambda s, o: o / "zarr.json"),
    ("digests", lambda s, o: o / "digests.json"),
]


@pytest.mark.deep
@pytest.mark.parametrize(("what", "where"), LINKS, ids=[what for what, _ in LINKS])
def test_links_are_named_and_never_followed(
    study: Study, out: Path, outside: Path, what: str, where: Callable[[Study, Path], Path]
) -> None:
    before = values(out)
    target = where(study, out)
    (link_folder if target.is_dir() else link_file)(target, outside)
    verdict = verify(out)
    assert verdict.code == 3
    assert any(str(target) in text for text in verdict.damaged)
    for read in (lambda: values(out), lambda: flips.computed(study, out), lambda: status(out)):
        try:
            read()
            said = str(target)
        except HdicaError as exc:
            said = str(exc)
        assert str(target) in said
    repair(out)
    assert not target.is_symlink()
    run(study, out, progress=False)
    publish(study, out)
    assert verify(out).code == 0
    assert values(out) == before


@pytest.mark.parametrize("suffix", [".zarr", ".work", ".manifest.json", ".shards"])
def test_a_link_in_place_of_a_store_is_refused(
    study: Study, out: Path, outside: Path, suffix: str
) -> None:
    place_ = out.with_suffix(suffix)
    moved = outside.parent / f"moved{suffix}"
    place_.rename(moved)
    place_.symlink_to(moved)
    commands: list[Callable[[], object]] = [
        lambda: verify(out), lambda: repair(out), lambda: publish(study, out),
    ]  # fmt: skip
    if suffix in (".zarr", ".work"):
        commands.append(lambda: run(study, out, progress=False))
    for command in commands[: 2 if suffix == ".shards" else 4]:
        with pytest.raises(HdicaError, match="is a link, which is not followed"):
            command()
    assert place_.is_symlink()


def test_nothing_is_written_through_links_left_where_temporary_files_go(
    study: Study, out: Path, outside: Path
) -> None:
    pid = os.getpid()
    for name in (
        f".{out.name}.partial", f".{out.name}.old", f".hdica-{pid}-01234567.partial",
        f"{out.stem}.work/.hdica-{pid}-01234567.partial",
        f"{out.stem}.work/{walk_of(study, out).name}/.hdica-{pid}-01234567.partial",
    ):  # fmt: skip
        (out.parent / name).symlink_to(outside)
    before = values(out)
    for file in walk_of(study, out).glob("*.block"):
        file.unlink()
    run(study, out, progress=False)
    publish(study, out)
    assert values(out) == before
    write_whole(out.parent / "note.txt", b"x")


def test_links_to_locks_are_refused(study: Study, out: Path, outside: Path) -> None:
    lock = work_path(out) / ".lock"
    lock.unlink(missing_ok=True)
    lock.symlink_to(outside / "precious.txt")
    with pytest.raises(HdicaError, match="is a link"):
        publish(study, out)


def test_pipes_and_sockets_in_a_store_are_not_waited_for(
    study: Study, out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chunk = out / "walk/Q/c/0/0/0/0/0"
    chunk.unlink()
    os.mkfifo(chunk)
    with pytest.raises(DamageError, match="is no regular file"):
        values(out)
    record = work_path(out) / "study.json"
    record.unlink()
    with socket.socket(socket.AF_UNIX) as server:
        monkeypatch.chdir(record.parent)  # its whole path may be too long for a socket
        server.bind("study.json")
        with pytest.raises(DamageError, match="is no regular file"):
            status(out)
    assert verify(out).code == 3


def test_what_is_no_published_store_is_never_replaced(study: Study, out: Path) -> None:
    run(study, out, progress=False)
    (out / "notes.txt").write_text("of somebody")
    with pytest.raises(HdicaError, match=r"notes.txt is no file of a published store"):
        publish(study, out)
    shutil.rmtree(out)
    zarr.open_group(out, mode="w", zarr_format=3).create_array("mine", shape=3, dtype="f8")
    with pytest.raises(HdicaError, match="was not written by hdica"):
        publish(study, out)
    shutil.rmtree(out)
    out.write_text("a file")
    with pytest.raises(HdicaError, match="is no folder"):
        publish(study, out)
    assert out.read_text() == "a file"
