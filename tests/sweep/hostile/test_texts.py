"""Hostile texts in a store are shown as texts; reading leaves no files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from hdica.cli import call
from hdica.cli_tables import answer_table
from hdica.report.write import write
from hdica.store.files import DamageError, read_regular
from hdica.store.paths import work_path
from hdica.store.query import export, table
from hdica.store.results import status
from hdica.store.verify import verify
from hdica.study.study import Study
from tests.report.test_page import Page
from tests.sweep.conftest import values
from tests.sweep.hostile.lies import nodes, published_lie

HOSTILE = (
    '<img src=x onerror="alert(1)"></script><script>alert(1)</script>[bold]\x1b]0;owned\x07\u202e'
)


@pytest.mark.deep
def test_reports_and_tables_show_hostile_texts_as_texts(
    study: Study, out: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def lie(document: dict[str, Any]) -> None:
        about = document["attributes"]
        content = {**json.loads(about["study_yaml"]), "title": HOSTILE, "description": HOSTILE}
        content["analysis"] = {"compare": {"curves": ["walk", "line"], "variable": "Q"}}
        about |= {
            "title": HOSTILE, "description": HOSTILE, "study": HOSTILE, "system": HOSTILE,
            "references": HOSTILE, "license": HOSTILE, "processors": HOSTILE, "git_commit": HOSTILE,
            "study_yaml": json.dumps(content),
            "package_versions": json.dumps({HOSTILE: HOSTILE}),
        }  # fmt: skip
        for node in nodes(document).values():
            node["attributes"] |= {"long_name": HOSTILE, "equations": HOSTILE, "kernel": HOSTILE}

    published_lie(out, lie)
    shutil.rmtree(work_path(out))
    folder = out.parent / "report"
    page = Page(write(out, folder)[0].read_text(encoding="utf-8"))
    tags = [tag for tag, _ in page.tags]
    assert "img" not in tags
    assert tags.count("script") == 6
    assert "alert(1)" in "".join(page.text)
    written = {"aggregate.nc", "card.json", "figures", "report.html"}
    assert {p.name for p in folder.iterdir()} == written
    assert call(["status", str(out)]) == 0
    said = capsys.readouterr().out
    assert not {"\x1b", "\u202e"} & {*said}
    assert "[bold]" in said


def test_tables_on_a_terminal_hold_no_escape(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import xarray as xr

    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    word = "a\x1b]0;owned\x07[red]b"
    data = xr.Dataset({"Q": ("source", [1.0])}, {"source": [word]})
    answer_table(table(data), word)
    tables = [capsys.readouterr().out]
    for to in ("-", "csv", "json"):
        export(data, to, None)
        tables.append(capsys.readouterr().out)
    for said in tables:
        assert "\x1b]" not in said
        assert "[red]b" in said


def test_reading_never_leaves_files(study: Study, out: Path) -> None:
    before = sorted(str(p) for p in out.parent.rglob("*"))
    values(out)
    status(out)
    verify(out)
    assert sorted(str(p) for p in out.parent.rglob("*")) == before


def test_read_regular_has_a_largest_size(tmp_path: Path) -> None:
    file = tmp_path / "big"
    file.write_bytes(b"x" * 11)
    assert read_regular(file, 11) == b"x" * 11
    with pytest.raises(DamageError, match="at most 10 are read"):
        read_regular(file, 10)
    assert read_regular(tmp_path / "absent") is None
