"""What an animation shows: panels one after another, on axes that stay."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from hdica.analysis.show.panel import Array, Line, Panel
from hdica.analysis.show.words import Text, number, words

FRAMES = 60
"""No animation has more frames than this; of more times so many are chosen evenly."""

CUT = 4.0
"""A peak so many times as high as the middle one of all frames is cut, lest it flatten them."""

ROOM = 1.06
"""The axis ends so far above the highest curve."""


@dataclass(frozen=True)
class Film:
    """Panels one after another.

    Parameters
    ----------
    key
        File stem.
    title
        What it shows, and of which grid point.
    frames
        Each says its time in its title; all have the same limits.
    """

    key: str
    title: Text
    frames: tuple[Panel, ...]


def film(key: str, title: Text, panels: list[Panel]) -> Film:
    """Panels of non-negative curves on common axes from zero.

    A peak beyond the axis is said in the title of its frame.
    """
    seen = [one.x_range for one in panels if one.x_range is not None]
    ends = (min(low for low, _ in seen), max(high for _, high in seen)) if seen else None
    tops = np.array([_top(one) for one in panels])
    top = min(tops.max(), CUT * float(np.median(tops[tops > 0]))) if tops.any() else 1.0
    limits = (0.0, ROOM * top)
    frames = (
        replace(_cut(one, peak, limits[1]), x_range=ends, y_range=limits)
        for one, peak in zip(panels, tops, strict=True)
    )
    return Film(key, title, tuple(frames))


def _top(panel: Panel) -> float:
    """The highest value of any curve or band, 0 without any."""
    curves: list[Array] = []
    for item in panel.items:
        if isinstance(item, Line):
            curves += [item.y] if item.high is None else [item.y, item.high]
    known = [float(np.nanmax(one)) for one in curves if np.isfinite(one).any()]
    return max(known, default=0.0)


def _cut(panel: Panel, peak: float, end: float) -> Panel:
    if peak <= end:
        return panel
    return replace(panel, title=panel.title + words(f", peak {number(peak)} beyond the axis"))
