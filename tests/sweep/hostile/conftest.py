"""A computed store, and a folder of somebody else."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from hdica.study.study import Study, study_from
from tests.sweep import flips, toy


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    toy.register()
    out = tmp_path_factory.mktemp("hostile") / "results" / "toy.zarr"
    out.parent.mkdir()
    flips.made(out)
    return out.parent


@pytest.fixture
def study(out: Path, template: Path) -> Study:
    shutil.copytree(template, out.parent)
    return study_from(flips.CONTENT)


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Path]:
    """A folder of somebody else, of which nothing may change."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "precious.txt").write_text("precious")
    (folder / "zarr.json").write_text("{}")
    (folder / "0").write_bytes(b"precious")

    def state() -> dict[str, bytes]:
        return {p.name: p.read_bytes() for p in folder.rglob("*") if p.is_file()}

    before = state()
    yield folder
    assert state() == before
