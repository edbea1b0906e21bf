"""Stores of other versions are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hdica.cli import call
from hdica.store.files import DamageError
from hdica.store.paths import manifest_path, work_path
from hdica.store.results import open_results, status
from hdica.store.sealed import SCHEMA_VERSION, SchemaError, read_sealed, sealed, write_sealed
from hdica.store.verify import repair, verify
from hdica.store.working import recorded_study
from hdica.study.study import Study
from tests.sweep import flips


def rewrite(file: Path, change: Callable[[dict[str, Any]], None]) -> None:
    document = json.loads(file.read_text())
    change(document)
    file.write_text(json.dumps(document, indent=2))


def aged(file: Path) -> None:
    """A document as an earlier version wrote it."""
    document = json.loads(file.read_text())
    about = document["attributes"] if "node_type" in document else document
    if "schema_version" in about:
        about["schema_version"] = SCHEMA_VERSION - 1
        file.write_text(sealed(document))


@pytest.mark.parametrize("command", ["run", "status", "verify", "repair", "query"])
def test_an_old_store_is_refused_with_what_helps(
    out: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out.parent.mkdir()
    flips.made(out)
    for file in out.parent.rglob("*.json"):
        aged(file)
    (out.parent / "toy.yaml").write_text(json.dumps(flips.CONTENT), encoding="utf-8")
    yaml = [str(out.parent / "toy.yaml"), "--out", str(out)]
    before = {p: p.read_bytes() for p in out.rglob("*") if p.is_file()}
    assert call([command, *(yaml if command in ("run", "plan") else [str(out)])]) == 2
    said = capsys.readouterr().err
    assert "has schema 2, of an earlier version of hdica" in said
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
        ("record of the study", lambda study, out: status(out)),
        ("record of the study", lambda study, out: verify(out)),
        ("record of the study", lambda study, out: repair(out)),
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
    flips.made(out)
    file = work_path(out) / "study.json"
    rewrite(file, lambda document: document.update(schema_version=7))
    with pytest.raises(DamageError, match="or a version of hdica newer than 0.1.0 wrote it"):
        status(out)


def test_a_sealed_document_is_read_as_it_was_written(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    content = {"a": [1, 0.1, None, "é\u2028\ud800"], "digest_of": {"b": -0.0}}
    write_sealed(file, content)
    assert read_sealed(file) == content
    assert read_sealed(tmp_path / "absent.json") is None
    raw = file.read_bytes()
    for bit in range(0, 8 * len(raw), 3):
        with flips.flipped(file, bit), pytest.raises(DamageError, match="is damaged"):
            read_sealed(file)


def test_the_record_of_the_study_is_the_study(out: Path) -> None:
    out.parent.mkdir()
    study = flips.made(out)
    assert recorded_study(out) == study
