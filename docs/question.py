"""The picture at the head of the README: ``python docs/question.py``.

Online ICA with a uniform source and f = x^3: single runs beside the limit, and where learning ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import hdica

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

FOLDER = Path(__file__).parent
SIZES = {100: 1.0, 1000: 1.3, 10_000: 1.6}
"""Dimensions, and the widths of their lines."""
STARTS = (0.75, 0.6)
STEP_SIZES = np.linspace(0.02, 0.08, 13)
SHOWN, END = 100, 1000
"""Last time of the left panel and of the right."""


@dataclass(frozen=True)
class Ink:
    """Colours of one background: paper, text, lines of the limit, and one a dimension."""

    paper: str
    text: str
    faint: str
    sizes: tuple[str, str, str]


INKS = {
    "question.svg": Ink("#ffffff", "#1f2328", "#59636e", ("#e69f00", "#009e73", "#0072b2")),
    "question-dark.svg": Ink("#0d1117", "#e6edf3", "#9198a1", ("#e69f00", "#009e73", "#56b4e9")),
}


def ica(**values: object) -> hdica.OnlineICA:
    """The rule of both panels, at tau = 0.05 unless it is swept."""
    return hdica.OnlineICA(**{"tau": 0.05, "source": "uniform", "nonlinearity": "x**3", **values})


@dataclass(frozen=True)
class Found:
    """What both pictures show."""

    runs: xr.Dataset
    limit: xr.Dataset
    ends: xr.Dataset
    steady: xr.Dataset
    critical: tuple[float, float]


def found() -> Found:
    """Runs and their limit from both starts, and ends with steady states over the step size."""
    times, sizes = {"stop": SHOWN, "num": 201}, list(SIZES)
    over = {"Q0": list(STARTS)}
    swept = {"tau": STEP_SIZES.tolist()}
    far = {"tau": np.linspace(0.02, 0.0591, 100).tolist()}
    exact = ica(start={"overlap": 0.5, "exact": True})
    start, fold = ica(start={"overlap": 0.9}), hdica.critical(ica(), "tau")
    return Found(
        runs=hdica.simulate(exact, n=sizes, times=times, seeds=1, over=over),
        limit=hdica.limit(ica(), times=times, over=over),
        ends=hdica.simulate(start, n=sizes, times=[END], seeds=16, over=swept).isel(time=0),
        steady=hdica.fixed_points(ica(), over=far),
        critical=(float(fold.value[0]), float(abs(fold.Q[0]))),
    )


def branch(steady: xr.Dataset, stable: bool) -> tuple[np.ndarray, np.ndarray]:
    """Step sizes and overlaps of the positive steady states of one stability."""
    some = (steady.stable == stable) & (steady.Q > 1e-9)
    overlap = steady.Q.where(some).max("fixed_point")
    return steady.tau.values, overlap.values


def over_time(axes: Axes, data: Found, ink: Ink) -> None:
    """Left: one run a dimension and start, and the limit."""
    for start in STARTS:
        one = data.runs.sel(Q0=start).isel(seed=0)
        for (size, width), colour in zip(SIZES.items(), ink.sizes, strict=True):
            axes.plot(one.time, one.Q.sel(n=size), color=colour, linewidth=width, alpha=0.9)
        limit = data.limit.Q.sel(Q0=start)
        axes.plot(limit.time, limit, color=ink.text, linewidth=1.6)
    axes.set(
        xlabel="time t = k/n", ylabel="overlap Q", xlim=(0, SHOWN), title="As n grows, at τ = 0.05"
    )


def over_step_size(axes: Axes, data: Found, ink: Ink) -> None:
    """Right: where runs end, and the steady states that end at the critical step size."""
    tau_c, top = data.critical
    for stable, style in ((True, "-"), (False, "--")):
        tau, overlap = branch(data.steady, stable)
        axes.plot([*tau, tau_c], [*overlap, top], style, color=ink.text, linewidth=1.6, zorder=3)
    axes.axvline(tau_c, color=ink.faint, linewidth=1.0, linestyle=":")
    axes.text(tau_c + 0.0006, 0.97, f"τ$_c$ = {tau_c:.4f}", color=ink.text, fontsize=9)
    for i, (size, colour) in enumerate(zip(SIZES, ink.sizes, strict=True)):
        ends = abs(data.ends.Q.sel(n=size))
        axes.errorbar(
            ends.tau + (i - 1) * 0.0005,
            ends.mean("seed"),
            ends.std("seed", ddof=1),
            fmt="o",
            color=colour,
            markersize=4.5,
            elinewidth=1.1,
        )
    axes.set(
        xlabel="step size τ", ylabel=f"overlap |Q| at t = {END}", title="Where it stops working"
    )


def draw(data: Found, path: Path, ink: Ink) -> None:
    """Write the picture on one background."""
    import matplotlib as mpl
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    figure = Figure(figsize=(9.6, 3.7), facecolor=ink.paper, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.12)
    left, right = figure.subplots(1, 2)
    over_time(left, data, ink)
    over_step_size(right, data, ink)
    for axes in (left, right):
        axes.set_ylim(-0.03, 1.03)
        axes.set_facecolor(ink.paper)
        axes.title.set(color=ink.text, fontsize=11)
        axes.xaxis.label.set_color(ink.text)
        axes.yaxis.label.set_color(ink.text)
        axes.tick_params(colors=ink.faint, labelcolor=ink.text, labelsize=9)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(ink.faint)
    names = [f"n = {size:,}".replace(",", " ") for size in SIZES]
    keys = [Line2D([], [], color=c, marker="o", markersize=4.5) for c in ink.sizes]
    keys.append(Line2D([], [], color=ink.text, linewidth=1.6))
    style = {"ncols": 4, "frameon": False, "labelcolor": ink.text, "fontsize": 9}
    figure.legend(keys, [*names, "n → ∞"], loc="outside lower center", **style)
    with mpl.rc_context({"svg.hashsalt": "hdica", "svg.fonttype": "path"}):
        figure.savefig(path, metadata={"Date": None}, facecolor=ink.paper)


if __name__ == "__main__":
    seen = found()
    for name, colours in INKS.items():
        draw(seen, FOLDER / name, colours)
