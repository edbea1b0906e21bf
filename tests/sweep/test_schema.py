"""Stores of other versions: older ones are brought up to date, newer ones are refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hdica.cli import call
from hdica.sweep.files.frames import frame_size, packed, unpacked
from hdica.sweep.files.guarded import array_of
from hdica.sweep.files.manifest import file_digest, store_files
from hdica.sweep.files.paths import DamageError, manifest_path, work_path
from hdica.sweep.files.sealed import SCHEMA_VERSION, SchemaError, read_sealed, sealed, write_sealed
from hdica.sweep.outcome.integrity import verify
from hdica.sweep.outcome.repair import repair
from hdica.sweep.outcome.results import open_results
from hdica.sweep.outcome.status import status
from hdica.sweep.run.plan import place, planned_study
from hdica.sweep.study.study import Study, study_from
from tests.sweep import flips, toy
from tests.sweep.conftest import values


def rewrite(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document, indent=2))


def _unbound(document: dict[str, Any]) -> None:
    for name in ("digest", "segment", "planned"):
        document["attributes"].pop(name, None)


def _array(document: dict[str, Any]) -> None:
    _unbound(document)
    document["codecs"] = [codec for codec in document["codecs"] if codec["name"] != "crc32c"]


def _group(document: dict[str, Any]) -> None:
    for name in ("digest", "hdica_version", "id", "noise", "save"):
        document["attributes"].pop(name, None)
    document["attributes"]["schema_version"] = 1


def _root(document: dict[str, Any]) -> None:
    for name in ("digest", "digests"):
        document["attributes"].pop(name)
    document["attributes"]["schema_version"] = 1
    for node in document["consolidated_metadata"]["metadata"].values():
        if node["node_type"] == "array":
            _array(node)


def _plain(document: dict[str, Any]) -> None:
    for name in ("digest", "schema_version", "hdica_version", "segments", "version", "before"):
        document.pop(name, None)


def without_record(raw: bytes, crc: bool = True) -> bytes:
    """The file of a block's statuses from before there were commit records."""
    return packed(unpacked(raw, frame_size(raw)), crc=crc)


def aged(out: Path) -> None:
    """Make of results what schema 1 was: no digests, no CRC32C, attributes that came later."""
    shutil.rmtree(out.with_suffix(".versions"), ignore_errors=True)
    (out / "digests.json").unlink(missing_ok=True)
    for file in sorted(out.parent.rglob("*")):
        if not file.is_file():
            continue
        name = file.relative_to(out.parent).as_posix()
        if array_of(name).endswith("/status") and file.is_relative_to(work_path(out)):
            file.write_bytes(without_record(file.read_bytes(), crc=False))
        elif array_of(name):
            file.write_bytes(file.read_bytes()[:-4])
        elif file == out / "zarr.json":
            rewrite(file, _root)
        elif file.name == "zarr.json":
            is_array = json.loads(file.read_text())["node_type"] == "array"
            in_work = file.is_relative_to(work_path(out))
            if is_array or in_work:
                rewrite(file, _array if is_array else _group)
        elif file.suffix == ".json":
            rewrite(file, _plain)
    if manifest_path(out).exists():
        files = {name: file_digest(out / name) for name in store_files(out)}
        rewrite(manifest_path(out), lambda manifest: manifest.update(files=files))


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results of schema 1, computed and published."""
    toy.register()
    out = tmp_path_factory.mktemp("old") / "results" / "toy.zarr"
    out.parent.mkdir()
    flips.made(out)
    aged(out)
    (out.parent / "toy.yaml").write_text(json.dumps(flips.CONTENT), encoding="utf-8")
    return out.parent


@pytest.fixture
def study(out: Path, old: Path) -> Study:
    shutil.copytree(old, out.parent)
    return study_from(flips.CONTENT)


def test_an_old_published_store_opens_as_it_is(study: Study, out: Path) -> None:
    found = values(out)
    shutil.rmtree(out.parent)
    flips.made(out)
    assert found == values(out)


@pytest.mark.parametrize("command", ["run", "plan", "status", "verify", "repair"])
def test_an_old_working_store_is_refused_with_what_helps(
    study: Study, out: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    yaml = [str(out.parent / "toy.yaml"), "--out", str(out)]
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    assert call([command, *(yaml if command in ("run", "plan") else [str(out)])]) == 2
    said = capsys.readouterr().err
    assert "has schema 1, of an earlier version of hdica" in said
    assert "remove it, and the next run computes it anew" in said
    assert {p: p.read_bytes() for p in out.rglob("*") if p.is_file()} == before


def newer(file: Path) -> None:
    """A document as a later version would write it."""
    document = json.loads(file.read_text())
    about = document["attributes"] if "node_type" in document else document
    about |= {"schema_version": SCHEMA_VERSION + 1, "hdica_version": "9.9"}
    file.write_text(sealed(document))


@pytest.mark.parametrize(
    ("kind", "read"),
    [
        ("working group metadata", lambda study, out: place(study, out)),
        ("working group metadata", lambda study, out: verify(out)),
        ("working group metadata", lambda study, out: repair(out)),
        ("record of the study", lambda study, out: status(out)),
        ("manifest", lambda study, out: open_results(out)),
        ("manifest", lambda study, out: verify(out)),
        ("published root metadata", lambda study, out: open_results(out)),
    ],
)
def test_a_newer_version_is_named_and_refused(
    out: Path, kind: str, read: Callable[[Study, Path], object]
) -> None:
    out.parent.mkdir()
    study = flips.made(out)
    if kind == "published root metadata":
        manifest_path(out).unlink()
    file = flips.files(out)[kind][0]
    newer(file)
    with pytest.raises(SchemaError) as caught:
        read(study, out)
    said = str(caught.value)
    assert said.startswith(f"{file} has schema 4, written by hdica 9.9, and this is hdica 0.1.0")
    assert said.endswith("(install a newer hdica)")


def test_a_version_that_was_typed_in_is_damage_that_may_be_a_newer_version(out: Path) -> None:
    out.parent.mkdir()
    study = flips.made(out)
    file = place(study, out)[0].path / "zarr.json"
    rewrite(file, lambda document: document["attributes"].update(schema_version=7))
    with pytest.raises(DamageError, match="or a version of hdica newer than 0.1.0 wrote it"):
        place(study, out)


def test_a_sealed_document_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    content = {"a": [1, 0.1, None, "é\u2028\ud800"], "digest_of": {"b": -0.0}}
    write_sealed(file, content)
    assert read_sealed(file) == content
    assert read_sealed(tmp_path / "absent.json") is None
    raw = file.read_bytes()
    for bit in range(0, 8 * len(raw), 3):
        with flips.flipped(file, bit), pytest.raises(DamageError, match="is damaged"):
            read_sealed(file, old=True)


def test_the_record_of_the_study_is_the_study(out: Path) -> None:
    out.parent.mkdir()
    study = flips.made(out)
    assert planned_study(out) == study
