"""Results over the numbers of a paper: a dot with its bar for each, and a mark for the paper's."""

from __future__ import annotations

import numpy as np
import xarray as xr
from markupsafe import escape

from hdica.analysis.printed.say import what_of
from hdica.analysis.show.choose import evenly
from hdica.analysis.show.marks import GREY
from hdica.analysis.show.panel import Panel, Points
from hdica.analysis.show.words import OKABE_ITO, Text, words

LEAST, MOST = 3, 40
"""Fewer numbers are in the table alone, and at most so many are drawn."""
NAMED = 8
"""So many numbers are named below the figure."""
BARS = 2.0
"""Standard errors of the bars."""


def printed(data: xr.Dataset) -> list[Panel]:
    """One panel of ratios, ours to the paper's, and none where too few can be divided by."""
    can = np.isfinite(data["ours"].values) & (data["printed"].values != 0)
    kept = evenly(np.flatnonzero(can).tolist(), MOST)
    if len(kept) < LEAST:
        return []
    here = data.isel(number=kept)
    at, unit = np.arange(1.0, len(kept) + 1), here["printed"].values
    items = [_theirs(here, at, unit), *_corrected(here, at, unit), _ours(here, at, unit)]
    return [
        Panel(
            "printed",
            words("Beside known numbers"),
            words("numbers, named below"),
            words("ours / theirs"),
            tuple(items),
            caption=_caption(here, len(data["number"])),
            x_range=(0.4, len(kept) + 0.6),
            wide=True,
        )
    ]


def _bars(at: np.ndarray, y: np.ndarray, error: np.ndarray, label: Text, color: str) -> Points:
    half = np.nan_to_num(error)
    return Points(at, y, label, color, y - half, y + half)


def _ours(here: xr.Dataset, at: np.ndarray, unit: np.ndarray) -> Points:
    error = np.abs((BARS * here["se"] + here["own_error"]).values / unit)
    return _bars(at, here["ours"].values / unit, error, words("ours"), OKABE_ITO[0])


def _theirs(here: xr.Dataset, at: np.ndarray, unit: np.ndarray) -> Points:
    half = np.abs((BARS * here["printed_error"] + here["rounding"]).values / unit)
    ones = np.ones(at.size)
    return Points(at, ones, words("theirs"), GREY, ones - half, ones + half, "square")


def _corrected(here: xr.Dataset, at: np.ndarray, unit: np.ndarray) -> list[Points]:
    value = here["corrected"].values / unit
    some = np.isfinite(value)
    if not some.any():
        return []
    label = words("corrected")
    return [Points(at[some], value[some], label, OKABE_ITO[2], symbol="diamond")]


def _caption(here: xr.Dataset, total: int) -> str:
    told = ", ".join(f"{k} {what_of(here, k - 1)}" for k in range(1, here.sizes["number"] + 1))
    names = told if here.sizes["number"] <= NAMED else "as they are numbered in the table"
    drawn = here.sizes["number"]
    left = f" {total - drawn} of {total} are in the table alone." if drawn < total else ""
    return (
        f"Dots: ours, ± 2 standard errors over seeds and the method's own error; squares: those of "
        f"{escape(here.attrs['paper'])}, with its error and rounding. From the left: {names}.{left}"
    )
