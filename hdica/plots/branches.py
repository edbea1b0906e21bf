"""Branch diagrams: steady states over a parameter, stable ones solid, unstable ones dashed."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.reading import at_end
from hdica.analysis.steady.branches import Branches
from hdica.analysis.steady.figure import lines_of, once, style_of
from hdica.errors import HdicaError, suggestion
from hdica.plots.source import NUMERIC, Source, matching
from hdica.plots.tracks import Track, closed, tracks
from hdica.show.marks import ERRORS, GREY
from hdica.show.panel import Item, Line, Panel, Points
from hdica.show.terms import entries
from hdica.show.words import EMPTY, OKABE_ITO, axis, of_n, size, words
from hdica.systems.method import varied
from hdica.verdict.ladder import moments

POINT = "fixed_point"
BRANCH = "branch_point"


def holds(source: Source) -> bool:
    """Whether it has steady states, or curves of them."""
    return BRANCH in source.data.dims or (POINT in source.data.dims and "stable" in source.data)


def panel(
    source: Source,
    x: str | None = None,
    critical: xr.Dataset | None = None,
    runs: xr.Dataset | None = None,
    variable: str | None = None,
) -> Panel:
    """Sizes of the states over a parameter, joined from value to value.

    With ``critical``, what :func:`hdica.critical` gives, branches end where they do, and not at the
    last value at which they were looked for. ``runs`` adds where simulations end.
    """
    name = source.variable(variable)
    if BRANCH in source.data.dims:
        across, items = _followed(source, name)
    else:
        across = _swept(source, x)
        found = closed(tracks(*_columns(source, across, name)), *_transitions(critical, name))
        ordered = sorted(found, key=lambda one: not one.stable)
        items = [item for one in ordered for item in _drawn(one)]
    simulated = matching(runs, "runs")
    if simulated is not None:
        items.append(_ends(simulated, across, name))
    return Panel(
        "branches",
        EMPTY,
        axis(across),
        size(name),
        tuple(once([i for i in items if isinstance(i, Line | Points)])),
    )


def _swept(source: Source, x: str | None) -> str:
    """The parameter on the horizontal axis."""
    known = [d for d in source.numeric if source.data.sizes[d] > 1]
    if x is not None and x not in known:
        raise HdicaError(f"x = {x!r} is not allowed ({suggestion(x, known, what=NUMERIC)})")
    across = x or (known[0] if known else None)
    if across is None:
        raise HdicaError('branches: states at one point are no branch (give over={"...": [...]})')
    more = [d for d in source.grid if d != across and source.data.sizes[d] > 1]
    if more:
        raise HdicaError(f"branches: choose one value of {', '.join(more)} (.sel)")
    return across


def _size(source: Source, name: str) -> xr.DataArray:
    """Size of the states; of a matrix its largest entry."""
    found = abs(source.values(name))
    return found.max([d for d in found.dims if d in entries()])


def _columns(source: Source, x: str, name: str) -> tuple[np.ndarray, ...]:
    """Parameter, and over parameter and state size, stability and kind."""
    order = (x, POINT)
    data = source.data
    kind = data["kind"] if "kind" in data else xr.zeros_like(data["stable"], dtype=float)
    columns = [_size(source, name), data["stable"], kind]
    flat = [one.squeeze(drop=True).transpose(*order).values.astype(float) for one in columns]
    return (data[x].values.astype(float), *flat)


def _transitions(critical: xr.Dataset | None, name: str) -> tuple[np.ndarray, np.ndarray]:
    """Critical values and sizes there."""
    given = matching(critical, "critical")
    if given is None:
        return np.empty(0), np.empty(0)
    if name not in given.data or "value" not in given.data:
        raise HdicaError("critical: it has no critical values (hdica.critical gives them)")
    value = given.data["value"].values.ravel().astype(float)
    there = abs(given.data[name])
    there = there.max([d for d in there.dims if d in entries()])
    return value, there.values.ravel().astype(float)


def _drawn(one: Track) -> list[Item]:
    """A track as a line; of a single point as a marker."""
    name, color, dash = style_of(one.stable, one.kind, "ink")
    x, q = np.array(one.x), np.array(one.q)
    if len(x) > 1:
        return [Line(x, q, name, color, dash, bold=one.stable)]
    shade = GREY if color == GREY else "#444444"
    return [Points(x, q, name, shade, filled=np.array([one.stable]))]


def _followed(source: Source, name: str) -> tuple[str, list[Item]]:
    """Curves that were followed through folds."""
    data = source.data
    if [d for d in source.grid if data.sizes[d] > 1]:
        raise HdicaError(f"branches: choose one value of {', '.join(source.grid)} (.sel)")
    columns = [
        data[k].squeeze(drop=True).values.astype(float)
        for k in ("value", name, "stable", "kind", "branch")
    ]
    known = () if source.record is None else source.record.methods
    varied = next((v for m in known if m.name == source.method and (v := varied(m))), "value")
    ends = float(np.nanmin(columns[0])), float(np.nanmax(columns[0]))
    return varied, list(lines_of(Branches(*columns), "ink", EMPTY, ends))


def _ends(runs: Source, x: str, name: str) -> Points:
    """Where simulations end: mean size over seeds with two standard errors."""
    if x not in runs.numeric:
        raise HdicaError(f"runs: they do not sweep {x}")
    values = abs(at_end(runs.data, name))
    values = values.max([d for d in values.dims if d in entries()])
    more = [d for d in values.dims if d not in (x, "seed", "n")]
    if any(values.sizes[d] > 1 for d in more):
        raise HdicaError(f"runs: choose one value of {', '.join(map(str, more))} (.sel)")
    values = values.squeeze(more, drop=True)
    size_ = runs.data["n"].values.ravel() if "n" in runs.data.coords else np.empty(0)
    values = values.isel(n=-1, drop=True) if "n" in values.dims else values
    found = moments(values)
    y, half = found["mean"].values, ERRORS * np.nan_to_num(found["se"].values)
    label = words("runs") + (words(", ") + of_n(float(size_[-1])) if size_.size else EMPTY)
    at = values[x].values.astype(float)
    return Points(at, y, label, OKABE_ITO[0], y - half, y + half)
