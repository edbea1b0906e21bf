"""Whoever waits for a lock is told who holds it, and nothing that is no longer true."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from hdica.cli import call
from hdica.errors import HdicaError
from hdica.sweep.files.paths import work_path
from hdica.sweep.outcome import publish as publishing
from hdica.sweep.run import holder, working_lock
from hdica.sweep.run.company import taking_part
from hdica.sweep.run.holder import NOTE, SOMEBODY, Holder, acting, command_line, noted, wait_for
from tests.faults.bench import SERIAL, Bench, content
from tests.faults.bench import wait_for as happens

pytestmark = pytest.mark.faults

WHO = r"\(pid {pid} on {host}, user \S+\) since \d\d:\d\d:\d\d UTC"


@dataclass
class Children:
    """Forks; what each says on standard error goes to a file."""

    folder: Path
    pids: list[int] = field(default_factory=list)

    def start(self, body: Callable[[], Any]) -> int:
        said = os.open(self.folder / f"said-{len(self.pids)}", os.O_WRONLY | os.O_CREAT)
        pid = os.fork()
        if not pid:
            code = 70
            try:
                os.dup2(said, 2)
                sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
                code = int(body() or 0)
            except BaseException as exc:
                os.write(2, f"{type(exc).__name__}: {exc}\n".encode())
            finally:
                os._exit(code)
        os.close(said)
        self.pids.append(pid)
        return pid

    def said(self, pid: int) -> str:
        return (self.folder / f"said-{self.pids.index(pid)}").read_text()

    def ended(self, pid: int) -> int:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        assert self.ended(pid) == -signal.SIGKILL


@pytest.fixture
def children(tmp_path: Path) -> Iterator[Children]:
    made = Children(tmp_path)
    yield made
    for pid in made.pids:
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            made.ended(pid)


@pytest.fixture
def small(bench: Bench) -> list[str]:
    """Arguments of a study of seven points."""
    bench.study = content(save={}, methods={"line": {}, "steady": {}})
    return bench.arguments(SERIAL)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A working store with nothing in it."""
    made = tmp_path / "toy.work"
    made.mkdir()
    return made


@dataclass
class Clock:
    """Time that passes when somebody sleeps."""

    now: float = 0.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def time(self) -> float:
        return time.time()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(holder, "time", made)
    return made


OWN = Holder("hdica run", os.getpid(), socket.gethostname(), "alice", 1e9, "")


def write(work: Path, who: Holder) -> None:
    (work / NOTE).write_text(json.dumps(asdict(who)))


@pytest.mark.deep
def test_a_run_says_that_it_waits_for_a_publish(
    bench: Bench, small: list[str], children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "check_target", lambda target: signal.pause())
    note = work_path(bench.out) / NOTE
    holding = children.start(lambda: call(["publish", *small[:3]]))
    happens(note.exists, "the lock")
    monkeypatch.undo()
    # Silence is for progress: who is kept waiting has to know.
    waiting = [children.start(lambda: call(["run", *small, "--quiet"])) for _ in range(2)]
    for one in waiting:
        happens(lambda: children.said(one).endswith("\n"), "the line")  # noqa: B023
    children.kill(holding)
    work = re.escape(str(work_path(bench.out)))
    who = "hdica publish " + WHO.format(pid=holding, host=socket.gethostname())
    other = "hdica run " + WHO.format(pid=r"\d+", host=socket.gethostname())
    said = f"waiting for {work}: held by {who}\n(waiting for {work}: held by {other}\n)?"
    for one in waiting:
        assert children.ended(one) == 0, children.said(one)
        # The first waits for the lock; the second for the first, whose mark it joins.
        assert re.fullmatch(said, children.said(one))
    assert not note.exists()
    bench.whole()


