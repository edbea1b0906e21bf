"""Names of this machine that lead nowhere else, for servers that answer under these alone.

A page of somebody else's can use a name of its own that leads to 127.0.0.1 (DNS rebinding): its
requests have that name in the header ``Host``.
"""

from __future__ import annotations

import re

HOST = "127.0.0.1"
LOOPBACK = (HOST, "localhost", "[::1]")
_LOOPBACK = re.compile(
    rf"(?:{'|'.join(map(re.escape, LOOPBACK))})(?::[0-9]{{1,5}})?", re.IGNORECASE
)
NO_HOST = f"answers under {', '.join(LOOPBACK[:-1])} and {LOOPBACK[-1]} alone"


def is_loopback(host: str) -> bool:
    """Whether a header ``Host`` is a loopback name, with any port: a tunnel may have another."""
    return _LOOPBACK.fullmatch(host) is not None


def is_same(origin: str | None, host: str) -> bool:
    """Whether the page that sends a request, by its header ``Origin``, has the same name and port.

    A request without one is sent by no page of another address.
    """
    return origin is None or origin.lower().partition("://")[2] == host.lower()
