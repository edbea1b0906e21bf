"""Colours, markers and dashes that tell curves apart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from hdica.analysis.show.panel import Item, Line, Points, Vertical
from hdica.analysis.show.words import OKABE_ITO

SYMBOLS = ("circle", "square", "diamond", "triangle")
DASHES = ("solid", "dash", "dot")
GREY = "#888888"


def color_of(index: int, count: int) -> str:
    """A categorical colour for few, a place on a sequential scale for many."""
    if count <= len(OKABE_ITO):
        return OKABE_ITO[index]
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return str(to_hex(colormaps["viridis"](0.9 * index / (count - 1))))


def bands(runs: bool, theory: bool) -> str:
    """What is said below curves of means and of theory, if there are such."""
    if not runs:
        return "Lines: theory."
    return "Bands: ± 2 standard errors of the mean over seeds" + (
        "; lines without a band: theory." if theory else "."
    )


def captioned(items: Iterable[Item], sentences: Mapping[str, str]) -> list[str]:
    """Sentences of a caption by the mark that each is about: those whose mark is drawn.

    Marks are kinds of lines and of points, ``"points"``, ``"band"`` and ``"upright"``; what is NaN
    alone is not drawn.
    """
    drawn: set[str] = set()
    for item in items:
        if isinstance(item, Vertical):
            drawn.add("upright")
        elif isinstance(item, Line) and np.isfinite(item.y).any():
            drawn |= {item.dash} if item.low is None else {item.dash, "band"}
        elif isinstance(item, Points) and np.isfinite(item.y).any():
            drawn |= {"points", item.symbol}
    return [text for mark, text in sentences.items() if mark in drawn and text]
