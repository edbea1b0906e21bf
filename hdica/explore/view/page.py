"""The page of one visitor: controls, figures, and what they say in words."""

from __future__ import annotations

from html import escape
from typing import Any

import panel as pn
from bokeh.events import Tap
from bokeh.models import Checkbox, CustomJS

from hdica.analysis.points import means
from hdica.errors import HdicaError
from hdica.explore.choice import Choice, chosen
from hdica.explore.feed import Feed, Snapshot
from hdica.explore.surfaces import Surfaces
from hdica.explore.view import figures
from hdica.explore.view.controls import Controls
from hdica.explore.view.curves import said
from hdica.explore.view.theme import DARK, LIGHT, PAGE, STATUS_COLORS, paint
from hdica.show.terms import speaking_of
from hdica.show.words import count, measured
from hdica.status import STATUS_NAMES

EVERY = 1000
"""Milliseconds between two looks for a new snapshot."""
WHOLE = {"padding": "10px 20px 30px", "box-sizing": "border-box"}
SIDE = {"flex": "1 1 220px", "max-width": "340px", "margin-right": "32px"}
MAIN = {"flex": "6 1 320px", "min-width": "0"}
GRID = {
    "display": "grid",
    "grid-template-columns": "repeat(auto-fit, minmax(min(100%, max(420px, 40%)), 1fr))",
    "gap": "12px 24px",
    "align-items": "start",
    "max-width": "1500px",
}
"""Sizes: side by side where there is room, below each other where there is none."""
DARK_CODE = """
const query = matchMedia("(prefers-color-scheme: dark)");
flag.active = query.matches;
query.addEventListener("change", (event) => { flag.active = event.matches; });
"""


class Page:
    """What one visitor sees and has chosen.

    Parameters
    ----------
    feed
        Where snapshots of the results come from.
    surfaces
        Maps that were read last.
    """

    def __init__(self, feed: Feed, surfaces: Surfaces) -> None:
        self.feed, self.surfaces, self.now = feed, surfaces, feed.now
        self.waiting = False
        self.theme = LIGHT
        self.dark = Checkbox(active=False, visible=False)
        self.dark.on_change("active", self._themed)
        self.head = pn.pane.HTML(sizing_mode="stretch_width", stylesheets=[PAGE])
        self.told = pn.pane.HTML(sizing_mode="stretch_width", stylesheets=[PAGE])
        self.key = pn.pane.HTML(sizing_mode="stretch_width", stylesheets=[PAGE])
        self.controls = Controls(self._changed)
        self.drawn: list[Any] = []
        self.figures = pn.Column(sizing_mode="stretch_width")
        with self._speaking():
            self.choice = chosen(self.now.tree)
            self._rebuild()

    def _speaking(self) -> Any:
        return speaking_of(str(self.now.tree.attrs.get("system", "")))

    def view(self) -> pn.viewable.Viewable:
        """The layout, for the document of one visitor."""
        side = pn.Column(self.controls.view, self.key, styles=SIDE)
        main = pn.Column(self.told, self.figures, styles=MAIN)
        flag = pn.pane.Bokeh(self.dark, visible=False)
        document = pn.state.curdoc
        if document is not None:
            document.js_on_event(
                "document_ready", CustomJS(args={"flag": self.dark}, code=DARK_CODE)
            )
            document.add_periodic_callback(self.look, EVERY)
        body = pn.FlexBox(side, main, sizing_mode="stretch_width")
        return pn.Column(self.head, body, flag, sizing_mode="stretch_width", styles=WHOLE)

    def look(self) -> None:
        """Draw the newest snapshot, if there is a new one."""
        if self.feed.now.number == self.now.number:
            return
        self.now = self.feed.now
        self._choose(keep=True)

    def _changed(self, name: str, value: Any) -> None:
        """Take over what was chosen, and draw once all that has come in meanwhile is taken over."""
        wanted = {"method": self.choice.shown.method, "variable": self.choice.shown.variable}
        wanted |= {"x": self.choice.x, "y": self.choice.y}
        if name in wanted:
            other = {"x": "y", "y": "x"}.get(name)
            if other and value and value == wanted[other]:
                wanted[other] = wanted[name]
            self._choose(**{**wanted, name: value})
            return
        self._move({name: value})

    def _choose(self, keep: bool = False, **wanted: str) -> None:
        """Choose another variable or map, or draw another snapshot."""
        before = self.choice
        if keep:
            wanted = {"method": before.shown.method, "variable": before.shown.variable}
            wanted |= {"x": before.x, "y": before.y}
        with self._speaking(), pn.io.hold():
            self.choice = chosen(self.now.tree, **wanted, values=before.values)
            if self.choice.key == before.key:
                self._draw()
            else:
                self._rebuild()

    def _move(self, values: dict[str, Any]) -> None:
        """Choose another point."""
        now = self.choice
        self.choice = Choice(
            now.shown, now.others, now.densities, now.x, now.y, {**now.values, **values}
        )
        document = pn.state.curdoc
        if document is None or document.session_context is None:
            self._redraw()
        elif not self.waiting:
            self.waiting = True
            document.add_next_tick_callback(self._redraw)

    def _redraw(self) -> None:
        self.waiting = False
        with self._speaking(), pn.io.hold():
            self._draw()

    def _rebuild(self) -> None:
        """Make the figures of the choice."""
        self.controls.offer(self.now.tree, self.choice)
        self.drawn = [kind(self.now, self.choice) for kind in _kinds(self.choice)]
        for one in self.drawn:
            one.plot.on_event(Tap, lambda event, one=one: self._tapped(one, event))
        self._draw()
        panes = [pn.pane.Bokeh(one.plot, sizing_mode="stretch_width") for one in self.drawn]
        cards = [_card(one, pane) for one, pane in zip(self.drawn, panes, strict=True)]
        if len(cards) % 2:  # two side by side: the last alone takes both places
            cards[-1].styles = {**cards[-1].styles, "grid-column": "1 / -1"}
        # In a new grid: one whose cards are exchanged leaves the place of the first empty.
        self.figures[:] = [pn.Column(*cards, styles=GRID, sizing_mode="stretch_width")]

    def _tapped(self, one: Any, event: Tap) -> None:
        places = one.tapped(event.x, event.y) if event.x is not None else {}
        axes = {axis.name: axis for axis in self.choice.axes}
        if places:
            self._move({name: axes[name].values[at] for name, at in places.items()})
            self.controls.move(self.choice)

    def _draw(self) -> None:
        """Draw the choice in the figures that are there; what cannot be read is said instead."""
        trouble = self.feed.trouble
        try:
            for one in self.drawn:
                one.show(self.now, self.choice, self.surfaces)
                paint(one.plot, self.theme)
            self.told.object = told(self.now, self.choice)
        except (HdicaError, OSError) as exc:
            trouble = str(exc)
        self.head.object = header(self.now, trouble)
        self.key.object = status_key(self.now)

    def _themed(self, attribute: str, old: bool, new: bool) -> None:
        self.theme = DARK if new else LIGHT
        for one in self.drawn:
            paint(one.plot, self.theme)


