"""``hdica explore``: serve the explorer until a signal ends it."""

from __future__ import annotations

import os
import socket
import sys
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

from hdica.process.private import scratch
from hdica.store.files import write_whole

FORWARDS = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>hdica explore</title>
<a href="{address}">hdica explore</a>
"""
"""A page that leads to an address."""


def explore(
    results: Path, port: int = 0, browser: bool = True, tell: Callable[[str], None] = print
) -> None:
    """Serve the explorer of some results until a signal ends it.

    A run of ``results/<study>.zarr`` may be going on. The port is on 127.0.0.1, 0 for one that is
    free. With ``browser`` the address is opened, where there is a display; ``tell`` gets one
    sentence, with the address.
    """
    from hdica.explore.answers import Answers
    from hdica.explore.feed import Feed
    from hdica.explore.server import serving

    feed = Feed(results)
    answers = Answers(feed)
    answers.page()  # what is loaded and compiled for it is there when a visitor comes
    with serving(answers, port) as address:
        tell(f"{results} can be explored at {address} ({tunnel(address)}Ctrl-C ends it)")
        if browser and has_display():
            webbrowser.open(forwarding(address).as_uri())
        # Here, because the main thread alone is told of signals; visitors are served by another.
        while True:
            time.sleep(feed.pause)
            feed.look()


def forwarding(address: str) -> Path:
    """A file for this user alone that leads to an address, whose token no argument may show."""
    file = scratch() / "explore.html"
    write_whole(file, FORWARDS.format(address=address).encode(), 0o600)
    return file


def tunnel(address: str) -> str:
    """How the machine of somebody who has logged in by ssh reaches an address, or nothing."""
    if not os.environ.get("SSH_CONNECTION"):
        return ""
    port = urlsplit(address).port
    return f"from your machine, after ssh -L {port}:127.0.0.1:{port} {socket.gethostname()}; "


def has_display() -> bool:
    """Whether a browser with windows can be opened here."""
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
