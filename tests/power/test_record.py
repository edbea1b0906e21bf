"""What a recorder makes of system calls: of real ones, and of those that it has to refuse."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.faults.nursery import ROOT
from tests.power import marks
from tests.power.disk import Disk
from tests.power.operations import Make, Recording, Sync, Write
from tests.power.place import held, put
from tests.power.record import operations_in
from tests.power.trace import Unsupported, hexed, strace, trace_lines, why_not
from tests.power.variants import Crash, after, every, left

WHY = why_not()
traced = pytest.mark.skipif(bool(WHY), reason=WHY)


def run(command: list[str], tmp_path: Path) -> Recording:
    """Record a command in a folder, whose last argument is another folder."""
    folder, told = tmp_path / "disk", tmp_path / "trace.txt"
    folder.mkdir()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), marks.FILE: str(tmp_path / "marks")}
    process = strace([*command, str(folder)], told, tmp_path, environment)
    assert process.wait(60) == 0
    lines = trace_lines(told)
    return operations_in(lines, str(folder), str(tmp_path / "marks"), str(tmp_path))


@traced
def test_real_calls_make_what_the_folder_holds(tmp_path: Path) -> None:
    """Three times meanwhile the process says what is there, which is compared as it is read."""
    found = run([sys.executable, "-m", "tests.power.actions"], tmp_path)
    assert [mark.said["ended"] for mark in found.marks] == ["contents", "names", "processes"]
    disk = Disk()
    for operation in found.operations:
        disk.apply(operation)
    assert after(disk, "D") == held(tmp_path / "disk")
    counts = Counter(type(one).__name__ for one in found.operations)
    assert counts["Sync"] == 5
    others = ("Make", "Write", "Cut", "Link", "Move", "Swap", "Remove")
    assert min(counts[name] for name in others) > 0


SHARED = """
import mmap, os, sys
file = os.open(sys.argv[1] + "/a", os.O_RDWR | os.O_CREAT)
os.write(file, b"0123")
memory = mmap.mmap(file, 4)
memory[0] = 65
"""
ENTERING = """
import os, sys
open("outside", "w").close()
os.rename("outside", sys.argv[1] + "/inside")
"""
SYNCED = """
import os, sys
os.open(sys.argv[1] + "/a", os.O_WRONLY | os.O_CREAT | os.O_DSYNC)
"""
NODE = """
import os, sys
os.mkfifo(sys.argv[1] + "/pipe")
"""
WITHIN = """
import os, sys
os.rmdir(sys.argv[1])
os.mkdir(sys.argv[1])
"""


@traced
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (SHARED, "through memory"),
        (ENTERING, "into the folder"),
        (SYNCED, "O_DSYNC"),
        (NODE, "mknod.* is not modelled"),
        (WITHIN, "the folder itself"),
    ],
)
def test_calls_that_are_not_modelled_are_refused(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match=why):
        run([sys.executable, "-I", "-S", "-c", text], tmp_path)


def quoted(text: str) -> str:
    return f'"{hexed(text.encode())}"'


def opened(number: int, path: str) -> str:
    return f"{number}<{hexed(path.encode())}>"


def lines(*texts: str) -> list[str]:
    """Lines of a trace of one process, unless they begin with another."""
    return [text if text[0].isdigit() else f"7 {text}" for text in texts]


def read(*texts: str) -> Recording:
    return operations_in(lines(*texts), "/d", "/marks", "/")


HELD = '{"holds": {"b": "folder"}}'
MADE = f"openat(AT_FDCWD<{hexed(b'/')}>, {quoted('/d/a')}, O_WRONLY|O_CREAT|O_EXCL, 0666) = "


def test_a_sync_that_was_interrupted_covers_what_had_ended_before_it_began() -> None:
    file = opened(3, "/d/a")
    found = read(
        MADE + file,
        f"write({file}, {quoted('one')}, 3) = 3",
        f"fsync({file} <unfinished ...>",
        "7 clone(child_stack=NULL, flags=CLONE_FILES|CLONE_FS|SIGCHLD) = 8",
        f"8 write({file}, {quoted('two')}, 3) = 3",
        "<... fsync resumed>) = 0",
    ).operations
    assert found == (Make(1, "file", 0, "a"), Write(1, 0, b"one"), Write(1, 3, b"two"), Sync(1, 2))


def test_a_child_is_known_before_the_call_that_made_it_has_returned() -> None:
    file = opened(3, "/d/a")
    found = read(
        MADE + file,
        "clone(child_stack=NULL, flags=SIGCHLD <unfinished ...>",
        f"8 write({file}, {quoted('two')}, 3) = 3",
        "<... clone resumed>) = 8",
        f"write({file}, {quoted('three')}, 5) = 4",
        f"write({file}, {quoted('full')}, 4) = -1 ENOSPC (No space left on device)",
        "8 +++ exited with 0 +++",
    ).operations
    assert found[1:] == (Write(1, 0, b"two"), Write(1, 3, b"thre"))


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (f"write({opened(9, '/d/a')}, {quoted('x')}, 1) = 1", "nobody has opened descriptor 9"),
        (f"write({opened(3, '/d/b')}, {quoted('x')}, 1) = 1", "was never made"),
        (f"setxattrat({quoted('/d/a')}, 0) = 0", "setxattrat is not modelled"),
        (f"write({opened(3, '/d/a')}, {quoted('x')}..., 9) = 9", "a text was expected"),
        (f"rename({quoted('/d/z')}, {quoted('/d/y')}) = 0", "z was never made"),
        (f"ioctl({opened(3, '/d/a')}, FICLONE, 4) = 0", "ioctl FICLONE"),
        (f"splice(5, NULL, {opened(3, '/d/a')}, NULL, 4, 0) = 4", "splice is not modelled"),
        ("io_uring_setup(4, {flags=0}) = 6", "unseen"),
        ("no call at all", "cannot be read"),
        (f"8 unlink({quoted('/d/a')}) = 0", "nobody has made process 8"),
        (f"renameat2(0, {quoted('/d/a')}, 0, {quoted('/d/b')}, RENAME_WHITEOUT) = 0", "WHITEOUT"),
        (f"renameat2(0, {quoted('/d/a')}, 0, {quoted('/d/b')}, RENAME_EXCHANGE) = 0", "never made"),
        (f"fallocate({opened(3, '/d/a')}, FALLOC_FL_PUNCH_HOLE, 0, 4) = 0", "FALLOC_FL_PUNCH_HOLE"),
        (f"write({opened(4, '/marks')}, {quoted(HELD)}, 9) = 9", "do not explain"),
    ],
)
def test_a_trace_that_cannot_be_trusted_is_refused(call: str, why: str) -> None:
    with pytest.raises(Unsupported, match=why):
        read(MADE + opened(3, "/d/a"), call)


def test_what_lies_elsewhere_is_passed_by() -> None:
    found = read(
        f"openat(AT_FDCWD<{hexed(b'/')}>, {quoted('/do/a')}, O_WRONLY|O_CREAT, 0666) = "
        + opened(3, "/do/a"),
        f"write({opened(3, '/do/a')}, {quoted('x')}, 1) = 1",
        f"rename({quoted('d')}, {quoted('/e')}) = -1 ENOENT (No such file or directory)",
        f"unlink({quoted('/do/a')}) = 0",
        f"fsync({opened(3, '/do/a')}(deleted)) = 0",
        f"write({opened(1, 'pipe:[17]')}, {quoted('x')}, 1) = 1",
        "--- SIGCHLD {si_signo=SIGCHLD} ---",
    )
    assert found.operations == ()


def test_a_folder_holds_what_a_disk_may_hold_also_where_it_held_something_else(
    tmp_path: Path,
) -> None:
    disk = {"a": b"1", "b": None, "b/c": b"2", "d": b"", "e": "a"}
    other = {"a": None, "a/x": b"3", "b": b"file", "e": b"4", "f": "b"}
    put(disk, tmp_path / "first")
    assert held(tmp_path / "first") == disk
    put(other, tmp_path / "first", disk)
    assert held(tmp_path / "first") == other
    put(disk, tmp_path / "first", other)
    assert held(tmp_path / "first") == disk


@traced
def test_a_shell_that_syncs_nothing_is_found_out(tmp_path: Path) -> None:
    """From the calls of a real program to what a power loss leaves of its files."""
    text = 'cd "$1" && echo new > .tmp && mv .tmp data'
    found = run(["sh", "-c", text, "sh"], tmp_path)
    moments = len(found.operations)
    some = dict(left(found.operations, every(moments), 1))
    assert some[Crash(moments, "D")] == {"data": b"new\n"}
    assert some[Crash(moments, "B")] == {"data": b""}
    assert some[Crash(moments, "A")] == {}
    subprocess.run(["rm", "-r", str(tmp_path / "disk")], check=True)
    text = 'cd "$1" && echo new > .tmp && sync .tmp && mv .tmp data && sync .'
    found = run(["sh", "-c", text, "sh"], tmp_path)
    last = [image for crash, image in left(found.operations, every(len(found.operations)), 1)][-7:]
    assert last == [{"data": b"new\n"}] * 7
