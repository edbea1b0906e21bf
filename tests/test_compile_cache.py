"""Compiled code on disk follows every source it was made of."""

import os
from pathlib import Path

import pytest

from hdica.process.compile_cache import COMPILED, drop_stale


@pytest.fixture
def package(tmp_path: Path) -> Path:
    for folder in COMPILED:
        (tmp_path / folder / "__pycache__").mkdir(parents=True)
        (tmp_path / folder / "code.py").write_text("x = 1\n")
    drop_stale(tmp_path)
    return tmp_path


def compiled(package: Path) -> Path:
    path = package / "limits" / "__pycache__" / "other.f-1.py311.nbi"
    path.write_text("compiled")
    return path


def test_an_unchanged_source_keeps_the_cache(package: Path) -> None:
    path = compiled(package)
    assert not drop_stale(package)
    assert path.exists()


@pytest.mark.parametrize("folder", COMPILED)
def test_a_change_anywhere_drops_it_once(package: Path, folder: str) -> None:
    path, source = compiled(package), package / folder / "code.py"
    before = source.stat()
    source.write_text("x = 2\n")
    os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert drop_stale(package)
    assert not path.exists()
    assert not drop_stale(package)


def test_a_new_file_drops_it(package: Path) -> None:
    path = compiled(package)
    (package / "finite" / "more.py").write_text("y = 1\n")
    assert drop_stale(package)
    assert not path.exists()


def test_a_folder_that_cannot_be_written_to_is_left_alone(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **options: object) -> None:
        raise PermissionError

    (package / "finite" / "more.py").write_text("y = 1\n")
    monkeypatch.setattr(Path, "write_text", refuse)
    assert not drop_stale(package)
