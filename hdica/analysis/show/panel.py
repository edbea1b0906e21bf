"""What a figure shows, independent of how it is drawn.

One builder describes each figure once; :mod:`hdica.report.interactive` and
:mod:`hdica.report.printed` draw the same description, so the page and the paper agree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.analysis.show.words import Text

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """A curve, optionally with a band.

    Parameters
    ----------
    x, y
        Shape (points,); NaN breaks the line.
    label
        Name, in the legend and on hover; equal names are switched together.
    listed
        Whether the legend has an entry.
    color
        Hex colour, or ``"ink"`` for theory: black on white, light on dark.
    dash
        ``"solid"``, ``"dash"`` or ``"dot"``.
    low, high
        Ends of the band, shape (points,).
    bold
        Whether the line stands out.
    cased
        Whether it has a white edge, to be seen on every colour of a heat map.
    """

    x: Array
    y: Array
    label: Text
    color: str
    dash: str = "solid"
    low: Array | None = None
    high: Array | None = None
    bold: bool = False
    cased: bool = False
    listed: bool = True


@dataclass(frozen=True)
class Points:
    """Markers with error bars.

    Parameters
    ----------
    x, y
        Shape (points,).
    low, high
        Ends of the error bars, shape (points,); None for none.
    symbol
        ``"circle"``, ``"square"``, ``"diamond"`` or ``"triangle"``.
    filled
        Which markers are filled, shape (points,); None for all.
    joined
        Whether a thin line joins them.
    listed
        Whether the legend has an entry.
    """

    x: Array
    y: Array
    label: Text
    color: str
    low: Array | None = None
    high: Array | None = None
    symbol: str = "circle"
    filled: NDArray[np.bool_] | None = None
    joined: bool = False
    listed: bool = True


@dataclass(frozen=True)
class Heat:
    """A heat map over a rectangular grid.

    Parameters
    ----------
    x, y
        Coordinates of the cells' centres.
    z
        Shape (y, x).
    low, high
        Ends of the colour scale.
    """

    x: Array
    y: Array
    z: Array
    label: Text
    scale: str = "viridis"
    low: float = 0.0
    high: float = 1.0


@dataclass(frozen=True)
class Vertical:
    """A vertical line at ``x`` with a label above the axes.

    Parameters
    ----------
    x
        In data units.
    label
        Text.
    color
        Of a thin dotted line and its label; empty for a dashed black line with a white edge, to be
        seen on every colour of a heat map.
    anchor
        Which end of the label is at ``x``: ``"left"``, ``"center"`` or ``"right"``.
    row
        Rows of labels between this one and the axes.
    """

    x: float
    label: Text
    color: str = ""
    anchor: str = "center"
    row: int = 0


@dataclass(frozen=True)
class Panel:
    """One set of axes.

    Parameters
    ----------
    key
        File stem of the printed twin and anchor on the page.
    title, x_label, y_label
        Text.
    caption
        HTML; for the page only.
    items
        What is drawn, in this order.
    log_x, log_y
        Logarithmic axes.
    x_range, y_range
        Limits, in data units; None for automatic.
    wide
        Whether it takes the page's whole width.
    columns
        How many panels of its section stand side by side on a wide page; 0 for as many as fit.
    """

    key: str
    title: Text
    x_label: Text
    y_label: Text
    items: tuple[Line | Points | Heat | Vertical, ...]
    caption: str = ""
    log_x: bool = False
    log_y: bool = False
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    wide: bool = False
    columns: int = 0
