"""All ratios as one picture: a row a benchmark, a line a rival, a mark a case."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import REGISTRY
from benchmarks.harness import Row
from benchmarks.table import cases, foreign, number, rows_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LINE, GAP = 0.205, 0.11
"""Inches of a line, and between benchmarks."""
LEAST = 1.8
"""Lines that the name of a benchmark needs, with what it times below."""
CASES = 15
"""As many as fit into one line."""
FAR = 1e4
"""A line that goes beyond has its name on the left."""


@dataclass(frozen=True)
class Line:
    """All cases of one rival in one benchmark.

    Parameters
    ----------
    benchmark, rival
        Their names.
    quartiles
        Lower quartile, median and upper quartile of its time over ours, shape (cases, 3).
    foreign
        Whether it is another program, and not hdica by another of its methods.
    """

    benchmark: str
    rival: str
    quartiles: NDArray[np.float64]
    foreign: bool

    @property
    def room(self) -> float:
        """Its height: more than one where cases would hide one another."""
        return max(1.0, len(self.quartiles) / CASES)


@dataclass(frozen=True)
class Ink:
    """Colours of Okabe and Ito on one background."""

    paper: str
    band: str
    text: str
    faint: str
    ahead: str
    behind: str
    even: str


LIGHT = Ink("#ffffff", "#f3f5f7", "#1f2328", "#59636e", "#0072b2", "#d55e00", "#6e7781")
DARK = Ink("#0d1117", "#161b22", "#e6edf3", "#9198a1", "#56b4e9", "#e69f00", "#9198a1")


def lines_of(results: Mapping[str, Any]) -> list[Line]:
    """A line for each rival of each benchmark, in the order in which they are first met."""
    found: dict[tuple[str, str], list[Row]] = {}
    for name, entry in results.items():
        for _, *others in cases(rows_of(entry)):
            for row in others:
                found.setdefault((name, row.contestant), []).append(row)
    return [
        Line(
            name,
            rival,
            np.array([[row.ratio_low, row.ratio, row.ratio_high] for row in rows]),
            foreign(rows[0]),
        )
        for (name, rival), rows in found.items()
    ]


def verdicts(quartiles: NDArray[np.float64]) -> NDArray[np.int_]:
    """+1 where both quartiles are above one (hdica is faster), -1 where both are below, else 0."""
    above, below = quartiles[:, 0] > 1, quartiles[:, 2] < 1
    return above.astype(int) - below.astype(int)


def _said(line: Line) -> str:
    """The rival, its cases if there are several, and the range of its medians."""
    medians = line.quartiles[:, 1]
    low, high = number(medians.min()), number(medians.max())
    span = low if low == high else f"{low} – {high}"
    return f"{line.rival}  {span}"


def _marks(axes: Axes, line: Line, y: float, ink: Ink) -> None:
    """Each case as its median with its quartiles; cases of a line are spread a little."""
    count, reach = len(line.quartiles), 0.5 * line.room
    heights = y + reach * ((np.arange(count) + 0.5) / count - 0.5)
    kinds = verdicts(line.quartiles)
    styles = ((1, "o", ink.ahead), (-1, "D", ink.behind), (0, "s", ink.even))
    for kind, marker, colour in styles:
        some = kinds == kind
        if not some.any():
            continue
        low, middle, high = line.quartiles[some].T
        axes.errorbar(
            middle,
            heights[some],
            xerr=[middle - low, high - middle],
            fmt=marker,
            color=colour,
            markersize=4.2 if marker == "o" else 3.8,
            markerfacecolor=colour if line.foreign else ink.paper,
            markeredgewidth=1.0,
            elinewidth=1.1,
            zorder=3,
        )
    low, high = line.quartiles[:, 0].min(), line.quartiles[:, 2].max()
    far = high > FAR
    axes.annotate(
        _said(line),
        (low if far else max(high, 1.0), y),
        xytext=(-8 if far else 8, 0),
        textcoords="offset points",
        ha="right" if far else "left",
        va="center",
        fontsize=8,
        color=ink.text if line.foreign else ink.faint,
    )


def _places(lines: Sequence[Line]) -> tuple[list[float], dict[str, tuple[float, float]]]:
    """Height of each line, and top and bottom of each benchmark, in units of a line."""
    heights: list[float] = []
    spans: dict[str, tuple[float, float]] = {}
    y = 0.0
    for name, some in groupby(lines, key=lambda line: line.benchmark):
        rooms = [line.room for line in some]
        top = y + (GAP / LINE if spans else 0.0)
        y = top + max(LEAST, sum(rooms))
        first = (top + y - sum(rooms)) / 2
        heights += [first + sum(rooms[:i]) + room / 2 for i, room in enumerate(rooms)]
        spans[name] = (top, y)
    return heights, spans


def _rows(axes: Axes, spans: Mapping[str, tuple[float, float]], ink: Ink) -> None:
    """Bands with the names of the benchmarks and what they time."""
    aside = axes.get_yaxis_transform()
    for name, (top, bottom) in spans.items():
        axes.axhspan(top, bottom, color=ink.band, zorder=0)
        middle, shift = (top + bottom) / 2, 0.4
        right = {"transform": aside, "ha": "right", "va": "center"}
        bold = {"fontsize": 9, "fontweight": "bold", "color": ink.text}
        axes.text(-0.012, middle - shift, name, **bold, **right)
        small = {"fontsize": 8, "color": ink.faint}
        axes.text(-0.012, middle + shift, REGISTRY.get(name, ""), **small, **right)


def _legend(axes: Axes, ink: Ink) -> None:
    from matplotlib.lines import Line2D

    def mark(marker: str, colour: str, label: str, filled: bool = True) -> Line2D:
        face = colour if filled else ink.paper
        return Line2D(
            [], [], ls="", marker=marker, color=colour, mfc=face, markersize=5, label=label
        )

    axes.legend(
        handles=[
            mark("o", ink.ahead, "hdica is faster"),
            mark("D", ink.behind, "the other is faster"),
            mark("s", ink.even, "quartiles on both sides of 1"),
            mark("o", ink.ahead, "hdica in another way", filled=False),
        ],
        loc="lower right",
        bbox_to_anchor=(1.0, 1.0),
        ncols=4,
        fontsize=8,
        frameon=False,
        labelcolor=ink.text,
        handlelength=1.0,
        columnspacing=1.4,
    )


def draw(results: Mapping[str, Any], path: Path, *, dark: bool = False, about: str = "") -> None:
    """Write the picture of all ratios on a logarithmic axis, quartiles as bars.

    Parameters
    ----------
    results
        Per benchmark ``{"machine": {...}, "rows": [...]}``.
    path
        A ``.svg`` file; its folder is made. The same results give the same bytes.
    dark
        Whether it lies on a dark page.
    about
        What the file says of itself.
    """
    import matplotlib as mpl
    from matplotlib.figure import Figure

    ink, lines = DARK if dark else LIGHT, lines_of(results)
    heights, spans = _places(lines)
    total = max(bottom for _, bottom in spans.values())
    figure = Figure(figsize=(9.6, 0.95 + LINE * total), facecolor=ink.paper)
    left, right, top, bottom = 0.245, 0.985, 0.35, 0.5
    high = figure.get_figheight()
    axes = figure.add_axes((left, bottom / high, right - left, 1 - (top + bottom) / high))
    axes.set(xscale="log", xlim=(0.2, 2e5), ylim=(total, 0), yticks=[], facecolor=ink.paper)
    _rows(axes, spans, ink)
    axes.axvline(1, color=ink.text, linewidth=1.0, zorder=2)
    axes.grid(True, axis="x", which="major", linewidth=0.5, color=ink.faint, alpha=0.35)
    for line, y in zip(lines, heights, strict=True):
        _marks(axes, line, y, ink)
    axes.set_xlabel("time of the other over hdica's", fontsize=9, color=ink.text)
    axes.set_xticks([1, 10, 100, 1000, 10**4, 10**5], ["1", "10", "100", "1000", "10⁴", "10⁵"])
    axes.minorticks_off()
    axes.tick_params(axis="x", colors=ink.text, labelsize=8.5, length=3)
    axes.spines[:].set_visible(False)
    _legend(axes, ink)
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.hashsalt": "hdica", "svg.fonttype": "path"}):
        figure.savefig(path, metadata={"Date": None, "Description": about}, facecolor=ink.paper)
