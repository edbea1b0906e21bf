"""Panels as figures for a paper: one column wide, vector, byte for byte reproducible."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from matplotlib import colormaps, rc_context, rcdefaults, rcParams
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullFormatter
from numpy.typing import NDArray

from hdica.report.place import TITLE
from hdica.report.ticks import ticks
from hdica.show.panel import (
    Array,
    Heat,
    Line,
    Panel,
    Pictures,
    Places,
    Points,
    Surface,
    Vertical,
    edges,
    mosaic,
)

if TYPE_CHECKING:
    from mpl_toolkits.mplot3d import Axes3D  # type: ignore[import-untyped]

WIDTH = 3.4  # inches: a single column of a two-column journal
HEIGHT = 2.5  # inches, with a legend of one line
STYLE: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "mathtext.fontset": "dejavusans",
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "axes.formatter.limits": (-4, 4),  # "× 10⁴" at the end of an axis, for numbers that would touch
    "axes.formatter.use_mathtext": True,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.direction": "out",
    "ytick.direction": "out",
    "svg.hashsalt": "hdica",
    "svg.fonttype": "path",
    "pdf.fonttype": 42,
}

DARK = 0.55  # below this part of a colour scale letters are white
LONGEST, UPRIGHT = 42, 34  # letters of a title and of an upright axis in one line
ROW = 8.5  # points of a row of labels above the axes
DASHES = {"solid": "-", "dash": (0, (4, 2)), "dot": ":", "dashdot": "-."}
MARKS = {"circle": "o", "square": "s", "diamond": "D", "triangle": "^"}
TICKS = 4  # at most so many steps along an axis: their labels stand close in space
MOST = 90  # a printed surface has at most so many patches along a side
FLAT = 1e-12  # area on paper below which a triangle is seen from its edge
ON = 0.02  # a place so near a surface, as a share of its depth, lies on it
PALE = 0.25  # opacity of what lies behind


@contextmanager
def own_style() -> Iterator[None]:
    """A context of Matplotlib's defaults and :data:`STYLE`, whatever a user's matplotlibrc says."""
    with rc_context():
        rcdefaults()
        rcParams.update(cast(Any, STYLE))
        yield


def files(panel: Panel) -> dict[str, bytes]:
    """A panel as ``<key>.svg`` and ``<key>.pdf`` by name: equal panels give equal bytes."""
    title = f"{TITLE}{panel.key}"
    svg, pdf = io.BytesIO(), io.BytesIO()
    with own_style():
        drawn = draw(panel)
        drawn.draw_without_rendering()
        drawn.set_layout_engine(None)  # laid out once, the same for both files
        drawn.savefig(svg, format="svg", metadata={"Date": None, "Title": title})
        drawn.savefig(pdf, format="pdf", metadata={"CreationDate": None, "Title": title})
    return {f"{panel.key}.svg": svg.getvalue(), f"{panel.key}.pdf": pdf.getvalue()}


def draw(panel: Panel) -> Figure:
    """A panel as a Matplotlib figure, without the global state of pyplot."""
    drawn = Figure(figsize=(WIDTH, HEIGHT + above(panel)), layout="constrained")
    if panel.in_space:
        axes = axes_in_space(drawn, panel)
    else:
        axes = drawn.add_subplot()
        draw_on(axes, panel)
        if panel.pictured:
            axes.set_axis_off()
    legend_below(drawn, axes)
    return drawn


def above(panel: Panel) -> float:
    """Inches that the rows of labels between the axes and the title need."""
    return ROW * _rows(panel) / 72


def _rows(panel: Panel) -> int:
    return max((i.row + 1 for i in panel.items if isinstance(i, Vertical)), default=0)


def draw_on(axes: Axes, panel: Panel) -> None:
    """A panel that does not lie in space on axes of one's own, but for its legend."""
    for item in panel.items:
        if isinstance(item, Pictures):
            axes.imshow(mosaic(item), interpolation="nearest")
        elif isinstance(item, Line):
            _line(axes, item)
        elif isinstance(item, Points):
            _points(axes, item)
        elif isinstance(item, Heat):
            _heat(axes, item, panel)
        elif isinstance(item, Vertical):
            _vertical(axes, item)
    _frame(axes, panel)


