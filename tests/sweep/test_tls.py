"""Certificates, and real schedulers and workers that ask for them."""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import ssl
import stat
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from copy import copy
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from hdica.errors import HdicaError
from hdica.process.private import scratch
from hdica.run import cluster as module
from hdica.run.cluster import connect, ready
from hdica.run.processes import (
    THREAD_VARIABLES,
    own_certificates,
    read_certificates,
    write_certificates,
)
from hdica.run.runner import run
from hdica.run.settings import cluster_settings
from hdica.store.publish import publish
from hdica.study.study import study_from
from tests.sweep import toy
from tests.sweep.conftest import values
from tests.sweep.outside import make_certificates, running, server_lines, wait_until


@pytest.fixture
def certs(tmp_path: Path) -> Path:
    make_certificates(tmp_path / "certs")
    return tmp_path / "certs"


def test_a_key_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        make_certificates(tmp_path / "certs")
    finally:
        os.umask(before)
    made = {path.name: path for path in (tmp_path / "certs").iterdir()}
    assert sorted(made) == ["ca.pem", "cert.pem", "key.pem"]
    assert stat.S_IMODE(made["key.pem"].stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "certs").stat().st_mode) == 0o700
    assert [name for name, one in made.items() if "PRIVATE KEY" in one.read_text()] == ["key.pem"]
    assert read_certificates(str(tmp_path / "certs")).require_encryption


def test_what_a_run_makes_is_written_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        written = write_certificates(own_certificates(), tmp_path)
    finally:
        os.umask(before)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    assert written.tls_client_key == str(tmp_path / "key.pem")
    certificate = x509.load_pem_x509_certificate((tmp_path / "cert.pem").read_bytes())
    # A clock may be behind.
    assert certificate.not_valid_before_utc < datetime.now(UTC) - timedelta(minutes=50)
    with pytest.raises(FileExistsError):
        write_certificates(own_certificates(), tmp_path)


