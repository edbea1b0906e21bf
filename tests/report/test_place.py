"""Reports that are disturbed: links in their way, others beside them, kills, and no room."""

from __future__ import annotations

import os
import resource
import signal
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hdica.errors import HdicaError, Unwritable
from hdica.report.place import DATA, FIGURES, PAGE, TITLE, check, place
from hdica.report.printed import files
from hdica.show.panel import Line, Panel
from hdica.show.words import symbol, words
from hdica.store import files as module
from hdica.store.files import PARTIAL, made
from hdica.store.paths import write_file
from tests.faults.crash import forked

pytestmark = pytest.mark.faults

Content = dict[str, bytes]
CHANGES = {"os.mkdir", "os.remove", "os.rename", "fcntl.flock"}
"""Changes of files; a lock is taken between the birth of a file and what is written into it."""


def report(study: str, version: int, figures: tuple[str, ...] = ("bias", "flow")) -> Content:
    """Files of a report, each of which says whose it is; the last may be three blocks long."""
    mark = f"{study} {version}\n".encode()
    page = f'<!DOCTYPE html>\n<meta name="study" content="{study}">\n'.encode() + mark
    drawn = {
        f"{FIGURES}/{key}.svg": f"<title>{TITLE}{key}</title>".encode() + mark * 9
        for key in figures
    }
    return {PAGE: page + b"-" * 9000 + b"</html>", DATA: mark * 500, **drawn}


def put(out: Path, files: Content) -> list[Path]:
    drawn = {Path(k).name: v for k, v in files.items() if k.startswith(FIGURES)}
    return place(out, files[PAGE], files[DATA], drawn)


def found(out: Path) -> Content:
    """Every file below a folder; links are not followed."""
    paths = sorted(p for p in out.rglob("*") if p.is_file() and not p.is_symlink())
    return {str(p.relative_to(out)): p.read_bytes() for p in paths}


OLD, NEW, OTHER = report("first", 1), report("first", 2), report("second", 1, ("bias", "phase"))