def _line(axes: Axes, item: Line) -> None:
    color = "black" if item.color == "ink" else item.color
    width = 1.3 if item.bold else 0.9
    if item.low is not None and item.high is not None:
        axes.fill_between(item.x, item.low, item.high, color=color, alpha=0.2, linewidth=0)
    if item.cased:
        axes.plot(item.x, item.y, color="white", alpha=0.8, linewidth=2 * width)
    axes.plot(
        item.x, item.y, color=color, linestyle=DASHES[item.dash], linewidth=width,
        label=item.label.tex if item.listed else None,
    )  # fmt: skip


def _points(axes: Axes, item: Points) -> None:
    mark, white = MARKS[item.symbol], item.color == "#ffffff"
    edge = "black" if white else item.color
    if item.joined:
        axes.plot(item.x, item.y, color=item.color, linewidth=0.6)
    if item.low is not None and item.high is not None:
        bars = np.clip([item.y - item.low, item.high - item.y], 0, None)
        axes.errorbar(
            item.x, item.y, bars, fmt="none", ecolor=item.color, elinewidth=0.7, capsize=1.2
        )
    filled = np.ones(len(item.x), bool) if item.filled is None else item.filled
    for face, keep in ((item.color, filled), ("white", ~filled)):
        if keep.any():
            axes.plot(
                item.x[keep], item.y[keep], mark, markersize=2.2 if white else 3.4,
                color=item.color, markerfacecolor=face, markeredgecolor=edge,
                markeredgewidth=0.4 if white else 0.8, zorder=4,
            )  # fmt: skip
    if item.listed:
        axes.plot(
            [], [], mark, markersize=3.4, color=item.color, markeredgecolor=edge,
            markeredgewidth=0.5, label=item.label.tex,
        )  # fmt: skip


def _heat(axes: Axes, item: Heat, panel: Panel) -> None:
    drawn = axes.pcolormesh(
        edges(item.x, panel.log_x), edges(item.y, panel.log_y), item.z, cmap=item.scale,
        vmin=item.low, vmax=item.high, shading="flat", rasterized=True,
    )  # fmt: skip
    middle = item.low + DARK * (item.high - item.low)
    for at, row, values in zip(item.y, item.written, item.z, strict=False):
        for x, text, value in zip(item.x, row, values, strict=True):
            color = "white" if value < middle else "black"
            axes.text(x, at, text, ha="center", va="center", fontsize=5.5, color=color)
    bar = axes.figure.colorbar(drawn, ax=axes, pad=0.02, aspect=25)
    bar.set_label(item.label.tex)
    bar.outline.set_linewidth(0.4)


def _vertical(axes: Axes, item: Vertical) -> None:
    if item.color:
        axes.axvline(item.x, color=item.color, linewidth=0.7, linestyle=DASHES["dot"], zorder=0)
    else:
        axes.axvline(item.x, color="white", alpha=0.7, linewidth=1.9)
        axes.axvline(item.x, color="black", linewidth=1.1, linestyle=DASHES["dash"])
    axes.annotate(
        item.label.tex, (item.x, 1.0), xycoords=("data", "axes fraction"),
        xytext=(0, 2 + ROW * item.row), textcoords="offset points", ha=item.anchor, va="bottom",
        fontsize=7, color=item.color or "black",
    )  # fmt: skip


def _frame(axes: Axes, panel: Panel) -> None:
    axes.set(xlabel=panel.x_label.tex, ylabel=in_lines(panel.y_label.tex, UPRIGHT))
    if panel.log_x:
        axes.set_xscale("log")
    if panel.log_y:
        axes.set_yscale("log")
    axes.set(**_limits(panel))
    if panel.log_x:
        _log_ticks(axes.xaxis, True)
    if panel.log_y:
        _log_ticks(axes.yaxis, False)
    if panel.counts:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    if panel.equal:
        axes.set_aspect("equal", adjustable="box")
    pad = rcParams["axes.titlepad"] + ROW * _rows(panel)
    axes.set_title(in_lines(panel.title.tex, LONGEST), loc="left", pad=pad)


def _limits(panel: Panel) -> dict[str, tuple[float, float]]:
    limits = {"xlim": panel.x_range, "ylim": panel.y_range}
    return {name: ends for name, ends in limits.items() if ends}


