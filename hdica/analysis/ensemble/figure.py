"""All runs in time, and the times at which they first go below a value."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import xarray as xr

from hdica.analysis.ensemble.compute import crossed, theory_name
from hdica.show.choose import Point, dims_of, selected, selection_note, shown
from hdica.show.marks import (
    DASHES,
    GREY,
    colored,
    interval,
    level,
    positive,
    tailed,
    time_axes,
    upright,
)
from hdica.show.panel import Array, Line, Panel
from hdica.show.words import EMPTY, OKABE_ITO, Text, method_name, plural, symbol, titled, words

BEYOND = 10.0
"""Theory may widen the logarithmic axis that shows the runs by such a factor at either end."""
WIDE = 20.0
"""Times that differ by more than this factor are drawn on a logarithmic axis."""
RUNS, BOUNDS = OKABE_ITO[0], (*OKABE_ITO[1:], OKABE_ITO[0])
PALE = "#b5b5b5"
"""Of single runs, below everything else."""


def ensemble(data: xr.Dataset) -> list[Panel]:
    """For each grid point the runs in time, and the distribution of first passages."""
    grid = dims_of(data["count"])
    cells = [cell for cell in shown(data, grid) if int(selected(data["count"], cell)) > 0]
    note = selection_note(data, grid, len(cells))
    out = []
    for tail, cell in tailed(cells):
        here = data.sel(cell)
        point = {**cell, "n": data.attrs["n"]} if "n" in data.attrs else cell
        if data.sizes["time"] > 1:
            out.append(_in_time(here, point, tail, note))
        out += _passages(here, point, tail) if "passed_at" in data else []
    return out


def _in_time(here: xr.Dataset, point: Point, tail: str, note: list[str]) -> Panel:
    """Median and bands, single runs, theory, bounds and levels."""
    # Axes are logarithmic as the study asks where the median has anything to show on them.
    late = _time(here) > 0
    log_x = here.attrs["log"] == "both" and bool(late.any())
    middle = here["quantile"].sel(share=0.5).values[late if log_x else ...]
    log_y = here.attrs["log"] != "false" and bool((middle > 0).any())
    own, theory = (_shown(some, log_x, log_y) for some in (_own(here, log_x), _theory(here)))
    caption = [
        f"{plural(int(here['count']), 'run')} ({method_name(here.attrs['simulation']).html}): "
        "median with bands of the middle 50 % and 90 % of them."
    ]
    if "diverged" in here and int(here["diverged"]):
        caption.append(f"{plural(int(here['diverged']), 'more run')} diverged.")
    labels = titled(words("All runs in time"), point), *time_axes(here)
    text = " ".join([*caption, *note])
    panel = Panel(f"ensemble{tail}", *labels, (*own, *theory), text, log_x, log_y, wide=True)
    return replace(panel, y_range=_range(own, theory) if log_y else None)


def _time(here: xr.Dataset) -> Array:
    return np.asarray(here["time"].values, dtype=float)


def _own(here: xr.Dataset, log_x: bool) -> list[Line]:
    """Single runs that are done, levels, and the median within 5-95 % and 25-75 % of the runs."""
    time = _time(here)
    done = here["run"].transpose("seed", "time").dropna("seed", how="all").values
    out = [Line(time, y, words("single runs"), PALE, listed=k == 0) for k, y in enumerate(done)]
    late = time[time > 0 if log_x else ...]
    out += [
        level(late, float(y), words(one), GREY, dash=DASHES[1 + k % 2])
        for k, one, y in _curves(here, "level_at", "level")
    ]
    low, quarter, middle, three, high = here["quantile"].transpose("share", ...).values
    return [
        *out,
        Line(time, middle, words("5–95 % of runs"), RUNS, low=low, high=high),
        Line(time, middle, words("median, 25–75 %"), RUNS, "solid", quarter, three, True),
    ]


def _curves(here: xr.Dataset, name: str, dim: str) -> Iterator[tuple[int, str, Array]]:
    """Number, name and values of curves along a dimension, none where the data have none."""
    if name in here:
        for k, one in enumerate(here[dim].values):
            yield k, str(one), here[name].isel({dim: k}).values


def _theory(here: xr.Dataset) -> list[Line]:
    """Bounds or their terms, a colour each, and predicted curves."""
    bounds = [
        Line(_time(here), y, "bound: " + symbol(one), BOUNDS[k % len(BOUNDS)], "dash")
        for k, one, y in _curves(here, "bounded", "term")
    ]
    predicted = [
        Line(_time(here), y, "theory: " + theory_name(one), "ink", DASHES[(k + 1) % 3], bold=True)
        for k, one, y in _curves(here, "predicted", "limit")
    ]
    return [*bounds, *predicted]


def _shown(items: Iterable[Line], log_x: bool, log_y: bool) -> list[Line]:
    """The parts of lines that the axes can show."""
    out = []
    for item in items:
        keep = item.x > 0 if log_x else np.isfinite(item.x)
        y = np.where(item.y > 0, item.y, np.nan) if log_y else item.y
        low, high = (None if end is None else end[keep] for end in (item.low, item.high))
        if log_y and low is not None:
            low = np.where(low > 0, low, y[keep])
        if np.isfinite(y[keep]).any():
            out.append(replace(item, x=item.x[keep], y=y[keep], low=low, high=high))
    return out


def _range(own: list[Line], theory: list[Line]) -> tuple[float, float]:
    """Limits of a logarithmic axis: what was simulated, and theory that is not far from it."""
    (low, high), there = (
        positive(end for item in items for end in (item.y, item.low, item.high)) or (1.0, 1.0)
        for items in (own, theory or own)
    )
    low, high = min(low, max(there[0], low / BEYOND)), max(high, min(there[1], high * BEYOND))
    return low / 1.5, high * 1.5


def _passages(here: xr.Dataset, point: Point, tail: str) -> list[Panel]:
    """Share of runs that have gone below each value, and when theory says that they do."""
    levels, items = here["crossing"].values.tolist(), list[Line]()
    for color, one in colored(levels):
        name, at = crossed(here, one), here.sel(crossing=one)
        items += _share(at, name, color)
        several = len(levels) > 1
        lead = (name + ", " if several else EMPTY) + "theory: "
        items += _predicted(at, lead, color if several else "ink")
    if not items:
        return []
    every = np.concatenate([item.x for item in items])
    log, title = every.min() > 0 and every.max() > WIDE * every.min(), words("When runs get there")
    labels = titled(title, point), time_axes(here)[0], words("share of runs")
    text = (
        "Share of runs that have first gone below the value, with its pointwise 95 % "
        "interval; upright lines: theory."
    )
    ends, key = (0.0, 1.02), f"passages{tail}"
    return [Panel(key, *labels, tuple(items), text, log_x=bool(log), y_range=ends)]


def _share(here: xr.Dataset, label: Text, color: str) -> list[Line]:
    """The share of runs as steps, with its band."""
    at = here["passed_at"].dropna("order").values
    if not at.size:
        return []
    ends = (np.repeat(end[: at.size], 2)[:-1] for end in interval(here, "passed"))
    middle, below, above = (np.concatenate([[0.0], end]) for end in ends)
    above[0] = above[1]
    return [Line(np.repeat(at, 2), middle, label, color, low=below, high=above, bold=True)]


def _predicted(here: xr.Dataset, lead: Text, color: str) -> list[Line]:
    """Upright lines at the times that theory has for one value."""
    times = [(theory_name(name), at) for _, name, at in _curves(here, "predicted_passage", "limit")]
    stages = _curves(here, "stage_time", "stage")
    times += [
        (symbol(name), at)
        for k, name, at in stages
        if here["stage_crossing"].values[k] == here["crossing"]
    ]
    return [
        upright(float(at), lead + name, color, DASHES[(1 + k) % 3])
        for k, (name, at) in enumerate(times)
        if np.isfinite(at)
    ]
