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
        time.sleep(0.1)
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
