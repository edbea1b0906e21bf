"""The explorer's server: Panel's pages behind a gate, in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb
from typing import Any

from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from panel.io.application import build_applications
from panel.io.server import get_static_routes
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.netutil import bind_sockets

from hdica.errors import HdicaError
from hdica.explore.gate import Gate, new_token
from hdica.process.loopback import HOST, LOOPBACK

WAIT = 10.0
"""Seconds that the server is given to close."""
LOGGERS = ("tornado", "bokeh.server", "asyncio")
"""Whose messages are about requests."""
OURS = Path(__file__).parents[1]
"""Folder of hdica's own code."""


class Messages(logging.StreamHandler[Any]):
    """Prints what libraries log about requests: no token, and the traceback of hdica's code alone.

    Refused requests are no news for who has started the server. A request that a library cannot
    read ends in a traceback of the library, which becomes one sentence.

    Parameters
    ----------
    token
        Is printed nowhere.
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
        # As ASCII, because what a request says could otherwise drive the terminal.
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
def serving(page: Callable[[], Any], port: int = 0, token: str = "") -> Iterator[str]:
    """Serve a page during the body; the address with its token.

    Parameters
    ----------
    page
        Makes what a visitor is shown, once for each.
    port
        On 127.0.0.1; 0 for one that is free.
    token
        The first part of the path; a new one if it is empty.

    Raises
    ------
    HdicaError
        If the port cannot be had.
    """
    token = token or new_token()
    try:
        sockets = bind_sockets(port, HOST)
    except (OSError, OverflowError) as exc:
        raise HdicaError(
            f"--port {port} is not allowed ({exc}; without it a free one is taken)"
        ) from exc
    found, ready = sockets[0].getsockname()[1], Future[Callable[[], None]]()
    thread = threading.Thread(
        target=lambda: asyncio.run(_serve(page, sockets, token, ready)), daemon=True
    )
    with _messages(token):
        thread.start()
        stop = ready.result()
        try:
            yield f"http://{HOST}:{found}/{token}/"
        finally:
            stop()
            thread.join(WAIT)


async def _serve(
    page: Callable[[], Any], sockets: list[Any], token: str, ready: Future[Callable[[], None]]
) -> None:
    """Serve until ``ready``'s result is called, from whatever thread."""
    try:
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        application = BokehTornado(
            build_applications({"/": page}, title="hdica explore", location=False),
            prefix=f"/{token}",
            # The gate compares the origin with the host; Bokeh would with the server's own port.
            extra_websocket_origins=[f"{name}:*" for name in LOOPBACK],
            extra_patterns=get_static_routes({}),
        )
        http = HTTPServer(Gate(application, token))
        http.add_sockets(sockets)
        server = BaseServer(IOLoop.current(), application, http)
        server.start()
    except BaseException as exc:
        ready.set_exception(exc)
        return

    def stop() -> None:
        loop.call_soon_threadsafe(ended.set)

    ready.set_result(stop)
    await ended.wait()
    server.stop(wait=False)
    http.stop()
    await http.close_all_connections()
