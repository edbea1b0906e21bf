"""The figures of one choice, drawn again wherever its values move."""

from __future__ import annotations

from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, HoverTool, Span
from bokeh.plotting import figure

from hdica.analysis.points import means
from hdica.analysis.points.space import Quantity
from hdica.explore.choice import Choice
from hdica.explore.feed import Snapshot
from hdica.explore.surfaces import Surfaces
from hdica.explore.view.curves import Curve, Curves
from hdica.explore.view.heat import Heat
from hdica.explore.view.ranges import Fitted
from hdica.explore.view.sides import Side, dress
from hdica.explore.view.theme import styled
from hdica.ingredients.save import Save
from hdica.show.marks import bands, color_of
from hdica.show.words import clock, measured, number, symbol, words

LEAST_SEEDS = 5
"""Seeds from which on their values are shown as a histogram."""
LIMITS = 3
"""Most values of theory that are marked in a histogram."""


def curves_of(choice: Choice, every: list[Quantity]) -> list[Curve]:
    """Names of the curves of some quantities, theory told apart."""
    return [Curve(choice.label_of(one).plain, not one.seeds) for one in every]


def caption_of(names: list[Curve]) -> str:
    """What is said below curves."""
    return bands(any(not one.theory for one in names), any(one.theory for one in names))


class HeatFigure:
    """The map over two swept parameters."""

    title = "Map"
    caption = "Mean over seeds. A click chooses a point; the frame shows it."

    def __init__(self, now: Snapshot, choice: Choice) -> None:
        shown = choice.shown
        sides = (Side(shown.axis(choice.x)), Side(shown.axis(choice.y)))
        self.heat = Heat(*sides, measured(shown.variable))
        self.plot = self.heat.plot

    def show(self, now: Snapshot, choice: Choice, surfaces: Surfaces) -> None:
        """Draw the map at a choice."""
        found = surfaces.at(now, choice.shown, choice.point, choice.x, choice.y)
        self.heat.show(found)
        self.heat.choose(choice.point[choice.x], choice.point[choice.y])

    def tapped(self, x: float, y: float) -> dict[str, int]:
        """Positions of the cell at a place."""
        return {
            self.heat.x.axis.name: self.heat.x.place(x),
            self.heat.y.axis.name: self.heat.y.place(y),
        }


class CutFigure:
    """A variable along one swept parameter, through the chosen point at the chosen time."""

    def __init__(self, now: Snapshot, choice: Choice) -> None:
        self.title = f"Along {choice.shown.axis(choice.x).symbol.html}, through the chosen point"
        self.side = Side(choice.shown.axis(choice.x))
        every = (choice.shown, *choice.others)
        self.every = [one for one in every if any(a.name == choice.x for a in one.swept)]
        names = curves_of(choice, self.every)
        self.caption = caption_of(names)
        label = measured(choice.shown.variable)
        self.curves = Curves(names, self.side.axis.label, label, self.side.kind)
        self.plot = self.curves.plot
        self.plot.x_range = self.side.range()
        dress(self.plot, "x", self.side)

    def show(self, now: Snapshot, choice: Choice, surfaces: Surfaces) -> None:
        """Draw the curves at a choice."""
        self.curves.mark.location = self.side.lies(choice.point[choice.x])
        for k, one in enumerate(self.every):
            found = means.mean_over(now.tree, one, choice.point_of(one), choice.x, whole=False)
            side = Side(one.axis(choice.x))
            x = np.array([self.side.lies(self.side.axis.at(v)) for v in _values(side)])
            mean, error = found["mean"].to_numpy(), found["error"].to_numpy()
            self.curves.show(k, x, mean, error, side.told().tolist())
        self.curves.fit()

    def tapped(self, x: float, y: float) -> dict[str, int]:
        """Position of the value at a place."""
        return {self.side.axis.name: self.side.place(x)}


def _values(side: Side) -> list[Any]:
    found: list[Any] = side.axis.values[:: side.step].tolist()
    return found


class CourseFigure:
    """A variable along its own dimension, as time, at the chosen point."""

    title = "At the chosen point"

    def __init__(self, now: Snapshot, choice: Choice) -> None:
        along = choice.shown.along
        assert along is not None
        self.name, self.every = along.name, (choice.shown, *choice.others)
        about = now.tree[choice.shown.method][along.name].attrs
        label = clock(about) if along.name == "time" else along.label
        label_y = measured(choice.shown.variable)
        names = curves_of(choice, list(self.every))
        self.caption = caption_of(names)
        self.curves = Curves(names, label, label_y)
        self.plot = self.curves.plot

    def show(self, now: Snapshot, choice: Choice, surfaces: Surfaces) -> None:
        """Draw the curves at a choice."""
        shown = choice.shown.axis(self.name)
        self.curves.mark.location = float(shown.values[choice.point[self.name]])
        for k, one in enumerate(self.every):
            found = means.mean_over(now.tree, one, choice.point_of(one))
            axis = one.axis(self.name)
            told = [axis.shown(place) for place in range(axis.size)]
            x = axis.values.astype(float)
            self.curves.show(k, x, found["mean"].to_numpy(), found["error"].to_numpy(), told)
        self.curves.fit()

    def tapped(self, x: float, y: float) -> dict[str, int]:
        """Position of the time at a place."""
        axis = next(a for a in self.every[0].axes if a.name == self.name)
        return {self.name: axis.at(x)}


