"""Controls of the explorer: which method and variable, which map, and which value of everything."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import panel as pn
import param
import xarray as xr
from bokeh.models import CustomJSTickFormatter

from hdica.analysis.points.space import Axis, methods_in, variables_in
from hdica.explore.choice import Choice
from hdica.explore.view.theme import WIDGETS
from hdica.show.words import Text, method_name, symbol

MOST_OPTIONS = 12
"""Words of which one is chosen are listed; numbers, and more words, are moved by a slider."""
MOST_SENT = 4096
"""Values that are written out for a slider; more than these are computed, if they are even."""
Changed = Callable[[str, Any], None]


class Controls:
    """The controls beside the figures.

    Parameters
    ----------
    changed
        Called with ``"method"``, ``"variable"``, ``"x"``, ``"y"`` or the name of a dimension, and
        what was chosen.
    """

    def __init__(self, changed: Changed) -> None:
        self.changed, self.quiet = changed, False
        self.menus = {name: self._menu(label, name) for name, label in MENUS.items()}
        self.sliders: dict[str, pn.widgets.Widget] = {}
        self.axes: dict[str, Axis] = {}
        self.swept = pn.Column(sizing_mode="stretch_width")
        self.view = pn.Column(*self.menus.values(), self.swept, css_classes=["controls"])

    def _menu(self, label: str, name: str) -> pn.widgets.Select:
        made = pn.widgets.Select(name=label, sizing_mode="stretch_width", stylesheets=[WIDGETS])
        made.param.watch(lambda event: self._told(name, event), "value")
        return made

    def _told(self, name: str, event: param.parameterized.Event) -> None:
        if self.quiet or event.new is None:
            return
        if name not in self.axes:
            self.changed(name, event.new)
            return
        self.changed(name, self.axes[name].values[event.new])

    def offer(self, tree: xr.DataTree, choice: Choice) -> None:
        """Offer what the results have, with a choice as it is."""
        sides = {one.label.plain: one.name for one in choice.shown.numbers} or NOTHING
        offered: dict[str, Any] = {
            "method": _called(methods_in(tree), method_name),
            "variable": _called(variables_in(tree, choice.shown.method), symbol),
            "x": sides,
            "y": sides if choice.y else NOTHING,
        }
        now = {"method": choice.shown.method, "variable": choice.shown.variable}
        now |= {"x": choice.x, "y": choice.y}
        self.quiet = True
        for name, menu in self.menus.items():
            menu.param.update(options=offered[name], value=now[name])
            menu.visible = name not in ("x", "y") or len(offered["x"]) > 1
        self.axes = {one.name: one for one in choice.axes}
        self.sliders = {
            n: self._slider(one, choice.point[n]) for n, one in self.axes.items() if one.size > 1
        }
        self.swept[:] = list(self.sliders.values())
        self.quiet = False

    def _slider(self, axis: Axis, place: int) -> pn.widgets.Widget:
        words = axis.values.dtype.kind not in "fiu"
        kind: dict[str, Any] = {"sizing_mode": "stretch_width", "stylesheets": [WIDGETS]}
        if words and axis.size <= MOST_OPTIONS:
            options = {axis.shown(k): k for k in range(axis.size)}
            made = pn.widgets.Select(name=axis.label.plain, options=options, value=place, **kind)
        else:
            made = pn.widgets.IntSlider(
                name=axis.symbol.plain, start=0, end=axis.size - 1, value=place,
                format=_written(axis), **kind,
            )  # fmt: skip
        made.param.watch(lambda event: self._told(axis.name, event), "value")
        return made

    def move(self, choice: Choice) -> None:
        """Show another point, as it was clicked on a figure."""
        self.quiet = True
        for name, slider in self.sliders.items():
            place = choice.point[name]
            if slider.value != place:
                slider.value = place
        self.quiet = False


def _called(names: list[str], write: Callable[[str], Text]) -> dict[str, str]:
    """Names by what they are called, or as they are where two are called the same."""
    labels = [write(name).plain for name in names]
    return {
        name if labels.count(label) > 1 else label: name
        for name, label in zip(names, labels, strict=True)
    }


def _written(axis: Axis) -> CustomJSTickFormatter:
    """Writes the value at a position, in the browser; very many even ones are computed there."""
    if axis.size <= MOST_SENT or axis.scale == "places":
        values = [axis.shown(place) for place in range(axis.size)]
        return CustomJSTickFormatter(args={"values": values}, code="return values[tick]")
    ends, log = axis.values[[0, -1]].astype(float).tolist(), axis.scale == "log"
    code = "const s = tick / last, v = log ? a * (b / a) ** s : a + (b - a) * s; "
    return CustomJSTickFormatter(
        args={"a": ends[0], "b": ends[1], "last": axis.size - 1, "log": log},
        code=code + "return String(Number(v.toPrecision(6)))",
    )


NOTHING = {"nothing": ""}
"""What can be chosen where nothing is swept."""
MENUS = {"method": "Method", "variable": "Variable", "x": "Map: across", "y": "Map: up"}
"""What is chosen of a list, and what the list is called."""
