"""Colours, markers and dashes that tell curves apart."""

from __future__ import annotations

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
