"""Manifests as sha256sum has them, and the command that lists, writes and verifies them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hdica.cli import call
from hdica.errors import HdicaError
from hdica.inputs.place import differences, digest, read_manifest, write_manifest


@pytest.fixture
def folder(root: Path) -> Path:
    made = root / "images" / "mine"
    (made / "in").mkdir(parents=True)
    (made / "a").write_text("one")
    (made / "in/ü b").write_text("two")
    return made


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum of coreutils")
def test_sha256sum_checks_what_is_written_and_writes_what_is_read(folder: Path) -> None:
    manifest = write_manifest(folder)
    subprocess.run(
        ["sha256sum", "--check", "--strict", "--quiet", manifest.name], cwd=folder, check=True
    )
    listed = read_manifest(folder)
    done = subprocess.run(
        ["sha256sum", *listed], cwd=folder, check=True, capture_output=True, text=True
    )
    manifest.write_text(done.stdout)
    assert read_manifest(folder) == listed
    assert differences(folder) == []


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="sha256sum of coreutils")
def test_the_manual_says_how_to_find_the_digest_of_a_folder(folder: Path) -> None:
    (folder / "link").symlink_to("a")
    for name in (".hidden", "README.md", "MANIFEST.sha256.old", "in/LICENSE"):
        (folder / name).write_text("about")
    text = (Path(__file__).parents[2] / "data/README.md").read_text(encoding="utf-8")
    lines = text.split("    cd data/images/mine\n")[1].split("\n\n")[0]
    done = subprocess.run(
        ["sh", "-c", lines], cwd=folder, check=True, capture_output=True, text=True
    )
    assert done.stdout.split()[0] == digest(folder)


def test_a_line_of_another_kind_is_refused(folder: Path) -> None:
    for line in ("nonsense", f"{'0' * 64}  ../up", f"{'0' * 63}  a", f"\\{'0' * 64}  a\\nb"):
        (folder / "MANIFEST.sha256").write_text(line)
        with pytest.raises(HdicaError, match="is not allowed"):
            read_manifest(folder)


def test_a_manifest_that_is_no_text_is_refused(folder: Path) -> None:
    (folder / "MANIFEST.sha256").write_bytes(b"\xff\xfe")
    with pytest.raises(HdicaError, match="byte 0 is no UTF-8"):
        read_manifest(folder)


def test_the_command_says_what_differs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["data", "list", "images"]) == 0
    said = capsys.readouterr().out
    assert "images/mine/in/ü b" in said
    assert "6 bytes in" in said
    assert call(["data", "verify"]) == 0
    assert "0 manifests agree" in capsys.readouterr().out
    assert call(["data", "write", "images/mine"]) == 0
    assert "MANIFEST.sha256: 2 files" in capsys.readouterr().out
    assert call(["data", "verify", "images"]) == 0
    assert "1 manifest agrees" in capsys.readouterr().out
    (folder / "new").write_text("three")
    assert call(["data", "verify"]) == 0
    assert "new is not listed" in capsys.readouterr().out
    (folder / "a").write_text("else")
    (folder / "in/ü b").unlink()
    assert call(["data", "verify"]) == 3
    said, noted = capsys.readouterr()
    assert "a differs" in said
    assert "in/ü b is missing" in said
    assert noted.startswith("hdica: 2 files are not what a manifest lists")


@pytest.mark.parametrize("path", ["/tmp", "..", "none", "images/mine/a"])
def test_the_command_stays_in_the_folder_of_data(
    folder: Path, path: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for command in ("list", "write", "verify"):
        assert call(["data", command, path]) == 2
        assert capsys.readouterr().err.count("\n") == 1
    assert not (folder / "MANIFEST.sha256").exists()
