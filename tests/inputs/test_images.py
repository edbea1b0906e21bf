"""Pictures of every kind as numbers in [0, 1], and files that are none."""

from __future__ import annotations

import io
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from hdica.errors import HdicaError
from hdica.inputs.data_input import bundled_pixels
from hdica.inputs.images import load_images

HIGH, WIDE = 5, 7
RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (HIGH, WIDE), dtype=np.uint8)
RGB = RNG.integers(0, 256, (HIGH, WIDE, 3), dtype=np.uint8)
LUMA = np.array([0.299, 0.587, 0.114])


def _loaded(root: Path, image: Any, name: str = "a.png", **given: Any) -> np.ndarray:
    image.save(root / name, **given)
    (one,) = load_images(name)
    return one.pixels


def test_grey_is_the_weighted_sum_of_the_channels(root: Path) -> None:
    assert np.allclose(_loaded(root, Image.fromarray(RGB)), RGB @ LUMA / 255, atol=1e-15)
    (colour,) = load_images("a.png", "rgb")
    assert np.array_equal(colour.pixels, RGB / 255)
    assert np.array_equal(_loaded(root, Image.fromarray(GREY)), GREY / 255)
    (three,) = load_images("a.png", "rgb")
    assert np.array_equal(three.pixels, np.stack([GREY / 255] * 3, axis=2))


def test_white_is_one_in_grey(root: Path) -> None:
    white = Image.new("RGB", (WIDE, HIGH), "white")
    assert _loaded(root, white).max() <= 1
    assert np.allclose(_loaded(root, white), 1, atol=1e-15)


def test_pixels_are_read_only_numbers(root: Path) -> None:
    pixels = _loaded(root, Image.fromarray(RGB))
    assert pixels.dtype == np.float64
    with pytest.raises(ValueError, match="read-only"):
        pixels[0, 0] = 2


def test_sixteen_bits_are_over_their_largest_number(root: Path) -> None:
    deep = RNG.integers(0, 2**16, (HIGH, WIDE), dtype=np.uint16)
    for name in ("a.png", "a.tif"):
        assert np.array_equal(_loaded(root, Image.fromarray(deep), name), deep / 65535)