def test_a_key_in_memory_is_on_the_disk_only_in_the_private_folder(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """OpenSSL reads keys from files alone: Dask writes one for that moment."""
    seen: list[Path] = []
    load = ssl.SSLContext.load_cert_chain

    def watched(self: ssl.SSLContext, certificate: str, key: str, *rest: Any) -> None:
        seen.extend((Path(certificate), Path(key)))
        load(self, certificate, key, *rest)

    monkeypatch.setattr(ssl.SSLContext, "load_cert_chain", watched)
    with connect(cluster_settings({"mode": "local", "workers": 1})) as client:
        found = client.run(lambda: __import__("tempfile").gettempdir())
    assert set(found.values()) == {str(scratch())}
    assert len(seen) > 2
    assert all(path.is_relative_to(scratch()) for path in seen)
    assert not any(path.exists() for path in seen)


def refused(folder: Path, key: str = "") -> str:
    with pytest.raises(HdicaError) as caught:
        read_certificates(str(folder), key)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_certificates_that_are_no_good_are_named(certs: Path, tmp_path: Path) -> None:
    make_certificates(tmp_path / "other")
    assert "ca.pem cannot be read (No such file" in refused(tmp_path / "absent")
    assert "other.pem cannot be read" in refused(certs, str(tmp_path / "other.pem"))
    wrong = refused(certs, str(tmp_path / "other/key.pem"))
    assert "do not belong together" in wrong
    assert "mismatch" in wrong.lower()
    (certs / "ca.pem").write_text("nonsense")
    assert "ca.pem, cert.pem and key.pem do not belong together" in refused(certs)
    (certs / "key.pem").write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n")
    assert "is encrypted (a key without a pass phrase is needed)" in refused(certs)


def test_a_key_that_others_can_read_warns(certs: Path) -> None:
    (certs / "key.pem").chmod(0o644)
    with pytest.warns(UserWarning, match=r"key.pem can be read by others \(chmod 600"):
        read_certificates(str(certs))


def test_a_key_may_lie_elsewhere(certs: Path, tmp_path: Path) -> None:
    (certs / "key.pem").rename(tmp_path / "secret.pem")
    assert read_certificates(str(certs), str(tmp_path / "secret.pem")).tls_client_key.endswith(
        "secret.pem"
    )


def test_without_the_library_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(HdicaError, match="needs the library cryptography"):
        own_certificates.__wrapped__()


@dataclass(frozen=True)
class Outside:
    """A scheduler with two workers that run elsewhere."""

    folder: Path
    certs: Path
    file: Path
    address: str


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    """Scheduler and workers, started by the very lines of the manual."""
    folder = tmp_path_factory.mktemp("outside")
    make_certificates(folder / "certs")
    scheduler_line, worker_line = server_lines(folder / "certs")
    scheduler_line += " --host 127.0.0.1 --port 0"
    worker_line = worker_line.replace("--nworkers 4", "--nworkers 2") + " --host 127.0.0.1"
    file = folder / "scheduler.json"
    settings = {"scheduler_file": str(file), "tls": str(folder / "certs")}
    with running(folder, [scheduler_line, worker_line]):
        wait_until(file.exists, "the scheduler's file")

        def come() -> bool:
            return module.reach(cluster_settings(settings)).workers == 2

        wait_until(come, "two workers")
        found = module.find(cluster_settings(settings))
        assert found.encrypted
        yield Outside(folder, folder / "certs", file, str(found))


def computed(out: Path, cluster: dict[str, Any]) -> dict[str, bytes]:
    study = study_from(toy.study())
    summary = run(study, out, cluster=cluster, progress=False, block=4)
    assert (summary.computed, summary.pending, summary.lost) == (79, 0, [])
    publish(study, out)
    return values(out)


@pytest.mark.deep
def test_where_it_runs_changes_no_bit(
    outside: Outside, tmp_path: Path, toy_workers: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    serial = computed(tmp_path / "serial.zarr", {"mode": "serial"})
    local = {"mode": "local", "workers": 2, "memory": "2GiB", "tls": str(outside.certs)}
    assert computed(tmp_path / "local.zarr", local) == serial
    by_file = {"scheduler_file": str(outside.file), "tls": str(outside.certs)}
    # Workers elsewhere run in another folder than the one that a relative path means.
    monkeypatch.chdir(tmp_path)
    assert computed(Path("remote.zarr"), by_file) == serial
    assert len(serial) > 10
    # No path and no text of a key is in what is kept.
    key = (outside.certs / "key.pem").read_bytes().splitlines()[1]
    for path in tmp_path.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            assert key not in content, path
            assert b"key.pem" not in content, path


def test_the_environment_alone_finds_it(outside: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HDICA_SCHEDULER", outside.address)
    monkeypatch.setenv("HDICA_TLS", str(outside.certs))
    settings = ready(cluster_settings())
    assert (settings.kind, settings.workers) == ("scheduler", 2)
    with connect(settings) as client:
        assert client.submit(sum, [1, 2]).result(timeout=20) == 3
        threads = client.run(threads_of_libraries)
    assert list(threads.values()) == [["1"] * len(THREAD_VARIABLES)] * 2


def threads_of_libraries() -> list[str | None]:
    return [os.environ.get(name) for name in THREAD_VARIABLES]


def test_web_pages_are_there_only_if_a_scheduler_is_asked_for_them(
    outside: Outside, certs: Path, tmp_path: Path
) -> None:
    with connect(cluster_settings({"address": outside.address, "tls": str(outside.certs)})) as one:
        about = one.scheduler_info()
        assert [about["services"], *(w["services"] for w in about["workers"].values())] == [{}] * 3
    line, _ = server_lines(certs)
    with running(tmp_path, [f"{line} --host 127.0.0.1 --port 0 --dashboard"]):
        wait_until((tmp_path / "scheduler.json").exists, "the scheduler's file")
        port = json.loads((tmp_path / "scheduler.json").read_text())["services"]["dashboard"]
        page = f"http://127.0.0.1:{port}/json/identity.json"
        with urllib.request.urlopen(page, timeout=30) as answer:
            assert json.load(answer)["type"] == "Scheduler"
        # A web page elsewhere may have a name that leads here.
        foreign = urllib.request.Request(page, headers={"Host": "rebound.example"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(foreign, timeout=30)
        if importlib.util.find_spec("bokeh") is None:
            return
        # And it may open a websocket under this machine's own name, which Bokeh lets any page do.
        at = f"127.0.0.1:{port}"
        assert socket_opened(at, f"http://{at}") == 101
        for other in ("http://rebound.example", "http://127.0.0.1:1", "null"):
            assert socket_opened(at, other) == 403


def socket_opened(at: str, origin: str) -> int:
    """What the pages answer to a page of some origin that asks for their websocket."""
    asked = {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "x" * 22 + "==", "Sec-WebSocket-Protocol": "bokeh, token",
        "Origin": origin,
    }  # fmt: skip
    connection = http.client.HTTPConnection(at, timeout=30)
    with closing(connection):
        connection.request("GET", "/status/ws", headers=asked)
        return connection.getresponse().status


def sentence(given: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(module, "ANSWER", 2.0)
    with pytest.raises(HdicaError) as caught:
        ready(cluster_settings(given))
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_client_with_other_certificates_is_refused(
    outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_certificates(tmp_path / "other")
    given = {"address": outside.address, "tls": str(tmp_path / "other")}
    said = sentence(given, monkeypatch)
    assert f"the scheduler at {outside.address} and the certificates in" in said
    assert "refuse each other (" in said
    # And where only the scheduler can tell: a client that trusts it, but whom it does not know.
    (tmp_path / "other/ca.pem").write_bytes((outside.certs / "ca.pem").read_bytes())
    assert "refuse each other (" in sentence(given, monkeypatch)
    assert (outside.folder / "said-0").read_text().count("TLS handshake failed") >= 1


def test_a_client_without_certificates_is_refused(
    outside: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = outside.address.replace("tls://", "tcp://")
    said = sentence({"address": address}, monkeypatch)
    hint = "one with certificates is reached by tls://"
    assert said == f"{address} hangs up without an answer; {hint}"


def test_a_scheduler_without_certificates_is_not_taken_for_one_that_has_them(
    certs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = "dask scheduler --host 127.0.0.1 --port 0 --dashboard-address 127.0.0.1:0"
    file = tmp_path / "plain.json"
    with running(tmp_path, [f"{line} --scheduler-file plain.json"]):
        wait_until(file.exists, "the scheduler's file")
        address = module.find(cluster_settings({"scheduler_file": str(file)}))
        encrypted = str(address).replace("tcp://", "tls://")
        said = sentence({"address": encrypted, "tls": str(certs)}, monkeypatch)
    assert said == f"what answers at {encrypted} has no certificates"


@pytest.mark.deep
def test_an_expired_certificate_is_refused_and_named(
    outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = datetime.now(UTC) - timedelta(minutes=5)
    made = own_certificates()
    key = serialization.load_pem_private_key(made.tls_client_key.encode(), None)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "hdica")])
    dates = x509.CertificateBuilder().not_valid_before(past - timedelta(1)).not_valid_after(past)
    of = dates.subject_name(name).issuer_name(name).public_key(key.public_key()).serial_number(1)
    made = copy(made)
    made.tls_ca_file = made.tls_worker_cert = (
        of.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()
    )
    write_certificates(made, tmp_path)
    line = server_lines(tmp_path)[0] + " --host 127.0.0.1 --port 0"
    with running(tmp_path, [line]):
        wait_until((tmp_path / "scheduler.json").exists, "the scheduler's file")
        given = {"scheduler_file": str(tmp_path / "scheduler.json"), "tls": str(tmp_path)}
        assert "certificate has expired" in sentence(given, monkeypatch)