@pytest.fixture(autouse=True)
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What is asked of the disk, in order; it would take long, and kills do not need it."""
    done: list[str] = []
    rename = os.rename

    def renamed(old: str, new: str, **folders: int) -> None:
        done.append("rename")
        rename(old, new, **folders)

    def synced(descriptor: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "file")

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "rename", renamed)
    return done


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """A report that stands."""
    put(tmp_path / "out", OLD)
    assert found(tmp_path / "out") == OLD
    return tmp_path / "out"


def test_a_report_replaces_another_with_its_figures_and_nothing_of_the_users(out: Path) -> None:
    mine = {
        "notes.txt": b"mine",
        f"{FIGURES}/.snakemake_timestamp": b"",
        f"{FIGURES}/own.svg": b"<title>own</title>",
        # A copy under another name is somebody's to keep.
        f"{FIGURES}/flow_of_may.svg": OLD[f"{FIGURES}/flow.svg"],
    }
    for name, content in mine.items():
        (out / name).write_bytes(content)
    assert put(out, OTHER)[0] == out / PAGE
    assert found(out) == OTHER | mine


@pytest.mark.deep
def test_figures_of_an_earlier_report_are_known_by_their_titles(tmp_path: Path) -> None:
    line = Line(np.arange(2.0), np.arange(2.0), words("one"), "#000000")
    a, b = (files(Panel(key, words(key), symbol("t"), symbol("Q"), (line,))) for key in "ab")
    place(tmp_path, b"page", b"data", a | b)
    place(tmp_path, b"page", b"data", a)
    assert set(found(tmp_path / FIGURES)) == {"a.svg", "a.pdf"}


@pytest.mark.parametrize("name", ["", PAGE, DATA, FIGURES, f"{FIGURES}/bias.svg"])
@pytest.mark.parametrize("dangling", [False, True])
def test_a_link_is_refused_and_nothing_changes(
    out: Path, tmp_path: Path, name: str, dangling: bool
) -> None:
    outside, planted = tmp_path / "outside", out / name
    planted.rename(outside)
    if dangling:
        outside = tmp_path / "nowhere"
    planted.symlink_to(outside)
    before = found(tmp_path)
    with pytest.raises(HdicaError, match="is a link, which is not followed"):
        put(out, NEW)
    if name != f"{FIGURES}/bias.svg":
        with pytest.raises(HdicaError, match="is a link, which is not followed"):
            check(out)
    assert found(tmp_path) == before
    assert planted.is_symlink()
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("name", [FIGURES, "."])
def test_a_link_that_comes_after_the_look_is_not_followed(
    out: Path, tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    (outside / FIGURES).mkdir(parents=True)

    def looked(path: Path) -> Path:
        if path == out / name and not path.is_symlink():
            path.rename(tmp_path / "aside")
            path.symlink_to(outside)
        return path

    monkeypatch.setattr(module, "no_link", looked)
    with pytest.raises((HdicaError, Unwritable)):
        put(out, NEW)
    assert found(outside) == {}


def test_folders_are_kept_by_their_descriptors(out: Path, tmp_path: Path) -> None:
    outside, aside = tmp_path / "outside", tmp_path / "aside"
    outside.mkdir()
    with (
        made(out) as top,
        top.below(FIGURES) as below,
        below.beside("new.svg", b"new") as partial,
    ):
        (out / FIGURES).rename(aside)
        (out / FIGURES).symlink_to(outside)
        below.place(partial, "new.svg")
    assert found(outside) == {}
    assert (aside / "new.svg").read_bytes() == b"new"


@pytest.mark.parametrize("name", [PAGE, DATA, f"{FIGURES}/bias.svg"])
@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_what_is_no_file_is_not_replaced(out: Path, name: str, kind: str) -> None:
    (out / name).unlink()
    make, said = {
        "folder": (Path.mkdir, "is a folder"),
        "pipe": (os.mkfifo, "is no regular file, and is not replaced"),
    }[kind]
    make(out / name)
    before = found(out)
    with pytest.raises(HdicaError, match=said):
        put(out, NEW)
    assert found(out) == before


@pytest.mark.parametrize("name", ["file", "file/below", f"folder/{FIGURES}"])
def test_a_file_where_a_folder_goes_is_one_sentence(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    stands = tmp_path / (name if FIGURES in name else "file")
    stands.write_text("mine")
    where = stands.parent if FIGURES in name else tmp_path / name
    for refused in (check, lambda out: put(out, NEW)):
        with pytest.raises(HdicaError, match=f"{stands} is no folder"):
            refused(where)
    assert stands.read_text() == "mine"


def started(work: Callable[[], object]) -> int:
    """A fork that does some work; its status is 0 if nothing was raised."""
    child = os.fork()
    if not child:
        os._exit(forked(lambda: (work(), 0)[1]))
    return child


def mixed(out: Path, kinds: list[Content]) -> str:
    """Which report is there, "" while one takes its place; none is torn, and no two are mixed."""
    before = look(out / PAGE)
    numbers, drawn = look(out / DATA), found_now(out / FIGURES)
    if before is None or before != look(out / PAGE):
        return ""
    (kind,) = [kind for kind in kinds if kind[PAGE] == before[1]]
    assert numbers is None or numbers[1] in [k[DATA] for k in kinds]
    assert drawn.items() <= {Path(k).name: v for k, v in kind.items()}.items()
    return kind[PAGE].split(b'"')[3].decode()


def look(file: Path) -> tuple[tuple[int, int], bytes] | None:
    """A file, and which one it is; None if there is none."""
    try:
        with file.open("rb") as stream:
            about = os.fstat(stream.fileno())
            return (about.st_ino, about.st_mtime_ns), stream.read()
    except FileNotFoundError:
        return None


def found_now(folder: Path) -> Content:
    """The files of a folder that others change, without those being written."""
    names = [p for p in folder.glob("*") if not PARTIAL.fullmatch(p.name)]
    seen = {p.name: look(p) for p in names}
    return {name: content[1] for name, content in seen.items() if content}


def test_reports_of_several_studies_at_once_never_mix(tmp_path: Path) -> None:
    out, kinds = tmp_path / "out", [OLD, OTHER, report("third", 1, ())]
    children = [started(lambda k=k: [put(out, k) for _ in range(40)]) for k in [OLD, *kinds]]
    seen, left = [], set(children)
    while left:
        seen.append(mixed(out, kinds))
        for child in left.copy():
            gone, status = os.waitpid(child, os.WNOHANG)
            if gone:
                left.remove(child)
                assert status == 0
    assert found(out) in kinds
    assert len(set(seen) - {""}) > 1, "the reader has met one report only"


def dying(work: Callable[[], object], moment: int) -> int:
    """Do some work in a fork that is killed before one of its changes of files; its status."""

    def disturbed() -> int:
        left = [moment]

        def watch(event: str, arguments: tuple[Any, ...]) -> None:
            if event in CHANGES or (event == "open" and arguments[2] & os.O_ACCMODE):
                left[0] -= 1
                if not left[0]:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(watch)
        work()
        return 0

    return forked(disturbed)


@pytest.mark.deep
@pytest.mark.parametrize("new", [NEW, OTHER], ids=["same", "other"])
def test_a_kill_at_any_change_leaves_the_old_report_or_the_new_one(
    tmp_path: Path, new: Content
) -> None:
    for moment in range(1, 1000):
        out = tmp_path / str(moment)
        put(out, OLD)
        code = dying(lambda: put(out, new), moment)  # noqa: B023
        left = {k: v for k, v in found(out).items() if not PARTIAL.fullmatch(Path(k).name)}
        # No file is torn, and a new page has everything of its own.
        assert all(v in (OLD.get(k), new.get(k)) for k, v in left.items())
        if left.get(PAGE) == new[PAGE]:
            assert left == new
        elif new is NEW:
            assert left[PAGE] == OLD[PAGE]
        elif PAGE in left:
            # The page of another study stands beside its own figures alone.
            assert left == OLD
        put(out, NEW)
        assert found(out) == NEW
        if code == 0:
            break
        assert code == -signal.SIGKILL
    assert moment > 4 * len(new)


@pytest.mark.parametrize("killed", [True, False])
def test_a_write_that_breaks_off_leaves_the_old_report(out: Path, killed: bool) -> None:
    def break_off() -> int:
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL if killed else signal.SIG_IGN)
        # In the middle of the page.
        resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
        with pytest.raises(Unwritable, match="file too large; what was there before is kept"):
            put(out, NEW)
        return 0

    assert forked(break_off) == (-signal.SIGXFSZ if killed else 0)
    left = {k: v for k, v in found(out).items() if not PARTIAL.fullmatch(k)}
    assert left == OLD
    assert [p.stat().st_size for p in out.glob(".*.partial")] == [5000] * killed
    put(out, NEW)
    assert found(out) == NEW


def test_what_a_living_writer_has_not_finished_stays(out: Path) -> None:
    with made(out) as top, top.beside(PAGE, b"unfinished") as partial:
        dead = out / ".hdica-1-0123abcd.partial"
        dead.write_bytes(b"torn")
        put(out, NEW)
        assert (out / partial).read_bytes() == b"unfinished"
        assert not dead.exists()
        top.place(partial, PAGE)
    assert found(out) == {**NEW, PAGE: b"unfinished"}


def test_a_writer_that_hangs_is_one_sentence(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WAIT_SECONDS", 0.1)
    with (
        made(out) as top,
        top.alone(),
        pytest.raises(Unwritable, match="has been locked for 0 s by another process"),
    ):
        put(out, NEW)
    assert found(out) == OLD
    put(out, NEW)
    assert found(out) == NEW


def test_a_folder_of_somebody_else_is_one_sentence(out: Path) -> None:
    def refused() -> int:
        os.chdir(out)
        if not os.geteuid():
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
        for attempt in (check, lambda here: put(here, NEW)):
            with pytest.raises(Unwritable, match=r"\. cannot be written: permission denied"):
                attempt(Path())
        return 0

    out.chmod(0o555)
    try:
        assert forked(refused) == 0
    finally:
        out.chmod(0o755)
    assert found(out) == OLD


def test_a_report_is_for_the_same_people_as_before(out: Path) -> None:
    (out / PAGE).chmod(0o600)
    put(out, NEW)
    assert (out / PAGE).stat().st_mode & 0o777 == 0o600
    mask = os.umask(0o027)
    try:
        put(out.with_name("fresh"), NEW)
    finally:
        os.umask(mask)
    assert (out.with_name("fresh") / PAGE).stat().st_mode & 0o777 == 0o640


def test_files_are_on_disk_before_they_take_their_places(
    tmp_path: Path, asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HDICA_SYNC", "on")
    put(tmp_path, OLD)
    # The figures, then aggregate and page.
    places = ["rename", "rename", "folder"] * 2
    assert asked == ["file"] * len(OLD) + places
    asked.clear()
    write_file(tmp_path / "q.csv", b"x")
    assert asked == ["file", "rename", "folder"]


def test_answers_at_once_are_whole(tmp_path: Path) -> None:
    # As long as a name can be.
    file, contents = tmp_path / ("x" * 251 + ".csv"), [b"a" * 30000, b"b" * 30000]
    children = [started(lambda c=c: [write_file(file, c) for _ in range(60)]) for c in contents]
    while any(os.waitpid(child, os.WNOHANG) == (0, 0) for child in children[:1]):
        seen = look(file)
        assert seen is None or seen[1] in contents
    assert os.waitpid(children[1], 0)[1] == 0
    assert file.read_bytes() in contents
    assert list(tmp_path.iterdir()) == [file]


def test_a_kill_leaves_the_old_answer_or_the_new_one(tmp_path: Path) -> None:
    file, code, moment = tmp_path / "q.csv", -1, 0
    while code:
        moment += 1
        write_file(file, b"old")
        code = dying(lambda: write_file(file, b"new"), moment)
        assert file.read_bytes() in (b"old", b"new")
        assert code in (0, -signal.SIGKILL)
    assert file.read_bytes() == b"new"
    write_file(tmp_path / "another.csv", b"")
    assert len(list(tmp_path.iterdir())) == 2
    assert moment > 3