def test_palettes_and_other_colours_become_rgb(root: Path) -> None:
    colours = Image.fromarray(np.repeat(GREY[:, :, None] // 128 * 255, 3, axis=2))
    palette = colours.convert("P", palette=Image.Palette.ADAPTIVE)
    assert np.allclose(_loaded(root, palette), GREY // 128, atol=1e-14)
    bits = Image.fromarray(GREY).convert("1", dither=Image.Dither.NONE)
    assert np.array_equal(_loaded(root, bits), (GREY >= 128).astype(float))
    cmyk = Image.fromarray(RGB).convert("CMYK")
    assert np.allclose(_loaded(root, cmyk, "a.tif"), RGB @ LUMA / 255, atol=2 / 255)


def test_what_is_transparent_lies_on_white(root: Path) -> None:
    alpha = np.full((HIGH, WIDE), 255, dtype=np.uint8)
    alpha[0] = 0
    whole = np.dstack([RGB, alpha])
    expected = RGB @ LUMA / 255
    expected[0] = 1
    assert np.allclose(_loaded(root, Image.fromarray(whole)), expected, atol=1e-14)
    grey = np.dstack([GREY, alpha])
    expected = GREY / 255
    expected[0] = 1
    assert np.allclose(_loaded(root, Image.fromarray(grey, "LA")), expected, atol=1e-14)


def test_a_picture_is_turned_as_its_camera_was_held(root: Path) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter, clockwise
    turned = _loaded(root, Image.fromarray(GREY), exif=exif)
    assert np.array_equal(turned, np.rot90(GREY, -1) / 255)


def test_floating_point_numbers_are_taken_as_they_are_or_refused(root: Path) -> None:
    values = (GREY / 255).astype(np.float32)
    assert np.array_equal(_loaded(root, Image.fromarray(values), "a.tif"), values)
    Image.fromarray(values * 3).save(root / "b.tif")
    with pytest.raises(HdicaError, match="outside"):
        load_images("b.tif")


def test_a_folder_is_read_with_its_folders_by_name(root: Path) -> None:
    (root / "set/in").mkdir(parents=True)
    Image.fromarray(GREY).save(root / "set/b.png")
    Image.fromarray(GREY).save(root / "set/a.bmp")
    Image.fromarray(GREY).save(root / "set/in/c.gif")
    (root / "set/README.md").write_text("mine")
    assert [one.name for one in load_images("set")] == ["a.bmp", "b.png", "in/c.gif"]


def test_files_that_are_no_pictures_are_named(root: Path) -> None:
    (root / "set").mkdir()
    Image.fromarray(RGB).save(root / "set/a.png")
    (root / "set/notes.txt").write_text("not a picture")
    with pytest.raises(HdicaError, match=r"notes\.txt cannot be read as a picture"):
        load_images("set")
    (root / "set/notes.txt").unlink()
    cut = (root / "set/a.png").read_bytes()
    (root / "set/a.png").write_bytes(cut[: len(cut) // 2])
    with pytest.raises(HdicaError, match=r"a\.png cannot be read as a picture") as caught:
        load_images("set")
    assert "\n" not in str(caught.value)


def test_a_program_is_no_picture_whatever_its_name(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from PIL import EpsImagePlugin

    def start(*args: object, **kwargs: object) -> None:
        raise AssertionError("Ghostscript would have been started")

    monkeypatch.setattr(EpsImagePlugin, "Ghostscript", start)
    begin = "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 64 64\n%%EndComments\n"
    (root / "a.png").write_text(begin)
    with pytest.raises(HdicaError, match=r"a\.png cannot be read as a picture"):
        load_images("a.png")


STUDY = """
study: patches
system: PatchICA
parameters: {images: set, width: 2, samples: 50, test: 50}
times: [0]
methods:
  held_out: {seeds: 1}
"""


@pytest.mark.parametrize("damage", ["text", "cut", "empty", "small"])
def test_a_study_of_pictures_that_cannot_be_read_is_not_valid(
    root: Path, damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from hdica.cli import call

    (root / "set").mkdir()
    Image.fromarray(RGB).save(root / "set/a.png")
    (root / "patches.yaml").write_text(STUDY)
    assert call(["validate", str(root / "patches.yaml")]) == 0
    whole = (root / "set/a.png").read_bytes()
    broken = {"text": b"not a picture", "cut": whole[: len(whole) // 2], "empty": b""}
    if damage == "small":
        Image.fromarray(RGB[:1]).save(root / "set/b.png")
    else:
        (root / "set/b.png").write_bytes(broken[damage])
    capsys.readouterr()
    assert call(["validate", str(root / "patches.yaml")]) == 2
    message = capsys.readouterr().err
    assert "b.png" in message
    assert message.count("\n") == 1


def test_a_picture_of_many_scans_is_refused_before_it_takes_minutes(root: Path) -> None:
    path = root / "a.jpg"
    Image.fromarray(GREY).save(path, progressive=True)
    whole = path.read_bytes()
    assert load_images("a.jpg")
    path.write_bytes(whole[:-2] + whole[whole.rindex(b"\xff\xda") : -2] * 100 + whole[-2:])
    with pytest.raises(HdicaError, match=r"a.jpg cannot be read as a picture \(it has 10\d scans"):
        load_images("a.jpg")


def tiff(body: bytes, layout: dict[int, int], coding: int) -> bytes:
    """A grey picture whose one strip or tile is a body in some coding, by its tags."""
    offset, count = (324, 325) if 322 in layout else (273, 279)
    tags = {256: WIDE, 257: HIGH, 258: 8, 259: coding, 262: 1, offset: 8, 277: 1}
    tags |= layout | {count: len(body)}
    listed = b"".join(struct.pack("<HHII", tag, 4, 1, tags[tag]) for tag in sorted(tags))
    body += bytes(len(body) % 2)
    head = b"II*\0" + struct.pack("<I", 8 + len(body))
    return head + body + struct.pack("<H", len(tags)) + listed + bytes(4)


@pytest.mark.parametrize("kind", ["MPO", "TIFF"])
def test_scans_are_counted_in_whatever_holds_a_jpeg(root: Path, kind: str) -> None:
    file = io.BytesIO()
    form = {"MPO": {"save_all": True, "append_images": [Image.fromarray(GREY)]}, "TIFF": {}}[kind]
    name = {"MPO": "MPO", "TIFF": "JPEG"}[kind]
    Image.fromarray(GREY).save(file, name, progressive=True, **form)
    whole = file.getvalue()
    last = whole[whole.rindex(b"\xff\xda") : -2]
    scans = whole[:-2] + last * 200 + whole[-2:]
    (root / "a.png").write_bytes(scans if kind == "MPO" else tiff(scans, {278: HIGH}, 7))
    with pytest.raises(HdicaError, match=r"a.png cannot be read as a picture"):
        load_images("a.png")


def test_pictures_that_expand_far_beyond_their_files_are_refused(root: Path) -> None:
    (root / "set").mkdir()
    for name in "ab":
        Image.new("1", (4096, 2304)).save(root / f"set/{name}.png")
    with pytest.raises(HdicaError, match="pictures of more than 16777216 pixels in"):
        load_images("set")
    file = io.BytesIO()
    Image.new("1", (4096, 4097)).save(file, "PNG")
    # What a text of a PNG holds counts for its bytes, but not at the ratio of large photographs.
    (root / "a.png").write_bytes(file.getvalue() + bytes(2 * 10**6))
    with pytest.raises(HdicaError, match="4096 x 4097 pixels in"):
        load_images("a.png")


def test_a_small_picture_of_a_large_tile_is_refused(root: Path) -> None:
    (root / "a.tif").write_bytes(tiff(b"", {322: 32768, 323: 32768}, 8))
    with pytest.raises(HdicaError, match="32768 x 32768 pixels in"):
        load_images("a.tif")


def test_a_colour_that_is_none_is_refused(root: Path) -> None:
    with pytest.raises(HdicaError, match="colour = 'gray' is not allowed"):
        load_images({"bundled": "china"}, "gray")  # type: ignore[arg-type]


def test_data_that_changed_since_it_was_named_is_refused(root: Path) -> None:
    from hdica.inputs.data_input import data_input

    Image.fromarray(GREY).save(root / "a.png")
    form = data_input("a.png")
    Image.fromarray(GREY[::-1].copy()).save(root / "a.png")
    with pytest.raises(HdicaError, match="it is other data"):
        load_images(form)


def test_photographs_are_loaded_in_the_order_asked_for() -> None:
    first, second = load_images({"bundled": ["flower", "china"]})
    assert (first.name, second.name) == ("flower", "china")
    assert first.pixels.shape == (427, 640)
    assert np.allclose(second.pixels, bundled_pixels("china") @ LUMA / 255, atol=1e-14)
