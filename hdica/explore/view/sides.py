"""Swept parameters as the axes of figures: where their values lie, and what the ticks say."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from bokeh.models import FixedTicker, Range1d
from bokeh.plotting import figure
from numpy.typing import NDArray

from hdica.analysis.points.means import every_nth
from hdica.analysis.points.space import Axis
from hdica.show.choose import spread

Array = NDArray[np.float64]
TICKS = 8
"""Most ticks of an axis whose ticks are at its values."""


@dataclass(frozen=True)
class Side:
    """One side of a map, or the axis of a cut.

    Evenly spaced values lie where they are, on a linear or a logarithmic axis; words and uneven
    values lie side by side, and the ticks say what they are.
    """

    axis: Axis

    @property
    def step(self) -> int:
        """Every how many values one is drawn."""
        return every_nth(self.axis.size)

    @property
    def kind(self) -> str:
        """Kind of axis that Bokeh is asked for."""
        return "log" if self.axis.scale == "log" else "linear"

    @property
    def centres(self) -> Array:
        """Where the drawn values lie."""
        if self.axis.scale == "places":
            return np.arange(0, self.axis.size, self.step, dtype=float)
        return self.axis.values[:: self.step].astype(float)

    @property
    def ends(self) -> tuple[float, float]:
        """Outer edges of the first and the last cell."""
        log = self.kind == "log"
        at = np.log(self.centres) if log else self.centres
        half = (at[-1] - at[0]) / (at.size - 1) / 2 if at.size > 1 else self.step / 2
        low, high = float(at[0] - half), float(at[-1] + half)
        return (float(np.exp(low)), float(np.exp(high))) if log else (low, high)

    def edges(self, place: int) -> tuple[float, float]:
        """Edges of the drawn cell that is closest to a position."""
        low, high = self.ends
        count, drawn = self.centres.size, min(round(place / self.step), self.centres.size - 1)
        if self.kind == "log":
            ratio = (high / low) ** (1 / count)
            return low * ratio**drawn, low * ratio ** (drawn + 1)
        width = (high - low) / count
        return low + width * drawn, low + width * (drawn + 1)

    def place(self, at: float) -> int:
        """Position of the drawn value that is closest to a place on the axis."""
        log = self.kind == "log" and at > 0
        distance = np.abs(np.log(self.centres / at)) if log else np.abs(self.centres - at)
        return int(np.argmin(distance)) * self.step

    def lies(self, place: int) -> float:
        """Where a position lies."""
        return float(place if self.axis.scale == "places" else self.axis.values[place])

    def told(self) -> NDArray[Any]:
        """What the drawn values are, as they are written."""
        return np.array([self.axis.shown(k) for k in range(0, self.axis.size, self.step)])

    def range(self) -> Range1d:
        """The range of the axis, beyond which there is nothing."""
        low, high = self.ends
        return Range1d(low, high, bounds=(low, high))


def dress(plot: figure, which: str, side: Side) -> None:
    """Give an axis of a figure its label; few values, places and powers have ticks at values."""
    axis = plot.xaxis if which == "x" else plot.yaxis
    axis.axis_label = side.axis.label.plain
    if side.axis.scale != "linear" or side.axis.size <= TICKS:
        told = {side.lies(k): side.axis.shown(k) for k in spread(side.axis.size, TICKS)}
        axis.ticker = FixedTicker(ticks=list(told))
        axis.major_label_overrides = told
