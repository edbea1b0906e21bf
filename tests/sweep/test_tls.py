"""Certificates, and real schedulers and workers that ask for them."""

from __future__ import annotations

import http.client
import json
import os
import ssl
import stat
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from hdica.cli_cluster import start_lines
from hdica.errors import HdicaError
from hdica.sweep.outcome.publish import publish
from hdica.sweep.run.runner import run
from hdica.sweep.study.study import study_from
from hdica.sweep.workers import scheduler, tls
from hdica.sweep.workers.cluster import cluster_settings, connect, ready
from hdica.sweep.workers.tls import make_certificates, security
from tests.sweep import toy
from tests.sweep.conftest import values
from tests.sweep.outside import running, wait_until

x509 = pytest.importorskip("cryptography.x509", reason="needs the library cryptography")


@pytest.fixture
def certs(tmp_path: Path) -> Path:
    make_certificates(tmp_path / "certs")
    return tmp_path / "certs"


def test_a_key_is_for_its_owner_alone_and_no_key_can_sign_more(certs: Path) -> None:
    assert sorted(path.name for path in certs.iterdir()) == ["ca.pem", "cert.pem", "key.pem"]
    assert stat.S_IMODE((certs / "key.pem").stat().st_mode) == 0o600
    assert stat.S_IMODE(certs.stat().st_mode) == 0o700
    texts = {path.name: path.read_text() for path in certs.iterdir()}
    assert [name for name, text in texts.items() if "PRIVATE KEY" in text] == ["key.pem"]
    # The key that is there belongs to the certificate, not to the authority.
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_cert_chain(certs / "cert.pem", certs / "key.pem")
    with pytest.raises(ssl.SSLError):
        context.load_cert_chain(certs / "ca.pem", certs / "key.pem")


def test_an_open_mask_opens_no_key(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        make_certificates(tmp_path / "certs")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "certs/key.pem").stat().st_mode) == 0o600


def test_what_the_certificates_say(tmp_path: Path) -> None:
    ends = make_certificates(tmp_path, ["node7", "10.0.0.7", "node7"], days=90)
    ca, leaf = (
        x509.load_pem_x509_certificate((tmp_path / name).read_bytes())
        for name in ("ca.pem", "cert.pem")
    )
    now = datetime.now(UTC)
    assert timedelta(days=89) < ends - now <= timedelta(days=90)
    assert abs(leaf.not_valid_after_utc - ends) < timedelta(seconds=2)
    assert leaf.not_valid_before_utc < now - timedelta(minutes=50)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["node7"]
    assert [str(a) for a in names.get_values_for_type(x509.IPAddress)] == ["10.0.0.7"]
    leaf.verify_directly_issued_by(ca)
    constraints = [c.extensions.get_extension_for_class(x509.BasicConstraints) for c in (ca, leaf)]
    assert [(c.value.ca, c.critical) for c in constraints] == [(True, True), (False, True)]
    assert ca.public_key() != leaf.public_key()


def test_nothing_is_replaced_unless_it_is_said(certs: Path) -> None:
    before = {path.name: path.read_bytes() for path in certs.iterdir()}
    with pytest.raises(HdicaError, match=r"certs/ca.pem exists \(choose another folder, or"):
        make_certificates(certs)
    assert before == {path.name: path.read_bytes() for path in certs.iterdir()}
    (certs / "ca.pem").unlink()
    (certs / "cert.pem").unlink()
    with pytest.raises(HdicaError, match=r"certs/key.pem exists"):
        make_certificates(certs)
    make_certificates(certs, replace=True)
    assert (certs / "key.pem").read_bytes() != before["key.pem"]
    assert stat.S_IMODE((certs / "key.pem").stat().st_mode) == 0o600
    assert security(str(certs)).require_encryption


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"names": ["a b"]}, "name 'a b' is not allowed"),
        ({"names": ["-x"]}, "name '-x' is not allowed"),
        ({"days": 0}, r"days = 0 is not allowed \(1 to 3650\)"),
        ({"days": 10**6}, "days = 1000000 is not allowed"),
    ],
)
def test_wrong_wishes_write_nothing(how: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(HdicaError, match=said):
        make_certificates(tmp_path / "certs", **how)
    assert not (tmp_path / "certs").exists()


def refused(folder: Path, key: str = "") -> str:
    with pytest.raises(HdicaError) as caught:
        security(str(folder), key)
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
        security(str(certs))


def test_a_key_may_lie_elsewhere(certs: Path, tmp_path: Path) -> None:
    (certs / "key.pem").rename(tmp_path / "secret.pem")
    assert security(str(certs), str(tmp_path / "secret.pem")).tls_client_key.endswith("secret.pem")


def test_without_the_library_one_sentence_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(HdicaError, match="needs the library cryptography"):
        tls.make_certificates(tmp_path / "certs")
    assert not (tmp_path / "certs").exists()


@dataclass(frozen=True)
class Outside:
    """A scheduler with two workers that run elsewhere."""

    folder: Path
    certs: Path
    file: Path
    address: str


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outside]:
    """Scheduler and workers, started by the very lines that ``hdica cluster certs`` prints."""
    folder = tmp_path_factory.mktemp("outside")
    make_certificates(folder / "certs")
    scheduler_line, worker_line = (
        line for line in start_lines(folder / "certs") if line.startswith("python ")
    )
    scheduler_line += " --host 127.0.0.1 --port 0"
    worker_line = worker_line.replace("--nworkers 4", "--nworkers 2") + " --host 127.0.0.1"
    file = folder / "scheduler.json"
    settings = {"scheduler_file": str(file), "tls": str(folder / "certs")}
    with running(folder, [scheduler_line, worker_line]):
        wait_until(file.exists, "the scheduler's file")

        def come() -> bool:
            return scheduler.reach(cluster_settings(settings)).workers == 2

        wait_until(come, "two workers")
        found = scheduler.find(cluster_settings(settings))
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


def test_web_pages_are_there_only_if_a_scheduler_is_asked_for_them(
    outside: Outside, certs: Path, tmp_path: Path
) -> None:
    with connect(cluster_settings({"address": outside.address, "tls": str(outside.certs)})) as one:
        about = one.scheduler_info()
        assert [about["services"], *(w["services"] for w in about["workers"].values())] == [{}] * 3
    line = next(line for line in start_lines(certs) if " scheduler --" in line)
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
    monkeypatch.setattr(scheduler, "ANSWER", 2.0)
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
        address = scheduler.find(cluster_settings({"scheduler_file": str(file)}))
        encrypted = str(address).replace("tcp://", "tls://")
        said = sentence({"address": encrypted, "tls": str(certs)}, monkeypatch)
    assert said == f"what answers at {encrypted} has no certificates"


@pytest.mark.deep
def test_an_expired_certificate_is_refused_and_named(
    outside: Outside, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = datetime.now(UTC) - timedelta(minutes=5)
    ca, leaf, key = tls._signed(("node7",), past)
    for name, content in (("ca.pem", ca), ("cert.pem", leaf), ("key.pem", key)):
        (tmp_path / name).write_bytes(content)
    (tmp_path / "key.pem").chmod(0o600)
    lines = start_lines(tmp_path)
    line = next(line for line in lines if " scheduler --" in line)
    line += " --host 127.0.0.1 --port 0"
    with running(tmp_path, [line]):
        wait_until((tmp_path / "scheduler.json").exists, "the scheduler's file")
        given = {"scheduler_file": str(tmp_path / "scheduler.json"), "tls": str(tmp_path)}
        assert "certificate has expired" in sentence(given, monkeypatch)
