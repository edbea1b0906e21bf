"""Data as a field: its normal form, what is refused, and how its content reaches keys."""

from __future__ import annotations

import hashlib
import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import Field

from hdica.errors import HdicaError
from hdica.inputs import data_input as inputs
from hdica.inputs.data_input import DataInput, bundled_names, data_input, path_of
from hdica.inputs.place import data_root, digest, digest_file, files_below, write_manifest
from hdica.systems.parameters import Parameters

TWO = {"bundled": ["china", "flower"]}
"""Photographs that need scikit-learn alone."""


class Toy(Parameters):
    pictures: DataInput = Field(TWO)


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def test_a_file_is_known_by_its_bytes(root: Path) -> None:
    (root / "images").mkdir()
    (root / "images/a").write_text("pixels")
    expected = {"path": "images/a", "sha256": sha256("pixels")}
    for given in ("images/a", "./images//a", Path("images/a"), {"path": "images/a"}, expected):
        assert data_input(given) == expected
    assert path_of(expected) == root / "images/a"


def test_a_folder_is_known_by_the_names_and_bytes_of_its_files(root: Path) -> None:
    folder = root / "mine"
    (folder / "b").mkdir(parents=True)
    (folder / "b/x").write_text("1")
    (folder / "a").write_text("2")
    for name in (".hidden", "README.md", "LICENSE", "MANIFEST.sha256.old"):
        (folder / name).write_text("about")
    listed = f"{sha256('2')}  a\n{sha256('1')}  b/x\n"
    first = digest(folder)
    assert first == sha256(listed)
    folder.rename(root / "other")
    assert digest(root / "other") == first
    (root / "other/a").rename(root / "other/c")
    assert digest(root / "other") != first


