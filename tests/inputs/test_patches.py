"""Random patches: where they come from, in which order, and the same in blocks and on disk."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from hdica.errors import HdicaError
from hdica.inputs.images import Picture, kept_blocks, patch_blocks, random_patches
from hdica.process.private import scratch

WIDTH = 3


def _coded(name: str, high: int, wide: int, begin: float, channels: int = 0) -> Picture:
    """A picture whose pixels tell where they are: begin + row + column/1000 (+ channel/10^6)."""
    pixels = begin + np.arange(high)[:, None] + np.arange(wide) / 1000
    if channels:
        pixels = pixels[..., None] + np.arange(channels) / 1e6
    return Picture(name, pixels)


PICTURES = [_coded("small", 4, 6, 0.0), _coded("large", 9, 5, 100.0)]
COUNT = 6000


def _rng() -> np.random.Generator:
    return np.random.default_rng(5)


def _corners(patches: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Picture, row and column of each patch, read off its first pixel."""
    first = patches[:, 0]
    which = (first >= 100).astype(int)
    inside = first - 100 * which
    row = np.floor(inside + 1e-6)
    return which, row.astype(int), np.rint((inside - row) * 1000).astype(int)


def test_a_patch_is_what_lies_at_its_place_rows_first() -> None:
    patches = random_patches(PICTURES, WIDTH, 200, _rng())
    for patch, which, row, column in zip(patches, *_corners(patches), strict=True):
        part = PICTURES[which].pixels[row : row + WIDTH, column : column + WIDTH]
        assert np.array_equal(patch, part.ravel())


def test_channels_of_a_pixel_lie_side_by_side() -> None:
    one = [_coded("one", 5, 5, 0.0, channels=3)]
    patches = random_patches(one, 2, 50, _rng())
    assert patches.shape == (50, 12)
    assert np.allclose(np.diff(patches[:, :3], axis=1), 1e-6, atol=1e-12)


def test_pictures_are_drawn_uniformly_and_then_places() -> None:
    patches = random_patches(PICTURES, WIDTH, COUNT, _rng())
    which, row, column = _corners(patches)
    counts = np.bincount(which)
    # Not by size: the second has more places.
    assert stats.chisquare(counts).pvalue > 1e-3
    for k, picture in enumerate(PICTURES):
        rows, columns = (side - WIDTH + 1 for side in picture.pixels.shape)
        table = np.zeros((rows, columns))
        np.add.at(table, (row[which == k], column[which == k]), 1)
        assert stats.chisquare(table.ravel()).pvalue > 1e-3


@pytest.mark.parametrize("rows", [1, 7, 100, 10**6])
def test_blocks_hold_the_same_patches_whatever_their_size(rows: int) -> None:
    whole = random_patches(PICTURES, WIDTH, 300, _rng())
    blocks = list(patch_blocks(PICTURES, WIDTH, 300, _rng(), rows))
    assert all(len(block) == min(rows, 300) for block in blocks[:-1])
    assert np.array_equal(np.concatenate(blocks), whole)


def test_the_first_of_many_are_those_of_few() -> None:
    many = random_patches(PICTURES, WIDTH, 500, _rng())
    assert np.array_equal(random_patches(PICTURES, WIDTH, 20, _rng()), many[:20])
    assert random_patches(PICTURES, WIDTH, 0, _rng()).shape == (0, WIDTH**2)


def test_a_patch_as_large_as_the_picture_is_the_picture() -> None:
    one = [Picture("one", np.arange(9.0).reshape(3, 3))]
    assert np.array_equal(random_patches(one, 3, 4, _rng()), np.tile(np.arange(9.0), (4, 1)))


@pytest.mark.parametrize("width", [0, -1, 5, True])
def test_a_patch_that_fits_nowhere_is_refused(width: int) -> None:
    with pytest.raises(HdicaError, match=r"width = .* \(1 \.\.\. 4: small has 4 x 6 pixels\)"):
        patch_blocks(PICTURES, width, 3, _rng())


def test_what_cannot_be_drawn_from_is_refused() -> None:
    with pytest.raises(HdicaError, match="at least one is needed"):
        random_patches([], 3, 3, _rng())
    mixed = [PICTURES[0], _coded("coloured", 5, 5, 0.0, channels=3)]
    with pytest.raises(HdicaError, match="grey and coloured"):
        random_patches(mixed, 3, 3, _rng())
    with pytest.raises(HdicaError, match="count >= 0"):
        random_patches(PICTURES, 3, -1, _rng())


def test_patches_on_disk_are_the_same_and_go_with_the_body() -> None:
    whole = random_patches(PICTURES, WIDTH, 250, _rng())
    with kept_blocks(patch_blocks(PICTURES, WIDTH, 250, _rng(), 64), 250, WIDTH**2) as kept:
        assert [len(block) for block in kept] == [64, 64, 64, 58]
        assert list(scratch().glob("patches-*"))
        assert np.array_equal(np.concatenate(kept), whole)
    assert not list(scratch().glob("patches-*"))


def test_blocks_of_other_size_than_promised_are_no_array() -> None:
    blocks = [np.zeros((4, 2)), np.zeros((4, 2))]
    with (
        pytest.raises(ValueError, match="8 rows were given, not 9"),
        kept_blocks(blocks, 9, 2),
    ):
        raise AssertionError
    assert not list(scratch().glob("patches-*"))
