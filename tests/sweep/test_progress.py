from __future__ import annotations

import io
import sys
import time
from pathlib import Path

import pytest

from hdica.process.progress import Pace
from hdica.run import console as progress
from hdica.run.runner import run
from hdica.study.study import study_from


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
    assert said[1].endswith(" of 300 points, 10 points/s, about 20 s left")


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


def test_a_terminal_that_others_write_to_gets_lines_with_bars_beside_the_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, terminal, now = io.StringIO(), Terminal(), [0.0]
    monkeypatch.setattr(sys, "stderr", log)
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with progress.report("toy", 40, 40.0, terminal, workers=2) as shown:
        for _ in range(40):
            now[0] += 1.0
            shown.advance(1, 1.0)
    lines = terminal.getvalue().splitlines()
    assert lines[1] == "toy: █████░░░░░░░░░░░░░░░ 10 of 40 points, 1 points/s, about 30 s left"
    assert [line.replace("█", "").replace("░", "").replace("  ", " ") for line in lines] == (
        log.getvalue().splitlines()
    )


def test_what_comes_before_the_first_point_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress.report("toy", 4, 1.0, first="compiling, once"):
        time.sleep(0.7)
    assert "compiling, once" in sys.stderr.getvalue()  # type: ignore[attr-defined]
    monkeypatch.setattr(sys, "stderr", log := io.StringIO())
    with progress.report("toy", 4, 1.0, first="compiling, once"):
        assert log.getvalue() == "toy: 4 points to compute (compiling, once)\n"


@pytest.mark.parametrize("method", ["chain", "ode"])
@pytest.mark.parametrize("empty", [True, False])
def test_the_first_run_of_a_simulation_says_that_it_compiles(
    method: str,
    empty: bool,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("hdica.run.runner.nothing_compiled", lambda: empty)
    content = {
        "study": "small", "title": "One point", "system": "OnlineICA",
        "parameters": {"source": "uniform", "nonlinearity": "x**3", "tau": 0.02},
        "times": [0, 1], "methods": {method: {"n": [50], "seeds": 1} if method == "chain" else {}},
    }  # fmt: skip
    run(study_from(content), tmp_path / "small.zarr")
    first = capsys.readouterr().err.splitlines()[0]
    more = " (compiling, once)" if empty and method == "chain" else ""
    assert first == f"small: 1 points to compute{more}"


def test_the_time_left_is_the_model_s_corrected_by_what_was_measured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    pace = Pace(10, 10.0)
    assert (pace.rate, pace.left) == (0.0, 10.0)
    now[0] += 4.0
    assert pace.left == 6.0
    now[0] += 26.0  # the first point comes after half a minute: it was compiled
    pace.advance(1, 1.0)
    assert pace.left == 270.0
    for _ in range(3):  # twice as slow as the model says
        now[0] += 2.0
        pace.advance(1, 1.0)
    assert (pace.rate, pace.left) == (0.5, 12.0)
    assert pace.text() == "0.5 points/s, about 12 s left"
    pace.advance(6, 6.0)
    assert pace.left == 0.0


@pytest.mark.parametrize("error", [BrokenPipeError(), OSError(28, "No space left on device")])
def test_a_run_goes_on_where_nobody_can_read_what_it_writes(
    monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise error

    monkeypatch.setattr(sys, "stderr", Gone())
    with progress.report("toy", 2, 1.0) as shown:
        shown.note("a worker has ended")
        shown.advance(2, 1.0)
