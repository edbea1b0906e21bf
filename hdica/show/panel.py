"""What a figure shows, independent of how it is drawn.

One builder describes each figure once; :mod:`hdica.report.interactive` and
:mod:`hdica.report.printed` draw the same description, so the page and the paper agree.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from hdica.show.words import EMPTY, Text, number

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Line:
    """A curve, optionally with a band; x, y and the ends of the band have the shape (points,).

    NaN breaks the line. ``label`` is its name on hover and, if it is ``listed``, in the legend;
    equal names are switched together. ``color`` is a hex colour, or ``"ink"`` for theory: black on
    white, light on dark. ``dash`` is ``"solid"``, ``"dash"``, ``"dot"`` or ``"dashdot"``. A
    ``bold`` line stands out; a ``cased`` one has a white edge, to be seen on every colour of a heat
    map.
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
    """Markers with error bars; what is not described here is as of :class:`Line`.

    The bars end at ``low`` and ``high``, shape (points,). ``symbol`` is ``"circle"``, ``"square"``,
    ``"diamond"`` or ``"triangle"``; ``filled``, shape (points,), says which are filled, None for
    all, and ``joined`` whether a thin line joins them.
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
class Cells:
    """Which grid points the cells of a heat map are, for a page in which points are chosen.

    On its sides are swept parameters, or ``n``, of the names ``x`` and ``y`` with their values, of
    shape (columns,) and (rows,); ``at`` has the values of others by their names.
    """

    x: str
    y: str
    x_values: Array
    y_values: Array
    at: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class Heat:
    """A heat map over a rectangular grid: ``z``, of shape (y, x), at the cells' centres x and y.

    ``low`` and ``high`` are the ends of the colour scale; ``written`` is what stands in the cells,
    rows as of ``z``; ``cells`` says which grid points they are, None if they are none.
    """

    x: Array
    y: Array
    z: Array
    label: Text
    scale: str = "viridis"
    low: float = 0.0
    high: float = 1.0
    written: tuple[tuple[str, ...], ...] = ()
    cells: Cells | None = None


def edges(centres: Array, log: bool) -> Array:
    """Edges of the cells of a heat map, one more than centres: in the middle, on a log axis too."""
    at = np.log(centres) if log else np.asarray(centres, dtype=float)
    half = np.diff(at) / 2 if at.size > 1 else np.array([0.5])
    ends = np.concatenate([[at[0] - half[0]], at[:-1] + half, [at[-1] + half[-1]]])
    return np.exp(ends) if log else ends


@dataclass(frozen=True)
class Surface:
    """A surface in space, coloured; a panel with one has three axes and is turned by the mouse.

    The points of a grid on it lie at ``x``, ``y`` and ``z`` and have the values ``color``, all of
    shape (rows, columns); ``label`` is that of the colour scale.
    """

    x: Array
    y: Array
    z: Array
    color: Array
    label: Text


@dataclass(frozen=True)
class Places:
    """Markers in space, on a surface or beside it: x, y and z of shape (points,)."""

    x: Array
    y: Array
    z: Array
    label: Text
    color: str
    symbol: str = "circle"


@dataclass(frozen=True)
class Vertical:
    """A vertical line at ``x``, in data units, with a label above the axes.

    It is thin, dotted and of a ``color``, or, without one, dashed and black with a white edge, to
    be seen on every colour of a heat map. ``anchor`` is the end of the label that is at ``x``:
    ``"left"``, ``"center"`` or ``"right"``; ``row`` counts rows of labels below this one.
    """

    x: float
    label: Text
    color: str = ""
    anchor: str = "center"
    row: int = 0


@dataclass(frozen=True)
class Pictures:
    """Pictures of one size in rows, each with its name on hover; a panel with them has no axes.

    ``pixels`` are from 0, black, to 1, white: shape (pictures, rows, columns) for grey, (pictures,
    rows, columns, 3) for red, green and blue.
    """

    pixels: Array
    names: tuple[Text, ...]


Item = Line | Points | Heat | Vertical | Surface | Places | Pictures


@dataclass(frozen=True)
class Panel:
    """One set of axes, with its items in the order in which they are drawn.

    ``key`` is the file stem of the printed twin and the anchor on the page, ``caption`` is HTML,
    for the page alone. The ranges are limits in data units, None for automatic. Where x ``counts``,
    ticks are at whole numbers alone. A ``wide`` panel takes the page's whole width; ``columns`` is
    how many of its section stand side by side on a wide page, 0 for as many as fit. On ``equal``
    axes a unit is as long on each. ``z_label`` is that of the third axis, where items lie in space,
    and ``view`` from where they are seen at first: azimuth and height in degrees.
    """

    key: str
    title: Text
    x_label: Text
    y_label: Text
    items: tuple[Item, ...]
    caption: str = ""
    log_x: bool = False
    log_y: bool = False
    x_range: tuple[float, float] | None = None
    y_range: tuple[float, float] | None = None
    counts: bool = False
    wide: bool = False
    columns: int = 0
    equal: bool = False
    z_label: Text = EMPTY
    view: tuple[float, float] = (-50.0, 25.0)

    @property
    def in_space(self) -> bool:
        """Whether it has three axes."""
        return any(isinstance(item, Surface | Places) for item in self.items)

    @property
    def pictured(self) -> bool:
        """Whether it has pictures, and so no axes."""
        return any(isinstance(item, Pictures) for item in self.items)


WIDE = 2.5
"""At most so many times as many pictures stand side by side as one above another."""


def pictures_across(count: int) -> int:
    """Pictures in a row: of what is about a square, or wider, that which leaves fewest places."""
    least, most = math.ceil(math.sqrt(count)), math.floor(math.sqrt(WIDE * count))
    return min(range(least, max(least, most) + 1), key=lambda k: (-count % k, k))


def mosaic(item: Pictures) -> NDArray[np.uint8]:
    """All pictures with a free pixel around each, red, green, blue and opacity.

    Shape (rows, columns, 4); free pixels, and those that are NaN, are transparent.
    """
    pixels = item.pixels if item.pixels.ndim == 4 else np.repeat(item.pixels[..., None], 3, axis=3)
    count, high, wide, _ = pixels.shape
    across = pictures_across(count)
    out = np.zeros((-(-count // across) * (high + 1) + 1, across * (wide + 1) + 1, 4), np.uint8)
    for k, one in enumerate(pixels):
        top, left = (k // across) * (high + 1) + 1, (k % across) * (wide + 1) + 1
        known = np.isfinite(one).all(axis=-1)
        here = out[top : top + high, left : left + wide]
        here[..., :3] = np.round(255 * np.clip(np.nan_to_num(one), 0.0, 1.0))
        here[..., 3] = 255 * known
    return out


FRAMES = 60
"""No animation has more frames than this; of more times so many are chosen evenly."""
CUT = 4.0
"""A peak so many times as high as the middle one of all frames is cut, lest it flatten them."""
ROOM = 1.06
"""The axis ends so far above the highest curve."""


@dataclass(frozen=True)
class Film:
    """Panels one after another, with the same limits; each says its time in its title."""

    key: str
    title: Text
    frames: tuple[Panel, ...]


def film(key: str, title: Text, panels: list[Panel]) -> Film:
    """Panels of non-negative curves on common axes from zero; titles tell of peaks beyond them."""
    seen = [one.x_range for one in panels if one.x_range is not None]
    ends = (min(low for low, _ in seen), max(high for _, high in seen)) if seen else None
    tops = np.array([_top(one) for one in panels])
    top = min(tops.max(), CUT * float(np.median(tops[tops > 0]))) if tops.any() else 1.0
    limits, frames = (0.0, ROOM * top), []
    for one, peak in zip(panels, tops, strict=True):
        beyond = f", peak {number(peak)} beyond the axis" if peak > limits[1] else ""
        frames.append(replace(one, title=one.title + beyond, x_range=ends, y_range=limits))
    return Film(key, title, tuple(frames))


def _top(panel: Panel) -> float:
    """The highest value of any curve or band, 0 without any."""
    lines = [item for item in panel.items if isinstance(item, Line)]
    ends = [end for line in lines for end in (line.y, line.high) if end is not None]
    return max((float(np.nanmax(end)) for end in ends if np.isfinite(end).any()), default=0.0)
