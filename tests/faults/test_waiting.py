"""Whoever waits for a lock reads which process has it."""

from __future__ import annotations

import os
import re
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hdica.cli import call
from hdica.errors import HdicaError
from hdica.store import paths as module
from hdica.store import publish as publishing
from hdica.store.paths import (
    LOCK,
    SOMEBODY,
    acting,
    command_line,
    locked,
    running,
    wait_for,
    work_path,
)
from tests.faults.bench import SERIAL, Bench, content
from tests.faults.bench import wait_for as happens

pytestmark = pytest.mark.faults

WHO = r"\(pid {pid} on {host}, user \S+\) since \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d UTC"


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
    monkeypatch.setattr(module, "time", made)
    return made


OWN = "hdica run (pid 123 on node7, user alice) since 2026-01-02 03:04:05 UTC"


def write(work: Path, text: str) -> None:
    (work / LOCK).write_text(text)


@pytest.mark.deep
def test_a_run_reports_that_it_waits_for_a_publication(
    bench: Bench, small: list[str], children: Children, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "check_target", lambda target: signal.pause())
    lock = work_path(bench.out) / LOCK
    holding = children.start(lambda: call(["publish", *small[:3]]))
    happens(lambda: lock.exists() and lock.stat().st_size > 0, "the lock")
    monkeypatch.undo()
    # Silence is for progress: who is kept waiting has to know.
    waiting = [children.start(lambda: call(["run", *small, "--quiet"])) for _ in range(2)]
    for each in waiting:
        happens(lambda: children.said(each).endswith("\n"), "the line")  # noqa: B023
    children.kill(holding)
    work = re.escape(str(work_path(bench.out)))
    who = "hdica publish " + WHO.format(pid=holding, host=socket.gethostname())
    other = "hdica run " + WHO.format(pid=r"\d+", host=socket.gethostname())
    said = f"waiting for {work}: locked by {who}\n(waiting for {work}: locked by {other}\n)?"
    for each in waiting:
        assert children.ended(each) == 0, children.said(each)
        assert re.fullmatch(said, children.said(each))
    assert lock.stat().st_size == 0
    bench.whole()


def test_a_second_run_joins_without_a_word(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    with running(bench.out), running(bench.out):
        assert capsys.readouterr().err == ""


def test_a_wait_is_reported_within_a_second_and_not_at_once(
    work: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    write(work, OWN)
    said: list[tuple[float, str]] = []

    def lock() -> bool:
        said.append((clock.now, capsys.readouterr().err))
        return clock.now > 3

    wait_for(lock, work, 10)
    ((when, line),) = [(when, text) for when, text in said if text]
    assert 0.3 < when <= 1
    assert line == f"waiting for {work}: locked by {OWN}\n"


@pytest.mark.deep
def test_of_processes_that_pass_the_lock_on_few_are_named(
    work: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    def lock() -> bool:
        write(work, f"hdica {int(clock.now)}")
        return clock.now > 25

    wait_for(lock, work, 60)
    said = re.findall(r"locked by hdica (\d+)", capsys.readouterr().err)
    assert said == ["0", "10", "20"]


def test_the_end_of_patience_names_the_process_too(work: Path, clock: Clock) -> None:
    write(work, OWN)
    with pytest.raises(HdicaError, match=r"toy\.work has been locked for 900 s by hdica run \(pid"):
        wait_for(lambda: False, work, 900.0)
    assert 900 <= clock.now < 901


def test_the_lock_s_file_says_who_has_it_as_long_as_somebody_does(tmp_path: Path) -> None:
    with acting("hdica publish"), locked(tmp_path / "toy.zarr") as work:
        text = (work / LOCK).read_text()
        expected = "hdica publish " + WHO.format(pid=os.getpid(), host=socket.gethostname())
        assert re.fullmatch(expected, text)
    assert (work / LOCK).read_text() == ""


def test_the_next_process_gets_the_lock_of_a_killed_one_at_once(
    tmp_path: Path, children: Children, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "toy.zarr"

    def hold() -> None:
        with locked(out):
            signal.pause()

    dead = children.start(hold)
    lock = work_path(out) / LOCK
    happens(lambda: lock.exists() and lock.stat().st_size > 0, "the lock")
    children.kill(dead)
    began = time.monotonic()
    with locked(out):
        assert time.monotonic() - began < 5
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("text", [b"", b"\xff\xfe", b" \n "])
def test_what_names_nobody_is_another_process(
    work: Path, clock: Clock, capsys: pytest.CaptureFixture[str], text: bytes
) -> None:
    (work / LOCK).write_bytes(text)
    wait_for(lambda: clock.now > 1, work, 10)
    assert capsys.readouterr().err == f"waiting for {work}: locked by {SOMEBODY}\n"


@pytest.mark.parametrize("plant", [os.mkfifo, os.mkdir, lambda p: os.symlink("/dev/zero", p)])
def test_what_is_no_file_is_not_waited_for(
    work: Path, clock: Clock, plant: Callable[[Path], None]
) -> None:
    plant(work / LOCK)
    wait_for(lambda: clock.now > 1, work, 10)


def test_a_name_cannot_move_the_cursor(
    work: Path, clock: Clock, capsys: pytest.CaptureFixture[str]
) -> None:
    write(work, "\x1b[2Jhdica\nrun" + "x" * 10_000)
    wait_for(lambda: clock.now > 1, work, 10)
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "\x1b" not in said
    assert "hdica" in said
    assert len(said) < 400


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["publish", "x.yaml", "--out", "y"], "hdica publish"),
        (["--version"], "hdica"),
        ([], "hdica"),
    ],
)
def test_a_command_is_named_as_it_was_given(
    arguments: list[str], name: str, tmp_path: Path
) -> None:
    with acting(command_line(arguments)), locked(tmp_path / "toy.zarr") as work:
        assert (work / LOCK).read_text().startswith(f"{name} (pid ")


def test_without_a_command_it_is_the_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for argument, name in (("/a/b/study.py", "study.py"), ("", "Python")):
        monkeypatch.setattr(sys, "argv", [argument])
        with locked(tmp_path / "toy.zarr") as work:
            assert (work / LOCK).read_text().startswith(f"{name} (pid ")


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
    assert module.LOCK_SECONDS > 60
