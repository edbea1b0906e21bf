"""Nobody without the token is answered, be it a page, a script or a websocket."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import select
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest

pn = pytest.importorskip("panel", reason='needs Panel: pip install "hdica[explore]"')

from tornado.httpclient import HTTPClientError, HTTPRequest  # noqa: E402
from tornado.websocket import websocket_connect  # noqa: E402

from hdica.errors import HdicaError  # noqa: E402
from hdica.explore.gate import NO_HOST, NO_ORIGIN, NO_TOKEN, Gate, new_token  # noqa: E402
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


@contextmanager
def forwarded(port: int) -> Iterator[int]:
    """A port of this machine that leads to another one, byte for byte, as ``ssh -L`` does."""
    ended = threading.Event()

    def relay(near: socket.socket) -> None:
        with near, suppress(OSError), socket.create_connection(("127.0.0.1", port)) as far:
            other = {near: far, far: near}
            while not ended.is_set():
                for one in select.select([near, far], [], [], 0.05)[0]:
                    data = one.recv(65536)
                    if not data:
                        return
                    other[one].sendall(data)

    def accept() -> None:
        while not ended.is_set():
            if select.select([listening], [], [], 0.05)[0]:
                threads.append(threading.Thread(target=relay, args=(listening.accept()[0],)))
                threads[-1].start()

    threads = [threading.Thread(target=accept)]
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threads[0].start()
        try:
            yield listening.getsockname()[1]
        finally:
            ended.set()
            for one in threads:
                one.join(30)


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1"])
def test_a_forwarded_port_leads_to_the_page_and_its_websocket(address: str, name: str) -> None:
    _, _, host, token, _ = address.split("/")
    with forwarded(int(host.partition(":")[2])) as port:
        at = f"{name}:{port}"
        status, text = asked(f"http://{at}/{token}/")
        assert (status, "Bokeh" in text) == (200, True)
        assert asked(f"http://{at}/{new_token()}/") == (403, NO_TOKEN)
        assert asked(f"http://{at}/{token}/", host=f"evil.example:{port}") == (403, NO_HOST)
        socket_at = f"ws://{at}/{token}/ws"
        assert connected(socket_at, f"http://{at}") == 101
        assert connected(f"ws://{at}/{new_token()}/ws", f"http://{at}") == 403
        for other in ("http://evil.example", f"http://{host}", f"http://evil.example@{at}", "null"):
            assert connected(socket_at, other) == 403


OPEN = b'"msgtype": "ACK"'
"""What a websocket says first."""


def spoken(port: int, said: bytes, frames: bytes = b"") -> bytes:
    """All that the server answers until it hangs up; a websocket gets frames once it is open."""
    found = b""
    with suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), 20) as one:
        one.sendall(said)
        while part := one.recv(65536):
            found += part
            if OPEN in found:
                one.sendall(frames)
                frames = b""
    return found


def frame(text: bytes, opcode: int = 1) -> bytes:
    """A message of a websocket's client."""
    return bytes([0x80 | opcode, 0x80 | len(text), *bytes(4)]) + text


