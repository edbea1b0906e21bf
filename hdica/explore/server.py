"""The explorer's server: Panel's pages behind a gate, in a thread of its own."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from panel.io.application import build_applications
from panel.io.server import get_static_routes
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.netutil import bind_sockets

from hdica.errors import HdicaError
from hdica.explore.gate import HOST, LOOPBACK, Gate, new_token

WAIT = 10.0
"""Seconds that the server is given to close."""


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
    # Refused requests are no news for who has started the server.
    logging.getLogger("tornado.access").setLevel(logging.ERROR)
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
