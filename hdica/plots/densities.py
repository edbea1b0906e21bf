"""Histograms of the estimate's entries beside the limit's density."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.densities.densities import histogram_of, over_bins, together, xi_of
from hdica.analysis.reading import at_top, finished
from hdica.errors import HdicaError
from hdica.plots.source import Source, at, matching
from hdica.show.panel import Panel
from hdica.systems.outputs import HISTOGRAM

DENSITY = "density"


def holds(source: Source) -> bool:
    """Whether it keeps densities."""
    return DENSITY in source.data and "snapshot" in source.data[DENSITY].dims


def panel(source: Source, limit: xr.Dataset | None = None, snapshot: float | None = None) -> Panel:
    """One snapshot, the last unless another is named, a colour for every group of entries.

    Steps with a band of two standard errors are histograms; smooth lines are the limit, beside
    histograms its mean over the bins around its ``x``.
    """
    one_point(source, DENSITY)
    when = chosen_time(source.data[DENSITY], "snapshot", snapshot)
    return together(both(source, limit, [when]).sel(snapshot=when), {"snapshot": when})


def both(source: Source, limit: xr.Dataset | None, times: list[float]) -> xr.Dataset:
    """Histograms and limits of one grid point, as :func:`together` reads them.

    Over ``snapshot``, ``feature`` and ``x``; the histograms are those of the largest n.
    """
    theory = matching(limit, "limit")
    simulated = "seed" in source.data[DENSITY].dims
    found = _histogram(source).sel(snapshot=times) if simulated else xr.Dataset()
    curves = theory if simulated else source
    if curves is None:
        return found
    limits = _limit(curves, times, simulated)
    if not simulated:
        return limits
    if limits.sizes["feature"] != found.sizes["feature"]:
        raise HdicaError("limit: its groups of entries are not those of the runs")
    limits = limits.assign_coords(feature=found["feature"])[["limit"]]
    return found.merge(limits, join="outer").assign_attrs(found.attrs | limits.attrs)


def histogram(source: Source) -> xr.DataArray:
    """The density as its mean over the bins around ``x``, of runs and of limits alike."""
    if not holds(source) and "cdf" not in source.data:
        names = ", ".join(str(k) for k in source.data.data_vars) or "nothing"
        raise HdicaError(f"histogram: this result has no densities (it holds {names})")
    density = over_bins(source.data).reset_coords(drop=True).rename(DENSITY)
    units = source.data[DENSITY].attrs.get("units", "1")
    return density.assign_attrs(long_name=HISTOGRAM.long_name, units=units)


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


def _limit(source: Source, times: list[float], binned: bool) -> xr.Dataset:
    data = source.data.squeeze([d for d in source.grid if source.data.sizes[d] == 1], drop=True)
    one = Source(data, source.record)
    one_point(one, DENSITY)
    values = over_bins(data) if binned else one.values(DENSITY)
    found = [at(values, {"snapshot": t}, "limit").reset_coords(drop=True) for t in times]
    over_time = xr.concat(found, "snapshot").assign_coords(snapshot=times)
    out = xr.Dataset({"limit": over_time, "xi": xi_of(data)})
    return out.assign_attrs(limit_method=source.method)
