"""Who may ask the explorer's server: this machine alone, and only with the token of the address.

The server listens on 127.0.0.1. Its address has a token of 256 random bits as the first part of its
path, and every request passes one gate before anything else sees it: pages, scripts, and the
request that opens a websocket. The gate compares the token in constant time, and it compares the
name of the host, so that a page of somebody else's whose name was made to lead here is refused too.
What lacks either gets status 403 and one sentence. Websockets are opened only by pages of this
server (their Origin is compared). The page asks for no address but this one, and tells none where
it comes from, so that the token stays where it was printed.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Any

from tornado.httputil import HTTPMessageDelegate, HTTPServerRequest
from tornado.routing import Router
from tornado.web import Application, RequestHandler

HOST = "127.0.0.1"
REFUSED = "403: the address needs the token that hdica explore has printed\n"


def new_token() -> str:
    """A token of 256 random bits, in letters that an address may have."""
    return secrets.token_urlsafe(32)


def origins(port: int) -> list[str]:
    """Names by which pages of this server are asked for."""
    return [f"{HOST}:{port}", f"localhost:{port}"]


class Refused(RequestHandler):
    """The answer to whoever has no token, whatever is asked for."""

    def prepare(self) -> None:
        """Refuse before the method is looked at."""
        self.set_status(403)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(REFUSED)


class Gate(Router):
    """Hands requests with the token on to an application and refuses all others.

    Parameters
    ----------
    application
        What answers; all its paths begin with the token.
    token
        The first part of the path of every request.
    hosts
        Values that the header ``Host`` may have.
    """

    def __init__(self, application: Application, token: str, hosts: list[str]) -> None:
        self.application, self.hosts = application, [host.encode() for host in hosts]
        self.token = token.encode()
        self.refusing = Application([(r".*", Refused)])

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> HTTPMessageDelegate | None:
        """What reads and answers a request."""
        allowed = self.allows(request.path, request.host)
        return (self.application if allowed else self.refusing).find_handler(request, **kwargs)

    def allows(self, path: str, host: str) -> bool:
        """Whether a request for a path on a host has the token and was meant for this server."""
        first = path.removeprefix("/").partition("/")[0]
        known = [hmac.compare_digest(host.encode(), one) for one in self.hosts]
        return hmac.compare_digest(first.encode(), self.token) and any(known)
