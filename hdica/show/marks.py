"""What figures share: colours and symbols of curves, levels, guides, legends, maps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import xarray as xr

from hdica.show.choose import Point, positions
from hdica.show.panel import Array, Cells, Heat, Item, Line, Panel, Points, Vertical, edges
from hdica.show.words import OKABE_ITO, Text, axis, clock, measured, method_name, symbol, words

SYMBOLS = ("circle", "square", "diamond", "triangle")
DASHES = ("solid", "dash", "dot")
GREY = "#888888"
ERRORS = 2.0
"""Standard errors above and below a mean."""
SHARES = (-0.03, 1.03)
"""Limits of an axis of shares, with room for marks at its ends."""
NOWHERE = np.full(2, np.nan)
"""Coordinates of what a legend has and the axes do not."""
T = TypeVar("T")


def color_of(index: int, count: int) -> str:
    """A categorical colour for few, a place on a sequential scale for many."""
    if count <= len(OKABE_ITO):
        return OKABE_ITO[index]
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return str(to_hex(colormaps["viridis"](0.9 * index / (count - 1))))


def colored(items: Sequence[T]) -> Iterator[tuple[str, T]]:
    """Each of some items with a colour of its own."""
    return ((color_of(k, len(items)), item) for k, item in enumerate(items))


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


def tailed(items: Sequence[T]) -> list[tuple[str, T]]:
    """Items with the endings of their panels' keys: "_1", "_2", and none for a single item."""
    return [(f"_{k + 1}" if len(items) > 1 else "", item) for k, item in enumerate(items)]


def interval(here: xr.Dataset, name: str) -> tuple[Array, Array, Array]:
    """A variable with the ends of its interval, ``<name>_low`` and ``<name>_high``."""
    value, low, high = (here[f"{name}{end}"].values for end in ("", "_low", "_high"))
    return value, low, high


def bars(x: Array, ends: Sequence[Array], label: Text, color: str, **look: Any) -> list[Points]:
    """Values with their intervals where they are known; a bar ends at its value where it is not."""
    value, low, high = ends
    seen = np.isfinite(value)
    if not seen.any():
        return []
    low, high = (np.where(np.isfinite(end), end, value)[seen] for end in (low, high))
    return [Points(x[seen], value[seen], label, color, low, high, **look)]


def level(x: Array, value: float, label: Text, color: str, **look: Any) -> Line:
    """A horizontal line over all x."""
    return Line(np.array([x.min(), x.max()]), np.full(2, value), label, color, **look)


def upright(at: float, label: Text, color: str, dash: str, listed: bool = True) -> Line:
    """A vertical line across an axis of shares."""
    return Line(np.full(2, at), np.array([0.0, 1.0]), label, color, dash, listed=listed)


def known(items: Iterable[T]) -> list[T]:
    """Curves and marks of which any point is known."""
    return [item for item in items if np.isfinite(getattr(item, "y", 0.0)).any()]


def lines_first(items: Iterable[T]) -> tuple[T, ...]:
    """The same with marks above all lines."""
    return tuple(sorted(items, key=lambda item: isinstance(item, Points)))


def over_n(
    data: xr.Dataset, known_at: xr.DataArray, named: Sequence[tuple[Text, Point]]
) -> Iterator[tuple[xr.Dataset, dict[str, Any]]]:
    """Each named point by each method at the n at which it is known, with the look of its marks.

    The colour is that of the point, the symbol that of the method; the legend has a name once.
    """
    for i, (label, point) in enumerate(named):
        listed = True
        for j, method in enumerate(data["simulation"].values):
            at = {"simulation": method, **point}
            here = data.sel(at).isel(n=np.flatnonzero(known_at.sel(at).values))
            if here.sizes["n"]:
                look = {"color": color_of(i, len(named)), "symbol": SYMBOLS[j % len(SYMBOLS)]}
                yield here, {"label": label, **look, "listed": listed}
                listed = False


def methods_of(data: xr.Dataset) -> list[Points]:
    """Entries of the legend for the symbols of the methods, if there are several."""
    names = data["simulation"].values if data.sizes["simulation"] > 1 else ()
    return [
        Points(NOWHERE, NOWHERE, method_name(name), GREY, symbol=SYMBOLS[j % len(SYMBOLS)])
        for j, name in enumerate(names)
    ]


def guide(marks: Iterable[object], slope: float) -> list[Line]:
    """A line of an expected slope through the middle of marks, not far below them."""
    points = [mark for mark in marks if isinstance(mark, Points)]
    if not points:
        return []
    x, y = (np.concatenate([getattr(mark, at) for mark in points]) for at in ("x", "y"))
    keep = np.isfinite(y) & (y > 0)
    if not keep.any() or x.min() == x.max():
        return []
    middle = np.exp(np.log(y[keep] * x[keep] ** slope).mean())
    last = min(x.max(), (2 * middle / y[keep].min()) ** (1 / slope))
    ends = np.array([x.min(), last])
    label = words(f"slope −{'1/2' if slope == 0.5 else '1'}")
    return [Line(ends, middle * ends**-slope, label, GREY, "dot")]


def time_axes(data: xr.Dataset) -> tuple[Text, Text]:
    """Labels of axes of time and of the variable that was looked at."""
    return clock(data["time"].attrs), measured(data.attrs["variable"])


def against_n(
    key: str, title: Text, label: Text, items: Iterable[Item], caption: str, **look: Any
) -> Panel:
    """A panel over the dimension n, on logarithmic axes."""
    n = "dimension " + symbol("n")
    return Panel(key, title, n, label, tuple(items), caption, log_x=True, log_y=True, **look)


def positive(arrays: Iterable[Array | None]) -> tuple[float, float] | None:
    """The least and the largest positive value, for a logarithmic axis; None without any."""
    values = np.concatenate([np.empty(0), *(one for one in arrays if one is not None)])
    values = values[np.isfinite(values) & (values > 0)]
    return (float(values.min()), float(values.max())) if values.size else None


def wide_range(x: Array) -> bool:
    """Whether values need a logarithmic axis."""
    return bool(x.min() > 0 and x.max() >= 10 * x.min())


def map_of(
    values: xr.DataArray,
    key: str,
    titles: tuple[Text, Text],
    caption: str,
    over: Sequence[Item] = (),
    point: Point | None = None,
    log: bool = False,
    scale: str = "viridis",
    written: tuple[tuple[str, ...], ...] = (),
) -> Panel:
    """A heat map of values over y and x, in this order, with other items on top.

    ``titles`` are those of the panel and of the colour scale; ``point`` has the values of other
    parameters.
    """
    y, x = map(str, values.dims)
    at_x, at_y = (positions(values, d) for d in (x, y))
    cells = Cells(x, y, at_x, at_y, point or {})
    heat = Heat(at_x, at_y, values.values, titles[1], scale, written=written, cells=cells)
    (left, right), (low, high) = (edges(at, log)[[0, -1]].tolist() for at in (at_x, at_y))
    items, ranges = (heat, *over), ((left, right), (low, high))
    return Panel(key, titles[0], axis(x), axis(y), items, caption, log, log, *ranges)
