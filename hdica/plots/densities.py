"""Histograms of the estimate's entries beside the limit's density."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.densities.compute import histogram_of, xi_of
from hdica.analysis.densities.figure import group_label, headline, range_of, steps
from hdica.analysis.reading import at_top, finished
from hdica.analysis.show.choose import spread
from hdica.analysis.show.marks import color_of
from hdica.analysis.show.panel import Line, Panel
from hdica.analysis.show.words import EMPTY, limit_name, symbol, words
from hdica.errors import HdicaError
from hdica.plots.source import Source, at, matching

GROUPS = 3
DENSITY = "density"


def holds(source: Source) -> bool:
    """Whether it keeps densities."""
    return DENSITY in source.data and "snapshot" in source.data[DENSITY].dims


def panel(source: Source, limit: xr.Dataset | None = None, snapshot: float | None = None) -> Panel:
    """One snapshot, the last unless another is named, a colour for every group of entries.

    Steps with a band of two standard errors are histograms; smooth lines are the limit.
    """
    one_point(source, DENSITY)
    when = chosen_time(source.data[DENSITY], "snapshot", snapshot)
    theory = matching(limit, "limit")
    simulated = "seed" in source.data[DENSITY].dims
    runs = _histogram(source).sel(snapshot=when) if simulated else None
    curves = theory if simulated else source
    lines: list[Line] = []
    for k, where in enumerate(spread(source.data.sizes["feature"], GROUPS)):
        color = color_of(k, min(source.data.sizes["feature"], GROUPS))
        if runs is not None:
            lines.append(_steps(runs.isel(feature=where), color))
        if curves is not None:
            lines.append(_limit(curves, where, when, color, not simulated))
    known = (line for line in lines if np.isfinite(line.y).any())
    kept = tuple(sorted(known, key=lambda line: line.dash != "solid"))
    return Panel(
        "densities",
        headline({"snapshot": when}, EMPTY),
        words("entry ") + symbol("x") + words(" of the estimate"),
        words("density"),
        kept,
        x_range=_range(kept),
    )


def one_point(source: Source, name: str) -> None:
    """Refuse several grid points, of which one figure cannot show the densities."""
    several = [d for d in source.grid if d in source.data[name].dims and source.data.sizes[d] > 1]
    if several:
        raise HdicaError(
            f"{name}: several values of {', '.join(several)} are not allowed in one figure "
            f"(choose one: .sel({several[0]}=...))"
        )


def chosen_time(values: xr.DataArray, dim: str, wanted: float | None) -> float:
    """A time at which something is kept: the last, or the one that is asked for."""
    known = values[dim].values.astype(float)
    if wanted is None:
        return float(known[-1])
    near = known[np.abs(known - wanted).argmin()]
    if not np.isclose(near, wanted, rtol=1e-9, atol=1e-12):
        listed = ", ".join(f"{t:g}" for t in known)
        raise HdicaError(f"{dim} = {wanted!r} is not there (there: {listed})")
    return float(near)


def _histogram(source: Source) -> xr.Dataset:
    """Mean of the histograms over seeds, at the largest n."""
    data = source.sized().squeeze(source.grid, drop=True)
    if "n" not in data.dims:
        raise HdicaError("density: a result without n has no histogram (a simulation is needed)")
    _, n = at_top(finished(data, DENSITY))
    assert n is not None
    found = histogram_of(data.sel(n=n, drop=True), n).assign(xi=xi_of(data))
    return found.assign_attrs(simulation_method=source.method, n=n)


def _steps(here: xr.Dataset, color: str) -> Line:
    line = steps(here, here["x"].values.astype(float))
    group = group_label(here)
    label = group + words(", ") + line.label if group else line.label
    return Line(line.x, line.y, label, color, low=line.low, high=line.high)


def _limit(source: Source, where: int, when: float, color: str, alone: bool) -> Line:
    data = source.data.squeeze([d for d in source.grid if source.data.sizes[d] == 1], drop=True)
    one = Source(data, source.record)
    one_point(one, DENSITY)
    here = at(one.values(DENSITY), {"snapshot": when}, "limit").isel(feature=where)
    group = group_label(xr.Dataset({"xi": xi_of(data).isel(feature=where)}))
    label = group if alone and group else limit_name(source.method)
    x = here["x"].values.astype(float)
    return Line(x, here.values, label, color if alone else "ink", "solid" if alone else "dash",
                bold=True, listed=alone or where == 0)  # fmt: skip


def _range(lines: tuple[Line, ...]) -> tuple[float, float] | None:
    """Where any of the curves has something to see."""
    ends = []
    for line in lines:
        here = xr.Dataset({"limit": ("x", np.nan_to_num(line.y))})
        found = range_of(here, line.x)
        ends += [] if found is None else [found]
    return (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None
