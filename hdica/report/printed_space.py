"""Panels in space for print, by Matplotlib's mplot3d."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from hdica.show.panel import Panel, Places, Surface

Array = NDArray[np.float64]

MARKS = {"circle": "o", "square": "s", "diamond": "D", "triangle": "^"}
TICKS = 4
"""At most so many steps along an axis: their labels stand close in space."""
MOST = 90
"""A printed surface has at most so many patches along a side."""
FLAT = 1e-12
"""Area on paper below which a triangle is seen from its edge."""
ON = 0.02
"""A place so near a surface, as a share of its depth, lies on it."""
PALE = 0.25
"""Opacity of what lies behind."""


def axes_in_space(drawn: Figure, panel: Panel) -> Any:
    """The axes of a panel in space, with all that is in it."""
    axes: Any = drawn.add_subplot(projection="3d", computed_zorder=False)
    surfaces = [item for item in panel.items if isinstance(item, Surface)]
    for surface in surfaces:
        _surface(axes, surface)
    _frame(axes, panel)
    for item in panel.items:
        if isinstance(item, Places):
            axes.auto_scale_xyz(item.x, item.y, item.z, had_data=bool(surfaces))
    if panel.equal:
        axes.set_aspect("equal")
    for item in panel.items:
        if isinstance(item, Places):
            _places(axes, item, hidden(axes.get_proj(), surfaces, item))
    return axes


def hidden(projection: Array, surfaces: Sequence[Surface], item: Places) -> NDArray[np.bool_]:
    """Which places lie behind a surface, as seen from the eye of a projection; shape (points,).

    Matplotlib draws whole items one over another. Here a place is compared with every triangle of
    the surfaces that covers it on paper.
    """
    x, y, depth = _seen(projection, item.x, item.y, item.z)
    behind = np.zeros(len(item.x), dtype=bool)
    for surface in surfaces:
        corners = _seen(projection, surface.x, surface.y, surface.z)
        a, b, c, d = (
            corners[:, i, j].reshape(3, -1)
            for i in (slice(-1), slice(1, None))
            for j in (slice(-1), slice(1, None))
        )
        for one, two, three in ((a, b, c), (d, b, c)):
            (ux, uy, uz), (vx, vy, vz) = two - one, three - one
            area = ux * vy - uy * vx
            flat = np.abs(area) < FLAT
            area = np.where(flat, 1.0, area)
            for k in np.flatnonzero(~behind & np.isfinite(x + y + depth)):
                px, py = x[k] - one[0], y[k] - one[1]
                s, t = (px * vy - py * vx) / area, (ux * py - uy * px) / area
                covers = ~flat & (s >= 0) & (t >= 0) & (s + t <= 1)
                nearer = one[2] + s * uz + t * vz < depth[k] - ON * np.ptp(corners[2])
                behind[k] = bool((covers & nearer).any())
    return behind


def _seen(projection: Array, *at: Array) -> Array:
    """Place on paper and depth, the larger the further, shape (3, ...)."""
    one = np.stack([*(np.asarray(v, dtype=float) for v in at), np.ones_like(at[0], dtype=float)])
    projected = np.tensordot(projection, one, 1)
    return np.asarray(projected[:3] / projected[3])


def _frame(axes: Any, panel: Panel) -> None:
    labels = zip("xyz", (panel.x_label, panel.y_label, panel.z_label), strict=True)
    for name, label in labels:
        getattr(axes, f"set_{name}label")(label.tex, labelpad=-6)
        getattr(axes, f"{name}axis").set_tick_params(pad=-3, labelsize=6)
        getattr(axes, f"{name}axis").set_major_locator(MaxNLocator(TICKS, prune="both"))
    if panel.x_range:
        axes.set_xlim(*panel.x_range)
    if panel.y_range:
        axes.set_ylim(*panel.y_range)
    axes.view_init(elev=panel.view[1], azim=panel.view[0])
    axes.set_title(panel.title.tex, loc="left")


def _surface(axes: Any, item: Surface) -> None:
    seen = item.color[np.isfinite(item.color)]
    norm, scale = Normalize(float(seen.min()), float(seen.max())), colormaps["viridis"]
    step = [max(-(-size // MOST), 1) for size in item.color.shape]
    axes.plot_surface(
        item.x, item.y, item.z, facecolors=scale(norm(item.color)), rstride=step[0],
        cstride=step[1], shade=False, linewidth=0, antialiased=False, rasterized=True, zorder=1,
    )  # fmt: skip
    bar = axes.figure.colorbar(ScalarMappable(norm, scale), ax=axes, pad=0.12, shrink=0.7)
    bar.set_label(item.label.tex)
    bar.outline.set_linewidth(0.4)


def _places(axes: Any, item: Places, behind: NDArray[np.bool_]) -> None:
    """Markers, pale where a surface hides them."""
    at = np.stack([item.x, item.y, item.z]).astype(float)
    marks: dict[str, Any] = {"linestyle": "", "marker": MARKS[item.symbol], "markersize": 3.4}
    marks |= {"markeredgecolor": "white", "markeredgewidth": 0.4}
    for some, alpha, label in ((~behind, 1.0, item.label.tex), (behind, PALE, None)):
        if some.any() or label:
            here = np.where(some, at, np.nan)
            axes.plot(*here, color=item.color, alpha=alpha, zorder=4, label=label, **marks)
