"""Nobody without the token is answered, be it a page, a script or a slice of results."""

from __future__ import annotations

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

from hdica.errors import HdicaError
from hdica.explore.server import NO_HOST, NO_ORIGIN, NO_TOKEN, Gate, new_token, serving


class Said:
    """Answers that are known."""

    def page(self) -> str:
        return "<p>inside</p>"

    def catalogue(self) -> bytes:
        return b"inside"

    def news(self) -> dict[str, Any]:
        return {"number": 1, "trouble": "inside"}

    def slices(self, request: bytes) -> bytes:
        if request != b"wanted":
            raise HdicaError("the request is no list of slices")
        return b"inside"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving(Said()) as found:
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
    assert text == "<p>inside</p>"


def test_answers_are_kept_nowhere_and_read_by_no_other_page(address: str) -> None:
    with urllib.request.urlopen(address, timeout=60) as answer:
        headers = answer.headers
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in headers


@pytest.mark.parametrize(
    "path", ["", "plotly.js", "news", "catalogue", "slices", "x" * 43, "x" * 43 + "/", "é"]
)
def test_without_it_nothing_is_answered(address: str, path: str) -> None:
    root = "/".join(address.split("/")[:3])
    status, text = asked(f"{root}/{urllib.request.quote(path)}")
    assert status == 403
    assert "token" in text
    assert "inside" not in text


@pytest.mark.parametrize("path", ["plotly.js", "news", "catalogue"])
def test_with_the_token_scripts_and_answers_are_there(address: str, path: str) -> None:
    assert asked(f"{address}{path}")[0] == 200


def test_a_name_that_was_made_to_lead_here_is_refused(address: str) -> None:
    assert asked(address, host="evil.example:80")[0] == 403


