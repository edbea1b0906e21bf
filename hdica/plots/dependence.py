"""Results without a time over a parameter: means over seeds with errors, and what theory gives."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.reading import at_end
from hdica.errors import HdicaError, suggestion
from hdica.plots.source import NUMERIC, Source, at, matching
from hdica.show.choose import MOST, Point, shown
from hdica.show.marks import ERRORS, color_of, wide_range
from hdica.show.panel import Line, Panel, Points
from hdica.show.words import (
    EMPTY,
    Text,
    axis,
    leading,
    limit_name,
    measured,
    method_name,
    number,
    place,
    plural,
    symbol,
    words,
)
from hdica.verdict.ladder import moments


def holds(source: Source) -> bool:
    """Whether an order parameter was found at several values of a parameter, or of n."""
    try:
        name = source.variable()
    except HdicaError:
        return False
    return bool(_able(source, name))


def _able(source: Source, name: str) -> list[str]:
    """What may be on the horizontal axis."""
    dims = source.data[name].dims
    return [d for d in (*source.numeric, "n") if d in dims and source.data.sizes[d] > 1]


def panel(
    source: Source,
    x: str | None = None,
    limit: xr.Dataset | None = None,
    variable: str | None = None,
) -> Panel:
    """Last values over a parameter: the mean over seeds with two standard errors, else a line."""
    name = source.variable(variable)
    able = _able(source, name)
    if x is not None and x not in able:
        raise HdicaError(f"x = {x!r} is not allowed ({suggestion(x, able, what=NUMERIC)})")
    if not able:
        raise HdicaError(f"dependence: {name} was found at one point only")
    across = x or able[0]
    found = _moments(source, name)
    theory = matching(limit, "limit")
    cells = shown(found, [str(d) for d in found["mean"].dims if d != across], MOST)
    lines: list[Line | Points] = []
    for i, cell in enumerate(cells):
        color = color_of(i, len(cells))
        if theory is not None:
            lines += _theory(theory, name, across, cell, color if len(cells) > 1 else "ink")
        lines.append(_drawn(found.sel(cell), across, cell, color, source))
    return Panel(
        "dependence",
        _title(found) if "se" in found else EMPTY,
        words("dimension ") + symbol("n") if across == "n" else axis(across),
        measured(name),
        tuple(lines),
        log_x=wide_range(source.data[across].values.astype(float)),
    )


def _moments(source: Source, name: str) -> xr.Dataset:
    """Mean with its error, or the value itself where there are no seeds."""
    values = at_end(source.data, name)
    return moments(values) if "seed" in values.dims else xr.Dataset({"mean": values})


def _title(found: xr.Dataset) -> Text:
    runs = int(found["count"].max())
    text = f"mean of {plural(runs, 'run')}"
    return words(text if runs < 2 else f"{text} ± {number(ERRORS)} standard errors")


def _drawn(here: xr.Dataset, x: str, cell: Point, color: str, source: Source) -> Line | Points:
    across, y = here[x].values.astype(float), here["mean"].values
    label = place(cell) or method_name(source.method)
    if "se" not in here:
        return Line(across, y, label, color, bold=True)
    half = ERRORS * np.nan_to_num(here["se"].values)
    return Points(across, y, label, color, y - half, y + half)


def _theory(source: Source, name: str, x: str, cell: Point, color: str) -> list[Line]:
    """The limit over the same parameter; a level where it does not depend on it."""
    own = next((k for k in (name, f"predicted_{name}") if k in source.data), name)
    values = at_end(source.data, source.variable(own))
    here = at(values, cell, "limit").squeeze(drop=True)
    if x not in here.dims:
        return []
    label = leading(cell) + limit_name(source.method)
    return [Line(here[x].values.astype(float), here.values, label, color, "dash")]