def test_a_changed_file_is_read_again_and_an_unchanged_one_is_not(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hdica.inputs.place.SETTLED", -(10**18))
    file = root / "a"
    file.write_text("one")
    before = digest_file(file)
    read: list[Any] = []
    real = hashlib.file_digest
    monkeypatch.setattr(hashlib, "file_digest", lambda *a: read.append(a) or real(*a))
    assert digest_file(file) == before
    assert not read
    file.write_text("two")
    os.utime(file, ns=(1, 1))
    assert digest_file(file) == sha256("two")
    assert len(read) == 1


def test_changes_that_times_do_not_tell_are_seen(root: Path) -> None:
    file = root / "a"
    for text in ("one", "two", "six"):  # of one size, within a tick of the clock of files
        file.write_text(text)
        os.utime(file, ns=(1, 1))
        assert digest_file(file) == sha256(text)


def test_a_file_that_changes_while_it_is_read_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = root / "a"
    file.write_text("one")
    real = hashlib.file_digest

    def slow(opened: Any, name: str) -> Any:
        found = real(opened, name)
        file.write_text("longer")
        return found

    monkeypatch.setattr(hashlib, "file_digest", slow)
    with pytest.raises(HdicaError, match="it changed meanwhile"):
        data_input("a")


def test_what_cannot_be_read_is_refused_and_not_left_out(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "in").mkdir()
    (root / "in/a").write_text("x")
    os.mkfifo(root / "in/pipe")
    with pytest.raises(HdicaError, match="pipe cannot be read \\(it is no regular file"):
        data_input("in")
    (root / "in/pipe").unlink()
    (root / "in/loop").symlink_to("loop")
    with pytest.raises(HdicaError, match="leads nowhere"):
        data_input("in")
    (root / "in/loop").unlink()
    (root / "in/locked").mkdir()
    real = os.scandir

    def locked(path: Any) -> Any:
        if str(path).endswith("locked"):
            raise PermissionError(13, "Permission denied", str(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", locked)
    with pytest.raises(HdicaError, match="locked cannot be read \\(Permission denied"):
        data_input("in")


def test_folders_are_data_whatever_their_name_but_hidden_ones(root: Path) -> None:
    for folder in ("README_pictures", ".hidden"):
        (root / "in" / folder).mkdir(parents=True)
        (root / "in" / folder / "a").write_text("x")
    assert list(files_below(root / "in")) == ["README_pictures/a"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("/etc/passwd", "below the folder"),
        ("a/../../etc", "without '..'"),
        ("", "below the folder"),
        (".", "below the folder"),
        ("a\nb", "printable"),
        ("a\\b", "no backslash"),
        ("none", "there is no"),
        ("a" * 5000, "File name too long"),
        (3, "is not allowed"),
        (None, "is not allowed"),
        ({"path": "a", "more": 1}, "is not allowed"),
        ({"path": "a", "bundled": "all"}, "is not allowed"),
        ({"path": "a", "sha256": "abc"}, "64 hexadecimal digits"),
        ({"path": 3}, "is not allowed"),
        ({"bundled": []}, "different ones"),
        ({"bundled": ["china", "china"]}, "different ones"),
        ({"bundled": ["moon"]}, "different ones"),
        ({"path": "a", "sha256": "0" * 64}, "it is other data"),
        ({**TWO, "sha256": "0" * 64}, "it is other data"),
    ],
)
def test_what_is_no_data_is_refused_in_one_sentence(root: Path, given: Any, words: str) -> None:
    (root / "a").write_text("a")
    with pytest.raises(HdicaError, match=words) as caught:
        data_input(given)
    assert "\n" not in str(caught.value)


def test_links_out_of_the_folder_of_data_are_refused(root: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (root / "in").mkdir()
    (root / "in/fine").write_text("x")
    (root / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(HdicaError, match="a link leads out"):
        data_input("link")
    (root / "in/link").symlink_to(tmp_path / "secret")
    with pytest.raises(HdicaError, match="a link leads out"):
        data_input("in")
    (root / "in/link").unlink()
    (root / "in/inside").symlink_to(root / "in/fine")
    assert data_input("in")["path"] == "in"
    (root / "in/folder").symlink_to(root)
    with pytest.raises(HdicaError, match="a link to a folder"):
        data_input("in")


def test_an_empty_folder_is_no_data(root: Path) -> None:
    (root / "empty").mkdir()
    with pytest.raises(HdicaError, match="holds no data"):
        data_input("empty")


def test_data_that_a_manifest_lists_otherwise_is_refused(root: Path) -> None:
    (root / "set/in").mkdir(parents=True)
    (root / "set/in/a").write_text("a")
    (root / "set/b").write_text("b")
    write_manifest(root / "set")
    assert data_input("set/in/a")["sha256"] == sha256("a")
    (root / "set/own").write_text("not listed")
    assert data_input("set/own")
    (root / "set/in/a").write_text("other")
    for path in ("set", "set/in", "set/in/a"):
        with pytest.raises(HdicaError, match="in/a has the sha256 .*MANIFEST.sha256 lists it"):
            data_input(path)
    assert data_input("set/b")
    (root / "set/in/a").unlink()
    with pytest.raises(HdicaError, match="in/a is missing"):
        data_input("set")


def test_the_folder_of_data_is_that_of_the_environment_or_data_here(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HDICA_DATA", raising=False)
    assert data_root() == tmp_path / "data"
    with pytest.raises(HdicaError, match=r"relative to \S+/data, the folder of data\)"):
        data_input("set")
    monkeypatch.setenv("HDICA_DATA", "elsewhere")
    assert data_root() == tmp_path / "elsewhere"
    with pytest.raises(HdicaError, match=r"elsewhere, the folder that HDICA_DATA names\)"):
        data_input("set")


def test_other_pixels_are_other_systems_though_the_path_is_the_same(root: Path) -> None:
    (root / "a").write_text("one")
    first = Toy(pictures="a")
    text = json.dumps(first.model_dump(mode="json", exclude_defaults=True))
    assert sha256("one") in text
    assert Toy(**json.loads(text)) == first
    (root / "a").write_text("another")
    second = Toy(pictures="a")
    assert second != first
    # A worker that finds other data than the study had refuses it.
    with pytest.raises(HdicaError, match=r"Toy: pictures: path = 'a' .* it is other data"):
        Toy(**json.loads(text))


def test_a_default_holds_its_digest_too() -> None:
    content = Toy().model_dump(mode="json", exclude_defaults=True)
    assert content["pictures"] == data_input(TWO)
    assert set(content["pictures"]) == {"bundled", "sha256"}


def test_photographs_are_known_by_names_sizes_and_pixels() -> None:
    (name,) = names = ("china",)
    pixels = inputs.bundled_pixels(name)
    head = f"china {' '.join(map(str, pixels.shape))} uint8\n".encode()
    expected = hashlib.sha256(head + pixels.tobytes()).hexdigest()
    assert inputs.bundled_digest(names) == expected
    assert data_input({"bundled": "china"}) == {"bundled": ["china"], "sha256": expected}
    assert bundled_names(data_input(TWO)) == ("china", "flower")
    assert data_input({"bundled": ["flower", "china"]})["sha256"] != data_input(TWO)["sha256"]


def test_photographs_are_those_of_their_libraries() -> None:
    skimage = pytest.importorskip("skimage.data", reason="pip install scikit-image")
    from sklearn.datasets import load_sample_image

    assert inputs.BUNDLED_NAMES[:2] == ("china", "flower")
    for name in inputs.BUNDLED_NAMES:
        if name in ("china", "flower"):
            expected = load_sample_image(f"{name}.jpg")
        elif name == "motorcycle":
            expected = skimage.stereo_motorcycle()[0]
        else:
            expected = getattr(skimage, name)()
        assert np.array_equal(inputs.bundled_pixels(name), expected), name
    whole = data_input("bundled")
    assert whole == {"bundled": "all", "sha256": inputs.bundled_digest(inputs.BUNDLED_NAMES)}
    assert data_input({"bundled": list(inputs.BUNDLED_NAMES)}) == whole


def test_a_missing_package_is_said_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        inputs, "find_spec", lambda name: None if name == "skimage" else find_spec(name)
    )
    inputs.bundled_pixels.cache_clear()
    inputs.bundled_digest.cache_clear()
    assert data_input(TWO)
    with pytest.raises(HdicaError, match="pip install scikit-image"):
        data_input("bundled")
