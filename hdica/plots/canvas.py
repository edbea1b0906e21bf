"""Matplotlib axes in and out, and a style that prints."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Literal

import numpy as np
from cycler import cycler
from matplotlib import interactive, is_interactive, rc_context, rcParams
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.transforms import ScaledTranslation

from hdica.errors import HdicaError, suggestion
from hdica.report.animated import Animation, animated
from hdica.report.printed import HEIGHT, STYLE, WIDTH, above, columns, draw_on, legend_below
from hdica.show.panel import Film, Heat, Item, Line, Panel, Points
from hdica.show.words import OKABE_ITO

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WIDTHS = {"column": WIDTH, "page": 7.0}  # inches: a column of a two-column journal, and its page
BELOW = 29.0  # points between axes and legend: tick labels and the label of the axis
MARK: Literal["svg.hashsalt"] = "svg.hashsalt"
"""A setting that only this style makes, by which it is known to be on."""
OWN = {
    "figure.constrained_layout.use": True,
    "axes.prop_cycle": cycler(color=OKABE_ITO),
    "savefig.dpi": 300,
    "lines.linewidth": 1.1,
    "lines.markersize": 3.4,
}
"""Settings beyond those of the figures of reports."""


def style(width: str | float = "column", height: float = HEIGHT) -> AbstractContextManager[None]:
    """A context in which figures are as a journal prints them.

    Fonts of 8 points and less, Okabe and Ito's colours, text that stays text in a PDF, 300 dots
    an inch, and room for labels (constrained layout). Settings of the reader's matplotlibrc or
    ``matplotlib.rcParams`` that these do not replace stay, such as ``text.usetex``, which needs
    LaTeX; ``matplotlib.rcdefaults()`` before it drops them. Figures of reports depend on none.

    Parameters
    ----------
    width
        ``"column"`` (3.4 inches), ``"page"`` (7 inches), or inches.
    height
        Inches.

    Raises
    ------
    HdicaError
        If there is no such width.
    """
    if isinstance(width, str) and width not in WIDTHS:
        raise HdicaError(
            f"width = {width!r} is not allowed ({suggestion(width, WIDTHS)}, or inches)"
        )
    inches = WIDTHS[width] if isinstance(width, str) else float(width)
    if not (inches > 0 and height > 0):
        raise HdicaError(f"width = {width}, height = {height} is not allowed (inches above 0)")
    return _settings({**STYLE, **OWN, "figure.figsize": (inches, height)})


@contextmanager
def _settings(values: dict[str, object]) -> Iterator[None]:
    """Settings of Matplotlib for a while.

    The interactive mode stays, which a notebook turns on as it makes its first figure: without it
    the figures of later cells would not show.
    """
    with rc_context(values):  # type: ignore[arg-type]
        yield
        mode = is_interactive()
    interactive(mode)


def _own_or_style() -> AbstractContextManager[None]:
    """The style that the reader has on, if it is this one, or else the column's."""
    return nullcontext() if rcParams[MARK] == STYLE[MARK] else style()


def drawn(panel: Panel, ax: Axes | None, legend: bool = True) -> Axes:
    """A panel on axes, or on those of a new figure, with the legend below where there is room."""
    if not any(map(_visible, panel.items)):
        raise HdicaError(f"{panel.key}: there is nothing to draw (no number is known)")
    if ax is not None:
        draw_on(ax, panel)
        if legend:
            _legend_on(ax)
        return ax
    import matplotlib.pyplot as plt

    with _own_or_style():
        width, height = rcParams["figure.figsize"]
        figure = plt.figure(figsize=(width, height + above(panel)), layout="constrained")
        axes = figure.add_subplot()
        draw_on(axes, panel)
        if legend:
            legend_below(figure, axes)
    return axes


def animated_on(film: Film, ax: Axes | None, legend: bool = True) -> Animation:
    """A film on axes, or on those of a new figure of one column."""
    if ax is not None:
        animation = Animation(film, ax)
        if legend:
            _legend_on(ax)
        return animation
    import matplotlib.pyplot as plt

    with _own_or_style():
        return animated(film, plt.figure(layout="constrained"), legend)


def _legend_on(ax: Axes) -> None:
    """Below the axes where the figure makes room for it, else somewhere in them."""
    handles, labels = ax.get_legend_handles_labels()
    if len(labels) < 2:
        return
    if not isinstance(ax.figure.get_layout_engine(), ConstrainedLayoutEngine):
        ax.legend(handles, labels)
        return
    figure = ax.figure.get_figure(root=True)
    assert figure is not None
    under = ScaledTranslation(0, -BELOW / 72, figure.dpi_scale_trans)
    ax.legend(
        handles, labels, loc="upper center", ncols=columns(labels), borderaxespad=0.0,
        bbox_to_anchor=(0.5, 0.0), bbox_transform=ax.transAxes + under,
    )  # fmt: skip


def _visible(item: Item) -> bool:
    """Whether an item shows any number."""
    values = item.z if isinstance(item, Heat) else getattr(item, "y", np.nan)
    return isinstance(item, Heat | Line | Points) and bool(np.isfinite(values).any())