class DensityFigure:
    """Densities of the estimate given the feature: histograms beside the limit's."""

    title = "Densities at the chosen point"

    def __init__(self, now: Snapshot, choice: Choice) -> None:
        self.every = choice.densities
        label_x = words("entry ") + symbol("x") + words(" of the estimate")
        names = curves_of(choice, list(self.every))
        self.caption = caption_of(names)
        self.curves = Curves(names, label_x, words("density"), steps=True)
        self.plot = self.curves.plot

    def show(self, now: Snapshot, choice: Choice, surfaces: Surfaces) -> None:
        """Draw the densities at a choice."""
        for k, one in enumerate(self.every):
            found = means.density(now.tree, one, choice.point_of(one))
            assert one.along is not None
            x = one.along.values.astype(float)
            mean, error = found["mean"].to_numpy(), found["error"].to_numpy()
            if one.seeds:
                edges = Save(x=tuple(x)).edges
                x, mean, error = np.repeat(edges, 2)[1:-1], mean.repeat(2), error.repeat(2)
            self.curves.show(k, x, mean, error, [number(v, 4) for v in x])
        self.curves.fit()

    def tapped(self, x: float, y: float) -> dict[str, int]:
        """Nothing is chosen by a click."""
        return {}


class SeedsFigure:
    """Values of the single seeds at the chosen point and time, with those of theory."""

    title = "Single seeds at the chosen point"

    def __init__(self, now: Snapshot, choice: Choice) -> None:
        self.bars = ColumnDataSource()
        self.x, self.y = Fitted(), Fitted()
        self.plot = figure(
            x_range=self.x.range,
            y_range=self.y.range,
            height=320, sizing_mode="stretch_width", y_axis_label="seeds",
            x_axis_label=measured(choice.shown.variable).plain,
            tools="box_zoom,wheel_zoom,pan,reset,save", toolbar_location="above",
        )  # fmt: skip
        bars = self.plot.quad(
            left="left", right="right", top="count", bottom=0, source=self.bars,
            fill_color=color_of(0, 1), fill_alpha=0.55, line_color=color_of(0, 1),
        )  # fmt: skip
        tips = [("from", "@left{0.0000}"), ("to", "@right{0.0000}"), ("seeds", "@count")]
        self.plot.add_tools(HoverTool(renderers=[bars], tooltips=tips))
        self.caption = "Histogram of the values at the chosen time; lines: theory."
        self.limits = [one for one in choice.others if not one.seeds][:LIMITS]
        self.marks = [Span(dimension="height", line_width=2, tags=["ink"]) for _ in self.limits]
        for mark in self.marks:
            self.plot.add_layout(mark)
        styled(self.plot)

    def show(self, now: Snapshot, choice: Choice, surfaces: Surfaces) -> None:
        """Draw the histogram at a choice."""
        values = means.runs(now.tree, choice.shown, choice.point)
        count, edges = np.histogram(values, bins=bins(values)) if values.size else _NOTHING
        self.bars.data = {"left": edges[:-1], "right": edges[1:], "count": count}
        at = [np.zeros(0)]
        for mark, one in zip(self.marks, self.limits, strict=True):
            at.append(means.runs(now.tree, one, choice.point_of(one)))
            mark.location = float(at[-1][0]) if at[-1].size else np.nan
        self.x.cover(np.concatenate([values, *at]))
        self.y.cover(count.astype(float), low=0.0)

    def tapped(self, x: float, y: float) -> dict[str, int]:
        """Nothing is chosen by a click."""
        return {}


_NOTHING = (np.zeros(0), np.zeros(1))
"""A histogram without bins."""


def bins(values: np.ndarray) -> np.ndarray:
    """Edges of bins, of a width that suits equal values too."""
    low, high = float(values.min()), float(values.max())
    if not high > low:
        pad = max(abs(low), 1.0) * 0.05
        return np.linspace(low - pad, high + pad, 4)
    return np.linspace(low, high, 1 + int(np.clip(np.sqrt(values.size) * 1.5, 5, 40)))
