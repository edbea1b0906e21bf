"""A variable over two swept parameters, with what became of cells that have no value."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr
from bokeh.models import (
    ColorBar,
    ColumnDataSource,
    CustomJSHover,
    GlyphRenderer,
    HoverTool,
    LinearColorMapper,
    Title,
)
from bokeh.plotting import figure
from numpy.typing import NDArray

from hdica.explore.surfaces import Map
from hdica.explore.view.sides import Side, dress
from hdica.explore.view.theme import STATUS_COLORS, styled
from hdica.show.words import Text
from hdica.status import DIVERGED, DONE, FAILED, PENDING, STATUS_NAMES

NO_COLOR = "rgba(0, 0, 0, 0)"


class Heat:
    """A heat map and the outline of the chosen cell.

    Parameters
    ----------
    x, y
        Its sides.
    label
        Of the colours.
    """

    def __init__(self, x: Side, y: Side, label: Text) -> None:
        self.x, self.y = x, y
        self.cells, self.chosen = ColumnDataSource(), ColumnDataSource()
        self.mapper = LinearColorMapper(palette="Viridis256", nan_color=NO_COLOR)
        self.plot = figure(
            height=430, sizing_mode="stretch_width", x_axis_type=x.kind, y_axis_type=y.kind,
            x_range=x.range(), y_range=y.range(),
            tools="tap,box_zoom,wheel_zoom,pan,reset,save", toolbar_location="above",
        )  # fmt: skip
        place = dict(zip(("x", "y", "dw", "dh"), _box(x, y), strict=True))
        fills = [STATUS_COLORS.get(name, NO_COLOR) for name in STATUS_NAMES]
        what = LinearColorMapper(palette=fills, low=-0.5, high=len(fills) - 0.5)
        self.plot.image("fate", source=self.cells, color_mapper=what, **place)
        top = self.plot.image("mean", source=self.cells, color_mapper=self.mapper, **place)
        edge: dict[str, Any] = {"fill_color": None, "source": self.chosen}
        corners = {name: name for name in ("left", "right", "bottom", "top")}
        self.plot.quad(**corners, line_color="#ffffff", line_width=5, **edge)
        self.plot.quad(**corners, line_color="#d6006e", line_width=2.5, **edge)
        self.plot.add_tools(_hover(top, x, y, label))
        self.plot.add_layout(ColorBar(color_mapper=self.mapper, width=12, padding=6), "right")
        # Upright beyond the bar: as the bar's own title it would lie over the ticks.
        name = Title(text=label.plain, align="center", text_font_style="normal")
        self.plot.add_layout(name, "right")
        self.plot.grid.visible = False
        dress(styled(self.plot), "x", x)
        dress(self.plot, "y", y)

    def show(self, found: Map) -> None:
        """Draw a map."""
        mean = found.data["mean"].to_numpy().astype("f4")
        shape = mean.shape
        self.mapper.update(
            low=found.low, high=found.high if found.high > found.low else found.low + 1
        )
        columns = {
            "mean": mean,
            "error": found.data["error"].to_numpy().astype("f4"),
            "fate": fate(found.data).astype("f4"),
            "at_x": np.broadcast_to(np.arange(shape[1], dtype="f4"), shape).copy(),
            "at_y": np.broadcast_to(np.arange(shape[0], dtype="f4")[:, None], shape).copy(),
            **{name: found.data[name].to_numpy().astype("f4") for name in STATUS_NAMES},
        }
        self.cells.data = {name: [values] for name, values in columns.items()}

    def choose(self, x: int, y: int) -> None:
        """Outline the cell at two positions."""
        left, right = self.x.edges(x)
        bottom, top = self.y.edges(y)
        self.chosen.data = {"left": [left], "right": [right], "bottom": [bottom], "top": [top]}


def _box(x: Side, y: Side) -> tuple[float, float, float, float]:
    (left, right), (bottom, top) = x.ends, y.ends
    return left, bottom, right - left, top - bottom


def fate(data: xr.Dataset) -> NDArray[np.int64]:
    """What became of a cell, by the code of a status: the best that any of its seeds has."""
    found = np.full(data[STATUS_NAMES[DONE]].shape, PENDING)
    for code in (FAILED, DIVERGED, DONE):
        found[data[STATUS_NAMES[code]].to_numpy() > 0] = code
    return found


def _hover(cells: GlyphRenderer, x: Side, y: Side, label: Text) -> HoverTool:
    """Value, error and what became of the seeds of the cell under the pointer."""
    number = CustomJSHover(code="return isFinite(value) ? Number(value.toPrecision(4)) : '–'")
    tips, formats = [], {}
    for side, column in ((x, "at_x"), (y, "at_y")):
        names = CustomJSHover(args={"names": side.told().tolist()}, code="return names[value]")
        tips.append((side.axis.label.plain, f"@{column}{{custom}}"))
        formats[f"@{column}"] = names
    tips += [(label.plain, "@mean{custom}"), ("± s.e.", "@error{custom}")]
    formats |= {"@mean": number, "@error": number}
    tips.append(("points", ", ".join(f"@{name}{{0}} {name}" for name in STATUS_NAMES)))
    return HoverTool(renderers=[cells], tooltips=tips, formatters=formats)
