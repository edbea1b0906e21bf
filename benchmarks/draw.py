"""Scaling laws as a picture: what was measured, and the fitted power laws through it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.laws import Law

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = (
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f", "#000000",
    "#8c6bb1",
)  # fmt: skip


def _curve(axes: Axes, law: Law, colour: str) -> None:
    """Medians with the whole spread, joined by dots, and the fit as a line."""
    middle = np.median(law.times, axis=1)
    spread = np.abs(np.array([law.times.min(axis=1), law.times.max(axis=1)]) - middle)
    label = f"{law.what.split(', ')[-1]}: {law.said}"
    axes.plot(law.sizes, middle, ":", color=colour, linewidth=1.0, alpha=0.5)
    axes.plot(*law.line, color=colour, linewidth=1.2, alpha=0.7)
    axes.errorbar(
        law.sizes,
        middle,
        yerr=spread,
        fmt="o",
        color=colour,
        markersize=4.5,
        capsize=2,
        label=label,
    )


def _panel(axes: Axes, laws: Sequence[Law], title: str, x: str, y: str) -> None:
    for law, colour in zip(laws, COLOURS, strict=False):
        _curve(axes, law, colour)
    axes.set(xscale="log", yscale="log", xlabel=x, ylabel=y)
    axes.set_title(title, loc="left", fontsize=11)
    axes.grid(True, which="major", linewidth=0.4, alpha=0.5)
    axes.spines[["top", "right"]].set_visible(False)


def _over_ideal(law: Law) -> Law:
    """Wall times of the same work as multiples of what perfect workers would need."""
    ideal = np.median(law.times[0]) / np.array(law.sizes)[:, None]
    return Law("processes", law.along, "of ideal", law.sizes, law.times / ideal)


def draw(laws: Sequence[Law], path: Path) -> None:
    """Write a picture of three panels: against n, points and workers.

    Parameters
    ----------
    laws
        What was measured.
    path
        A ``.png`` or ``.svg`` file; its folder is made.
    """
    from matplotlib.figure import Figure

    figure = Figure(figsize=(15, 4.8), layout="constrained")
    first, second, third = figure.subplots(1, 3)
    by = {
        along: [law for law in laws if law.along == along] for along in ("n", "points", "workers")
    }
    _panel(first, by["n"], "Time of a step", "dimension n", "ns")
    stages = [law for law in by["points"] if law.unit == "s"]
    stages.sort(key=lambda law: -float(law.times[-1].mean()))
    _panel(second, stages, "Time of the stages of a sweep", "points", "s")
    real, simulated = by["workers"]
    _panel(third, [_over_ideal(real), simulated], "Wall time over ideal", "workers", "")
    third.set_yscale("linear")
    third.set_ylim(0.8, max(1.4, 1.1 * simulated.times.max()))
    third.axhline(1.0, color="#444444", linewidth=0.8, linestyle="--")
    style = {"title": "exponent", "fontsize": 8.5, "title_fontsize": 8.5, "frameon": False}
    first.legend(loc="lower right", bbox_to_anchor=(1.0, 0.12), **style)
    second.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), **style)
    third.legend(loc="upper left", **style)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
