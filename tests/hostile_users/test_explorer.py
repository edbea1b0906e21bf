"""Another user who looks for the token of the explorer's address."""

from __future__ import annotations

import re
import sys
import time
import webbrowser
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from hdica.explore.server import explore
from hdica.process.private import scratch
from hdica.run.runner import run
from hdica.study.study import study_from
from tests.hostile_users.conftest import Stranger
from tests.sweep import toy

pytestmark = [pytest.mark.faults]

BROWSER = f"{sys.executable} -c 'import time; time.sleep(60)' %s &"


@pytest.mark.deep
def test_no_other_user_finds_the_token_when_a_browser_is_opened(
    stranger: Stranger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from hdica.explore.feed import Feed

    printed: list[str] = []
    seen = stranger.common / "seen"

    def looked(_: Feed) -> None:
        """The browser is open: the stranger reads the arguments of all processes."""
        # Explorers of other tests may be open; the browser's process may not have begun yet.
        own, found = re.escape(str(scratch())), set[str]()
        late = time.monotonic() + 60
        while not found and time.monotonic() < late:
            stranger.does(f"cat /proc/[0-9]*/cmdline | tr '\\0' '\\n' >{seen} || true")
            found = set(re.findall(rf"file://({own}/explore.html)", seen.read_text()))
        (opened,) = found
        # All that is below, too, and what is in the folder.
        stranger.does(f"cat {opened} >>{seen} || cat {Path(opened).parent}/* >>{seen} || true")
        assert Path(opened).exists()
        raise KeyboardInterrupt

    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setenv("BROWSER", BROWSER)
    monkeypatch.setattr(webbrowser, "_tryorder", None)  # to be found anew
    monkeypatch.setattr(Feed, "look", looked)
    toy.register()
    try:
        run(study_from(toy.study(methods={"line": {}})), tmp_path / "toy.zarr", progress=False)
        with pytest.raises(KeyboardInterrupt):
            explore(tmp_path / "toy.zarr", tell=printed.append)
    finally:
        toy.forget()
        for one in psutil.Process().children():
            with suppress(psutil.NoSuchProcess):  # of what has ended there is no command line
                if "explore.html" in " ".join(one.cmdline()):
                    one.kill()
                    one.wait()
    (token,) = re.findall(r"http://127\.0\.0\.1:\d+/([\w-]{43})/", printed[0])
    assert token not in seen.read_text()