def test_a_second_run_joins_without_a_word(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    with taking_part(bench.out), taking_part(bench.out):
        assert capsys.readouterr().err == ""


def test_it_is_said_within_a_second_and_not_at_once(
    work: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    write(work, OWN)
    said: list[tuple[float, str]] = []

    def taken() -> bool:
        said.append((clock.now, capsys.readouterr().err))
        return clock.now > 3

    wait_for(taken, work, 10)
    lines = [(when, text) for when, text in said if text]
    ((when, line),) = lines
    assert 0.3 < when <= 1
    assert line == (
        f"waiting for {work}: held by hdica run (pid {os.getpid()} on {socket.gethostname()}, "
        "user alice) since 2001-09-09 01:46:40 UTC\n"
    )


@pytest.mark.deep
def test_of_holders_that_pass_it_on_few_are_named(
    work: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    def taken() -> bool:
        write(work, replace(OWN, command=f"hdica {int(clock.now)}"))
        return clock.now > 25

    wait_for(taken, work, 60)
    said = re.findall(r"held by hdica (\d+)", capsys.readouterr().err)
    assert said == ["0", "10", "20"]


def test_the_end_of_patience_says_it_too(work: Path, clock: Clock) -> None:
    write(work, OWN)
    with pytest.raises(HdicaError, match=r"toy\.work has been held for 900 s by hdica run \(pid"):
        wait_for(lambda: False, work, 900.0)
    assert 900 <= clock.now < 901


def test_a_holder_that_was_killed_is_not_named(
    work: Path, children: Children, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    def hold() -> None:
        with noted(work):
            signal.pause()

    dead = children.start(hold)
    happens(lambda: holder.holder(work) is not None, "the note")
    children.kill(dead)
    assert (work / NOTE).exists()
    wait_for(lambda: clock.now > 1, work, 10)
    assert capsys.readouterr().err == f"waiting for {work}: held by {SOMEBODY}\n"
    with noted(work):
        found = holder.holder(work)
        assert found is not None
        assert found.pid == os.getpid()
        assert abs(time.time() - found.since) < 60
    assert not (work / NOTE).exists()


def test_a_number_that_is_used_again_is_another_process(work: Path) -> None:
    with noted(work):
        own = holder.holder(work)
    assert own is not None
    if own.began:
        write(work, replace(own, began="1"))
        assert holder.holder(work) is None
    # Of another machine nobody knows here.
    for far in (replace(own, host="far"), replace(own, host="far", began="1")):
        write(work, far)
        assert holder.holder(work) == far


def test_a_holder_that_cannot_say_so_does_not_leave_the_note_of_another(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(work, replace(OWN, host="far"))

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(holder.os, "open", full)
    with noted(work):
        assert holder.holder(work) is None


def test_a_note_goes_where_nothing_stands_and_everybody_can_read_it(
    work: Path, tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("mine")
    (work / NOTE).symlink_to(precious)
    mask = os.umask(0o077)
    try:
        with noted(work):
            assert stat.S_IMODE((work / NOTE).stat().st_mode) == 0o644
            assert holder.holder(work) is not None
    finally:
        os.umask(mask)
    assert precious.read_text() == "mine"


@pytest.mark.parametrize(
    "text",
    [
        b"", b"null", b"[]", b"{}", b"\xff\xfe", b"[" * 4000, b" " * 5000, b'{"pid": 1}',
        *(
            json.dumps(asdict(OWN) | changed).encode()
            for changed in (
                {"pid": "1"}, {"pid": True}, {"pid": 10**30}, {"pid": None}, {"command": 1},
                {"since": "x"}, {"since": 1}, {"since": float("nan")}, {"since": 1e300},
                {"host": "h" * 99}, {"more": 1},
            )
        ),
    ],
    # Of its own process each: names of tests must be the same in all that share them.
    ids=range(19),
)  # fmt: skip
def test_what_is_no_note_names_nobody(work: Path, text: bytes) -> None:
    (work / NOTE).write_bytes(text)
    assert holder.holder(work) is None


@pytest.mark.parametrize("plant", [os.mkfifo, os.mkdir, lambda p: os.symlink("/dev/zero", p)])
def test_what_is_no_file_is_not_waited_for(work: Path, plant: Callable[[Path], None]) -> None:
    plant(work / NOTE)
    assert holder.holder(work) is None
    with noted(work):
        assert holder.holder(work) is not None


def test_a_note_cannot_move_the_cursor(
    work: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    write(work, replace(OWN, command="\x1b[2Jhdica\nrun", host="far"))
    wait_for(lambda: clock.now > 1, work, 10)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "\x1b" not in said
    assert "hdica" in said


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["publish", "x.yaml", "--out", "y"], "hdica publish"),
        (["--version"], "hdica"),
        ([], "hdica"),
    ],
)
def test_a_command_is_named_as_it_was_given(arguments: list[str], name: str, work: Path) -> None:
    with acting(command_line(arguments)), noted(work):
        found = holder.holder(work)
    assert found is not None
    assert found.command == name


def test_without_a_command_it_is_the_program(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for argument, name in (("/a/b/study.py", "study.py"), ("", "Python")):
        monkeypatch.setattr(sys, "argv", [argument])
        with noted(work):
            found = holder.holder(work)
        assert found is not None
        assert found.command == name


def test_that_nobody_listens_is_no_reason_to_give_up(
    work: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as gone:
        monkeypatch.setattr(sys, "stderr", gone)
        wait_for(lambda: clock.now > 1, work, 10)
        monkeypatch.undo()
        with suppress(BrokenPipeError):
            gone.close()
    assert clock.now > 1
    assert working_lock.LOCK_SECONDS > 60
