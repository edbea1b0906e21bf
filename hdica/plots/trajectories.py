"""Runs in time: their mean or median with a band, and the band that theory predicts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from hdica.errors import HdicaError
from hdica.plots.numbers import bands
from hdica.plots.source import Source, at, matching
from hdica.show.choose import MOST, Point, banded, shown
from hdica.show.marks import color_of
from hdica.show.panel import Line, Panel
from hdica.show.words import (
    Text,
    clock,
    count,
    leading,
    limit_name,
    measured,
    method_name,
    number,
    of_n,
    place,
    plural,
    words,
)


def holds(source: Source) -> bool:
    """Whether it has an order parameter, or another variable, in time."""
    try:
        return "time" in source.data[source.variable()].dims
    except HdicaError:
        return False


def panel(
    source: Source,
    limit: xr.Dataset | None = None,
    variable: str | None = None,
    band: str = "runs",
    level: float = 0.9,
    points: int = MOST,
) -> Panel:
    """Curves of some grid points, chosen evenly; theory on top in black.

    The predicted band is the limit with the normal quantiles of the deviation that its central
    limit theorem gives, of single runs or of their mean as the measured one.
    """
    name = source.variable(variable)
    values = source.values(name)
    if "time" not in values.dims:
        raise HdicaError(f"variable = {name!r} is not allowed (it has no time)")
    found = _curves(source, values, name, band, level)
    grid = [str(d) for d in found["middle"].dims if d != "time"]
    cells = shown(found, grid, points)
    theory = matching(limit, "limit")
    drawn = [
        _line(found, cell, color_of(i, len(cells)), len(cells), source, name)
        for i, cell in enumerate(cells)
    ]
    lines = [line for line in drawn if np.isfinite(line.y).any()]
    shaded = banded(range(len(lines)))
    lines = [
        line if k in shaded else replace(line, low=None, high=None) for k, line in enumerate(lines)
    ]
    more = " (first and last curve)" if "runs" in found and len(shaded) < len(lines) else ""
    if theory is not None:
        lines += _theory(theory, name, found, cells, source, (band, level))
    return Panel(
        "trajectories",
        _title(found, band, level) + words(more),
        clock(values["time"].attrs),
        measured(name),
        tuple(lines),
    )


def _curves(source: Source, values: xr.DataArray, name: str, band: str, level: float) -> xr.Dataset:
    """Middle, and ends of the band where there are seeds."""
    if "seed" in values.dims:
        return bands(source, level, band, name)
    return xr.Dataset({"middle": values.reset_coords(drop=True)})


def _title(found: xr.Dataset, band: str, level: float) -> Text:
    """What line and band are, and of how many runs."""
    if "runs" not in found:
        return words("")
    some = np.unique(found["runs"].values)
    runs = plural(int(some[-1]), "run") if len(some) == 1 else f"up to {count(some[-1])} runs"
    if some[-1] < 2:
        return words(runs)
    percent = f"{number(100 * level)} %"
    if band == "runs" and some[-1] * (1 - level) / 2 < 1:
        return words(f"median of {runs}, band: their range")  # too few for such quantiles
    if band == "runs":
        return words(f"median of {runs}, band: {percent} of them")
    return words(f"mean of {runs}, band: its {percent} interval")


def _line(found: xr.Dataset, cell: Point, color: str, many: int, source: Source, name: str) -> Line:
    here = found.sel(cell)
    time = found["time"].values.astype(float)
    ends: dict[str, Any] = {k: here[k].values for k in ("low", "high") if k in here}
    label = place({k: v for k, v in cell.items() if k != "n"})
    if "n" in cell:
        label = leading({k: v for k, v in cell.items() if k != "n"}) + of_n(cell["n"])
    elif not label:
        size = _n_of(source, cell)
        label = of_n(size) if np.isfinite(size) else method_name(source.method)
    single = many == 1 and "runs" not in found
    return Line(time, here["middle"].values, label, "ink" if single else color, bold=True, **ends)


def _n_of(source: Source, cell: Point) -> float:
    """The dimension of the runs of a cell, NaN without."""
    if "n" in cell:
        return float(cell["n"])
    known = "n" in source.data.coords and not source.data["n"].ndim
    return float(source.data["n"]) if known else np.nan


def _theory(
    theory: Source,
    name: str,
    found: xr.Dataset,
    cells: list[Point],
    source: Source,
    asked: tuple[str, float],
) -> list[Line]:
    """The limit at every point, once where points share it, with its predicted deviation."""
    values, data = theory.values(name), theory.data
    limits: list[Line] = []
    ends: list[Line] = []
    for i, cell in enumerate(cells):
        own = {k: v for k, v in cell.items() if k in values.dims}
        curve = at(values, own, "limit")
        time = curve["time"].values.astype(float)
        drawn = any(np.array_equal(line.y, curve.values, equal_nan=True) for line in limits)
        if not drawn:
            label = limit_name(theory.method)
            limits.append(Line(time, curve.values, label, "ink", "dash", listed=not limits))
        size = _n_of(source, cell)
        if f"{name}_sd" in data and np.isfinite(size) and "runs" in found:
            half = _predicted(theory, name, own, size, asked, found.sel(cell))
            color = color_of(i, len(cells)) if len(cells) > 1 else "ink"
            what = "of runs" if asked[0] == "runs" else "interval"
            label = words(f"predicted {number(100 * asked[1])} % {what}")
            if not ends:  # in the legend in black: it stands for all colours
                ends.append(Line(time[:1], np.full(1, np.nan), label, "ink", "dot"))
            for sign in (-1.0, 1.0):
                y = curve.values + sign * half
                ends.append(Line(time, y, label, color, "dot", listed=False))
    return ends + limits


def _predicted(
    theory: Source,
    name: str,
    own: Point,
    size: float,
    asked: tuple[str, float],
    here: xr.Dataset,
) -> np.ndarray:
    """Half the width of the predicted band: of one run, or of the mean of all."""
    band, level = asked
    deviation = at(theory.values(f"{name}_sd"), own, "limit").values / np.sqrt(size)
    if band == "mean":
        deviation = deviation / np.sqrt(max(float(here["runs"].max()), 1.0))
    return np.asarray(float(stats.norm.isf((1 - level) / 2)) * deviation)
