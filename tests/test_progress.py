"""A line on a terminal for calls that take long, and on nothing else."""

import os
import pty
import subprocess
import sys

import pytest

SCRIPT = """
import sys, time
import hdica.process.progress as progress

progress.PATIENCE = {patience}

@progress.shown
def inner():
    progress.tell(lambda: "inside [red]")

@progress.shown
def slow():
    for k in range(4):
        time.sleep(0.5)  # rich is loaded meanwhile
        progress.tell(lambda: f"step {{k}} of [4]")
    inner()
    return "done"

print(slow(), "rich" in sys.modules)
"""


def on_a_terminal(patience: float) -> tuple[str, str]:
    """Standard output, and what a terminal as standard error showed."""
    ours, theirs = pty.openpty()
    script = SCRIPT.format(patience=patience)
    environment = {**os.environ, "TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=theirs, env=environment
    )
    assert process.stdout is not None
    printed = process.stdout.read().decode()
    process.wait(60)
    os.close(theirs)
    seen = b""
    while True:
        try:
            chunk = os.read(ours, 65536)
        except OSError:  # the other end is closed
            break
        if not chunk:
            break
        seen += chunk
    os.close(ours)
    return printed.strip(), seen.decode(errors="replace")


def test_a_long_call_shows_what_it_is_at_and_clears_the_line():
    printed, seen = on_a_terminal(0.15)
    assert printed == "done True"
    assert "of [4]" in seen
    assert "inside [red]" in seen
    # The last thing on the terminal takes the line away and brings the cursor back.
    assert seen.rstrip().endswith(("\x1b[2K", "\x1b[?25h"))


def test_a_short_call_shows_nothing_and_loads_nothing():
    assert on_a_terminal(60.0) == ("done False", "")


def test_nothing_is_shown_where_nobody_looks():
    script = SCRIPT.format(patience=0.0)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert (done.stdout.strip(), done.stderr) == ("done False", "")


def test_the_calls_of_the_api_listen(monkeypatch: pytest.MonkeyPatch):
    import hdica
    from hdica.process import progress

    said: list[str] = []
    monkeypatch.setattr(progress._Line, "say", lambda self, text: said.append(text))
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    system = hdica.OnlineICA(tau=0.1, nonlinearity="atan(2.7*x)", start={"overlap": 0.5})
    hdica.limit(system, times=[0, 1])
    assert any("averages of atan(2.7*x) over uniform" in text for text in said)


def test_compiling_is_said(monkeypatch: pytest.MonkeyPatch):
    import numba

    from hdica.process import progress

    said: list[str] = []
    monkeypatch.setattr(progress._Line, "say", lambda self, text: said.append(text))

    def fresh(x):
        return x + 1

    @progress.shown
    def call(progress: bool | None = None):
        return numba.njit(fresh)(1)

    assert call(progress=True) == 2
    assert said == ["compiling fresh, once on this machine"]
    assert call() == 2
    assert len(said) == 1


def test_the_last_that_was_told_appears_though_nothing_more_is(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    import time

    from hdica.process import progress

    monkeypatch.setattr(progress, "PATIENCE", 0.05)

    @progress.shown
    def call(progress: bool | None = None):
        from hdica.process.progress import tell

        tell("8 trials")
        time.sleep(0.5)

    call(progress=True)
    assert capsys.readouterr().err == "hdica: 8 trials\n"
    call(progress=False)
    call()
    assert capsys.readouterr().err == ""


def test_progress_is_true_false_or_none():
    import hdica

    system = hdica.OnlineICA(tau=0.1, start={"overlap": 0.5})
    with pytest.raises(hdica.HdicaError, match="progress = 'yes' is not allowed"):
        hdica.simulate(system, n=10, times=[0, 1], progress="yes")  # type: ignore[arg-type]


def test_points_of_a_grid_are_counted(monkeypatch: pytest.MonkeyPatch):
    import hdica
    from hdica.process import progress

    said: list[str] = []
    monkeypatch.setattr(progress._Line, "say", lambda self, text: said.append(text))
    system = hdica.OnlineICA(tau=0.1, start={"overlap": 0.5})
    over = {"tau": [0.1, 0.2]}
    hdica.simulate(system, n=[10, 20], times=[0, 1], over=over, progress=True)
    hdica.limit(system, times=[0, 1], over=over, progress=True)
    counted = [text.partition(",")[0] for text in said if "points/s" in text]
    assert counted[:4] == [f"{k} of 4 points" for k in range(1, 5)]
    assert counted[4:] == [f"{k} of 2 points" for k in range(1, 3)]
