"""Nobody without the token is answered, be it a page, a script or a websocket."""

from __future__ import annotations

import asyncio
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

pn = pytest.importorskip("panel", reason='needs Panel: pip install "hdica[explore]"')

from tornado.httpclient import HTTPClientError, HTTPRequest  # noqa: E402
from tornado.websocket import websocket_connect  # noqa: E402

from hdica.errors import HdicaError  # noqa: E402
from hdica.explore.gate import Gate, new_token  # noqa: E402
from hdica.explore.server import serving  # noqa: E402


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(lambda: pn.pane.HTML("<p>inside</p>")) as found:
        yield found


def asked(url: str, host: str = "") -> tuple[int, str]:
    request = urllib.request.Request(url, headers={"Host": host} if host else {})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as exc:
        return exc.code, exc.read().decode()


def test_with_the_token_there_is_a_page_that_tells_nobody(address: str) -> None:
    status, text = asked(address)
    assert status == 200
    assert 'name="referrer" content="no-referrer"' not in text  # that of the explorer's own page
    assert "Bokeh" in text


@pytest.mark.parametrize(
    "path", ["", "static/js/bokeh.min.js", "ws", "autoload.js", "x" * 43, "x" * 43 + "/", "é"]
)
def test_without_it_nothing_is_answered(address: str, path: str) -> None:
    root = "/".join(address.split("/")[:3])
    status, text = asked(f"{root}/{urllib.request.quote(path)}")
    assert status == 403
    assert "token" in text
    assert "Bokeh" not in text


def test_scripts_are_behind_the_token_too(address: str) -> None:
    assert asked(f"{address}static/js/bokeh.min.js")[0] == 200


def test_a_name_that_was_made_to_lead_here_is_refused(address: str) -> None:
    assert asked(address, host="evil.example:80")[0] == 403


def connected(url: str, origin: str) -> int:
    """Status with which a websocket is refused; 101 if it is opened."""

    async def connect() -> int:
        request = HTTPRequest(url, headers={"Origin": origin})
        try:
            found = await websocket_connect(request, subprotocols=["bokeh", "no-session-token"])
        except HTTPClientError as exc:
            return exc.code
        found.close()
        return 101

    return asyncio.run(connect())


def test_websockets_need_the_token_and_a_page_of_this_server(address: str) -> None:
    host = address.split("/")[2]
    right = f"ws{address.removeprefix('http')}ws"
    assert connected(f"ws://{host}/ws", f"http://{host}") == 403
    assert connected(f"ws://{host}/{new_token()}/ws", f"http://{host}") == 403
    assert connected(right, "http://evil.example") == 403
    assert connected(right, f"http://{host}") == 101


def test_the_server_listens_on_loopback_alone_and_is_gone_afterwards() -> None:
    with serving(lambda: pn.pane.HTML("x")) as found:
        port = int(found.split(":")[2].split("/")[0])
        assert found.startswith("http://127.0.0.1:")
        with pytest.raises(HdicaError, match="--port"), serving(lambda: None, port):
            pass
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=10)


def test_tokens_differ_and_are_compared_whole() -> None:
    first, second = new_token(), new_token()
    assert first != second
    assert len(first) == 43
    gate = Gate(None, first, ["127.0.0.1:1"])  # type: ignore[arg-type]
    assert gate.allows(f"/{first}/ws", "127.0.0.1:1")
    assert not gate.allows(f"/{first[:-1]}/ws", "127.0.0.1:1")
    assert not gate.allows(f"/{first}x/ws", "127.0.0.1:1")
    assert not gate.allows("/", "127.0.0.1:1")
    assert not gate.allows(f"/{first}/ws", "127.0.0.1:2")
