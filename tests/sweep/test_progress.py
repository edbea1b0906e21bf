from __future__ import annotations

import io
import sys
import time

import pytest

from hdica.sweep.run import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_lines_are_sparse(monkeypatch: pytest.MonkeyPatch) -> None:
    stream, now = io.StringIO(), [0.0]
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with progress.report("toy", 300, 30.0) as shown:
        for _ in range(300):
            now[0] += 0.1
            shown.advance(1, 0.1)
    said = stream.getvalue().splitlines()
    assert said[0] == "toy: 300 points to compute"
    assert said[-1] == "toy: 300 of 300 points computed in 30.0 s"
    assert len(said) <= 2 + 3
    assert said[1].startswith("toy: 10")
    assert said[1].endswith("points, about 20 s left")


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.report("toy", 4, 1.0) as shown:
        shown.advance(3, 0.5)
    assert "3/4" in stream.getvalue()


@pytest.mark.parametrize(("points", "wanted"), [(0, None), (5, False)])
def test_nothing_is_said_where_there_is_nothing_to_say(
    points: int, wanted: bool | None, capsys: pytest.CaptureFixture[str]
) -> None:
    with progress.report("toy", points, 1.0, wanted) as shown:
        shown.advance(points, 1.0)
    assert capsys.readouterr().err == ""


def test_a_run_that_is_cut_says_how_far_it_came(capsys: pytest.CaptureFixture[str]) -> None:
    def cut() -> None:
        with progress.report("toy", 4, 1.0) as shown:
            shown.advance(3, 0.5)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        cut()
    assert "toy: 3 of 4 points computed" in capsys.readouterr().err


def test_a_note_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for stream in (io.StringIO(), Terminal()):
        monkeypatch.setattr(sys, "stderr", stream)
        with progress.report("toy", 4, 1.0) as shown:
            shown.note("waiting for [workers]")
            assert "toy: waiting for [workers]" in stream.getvalue()