def _kinds(choice: Choice) -> list[Any]:
    """Which figures a choice has."""
    found: list[Any] = []
    if choice.y:
        found.append(figures.HeatFigure)
    if choice.shown.along:
        found.append(figures.CourseFigure)
    if choice.x:
        found.append(figures.CutFigure)
    if choice.densities:
        found.append(figures.DensityFigure)
    if choice.shown.seeds >= figures.LEAST_SEEDS:
        found.append(figures.SeedsFigure)
    return found


def _card(one: Any, pane: pn.pane.Bokeh) -> pn.Column:
    text = f"<h2>{one.title}</h2><p class=caption>{one.caption}</p>"
    return pn.Column(
        pn.pane.HTML(text, stylesheets=[PAGE], margin=0), pane, styles={"min-width": "0"}
    )


def header(now: Snapshot, trouble: str) -> str:
    """The study and how much of it is computed, as HTML."""
    title = escape(str(now.tree.attrs.get("title") or now.tree.attrs.get("study", "")))
    computed = now.points - now.counts["pending"]
    what = "A run goes on or was stopped" if now.live else "Published"
    text = f"{what}: {count(computed)} of {count(now.points)} points are computed"
    bar = f'<progress max="{now.points}" value="{computed}"></progress>' if now.live else ""
    wrong = f'<p class="wrong">{escape(trouble)}</p>' if trouble else ""
    return f"<h1>{title}</h1><p>{text} {bar}</p>{wrong}"


def status_key(now: Snapshot) -> str:
    """How many points have no value, and how their cells are filled, as HTML."""
    rows = [
        f'<li><span class="box" style="background:{STATUS_COLORS[name]}"></span>'
        f"{name}: {count(now.counts[name])}</li>"
        for name in STATUS_NAMES
        if name in STATUS_COLORS and now.counts[name]
    ]
    return f"<h3>Points without a value</h3><ul>{''.join(rows)}</ul>" if rows else ""


def told(now: Snapshot, choice: Choice) -> str:
    """Values of every method at the chosen point, as HTML."""
    at = ", ".join(a.at_value(choice.point[a.name]).html for a in choice.shown.axes if a.size > 1)
    rows = []
    for one in (choice.shown, *choice.others):
        point = choice.point_of(one)
        found = means.mean_over(now.tree, one, point)
        if one.along:
            found = found.isel({one.along.name: point[one.along.name]})
        value = said(found["mean"].item(), found["error"].item())
        counts = {name: int(found[name]) for name in STATUS_NAMES}
        fate = ", ".join(f"{n} {name}" if one.seeds else name for name, n in counts.items() if n)
        why = means.reason(now.tree, one, point) if counts["diverged"] + counts["failed"] else ""
        label = choice.label_of(one).html
        rows.append(
            f"<tr><th>{label}</th><td>{value}</td><td>{fate}</td><td>{escape(why)}</td></tr>"
        )
    name = measured(choice.shown.variable).html
    where = f" at {at}" if at else ""
    return f"<p>{name}{where}</p><table>{''.join(rows)}</table>"
