"""Stores of small pictures: waves of known frequencies, in grey and in colour, over two widths."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from tests.analysis import escapes, toy

WIDTHS, SEEDS, COUNT = [4, 6], 3, 5
PIXEL = ("component", "row", "column")
SETTINGS = {
    "method": "bank", "show": ["waves", "tinted"], "by": "residual", "against": "chance",
}  # fmt: skip


def wave(width: int, component: int, seed: int) -> np.ndarray:
    """One picture, shape (width, width)."""
    row, column = np.mgrid[:width, :width]
    return np.asarray((1 + seed + component) * np.cos(component * row + 0.3 * column))


def residual(component: int, seed: int) -> float:
    """The number by which pictures are sorted: not in the order of the components."""
    return ((2 * component) % COUNT + 1) / 10 + seed / 100


def bank(undone: bool = False) -> xr.Dataset:
    """Pictures over width, seed and component; the first seed may not be done."""
    most = max(WIDTHS)
    shape = (len(WIDTHS), SEEDS, COUNT)
    waves, numbers = np.full((*shape, most, most), np.nan), np.full(shape, np.nan)
    for i, j, k in np.ndindex(shape):
        waves[i, j, k, : WIDTHS[i], : WIDTHS[i]] = wave(WIDTHS[i], k, j)
        numbers[i, j, k] = residual(k, j)
    tints = np.array([1.0, 0.5, -0.5])
    data = xr.Dataset(
        {
            "waves": (("breadth", "seed", *PIXEL), waves),
            "tinted": (("breadth", "seed", *PIXEL, "channel"), waves[..., None] * tints),
            "mean": (("breadth", "seed", "row", "column"), waves.mean(axis=2)),
            "residual": (("breadth", "seed", "component"), numbers),
            "chance": (("breadth", "seed", "component"), numbers + 0.5),
        },
        {"breadth": WIDTHS, "seed": np.arange(SEEDS), "component": np.arange(COUNT)},
    )
    data["waves"].attrs["long_name"] = "waves & more"
    data["residual"].attrs["long_name"] = "relative residual"
    found = escapes.group(data, "bank", {"component", "row", "column", "channel"})
    if undone:
        found["status"][{"seed": 0}] = 0
    return found


def store(undone: bool = False, **settings: Any) -> xr.DataTree:
    """A store with pictures."""
    return toy.tree({"bank": bank(undone)}, {"pictures": {**SETTINGS, **settings}})
