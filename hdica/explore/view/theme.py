"""Colours of figures in light and in dark, and the style of the page, which follows the browser."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bokeh.models import ColorBar, Legend, Span, Title
from bokeh.plotting import figure


def _style(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")


WIDGETS, PAGE, SHEET = _style("widgets.css"), _style("parts.css"), _style("page.css")
"""Styles of the controls, of what is said, and of the page itself."""
STATUS_COLORS = {"pending": "#a3adba", "diverged": "#e69f00", "failed": "#c43c39"}
"""How cells are filled that have no value, by what became of them."""


@dataclass(frozen=True)
class Theme:
    """Colours of what is drawn on a canvas, which style sheets do not reach."""

    ink: str  # theory, axes and text
    quiet: str  # ticks and their labels
    grid: str


LIGHT = Theme(ink="#16191d", quiet="#59636e", grid="#e4e7eb")
DARK = Theme(ink="#e8eaed", quiet="#9aa4b0", grid="#333a43")


def paint(plot: figure, theme: Theme) -> None:
    """Give a figure the colours of a theme; curves whose glyphs are tagged ``ink`` are theory."""
    plot.update(background_fill_color=None, border_fill_color=None, outline_line_color=theme.grid)
    for axis in plot.axis:
        axis.update(
            axis_label_text_color=theme.ink,
            major_label_text_color=theme.quiet,
            axis_line_color=theme.quiet,
            major_tick_line_color=theme.quiet,
            minor_tick_line_color=None,
        )
    plot.grid.grid_line_color = theme.grid
    # Where these lie: to walk through all models of a plot takes longer than to read what it draws.
    beside = [*plot.center, *plot.left, *plot.right, *plot.above, *plot.below]
    for legend in (one for one in beside if isinstance(one, Legend)):
        legend.update(
            label_text_color=theme.ink, background_fill_color=None, border_line_color=None
        )
    for bar in (one for one in beside if isinstance(one, ColorBar)):
        bar.update(
            major_label_text_color=theme.quiet,
            background_fill_color=None,
        )
    for title in (one for one in beside if isinstance(one, Title)):
        title.text_color = theme.ink
    for mark in (one for one in beside if isinstance(one, Span)):
        if "ink" in mark.tags:
            mark.line_color = theme.ink
    for renderer in plot.renderers:
        if "ink" in renderer.glyph.tags:
            renderer.glyph.update(line_color=theme.ink)
            if hasattr(renderer.glyph, "fill_color"):
                renderer.glyph.update(fill_color=theme.ink)


def styled(plot: figure) -> figure:
    """A figure with the letters and margins of the page."""
    plot.toolbar.logo = None
    for axis in plot.axis:
        axis.update(axis_label_text_font_style="normal", axis_label_text_font_size="13px")
        axis.update(major_label_text_font_size="12px")
    plot.toolbar.autohide = True
    return plot