def test_malformed_requests_leave_no_traceback_and_the_server_up(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with serving(lambda: pn.pane.HTML("<p>inside</p>")) as address:
        _, _, host, token, _ = address.split("/")
        port = int(host.partition(":")[2])

        def page(path: str = "", more: str = "", method: str = "GET") -> tuple[bytes, ...]:
            head = f"{method} /{token}/{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
            return (f"{head}{more}\r\n".encode("latin-1"),)

        def websocket(protocol: str, *frames: bytes) -> tuple[bytes, ...]:
            more = f"Upgrade: websocket\r\nSec-WebSocket-Protocol: {protocol}\r\n"
            more += f"Origin: http://{host}\r\nSec-WebSocket-Version: 13\r\n"
            (head,) = page("ws", f"{more}Sec-WebSocket-Key: {'A' * 22}==\r\n")
            upgraded = head.replace(b"Connection: close", b"Connection: Upgrade")
            return upgraded, b"".join([*frames, frame(b"", 8)])

        def bokeh(**content: Any) -> str:
            text = base64.urlsafe_b64encode(json.dumps(content).encode()).decode()
            return f"bokeh, {text.rstrip('=')}"

        opened = re.search('"token":"([^"]+)"', asked(address)[1])
        assert opened is not None
        ours = f"bokeh, {opened[1]}"
        length = "Content-Length: "
        unknown = b'{"events":[{"kind":"ModelChanged","model":{"id":"none"},"attr":"a","new":1}]}'
        table = {
            "no protocol": websocket("x"),
            "a token that is no text": websocket("bokeh, zzz"),
            "a token that is not ASCII": websocket("bokeh, \xe9"),
            "a token of no session": websocket(bokeh()),
            "a token without an end": websocket(bokeh(session_id="none")),
            "a token that has ended": websocket(bokeh(session_id="none", session_expiry=1)),
            "a token of a strange end": websocket(bokeh(session_id="none", session_expiry="x")),
            "a damaged token": websocket(bokeh(session_id="none", __bk__zlib_="AAAA")),
            "no message": websocket(ours, frame(b"hello")),
            "no text": websocket(ours, frame(b"\xff")),
            "no frame": websocket(ours, b"\xff" * 9),
            "no kind of message": websocket(ours, frame(b'{"msgtype":"x"}'), frame(b"{}")),
            "an unknown document": websocket(
                ours, frame(b'{"msgid":"1","msgtype":"PATCH-DOC"}'), frame(b"{}"), frame(unknown)
            ),
            "an empty session": page("?bokeh-session-id=%00"),
            "an unknown session": page("?bokeh-session-id=none"),
            "a query that is no text": page("?bokeh-token=abc&%ff%zz&=&&"),
            "a path with a zero": page("static/js/%00"),
            "an extension with a zero": page("static/extensions/panel/%00.js"),
            "a path that leads away": page("static/%2e%2e/%2e%2e/x"),
            "a path that is no text": page("%ff%zz%"),
            "a strange element": page("autoload.js?bokeh-autoload-element=%ff"),
            "OPTIONS without an origin": page("autoload.js", method="OPTIONS"),
            "strange cookies": page(more="Cookie: \xe9=\xff; =;;; a=\"\r\n"),
            "a huge header": page(more=f"X: {'a' * 100_000}\r\n"),
            "a strange range": page("static/js/bokeh.min.js", "Range: bytes=9-1,x\r\n"),
            "a method that is none": page(method="FOO"),
            "no form": page("", f"Content-Type: multipart/form-data\r\n{length}1\r\n\r\nx", "POST"),
            "no length": page("", f"{length}x\r\n", "POST"),
            "no version": (b"GET / HTTP/9.9\r\n\r\n",),
            "another protocol": (b"\x16\x03\x01\x02\0" + bytes(100) + b"\r\n\r\n",),
            "no host": (b"GET / HTTP/1.1\r\n\r\n",),
        }  # fmt: skip
        for name, said in table.items():
            was_open = OPEN in spoken(port, *said)
            assert was_open == (opened[1].encode() in said[0]), name
        assert asked(address)[0] == 200
    printed = capsys.readouterr().err
    sentence = r"hdica: a request of a browser could not be answered \(\w+: .*\)"
    assert [line for line in printed.splitlines() if not re.fullmatch(sentence, line)] == []
    assert "ProtocolError: Token is expired" in printed
    assert "UnknownReferenceError" in printed
    assert token not in printed


def test_a_mistake_of_our_own_keeps_its_traceback_and_not_the_token(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(Gate, "refusal")
    with serving(lambda: pn.pane.HTML("<p>inside</p>")) as address:
        _, _, host, token, _ = address.split("/")
        said = f"GET /{token}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()
        assert spoken(int(host.partition(":")[2]), said) == b""
    printed = capsys.readouterr().err
    assert "Traceback" in printed
    assert "AttributeError: 'Gate' object has no attribute 'refusal'" in printed
    assert token not in printed


def test_tokens_differ_and_are_compared_whole() -> None:
    first, second = new_token(), new_token()
    assert first != second
    assert len(first) == 43
    gate, host = Gate(None, first), "127.0.0.1:1"  # type: ignore[arg-type]
    assert gate.refusal(f"/{first}/ws", host) == ""
    for path in (f"/{first[:-1]}/ws", f"/{first}x/ws", f"/{second}/ws", "/", ""):
        assert gate.refusal(path, host) == NO_TOKEN


@pytest.mark.parametrize("host", ["127.0.0.1:2", "localhost", "LocalHost:9000", "[::1]:65535"])
def test_a_loopback_name_may_have_any_port_and_any_page_of_it_alone(host: str) -> None:
    gate = Gate(None, "token")  # type: ignore[arg-type]
    assert gate.refusal("/token/ws", host, f"http://{host}") == ""
    for other in ("http://evil.example", "http://127.0.0.1:1", f"http://{host}.evil", "null", ""):
        assert gate.refusal("/token/ws", host, other) == NO_ORIGIN


@pytest.mark.parametrize(
    "host",
    ["", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil:1", "127.0.0.2:1", "0.0.0.0",
     "evil@localhost:1", "localhost:1@evil", "localhost:", "localhost:x", "::1", "localhost\n"],
)  # fmt: skip
def test_any_other_name_is_refused(host: str) -> None:
    gate = Gate(None, "token")  # type: ignore[arg-type]
    assert gate.refusal("/token/", host) == NO_HOST