def in_lines(label: str, longest: int) -> str:
    """A label in two lines if it has more letters, broken in no formula and beside no sign."""
    pieces = re.split(r"(?<![=−+±]) (?![=−+±])(?=(?:[^$]*\$[^$]*\$)*[^$]*$)", label)
    if _visible(label) <= longest or len(pieces) == 1:
        return label
    both = [(" ".join(pieces[:k]), " ".join(pieces[k:])) for k in range(1, len(pieces))]
    upper, lower = min(both, key=lambda two: abs(_visible(two[0]) - _visible(two[1])))
    return f"{upper}\n{lower}"


def _log_ticks(axis: Axis, level: bool) -> None:
    """Named ticks on a logarithmic axis, of one size."""
    low, high = sorted(axis.get_view_interval())
    if not 0 < low < high:
        return
    places, labels = ticks(low, high, level)
    axis.set_major_locator(FixedLocator(places.tolist()))
    axis.set_major_formatter(FixedFormatter([label.tex for label in labels]))
    axis.set_minor_formatter(NullFormatter())


def legend_below(drawn: Figure, axes: Axes) -> None:
    """Below the axes, so that it never covers data; the figure grows with it."""
    handles, labels = axes.get_legend_handles_labels()
    if len(labels) > 1:
        across = columns(labels)
        drawn.set_figheight(drawn.get_figheight() + 0.13 * (-(-len(labels) // across) - 1))
        drawn.legend(handles, labels, loc="outside lower center", ncols=across)


def columns(labels: Sequence[str]) -> int:
    """How many entries of a legend stand side by side in one column of a journal."""
    longest = max(map(_visible, labels))
    return 3 if longest <= 14 else 2 if longest <= 25 else 1


def _visible(label: str) -> int:
    """Letters of a label as drawn: a TeX command is one, its marks are none."""
    return len(re.sub(r"\\[a-zA-Z]+", "x", re.sub(r"\\mathrm|\\,|[$_^{}]", "", label)))


def axes_in_space(drawn: Figure, panel: Panel) -> Axes3D:
    """The axes of a panel in space, with all that is in it."""
    axes: Axes3D = drawn.add_subplot(projection="3d", computed_zorder=False)
    surfaces = [item for item in panel.items if isinstance(item, Surface)]
    places = [item for item in panel.items if isinstance(item, Places)]
    for surface in surfaces:
        _surface(axes, surface)
    _frame_in_space(axes, panel)
    for item in places:
        axes.auto_scale_xyz(item.x, item.y, item.z, had_data=bool(surfaces))
    if panel.equal:
        axes.set_aspect("equal")
    for item in places:
        _places(axes, item, hidden(axes.get_proj(), surfaces, item))
    return axes


def hidden(projection: Array, surfaces: Sequence[Surface], item: Places) -> NDArray[np.bool_]:
    """Which places a triangle of a surface covers, as a projection's eye sees them: (points,)."""
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


def _frame_in_space(axes: Axes3D, panel: Panel) -> None:
    labels = zip("xyz", (panel.x_label, panel.y_label, panel.z_label), strict=True)
    for name, label in labels:
        getattr(axes, f"set_{name}label")(label.tex, labelpad=-6)
        getattr(axes, f"{name}axis").set_tick_params(pad=-3, labelsize=6)
        getattr(axes, f"{name}axis").set_major_locator(MaxNLocator(TICKS, prune="both"))
    axes.set(**_limits(panel))
    axes.view_init(elev=panel.view[1], azim=panel.view[0])
    axes.set_title(panel.title.tex, loc="left")


def _surface(axes: Axes3D, item: Surface) -> None:
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


def _places(axes: Axes3D, item: Places, behind: NDArray[np.bool_]) -> None:
    """Markers, pale where a surface hides them."""
    at = np.stack([item.x, item.y, item.z]).astype(float)
    marks: dict[str, Any] = {"linestyle": "", "marker": MARKS[item.symbol], "markersize": 3.4}
    marks |= {"markeredgecolor": "white", "markeredgewidth": 0.4}
    for some, alpha, label in ((~behind, 1.0, item.label.tex), (behind, PALE, None)):
        if some.any() or label:
            places = np.where(some, at, np.nan)
            axes.plot(*places, color=item.color, alpha=alpha, zorder=4, label=label, **marks)
