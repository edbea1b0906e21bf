"""Pictures in rows, one panel for each output and point of the grid."""

from __future__ import annotations

from html import escape

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.pictures.compute import PLACE
from hdica.analysis.pictures.record import BY_PIXEL, CHANNEL
from hdica.analysis.show.choose import Point, points, said, selected, shown
from hdica.analysis.show.panel import Panel, Pictures
from hdica.analysis.show.words import EMPTY, Text, method_name, number, symbol, titled, words

Array = NDArray[np.float64]


def pictures(data: xr.Dataset) -> list[Panel]:
    """One panel for each output at each point of the grid, at most six points."""
    grid = grid_of(data)
    known = [cell for cell in points(data, grid) if _seen(data, cell)]
    chosen = [cell for cell in shown(data, grid) if cell in known]
    out: list[Panel] = []
    for name in data["shown"].values.tolist():
        for cell in chosen:
            panel = _panel(data.sel(shown=name), cell, len(out) + 1)
            out += [panel] if panel is not None else []
    return out


def grid_of(data: xr.Dataset) -> list[str]:
    """Swept parameters on which the pictures depend."""
    return [
        str(d) for d in data["picture"].dims if d not in ("shown", PLACE, *BY_PIXEL, CHANNEL)
    ]  # fmt: skip


def _seen(data: xr.Dataset, cell: Point) -> bool:
    return bool(selected(data["picture"], cell).notnull().any())


def _panel(data: xr.Dataset, cell: Point, key: int) -> Panel | None:
    """The pictures of one output at one point; None if there are none."""
    here = xr.Dataset(
        {k: selected(data[k], cell) for k in ("picture", "number", "value") if k in data}
    )
    colour = [CHANNEL] if CHANNEL in here["picture"].dims else []
    pixels = here["picture"].transpose(PLACE, *BY_PIXEL, *colour).values
    keep = np.isfinite(pixels).any(axis=tuple(range(1, pixels.ndim)))
    if not keep.any():
        return None
    here, grey = here.isel({PLACE: keep}), _brightness(pixels[keep], data.attrs["scale"])
    return Panel(
        f"pictures_{key}",
        titled(words(_capital(str(data["meaning"].item()))), cell),
        EMPTY,
        EMPTY,
        (Pictures(_trimmed(grey), _names(here, str(data.attrs["variable"]))),),
        caption=_caption(data, here, grid_of(data)),
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _brightness(pixels: Array, scale: str) -> Array:
    """Grey 1/2 at zero, black and white at minus and plus the largest size of a pixel."""
    size = np.nanmax(np.abs(pixels), axis=tuple(range(1, pixels.ndim)), keepdims=True)
    size = size if scale == "each" else np.full_like(size, size.max())
    return 0.5 + 0.5 * pixels / np.where(size > 0, size, 1.0)


def _trimmed(pixels: Array) -> Array:
    """Without rows, columns and channels that no picture has; one channel alone is grey."""
    known = np.isfinite(pixels)
    for axis in range(1, pixels.ndim):
        others = tuple(k for k in range(pixels.ndim) if k != axis)
        pixels = np.compress(known.any(axis=others), pixels, axis=axis)
        known = np.isfinite(pixels)
    return pixels[..., 0] if pixels.ndim == 4 and pixels.shape[3] == 1 else pixels


def _names(here: xr.Dataset, variable: str) -> tuple[Text, ...]:
    """The component of each picture, and the number by which they are sorted."""
    out = []
    for k in range(here.sizes[PLACE]):
        one = here.isel({PLACE: k})
        text = words(f"component {int(one['number'])}")
        if _sorted(one):
            text = (
                text + words(", ") + symbol(variable) + words(f" = {number(one['value'].item())}")
            )
        out.append(text)
    return tuple(out)


def _sorted(here: xr.Dataset) -> bool:
    """Whether there is a number by which these pictures are sorted."""
    return "value" in here and bool(here["value"].notnull().any())


def _caption(data: xr.Dataset, here: xr.Dataset, grid: list[str]) -> str:
    drawn, total = here.sizes[PLACE], int(data.attrs["components"])
    scale = "each about its" if data.attrs["scale"] == "each" else "all on one scale about their"
    method = method_name(data.attrs["method"]).html
    parts = [f"First seed ({method}); dark to light, {scale} zero."]
    if _sorted(here):
        parts.append(f"Sorted by {escape(str(data.attrs['by']))}, the least first.")
    if total > drawn:
        parts.append(f"{drawn} of {total} are drawn.")
    return " ".join([*parts, *said(data, grid, len(points(data, grid)))])
