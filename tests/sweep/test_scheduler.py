"""Schedulers that do not answer, answer nonsense, or are named by a file that is no good."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hdica.errors import HdicaError
from hdica.run import cluster as module
from hdica.run.cluster import connect, ready
from hdica.run.runner import run
from hdica.run.settings import cluster_settings
from hdica.study.study import study_from
from tests.sweep import toy


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody has ten seconds to wait in a test."""
    monkeypatch.setattr(module, "ANSWER", 1.0)
    monkeypatch.setattr(module, "WRITTEN", 0.2)


def refusal(given: dict[str, Any]) -> str:
    begun = time.monotonic()
    with pytest.raises(HdicaError) as caught:
        ready(cluster_settings(given))
    assert time.monotonic() - begun < 15
    text = str(caught.value)
    assert "\n" not in text
    return text


@pytest.fixture
def port() -> Iterator[socket.socket]:
    """A port on which something listens that never says anything."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield listener


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
    assert refusal({"address": address}) == f"no Dask scheduler answers at {address}"


@pytest.mark.deep
def test_what_listens_but_never_answers_is_not_waited_for(port: socket.socket) -> None:
    # As a scheduler that is stopped, or a machine that hangs: the kernel accepts for it.
    address = f"tcp://127.0.0.1:{port.getsockname()[1]}"
    assert refusal({"address": address}) == f"no Dask scheduler answers at {address}"


def test_what_hangs_up_is_no_scheduler(port: socket.socket) -> None:
    port.settimeout(0.1)
    over = threading.Event()

    def hang_up() -> None:
        while not over.is_set():
            with suppress(TimeoutError):
                connection = port.accept()[0]
                connection.recv(1)
                connection.close()

    thread = threading.Thread(target=hang_up)
    thread.start()
    address = f"tcp://127.0.0.1:{port.getsockname()[1]}"
    try:
        said = refusal({"address": address})
    finally:
        over.set()
        thread.join()
    assert said.startswith(f"{address} hangs up without an answer")
    assert "tls://" in said


def test_nothing_is_written_before_the_scheduler_has_answered(out: Path) -> None:
    study = study_from(toy.study())
    with pytest.raises(HdicaError, match="no Dask scheduler answers"):
        run(study, out, cluster={"address": "tcp://127.0.0.1:9"}, progress=False)
    assert not out.parent.exists()


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("not JSON", "cannot be read (Expecting value"),
        ("[1]", "names no address"),
        ('{"address": 5}', "names no address"),
        ('{"address": "ws://h:1"}', "s.json = 'ws://h:1' is not allowed (tcp://host:port or"),
        ('{"address": "tcp://10.0.0.7:1"}', "s.json = 'tcp://10.0.0.7:1' is not allowed (over"),
        ('{"address": "tls://10.0.0.7:1"}', "s.json = 'tls://10.0.0.7:1' needs tls"),
    ],
)  # fmt: skip
def test_the_address_in_a_file_obeys_the_same_rule(content: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text(content)
    assert said in refusal({"scheduler_file": str(file)})


def test_a_file_that_is_being_written_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WRITTEN", 20.0)
    file = tmp_path / "s.json"
    file.touch()
    text = '{"address": "tcp://127.0.0.1:1"}'
    writer = threading.Timer(0.3, lambda: file.write_text(text))
    writer.start()
    found = module.find(cluster_settings({"scheduler_file": str(file)}))
    assert str(found) == "tcp://127.0.0.1:1"
    writer.join()


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    assert "cannot be read (Is a directory)" in refusal({"scheduler_file": str(tmp_path)})


def test_a_running_scheduler_is_asked_for_its_workers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from distributed import Client, LocalCluster

    monkeypatch.setattr(module, "ANSWER", 20.0)
    quiet = {"processes": False, "dashboard_address": "127.0.0.1:0", "memory_limit": 0}
    with LocalCluster(n_workers=2, threads_per_worker=3, protocol="tcp://", **quiet) as cluster:
        address = cluster.scheduler_address
        file = tmp_path / "s.json"
        file.write_text(json.dumps({"address": address}))
        assert ready(cluster_settings({"address": address})).workers == 6
        settings = ready(cluster_settings({"scheduler_file": str(file)}))
        assert (settings.kind, settings.workers) == ("scheduler", 6)
        with connect(settings) as client:
            assert isinstance(client, Client)
            assert client.submit(sum, [1, 2]).result(timeout=20) == 3


def test_it_can_be_asked_from_within_an_event_loop() -> None:
    import asyncio

    async def ask() -> str:
        return refusal({"address": "tcp://127.0.0.1:9"})

    assert "no Dask scheduler answers" in asyncio.run(ask())
