"""Who may ask the explorer's server: only who has the token of its address, on a loopback name.

The server listens on 127.0.0.1. Its address has a token of 256 random bits as the first part of its
path, and every request passes one gate before anything else sees it: pages, scripts, and the
request that opens a websocket. The gate compares the token in constant time. The header ``Host``
must be a loopback name, so that a page of somebody else's whose name was made to lead here is
refused; its port may be any, because the port of a tunnel (``ssh -L``) need not be that of the
server. A request of a page, as that for a websocket, must come from a page of the same name and
port (``Origin``). What lacks any of these gets status 403 and one sentence. The page requests
nothing from other addresses and sends no referrer, and a browser is started with a private file
that leads to the address, so that the token stays where it was printed and in the browser. It is no
cookie, which a browser would send to every server of the machine, those of other users included.
"""

from __future__ import annotations

import hmac
import secrets
from typing import Any

from tornado.httputil import HTTPMessageDelegate, HTTPServerRequest
from tornado.routing import Router
from tornado.web import Application, RequestHandler

from hdica.process.loopback import NO_HOST as UNDER
from hdica.process.loopback import is_loopback, is_same

NO_TOKEN = "403: the address needs the token that hdica explore has printed\n"
NO_HOST = f"403: hdica explore {UNDER}\n"
NO_ORIGIN = "403: hdica explore answers no page of another address\n"


def new_token() -> str:
    """A token of 256 random bits, in letters that an address may have."""
    return secrets.token_urlsafe(32)


class Refused(RequestHandler):
    """The answer to a request that does not pass the gate, whatever it is for."""

    def initialize(self, reason: str) -> None:
        """``reason`` is the sentence of the answer."""
        self.reason = reason

    def prepare(self) -> None:
        """Refuse before the method is looked at."""
        self.set_status(403)
        self.set_header("Content-Type", "text/plain; charset=utf-8")
        self.finish(self.reason)


class Gate(Router):
    """Hands requests with the token on to an application and refuses all others.

    Parameters
    ----------
    application
        What answers; all its paths begin with the token.
    token
        The first part of the path of every request.
    """

    def __init__(self, application: Application, token: str) -> None:
        self.application, self.token = application, token.encode()
        self.refusing = {
            reason: Application([(r".*", Refused, {"reason": reason})])
            for reason in (NO_TOKEN, NO_HOST, NO_ORIGIN)
        }

    def find_handler(self, request: HTTPServerRequest, **kwargs: Any) -> HTTPMessageDelegate | None:
        """What reads and answers a request."""
        reason = self.refusal(request.path, request.host, request.headers.get("Origin"))
        answering = self.refusing[reason] if reason else self.application
        return answering.find_handler(request, **kwargs)

    def refusal(self, path: str, host: str, origin: str | None = None) -> str:
        """Why a request is refused; empty if it is not.

        Parameters
        ----------
        path
            Begins with the token.
        host, origin
            The headers ``Host`` and ``Origin``; None without the latter.
        """
        if not is_loopback(host):
            return NO_HOST
        first = path.removeprefix("/").partition("/")[0]
        if not hmac.compare_digest(first.encode(), self.token):
            return NO_TOKEN
        return "" if is_same(origin, host) else NO_ORIGIN
