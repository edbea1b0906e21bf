"""``hdica explore``: answers behind a gate, in a thread of its own, until a signal ends it.

The server listens on 127.0.0.1. Its address has a token of 256 random bits as the first part of its
path, and every request passes one gate before anything else sees it. The gate compares the token in
constant time. The header ``Host`` must be a loopback name, so that a page of somebody else's whose
name was made to lead here is refused; its port may be any, as of a tunnel (``ssh -L``). A request
of a page must come from a page of the same name and port (``Origin``). What lacks any of these gets
status 403 and one sentence. The page requests nothing from other addresses and sends no referrer,
and a browser is started with a private file that leads to the address, so that the token stays
where it was printed and in the browser. A cookie would go to every server of the machine.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import os
import secrets
import socket
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb
from typing import Any
from urllib.parse import urlsplit

from tornado.httpserver import HTTPServer
from tornado.httputil import HTTPMessageDelegate, HTTPServerRequest
from tornado.netutil import bind_sockets
from tornado.routing import Router
from tornado.web import Application, RequestHandler

from hdica.errors import HdicaError
from hdica.explore.answers import Answers
from hdica.explore.feed import Feed
from hdica.process.private import HOST, is_loopback, is_same, scratch
from hdica.process.private import NO_HOST as UNDER
from hdica.report.parts import plotly
from hdica.store.files import write_whole

NO_TOKEN = "403: the address needs the token that hdica explore has printed\n"
NO_HOST = f"403: hdica explore {UNDER}\n"
NO_ORIGIN = "403: hdica explore answers no page of another address\n"
TEXT = "text/plain; charset=utf-8"
WAIT = 10.0  # seconds that the server has to close
LARGEST = 2**20  # bytes of a request
LOGGERS = ("tornado", "asyncio")  # whose messages are about requests
OURS = Path(__file__).parents[1]  # folder of hdica's own code
HEADERS = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
FORWARDS = """<!doctype html>
<meta charset="utf-8">
<meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}">
<title>hdica explore</title>
<a href="{address}">hdica explore</a>
"""
"""A page that leads to an address."""


def new_token() -> str:
    """A token of 256 random bits, in letters that an address may have."""
    return secrets.token_urlsafe(32)


class Handler(RequestHandler):
    """Answers one path of the address."""

    def initialize(
        self, answer: Callable[[bytes], str | bytes], method: str = "", kind: str = TEXT
    ) -> None:
        """``method`` is that of a request, ``kind`` the type of what ``answer`` makes of it."""
        self.method, self.kind, self.answer = method, kind, answer

    def set_default_headers(self) -> None:
        """No place keeps what is answered, and no other page reads it."""
        for name, value in HEADERS.items():
            self.set_header(name, value)

    def compute_etag(self) -> None:
        """Make none: nothing is kept anywhere."""

    def prepare(self) -> None:
        """Answer, or refuse in one sentence what cannot be answered."""
        if self.request.method != self.method:
            self.set_status(405)
            self.finish()
            return
        kind = self.kind
        try:
            content = self.answer(self.request.body)
        except (HdicaError, OSError) as exc:
            content, kind = f"{exc}\n", TEXT
            self.set_status(400)
        self.set_header("Content-Type", kind)
        self.finish(content)


class Refused(Handler):
    """The answer to a request that does not pass the gate, whatever it is for."""

    def prepare(self) -> None:
        """Refuse before the method is looked at."""
        self.set_status(403)
        self.set_header("Content-Type", TEXT)
        self.finish(self.answer(b""))


class Gate(Router):
    """Hands requests whose path begins with the token to an application and refuses all others."""

    def __init__(self, application: Application, token: str) -> None:
        self.application, self.token = application, token.encode()
        self.refusing = {
            reason: Application([(r".*", Refused, {"answer": lambda _, text=reason: text})])
            for reason in (NO_TOKEN, NO_HOST, NO_ORIGIN)
        }

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> HTTPMessageDelegate | None:
        """What reads and answers a request."""
        reason = self.refusal(request.path, request.host, request.headers.get("Origin"))
        answering = self.refusing[reason] if reason else self.application
        return answering.find_handler(request, **kwargs)

    def refusal(self, path: str, host: str, origin: str | None = None) -> str:
        """Why a request for a path with these headers is refused; empty if it is not."""
        if not is_loopback(host):
            return NO_HOST
        first = path.removeprefix("/").partition("/")[0]
        if not hmac.compare_digest(first.encode(), self.token):
            return NO_TOKEN
        return "" if is_same(origin, host) else NO_ORIGIN


class Messages(logging.StreamHandler[Any]):
    """Prints what libraries log about requests: no token, and the traceback of hdica's code alone.

    A request that a library cannot read ends in a traceback of the library: it becomes a sentence.
    """

    def __init__(self, token: str) -> None:
        super().__init__()
        self.token = token

    def filter(self, record: logging.LogRecord) -> Any:
        """Leave out what is no exception."""
        return super().filter(record) if record.exc_info else False

    def format(self, record: logging.LogRecord) -> str:
        """One sentence, or the traceback of hdica's code."""
        _, exc, at = record.exc_info or (None, None, None)
        if any(Path(frame.f_code.co_filename).is_relative_to(OURS) for frame, _ in walk_tb(at)):
            return super().format(record).replace(self.token, "TOKEN")
        # As ASCII, because the words of a request could otherwise drive the terminal.
        why = f"{type(exc).__name__}: {ascii(str(exc))[1:-1]}".replace(self.token, "TOKEN")
        return f"hdica: a request of a browser could not be answered ({why:.200})"


