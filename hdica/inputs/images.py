"""Pictures, and square patches drawn from them, in memory or in a private file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError, suggestion
from hdica.ingredients.plain import Array
from hdica.inputs.data_input import (
    bundled_names,
    bundled_pixels,
    data_input,
    decoded,
    most_pixels,
)
from hdica.inputs.place import files_below, place
from hdica.process.private import private_folder, scratch

Colour = Literal["grey", "rgb"]
LUMA = (0.299, 0.587, 0.114)  # weights of red, green and blue in grey (ITU-R BT.601)
DECODED = 4  # sets of pictures that stay in memory
ROWS = 4096  # patches of a block
PREFIX = "patches-"  # begin of the names of folders of patches that do not fit in memory


class Picture(NamedTuple):
    """A picture: its name, and its pixels in [0, 1], (H, W) grey or (H, W, 3) red, green, blue."""

    name: str
    pixels: Array


def load_images(data: str | Mapping[str, Any], colour: Colour = "grey") -> list[Picture]:
    """The pictures of some data, in the order of their names (bundled ones in their own order).

    The data is what :func:`hdica.inputs.data_input.data_input` takes, in normal form or not: one
    file, a folder with its folders, or photographs that come with installed packages. ``"grey"`` is
    .299 R + .587 G + .114 B (ITU-R BT.601), ``"rgb"`` three channels, equal in a grey picture.
    Pixels are float64 in [0, 1] and read-only: 8 bit over 255, 16 bit over 65535.

    Refused if there is no such data, it has another content than its digest says, or a file is no
    picture.
    """
    if colour not in ("grey", "rgb"):
        near = suggestion(colour, ("grey", "rgb"))
        raise HdicaError(f"colour = {colour!r} is not allowed ({near})", ["colour"])
    form = data_input(data)
    names = bundled_names(form)
    if names:
        return [Picture(name, _coloured(bundled_pixels(name), colour)) for name in names]
    path, pictures = place(form["path"]), []
    files = files_below(path) if path.is_dir() else {path.name: path}
    stored = sum(file.stat().st_size for file in files.values())
    room = most_pixels(stored)
    for name, file in files.items():
        pixels = decoded(file)
        room -= pixels.shape[0] * pixels.shape[1]
        if room < 0:
            raise HdicaError(
                f"path = {form['path']!r} cannot be read (pictures of more than "
                f"{most_pixels(stored)} pixels in {stored} bytes)",
                ["path"],
            )
        pictures.append(Picture(name, _coloured(pixels, colour)))
    data_input(form)  # once more: what changed while it was decoded is not what the digest says
    return pictures


def pictures(data: str | Mapping[str, Any], colour: Colour) -> tuple[Picture, ...]:
    """:func:`load_images`, decoded once for all points of a process if it is of normal form."""
    form = data_input(data) if isinstance(data, str) else data
    return _decoded_once(json.dumps(form, sort_keys=True), colour)


@lru_cache(maxsize=DECODED)
def _decoded_once(form: str, colour: Colour) -> tuple[Picture, ...]:
    # The form holds the digest of the content: other pixels are never taken for these.
    return tuple(load_images(json.loads(form), colour))


def _coloured(pixels: NDArray[Any], colour: Colour) -> Array:
    """Pixels in [0, 1], grey or with three channels."""
    if pixels.ndim == 2:
        made = _unit(pixels)
        made = made if colour == "grey" else np.repeat(made[:, :, np.newaxis], 3, axis=2)
    elif colour == "rgb":
        made = _unit(pixels)
    else:
        red, green, blue = (weight * pixels[..., k] for k, weight in enumerate(LUMA))
        made = _unit(red + green + blue, pixels.dtype)
    made.flags.writeable = False
    return made


def _unit(pixels: NDArray[Any], kind: Any = None) -> Array:
    """Numbers over the largest that their kind of pixel has."""
    dtype = np.dtype(kind or pixels.dtype)
    most = np.iinfo(dtype).max if dtype.kind == "u" else 1
    return pixels.astype(np.float64) / most


def check_width(images: Sequence[Picture], width: int) -> None:
    """Refuse patches that do not fit into every picture."""
    if not images:
        raise HdicaError("images: there is none (at least one is needed)", ["images"])
    small = min(images, key=lambda image: min(image.pixels.shape[:2]))
    most = min(small.pixels.shape[:2])
    if isinstance(width, bool) or not 1 <= width <= most:
        high, wide = small.pixels.shape[:2]
        raise HdicaError(
            f"width = {width} is not allowed (1 ... {most}: {small.name} has {high} x {wide} "
            "pixels)",
            ["width"],
        )


def patch_blocks(
    images: Sequence[Picture], width: int, count: int, rng: np.random.Generator, rows: int = ROWS
) -> Iterator[Array]:
    """Patches of :func:`random_patches` in blocks of at most ``rows`` rows.

    Each patch takes three uniform numbers of the stream, for picture, row and column: the patches
    are the same whatever the size of the blocks, and the first of many are those of few.
    """
    check_width(images, width)
    if count < 0 or rows < 1:
        raise HdicaError(f"count, rows = {count}, {rows} is not allowed (count >= 0, rows >= 1)")
    channels = {image.pixels.shape[2:] for image in images}
    if len(channels) > 1:
        raise HdicaError("images: grey and coloured ones are not allowed together", ["images"])
    # Every patch of a picture, (rows, columns, width, width[, channels]), as a view.
    windows = []
    for pixels in (image.pixels for image in images):
        view = np.lib.stride_tricks.sliding_window_view(pixels, (width, width), axis=(0, 1))
        windows.append(np.moveaxis(view, 2, -1) if pixels.ndim == 3 else view)
    shapes = np.array([view.shape[:2] for view in windows])
    entries = int(np.prod(windows[0].shape[2:]))

    def blocks() -> Iterator[Array]:
        for begin in range(0, count, rows):
            drawn = rng.random((min(rows, count - begin), 3))
            which = (drawn[:, 0] * len(windows)).astype(np.intp)
            at = (drawn[:, 1:] * shapes[which]).astype(np.intp)
            block = np.empty((len(drawn), entries))
            for k in np.unique(which):
                mine = which == k
                row, column = at[mine].T
                block[mine] = windows[k][row, column].reshape(len(row), entries)
            yield block

    return blocks()


@contextmanager
def kept_blocks(blocks: Iterable[Array], count: int, entries: int) -> Iterator[list[Array]]:
    """Blocks of patches in a private file, mapped into memory while the body runs.

    The blocks have ``entries`` columns and ``count`` rows in all (else a ValueError), such as
    :func:`patch_blocks` makes them; the same ones are yielded, on disk.
    """
    with private_folder(scratch(), PREFIX) as folder:
        path, ends = folder / "patches", [0]
        with open(path, "wb") as file:
            for block in blocks:
                np.asarray(block, dtype=float).tofile(file)
                ends.append(ends[-1] + len(block))
        if ends[-1] != count:
            raise ValueError(f"{ends[-1]} rows were given, not {count}")
        rows = np.memmap(path, dtype=float, mode="r", shape=(count, entries))
        yield [rows[first:last] for first, last in pairwise(ends)]


def random_patches(
    images: Sequence[Picture], width: int, count: int, rng: np.random.Generator
) -> Array:
    """Square patches: a picture uniformly at random, then a position in it uniformly at random.

    The pictures of :func:`load_images` are all grey or all coloured, the patches ``count`` of
    ``width`` pixels a side, shape (count, D) with D = width^2 (times 3), in [0, 1]: rows of the
    patch one after the other, channels of a pixel side by side. Refused if a picture is smaller.
    """
    blocks = list(patch_blocks(images, width, count, rng))
    if blocks:
        return np.concatenate(blocks)
    return np.empty((0, width * width * int(np.prod(images[0].pixels.shape[2:]))))
