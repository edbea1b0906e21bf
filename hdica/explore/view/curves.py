"""Curves of several methods: simulations with a band of errors, theory as a line."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from bokeh.models import ColumnDataSource, GlyphRenderer, HoverTool, Legend, Span
from bokeh.plotting import figure
from numpy.typing import NDArray

from hdica.explore.view.ranges import Fitted
from hdica.explore.view.theme import styled
from hdica.show.marks import ERRORS, color_of
from hdica.show.words import Text, measurement, number

Array = NDArray[np.float64]
EXACT = 1e-6
"""Errors beside their value that are not told, because so many digits are not read."""
SEEN = 2e-3
"""Share of its largest value above which a density is seen."""
MOST_MARKS = 60
"""Points of a curve that are marked."""


def said(value: float, error: float) -> str:
    """A value with its error; to six digits where that is known better."""
    if error < EXACT * abs(value):
        return number(value, 6)
    return measurement(value, error)


@dataclass(frozen=True)
class Curve:
    """One curve.

    Parameters
    ----------
    label
        In the legend and on hover.
    theory
        Whether it is theory: in the ink of the page, without a band.
    """

    label: str
    theory: bool


class Curves:
    """Curves over a common axis with the place that is chosen on it.

    Parameters
    ----------
    curves
        What is drawn, in this order; colours are told apart among simulations.
    x_label, y_label
        Of the axes.
    x_kind
        ``"linear"`` or ``"log"``.
    steps
        Whether simulations are histograms, drawn as steps.
    """

    def __init__(
        self,
        curves: list[Curve],
        x_label: Text,
        y_label: Text,
        x_kind: str = "linear",
        steps: bool = False,
        height: int = 320,
    ) -> None:
        self.steps = steps
        self.x, self.y = Fitted(), Fitted()
        self.plot = figure(
            x_range=self.x.range,
            y_range=self.y.range,
            height=height, sizing_mode="stretch_width", x_axis_type=x_kind,
            x_axis_label=x_label.plain, y_axis_label=y_label.plain,
            tools="tap,box_zoom,wheel_zoom,pan,reset,save", toolbar_location="above",
        )  # fmt: skip
        self.sources = [ColumnDataSource() for _ in curves]
        self.curves, entries, hovered = curves, [], []
        colors = iter(range(len(curves)))
        for curve, source in zip(curves, self.sources, strict=True):
            color = color_of(0 if curve.theory else next(colors), len(curves))
            drawn = self._draw(curve, source, color)
            entries.append((curve.label, drawn))
            hovered.append(drawn[0])
        self.mark = Span(location=np.nan, dimension="height", line_color="#d6006e", line_width=1.5)
        self.plot.add_layout(self.mark)
        tips = [("", "@label"), (x_label.plain, "@x_told"), (y_label.plain, "@told")]
        self.plot.add_tools(HoverTool(renderers=hovered, tooltips=tips, mode="mouse"))
        legend = Legend(
            items=entries, orientation="horizontal", padding=2, spacing=14, ncols=2, location="left"
        )
        legend.update(label_text_font_size="12px", border_line_color=None)
        self.plot.add_layout(legend, "below")
        styled(self.plot)

    def _draw(self, curve: Curve, source: ColumnDataSource, color: str) -> list[GlyphRenderer]:
        """Renderers of a curve, that of its hover first."""
        if curve.theory:
            line = self.plot.line("x", "y", source=source, line_width=2.2, tags=["ink"])
            drawn = [line]
            if not self.steps:
                dots = self.plot.scatter("mark_x", "y", source=source, size=4, tags=["ink"])
                drawn = [dots, line]
            for one in drawn:  # a click would show what is not chosen in Bokeh's own colour
                one.update(selection_glyph=None, nonselection_glyph=None)
            return drawn
        self.plot.varea("x", "low", "high", source=source, fill_color=color, fill_alpha=0.22)
        line = self.plot.line("x", "y", source=source, line_color=color, line_width=1.8)
        if self.steps:
            return [line]
        return [self.plot.scatter("mark_x", "y", source=source, size=6, color=color), line]

    def show(self, number: int, x: Array, y: Array, error: Array, told: list[str]) -> None:
        """Draw one curve: its values at ``x`` with their errors, shape (points,)."""
        curve, spread = self.curves[number], ERRORS * np.nan_to_num(error)
        keep = np.zeros(x.size, dtype=bool)
        keep[:: max(1, -(-x.size // MOST_MARKS))] = True
        self.sources[number].data = {
            "x": x, "y": y, "low": y - spread, "high": y + spread,
            "mark_x": np.where(keep, x, np.nan), "x_told": told,
            "told": [said(v, e) for v, e in zip(y, error, strict=True)],
            "label": [curve.label] * x.size,
        }  # fmt: skip

    def fit(self) -> None:
        """Let the axes cover what is drawn; of densities, where there is something to be seen."""
        parts = [source.data for source in self.sources]
        x, low, high = (np.concatenate([part[k] for part in parts]) for k in ("x", "low", "high"))
        self.y.cover(np.concatenate([low, high]))
        if self.steps and np.isfinite(high).any():
            x = x[high > SEEN * np.nanmax(high)]
        self.x.cover(x)