@contextmanager
def _messages(token: str) -> Iterator[None]:
    """Print what libraries log about requests as :class:`Messages` does."""
    handler = Messages(token)
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [(one.handlers, one.propagate) for one in loggers]
    for one in loggers:
        one.handlers, one.propagate = [handler], False
    try:
        yield
    finally:
        for one, (handlers, propagate) in zip(loggers, before, strict=True):
            one.handlers, one.propagate = handlers, propagate


@contextmanager
def serving(answers: Answers, port: int = 0) -> Iterator[str]:
    """Serve answers during the body on a port of 127.0.0.1 (0: a free one); address with token."""
    token = new_token()
    try:
        sockets = bind_sockets(port, HOST)
    except (OSError, OverflowError) as exc:
        raise HdicaError(
            f"--port {port} is not allowed ({exc}; without it a free one is taken)"
        ) from exc
    number, ready = sockets[0].getsockname()[1], Future[Callable[[], None]]()
    gate = Gate(_application(answers, token), token)
    thread = threading.Thread(target=lambda: asyncio.run(_serve(gate, sockets, ready)), daemon=True)
    with _messages(token):
        thread.start()
        stop = ready.result()
        try:
            yield f"http://{HOST}:{number}/{token}/"
        finally:
            stop()
            thread.join(WAIT)


def _application(answers: Answers, token: str) -> Application:
    def rule(
        path: str, kind: str, answer: Callable[[bytes], str | bytes], method: str = "GET"
    ) -> tuple[str, type[Handler], dict[str, object]]:
        return f"/{token}/{path}", Handler, {"method": method, "kind": kind, "answer": answer}

    numbers = "application/octet-stream"
    return Application(
        [
            rule("", "text/html; charset=utf-8", lambda _: answers.page()),
            rule("plotly.js", "text/javascript; charset=utf-8", lambda _: plotly()),
            rule("news", "application/json", lambda _: json.dumps(answers.news())),
            rule("catalogue", numbers, lambda _: answers.catalogue()),
            rule("slices", numbers, answers.slices, "POST"),
        ]
    )


async def _serve(
    gate: Gate, sockets: list[socket.socket], ready: Future[Callable[[], None]]
) -> None:
    """Serve until ``ready``'s result is called, from whatever thread."""
    try:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        http = HTTPServer(gate, max_body_size=LARGEST)
        http.add_sockets(sockets)
    except BaseException as exc:
        ready.set_exception(exc)
        return

    def stop() -> None:
        loop.call_soon_threadsafe(ended.set)

    ready.set_result(stop)
    await ended.wait()
    http.stop()
    await http.close_all_connections()


def explore(
    results: Path, port: int = 0, browser: bool = True, tell: Callable[[str], None] = print
) -> None:
    """Serve the explorer of some results until a signal ends it.

    A run of ``results/<study>.zarr`` may be going on. The port is on 127.0.0.1, 0 for one that is
    free. With ``browser`` the address is opened, where there is a display; ``tell`` gets one
    sentence, with the address.
    """
    feed = Feed(results)
    answers = Answers(feed)
    answers.page()  # what is loaded and compiled for it is there when a visitor comes
    with serving(answers, port) as address:
        tell(f"{results} can be explored at {address} ({tunnel(address)}Ctrl-C ends it)")
        if browser and has_display():
            webbrowser.open(forwarding(address).as_uri())
        # Here, because the main thread alone receives signals; another serves the visitors.
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