def slices(url: str, origin: str, body: bytes = b"wanted", method: str = "POST") -> tuple[int, str]:
    """Status and content of the answer to a page of some origin that asks for slices."""
    request = urllib.request.Request(url, body, {"Origin": origin}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as exc:
        return exc.code, exc.read().decode()


def test_slices_need_the_token_and_a_page_of_this_server(address: str) -> None:
    host = address.split("/")[2]
    right = f"{address}slices"
    assert slices(f"http://{host}/slices", f"http://{host}") == (403, NO_TOKEN)
    assert slices(f"http://{host}/{new_token()}/slices", f"http://{host}") == (403, NO_TOKEN)
    assert slices(right, "http://evil.example") == (403, NO_ORIGIN)
    assert slices(right, f"http://{host}") == (200, "inside")


def test_what_is_no_slice_is_refused_in_one_sentence(address: str) -> None:
    origin = "http://" + address.split("/")[2]
    right = f"{address}slices"
    assert slices(right, origin, b"x") == (400, "the request is no list of slices\n")
    assert slices(right, origin, b"wanted", "GET")[0] == 405
    assert slices(address, origin)[0] == 405
    assert slices(f"{address}secret", origin)[0] == 404


def test_the_server_listens_on_loopback_alone_and_is_gone_afterwards() -> None:
    with serving(Said()) as found:
        port = int(found.split(":")[2].split("/")[0])
        assert found.startswith("http://127.0.0.1:")
        with pytest.raises(HdicaError, match="--port"), serving(Said(), port):
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
def test_a_forwarded_port_leads_to_the_page_and_its_slices(address: str, name: str) -> None:
    _, _, host, token, _ = address.split("/")
    with forwarded(int(host.partition(":")[2])) as port:
        at = f"{name}:{port}"
        assert asked(f"http://{at}/{token}/") == (200, "<p>inside</p>")
        assert asked(f"http://{at}/{new_token()}/") == (403, NO_TOKEN)
        assert asked(f"http://{at}/{token}/", host=f"evil.example:{port}") == (403, NO_HOST)
        right = f"http://{at}/{token}/slices"
        assert slices(right, f"http://{at}") == (200, "inside")
        assert slices(f"http://{at}/{new_token()}/slices", f"http://{at}") == (403, NO_TOKEN)
        for other in ("http://evil.example", f"http://{host}", f"http://evil.example@{at}", "null"):
            assert slices(right, other) == (403, NO_ORIGIN)


def spoken(port: int, said: bytes) -> bytes:
    """All that the server answers until it hangs up."""
    found = b""
    with suppress(ConnectionError), socket.create_connection(("127.0.0.1", port), 20) as one:
        one.sendall(said)
        while part := one.recv(65536):
            found += part
    return found


def test_malformed_requests_leave_no_traceback_and_the_server_up(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with serving(Said()) as address:
        _, _, host, token, _ = address.split("/")
        port = int(host.partition(":")[2])

        def page(path: str = "", more: str = "", method: str = "GET") -> bytes:
            head = f"{method} /{token}/{path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n"
            return f"{head}{more}\r\n".encode("latin-1")

        length = "Content-Length: "
        upgrade = "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        table = {
            "a websocket": (page("ws", upgrade), b"404"),
            "a path with a zero": (page("plotly.js%00"), b"404"),
            "a path that leads away": (page("%2e%2e/%2e%2e/x"), b"404"),
            "a path that is no text": (page("%ff%zz%"), b"404"),
            "a query that is no text": (page("?a=%ff%zz&=&&"), b"200"),
            "OPTIONS": (page("slices", method="OPTIONS"), b"405"),
            "HEAD": (page(method="HEAD"), b"405"),
            "strange cookies": (page(more='Cookie: \xe9=\xff; =;;; a="\r\n'), b"200"),
            "a huge header": (page(more=f"X: {'a' * 100_000}\r\n"), b""),
            "a strange range": (page("plotly.js", "Range: bytes=9-1,x\r\n"), b"200"),
            "a method that is none": (page(method="FOO"), b"405"),
            "a huge body": (page("slices", f"{length}{2**40}\r\n", "POST"), b""),
            "no form": (
                page("slices", f"Content-Type: multipart/form-data\r\n{length}1\r\n\r\nx", "POST"),
                b"400",
            ),
            "no length": (page("", f"{length}x\r\n", "POST"), b"400"),
            "no version": (b"GET / HTTP/9.9\r\n\r\n", b""),
            "another protocol": (b"\x16\x03\x01\x02\0" + bytes(100) + b"\r\n\r\n", b""),
            "no host": (b"GET / HTTP/1.1\r\n\r\n", b""),
        }
        for name, (said, status) in table.items():
            first = spoken(port, said).partition(b"\r\n")[0]
            assert status in first, (name, first)
        assert asked(address)[0] == 200
    printed = capsys.readouterr().err
    sentence = r"hdica: a request of a browser could not be answered \(\w+: .*\)"
    assert [line for line in printed.splitlines() if not re.fullmatch(sentence, line)] == []
    assert token not in printed


def test_a_mistake_of_our_own_keeps_its_traceback_and_not_the_token(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delattr(Gate, "refusal")
    with serving(Said()) as address:
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
    assert gate.refusal(f"/{first}/news", host) == ""
    for path in (f"/{first[:-1]}/news", f"/{first}x/news", f"/{second}/news", "/", ""):
        assert gate.refusal(path, host) == NO_TOKEN


@pytest.mark.parametrize("host", ["127.0.0.1:2", "localhost", "LocalHost:9000", "[::1]:65535"])
def test_a_loopback_name_may_have_any_port_and_any_page_of_it_alone(host: str) -> None:
    gate = Gate(None, "token")  # type: ignore[arg-type]
    assert gate.refusal("/token/news", host, f"http://{host}") == ""
    for other in ("http://evil.example", "http://127.0.0.1:1", f"http://{host}.evil", "null", ""):
        assert gate.refusal("/token/news", host, other) == NO_ORIGIN


@pytest.mark.parametrize(
    "host",
    ["", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil:1", "127.0.0.2:1", "0.0.0.0",
     "evil@localhost:1", "localhost:1@evil", "localhost:", "localhost:x", "::1", "localhost\n"],
)  # fmt: skip
def test_any_other_name_is_refused(host: str) -> None:
    gate = Gate(None, "token")  # type: ignore[arg-type]
    assert gate.refusal("/token/", host) == NO_HOST
