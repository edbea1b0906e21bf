"""Results over the numbers of a paper: a dot with its bar for each, and a mark for the paper's."""

from __future__ import annotations

import numpy as np
import xarray as xr
from markupsafe import escape

from hdica.analysis.printed.compute import what_of
from hdica.show.choose import evenly
from hdica.show.marks import ERRORS, GREY
from hdica.show.panel import Panel, Points
from hdica.show.typeset import typeset
from hdica.show.words import OKABE_ITO, words

LEAST, MOST = 3, 40
"""Of fewer numbers there is no figure, and at most so many are drawn."""
NAMED = 8
"""So many numbers are named below the figure."""


def printed(data: xr.Dataset) -> list[Panel]:
    """One panel of ratios, ours to the paper's, and none where too few can be divided by."""
    can = np.isfinite(data["ours"].values) & (data["printed"].values != 0)
    kept = evenly(np.flatnonzero(can).tolist(), MOST)
    if len(kept) < LEAST:
        return []
    here = data.isel(number=kept)
    return [
        Panel(
            "printed",
            words("Beside known numbers"),
            words("numbers, named below"),
            words("ours / theirs"),
            _marks(here),
            _caption(here, len(data["number"])),
            x_range=(0.4, len(kept) + 0.6),
            wide=True,
        )
    ]


def _marks(here: xr.Dataset) -> tuple[Points, ...]:
    """Theirs, theirs corrected where that is known, and ours, in units of what is printed."""
    at, unit = np.arange(1.0, here.sizes["number"] + 1), here["printed"].values
    out = []
    for label, name, errors, look in (
        ("theirs", "printed", ("printed_error", "rounding"), (GREY, "square")),
        ("corrected", "corrected", None, (OKABE_ITO[2], "diamond")),
        ("ours", "ours", ("se", "own_error"), (OKABE_ITO[0], "circle")),
    ):
        y, (color, mark) = here[name].values / unit, look
        some = np.isfinite(y)
        if errors is None:
            bars = None, None
        else:
            sampled, exact = (here[error] for error in errors)
            half = np.nan_to_num(np.abs((ERRORS * sampled + exact).values / unit))[some]
            bars = y[some] - half, y[some] + half
        if some.any():
            out.append(Points(at[some], y[some], words(label), color, *bars, mark))
    return tuple(out)


def _caption(here: xr.Dataset, total: int) -> str:
    drawn = here.sizes["number"]
    every = [f"{k + 1} {typeset(what_of(here.isel(number=k)))}" for k in range(drawn)]
    names = ", ".join(every) if drawn <= NAMED else "as they are numbered in the table"
    left = f" {total - drawn} of {total} are not drawn." if drawn < total else ""
    return (
        f"Dots: ours, ± 2 standard errors over seeds and the method's own error; squares: those of "
        f"{escape(here.attrs['paper'])}, with its error and rounding. From the left: "
        f"{escape(names)}.{left}"
    )
