"""``hdica explore`` as a user meets it: one line, a clean end, a sentence where it cannot start."""

from __future__ import annotations

import os
import re
import signal
import stat
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from hdica.cli import call
from hdica.explore import server
from hdica.run.runner import run
from hdica.store.publish import publish
from hdica.study.study import study_from

ROOT = Path(__file__).parents[2]
STUDY = {
    "study": "few",
    "title": "Few points",
    "system": "OnlineICA",
    "parameters": {"source": "rademacher"},
    "grid": {"tau": [0.02, 0.05]},
    "times": [0, 0.5],
    "methods": {"chain": {"n": 50, "seeds": 2}},
}


@pytest.fixture(scope="module")
def few(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("few") / "few.zarr"
    study = study_from(STUDY)
    run(study, out, progress=False)
    publish(study, out)
    return out


def test_results_that_are_not_there_are_refused(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert call(["explore", str(tmp_path / "absent.zarr"), "--no-browser"]) == 2
    assert "absent.zarr does not exist" in capfd.readouterr().err


@pytest.mark.deep
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_it_prints_one_line_and_ends_cleanly(few: Path, number: int, status: int) -> None:
    command = [sys.executable, "-c", "from hdica.cli import main; main()", "explore", str(few)]
    environment = {k: v for k, v in os.environ.items() if "DISPLAY" not in k}
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=environment,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        line = process.stdout.readline()
        address = re.search(r"http://127\.0\.0\.1:\d+/[\w-]{43}/", line)
        assert address, line
        with urllib.request.urlopen(address.group(), timeout=120) as answer:
            assert answer.status == 200
        process.send_signal(number)
        rest, errors = process.communicate(timeout=120)
    assert process.returncode == status
    assert rest == ""
    assert errors.splitlines() == [f"hdica: stopped by {number.name}"]


@pytest.mark.skipif(sys.platform in ("darwin", "win32"), reason="there is always a display")
def test_without_a_display_no_browser_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert not server.has_display()
    monkeypatch.setenv("DISPLAY", ":0")
    assert server.has_display()


@pytest.mark.deep
def test_a_browser_is_started_with_a_private_file_that_leads_to_the_address(
    few: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hdica.explore.feed import Feed

    def interrupted(_: Feed) -> None:
        raise KeyboardInterrupt

    opened: list[str] = []
    printed: list[str] = []
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(server.webbrowser, "open", opened.append)
    monkeypatch.setattr(Feed, "look", interrupted)
    before = os.umask(0)
    try:
        with pytest.raises(KeyboardInterrupt):
            server.explore(few, tell=printed.append)
    finally:
        os.umask(before)
    address = re.search(r"http://127\.0\.0\.1:\d+/[\w-]{43}/", printed[0])
    assert address
    file = Path(urllib.request.url2pathname(opened[0].removeprefix("file://")))
    assert [stat.S_IMODE(one.stat().st_mode) for one in (file, file.parent)] == [0o600, 0o700]
    assert f'content="0; url={address.group()}"' in file.read_text()


def test_whoever_came_by_ssh_reads_how_to_reach_the_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SSH_CONNECTION", raising=False)
    assert server.tunnel("http://127.0.0.1:8010/token/") == ""
    monkeypatch.setenv("SSH_CONNECTION", "192.0.2.1 50000 192.0.2.2 22")
    assert "ssh -L 8010:127.0.0.1:8010 " in server.tunnel("http://127.0.0.1:8010/token/")
