"""All runs in time, and the times at which they first go below a value."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.show.choose import Point, said, selected, shown
from hdica.analysis.show.marks import DASHES, GREY, color_of
from hdica.analysis.show.panel import Line, Panel
from hdica.analysis.show.words import (
    OKABE_ITO,
    SCALED,
    Text,
    clock,
    measured,
    method_name,
    plural,
    simple,
    symbol,
    titled,
    words,
)

Array = NDArray[np.float64]

OWN = {"share", "time", "seed", "limit", "term", "level", "crossing", "order", "stage"}

BEYOND = 10.0
"""Theory may widen the logarithmic axis that shows the runs by such a factor at either end."""
WIDE = 20.0
"""Times that differ by more than this factor are drawn on a logarithmic axis."""
RUNS, BOUNDS = OKABE_ITO[0], (*OKABE_ITO[1:], OKABE_ITO[0])
PALE = "#b5b5b5"
"""Of single runs, below everything else."""


def ensemble(data: xr.Dataset) -> list[Panel]:
    """For each grid point the runs in time, and the distribution of first passages."""
    grid = grid_of(data)
    cells = [cell for cell in shown(data, grid) if int(selected(data["count"], cell)) > 0]
    out = []
    for k, cell in enumerate(cells):
        tail = f"_{k + 1}" if len(cells) > 1 else ""
        if data.sizes["time"] > 1:
            out.append(_in_time(data, cell, tail, len(cells)))
        out += _passages(data, cell, tail)
    return out


def grid_of(data: xr.Dataset) -> list[str]:
    """Swept parameters, and dimensions of entries."""
    return [str(d) for d in data["count"].dims if d not in OWN]


def unit(data: xr.Dataset) -> str:
    """The unit of time where the system has one of its own, else empty."""
    known = str(data["time"].attrs.get("units", ""))
    return "" if known.startswith(SCALED) else known


def _in_time(data: xr.Dataset, cell: Point, tail: str, drawn: int) -> Panel:
    """Median and bands, single runs, theory, bounds and levels."""
    here = data.sel(cell)
    log_x, log_y = _logarithmic(here)
    own, theory = (
        [one for one in (_shown(item, log_x, log_y) for item in items) if one]
        for items in (
            [*_runs(here), *_levels(data, log_x), *_bands(here)],
            [*_terms(data, cell), *_theory(data, cell)],
        )
    )
    return Panel(
        f"ensemble{tail}",
        titled(words("All runs in time"), _with_n(data, cell)),
        clock(data["time"].attrs),
        measured(str(data.attrs["variable"])),
        (*own, *theory),
        caption=_caption(data, here, drawn),
        log_x=log_x,
        log_y=log_y,
        y_range=_range(own, theory) if log_y else None,
        wide=True,
    )


def _logarithmic(here: xr.Dataset) -> tuple[bool, bool]:
    """Which axes are logarithmic: as it is asked, where the median has anything to show on them."""
    late = _time(here) > 0
    log_x = here.attrs["log"] == "both" and bool(late.any())
    middle = here["quantile"].sel(share=0.5).values[late if log_x else ...]
    return log_x, here.attrs["log"] != "false" and bool((middle > 0).any())


def _with_n(data: xr.Dataset, cell: Point) -> Point:
    return {**cell, "n": data.attrs["n"]} if "n" in data.attrs else cell


def _time(values: xr.DataArray | xr.Dataset) -> Array:
    return np.asarray(values["time"].values, dtype=float)


def _runs(here: xr.Dataset) -> list[Line]:
    """Single runs that are done, thin; once in the legend."""
    values = here["run"].transpose("seed", "time")
    done = [y for y in values.values if np.isfinite(y).any()]
    label = words("single runs")
    return [Line(_time(values), y, label, PALE, listed=k == 0) for k, y in enumerate(done)]


def _bands(here: xr.Dataset) -> list[Line]:
    """The median within 5-95 % and 25-75 % of the runs."""
    time = _time(here["quantile"])
    low, quarter, middle, three, high = (
        here["quantile"].sel(share=share).values for share in here["share"].values
    )
    return [
        Line(time, middle, words("5–95 % of runs"), RUNS, low=low, high=high),
        Line(time, middle, words("median, 25–75 %"), RUNS, low=quarter, high=three, bold=True),
    ]


def _theory(data: xr.Dataset, cell: Point) -> list[Line]:
    """Predicted curves."""
    if "predicted" not in data:
        return []
    out = []
    for k, name in enumerate(data["limit"].values):
        y = selected(data["predicted"], {**cell, "limit": name})
        label = words("theory: ") + theory_name(name)
        out.append(Line(_time(y), y.values, label, "ink", DASHES[(k + 1) % 3], bold=True))
    return out


def _terms(data: xr.Dataset, cell: Point) -> list[Line]:
    """Bounds or their terms, a colour each."""
    if "bounded" not in data:
        return []
    out = []
    for k, name in enumerate(data["term"].values):
        y = selected(data["bounded"], {**cell, "term": name})
        label = words("bound: ") + symbol(str(name))
        out.append(Line(_time(y), y.values, label, BOUNDS[k % len(BOUNDS)], "dash"))
    return out


def _levels(data: xr.Dataset, log_x: bool) -> list[Line]:
    """Horizontal lines over all times that the axis shows."""
    if "level_at" not in data:
        return []
    time = _time(data)
    ends = time[time > 0 if log_x else ...][[0, -1]]
    pairs = zip(data["level"].values, data["level_at"].values, strict=True)
    return [
        Line(ends, np.full(2, float(y)), words(str(name)), GREY, DASHES[1 + k % 2])
        for k, (name, y) in enumerate(pairs)
    ]


def _shown(item: Line, log_x: bool, log_y: bool) -> Line | None:
    """The part of a line that an axis can show; None if that is nothing."""
    x = np.where(item.x > 0, item.x, np.nan) if log_x else item.x
    y = np.where(item.y > 0, item.y, np.nan) if log_y else item.y
    keep = np.isfinite(x)
    if not (np.isfinite(y) & keep).any():
        return None
    low, high = (None if end is None else end[keep] for end in (item.low, item.high))
    if log_y and low is not None:
        low = np.where(low > 0, low, y[keep])
    return Line(
        x[keep],
        y[keep],
        item.label,
        item.color,
        item.dash,
        low,
        high,
        item.bold,
        listed=item.listed,
    )


def _range(own: list[Line], theory: list[Line]) -> tuple[float, float]:
    """Limits of a logarithmic axis: what was simulated, and theory that is not far from it."""
    low, high = _extent(own)
    if theory:
        least, largest = _extent(theory)
        low, high = min(low, max(least, low / BEYOND)), max(high, min(largest, high * BEYOND))
    return low / 1.5, high * 1.5


def _extent(items: list[Line]) -> tuple[float, float]:
    ends = [end for item in items for end in (item.y, item.low, item.high) if end is not None]
    values = np.concatenate(ends)
    values = values[np.isfinite(values) & (values > 0)]
    return float(values.min()), float(values.max())


def _caption(data: xr.Dataset, here: xr.Dataset, drawn: int) -> str:
    method = method_name(data.attrs["simulation"]).html
    parts = [
        f"{plural(int(here['count']), 'run')} ({method}): median with the middle half and nine "
        "tenths of them."
    ]
    if "diverged" in here and int(here["diverged"]):
        parts.append(f"{plural(int(here['diverged']), 'more run')} diverged.")
    return " ".join([*parts, *said(data, grid_of(data), drawn)])


def _passages(data: xr.Dataset, cell: Point, tail: str) -> list[Panel]:
    """Share of runs that have gone below each value, and when theory says that they do."""
    if "passed_at" not in data:
        return []
    here = data.sel(cell)
    levels = here["crossing"].values
    items: list[Line] = []
    for k, level in enumerate(levels):
        color = color_of(k, len(levels))
        items += _share(here.sel(crossing=level), crossed(data, level), color)
        ink = "ink" if len(levels) == 1 else color
        items += _predicted(data, cell, float(level), ink, len(levels))
    if not items:
        return []
    every = np.concatenate([item.x for item in items])
    wide = bool(every.min() > 0 and every.max() > WIDE * every.min())
    return [
        Panel(
            f"passages{tail}",
            titled(words("When runs get there"), _with_n(data, cell)),
            clock(data["time"].attrs),
            words("share of runs"),
            tuple(items),
            caption="Share of runs that have first gone below the value, with its pointwise 95 % "
            "interval; upright lines: theory.",
            log_x=wide,
            y_range=(0.0, 1.02),
        )
    ]


def theory_name(name: object) -> Text:
    """A prediction as its system calls it: a method, or the output that is taken of one."""
    return method_name(str(name).rpartition(", ")[2])


def crossed(data: xr.Dataset, level: float) -> Text:
    """What a run has done that is below a value: "tan² ≤ 0.333"."""
    return symbol(str(data.attrs["variable"])) + words(f" ≤ {simple(level)}")


def _share(here: xr.Dataset, label: Text, color: str) -> list[Line]:
    """The share of runs as steps, with its band."""
    keep = np.isfinite(here["passed_at"].values)
    if not keep.any():
        return []
    at, y, low, high = (
        here[name].values[keep] for name in ("passed_at", "passed", "passed_low", "passed_high")
    )
    twice = np.repeat(at, 2)
    steps = (np.concatenate([[0.0], np.repeat(end, 2)[:-1]]) for end in (y, low, high))
    middle, below, above = steps
    above[0] = above[1]
    return [Line(twice, middle, label, color, low=below, high=above, bold=True)]


def _predicted(data: xr.Dataset, cell: Point, level: float, color: str, many: int) -> list[Line]:
    """Upright lines at predicted times."""
    lead = crossed(data, level) + words(", ") if many > 1 else words("")
    found: list[tuple[Text, float]] = []
    if "predicted_passage" in data:
        for name in data["limit"].values:
            at = selected(data["predicted_passage"], {**cell, "limit": name, "crossing": level})
            found.append((lead + words("theory: ") + theory_name(name), float(at)))
    if "stage_time" in data:
        for name in data["stage"].values[data["stage_crossing"].values == level]:
            at = selected(data["stage_time"], {**cell, "stage": name})
            found.append((lead + words("theory: ") + symbol(str(name)), float(at)))
    return [
        Line(np.full(2, at), np.array([0.0, 1.0]), label, color, DASHES[(1 + k) % 3])
        for k, (label, at) in enumerate(found)
        if np.isfinite(at)
    ]
