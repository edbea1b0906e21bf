"""Trajectories of several methods side by side."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.compare.record import Compare
from hdica.analysis.describe import described
from hdica.analysis.reading import at_top, finished, group, over
from hdica.analysis.settings import names
from hdica.verdict.moments import moments

LONG_NAMES = {
    "mean": "mean of {v} over seeds",
    "sd": "standard deviation of {v} over seeds",
    "se": "standard error of the mean of {v}",
    "count": "seeds that are done",
    "largest_n": "largest n of the simulation, NaN without",
    "limit_mean": "limit of {v}",
    "steady": "{v} at a stable steady state",
}


def compare(tree: xr.DataTree, settings: Compare) -> xr.Dataset:
    """Simulations, each at its largest n if it has any, limits, and steady states in one dataset.

    Over ``simulation``, the swept parameters and ``time``: mean, standard deviation and standard
    error over seeds; over ``limit``: the limit; over ``fixed_point``: the stable steady states.
    Each part only if a method gives it; ``n`` over ``simulation``.
    """
    variable = settings.variable
    curves = (*settings.curves, *names(settings.steady))
    groups = {name: group(tree, name) for name in curves}
    finite = [name for name, data in groups.items() if "seed" in data.dims]
    steady = [name for name, data in groups.items() if "fixed_point" in data.dims]
    limits = [name for name in curves if name not in (*finite, *steady)]
    parts = []
    if finite:
        parts.append(over([_moments(groups[m], variable) for m in finite], "simulation", finite))
    if limits:
        found = [xr.Dataset({"limit_mean": finished(groups[m], variable)}) for m in limits]
        parts.append(over(found, "limit", limits))
    if steady:
        data = groups[steady[0]]
        parts.append(xr.Dataset({"steady": finished(data, variable).where(data["stable"] == 1)}))
    out = xr.merge([p.reset_coords(drop=True) for p in parts], join="outer")
    out.attrs = {"variable": variable, "band": settings.band}
    return described(out, LONG_NAMES, variable)


def _moments(data: xr.Dataset, variable: str) -> xr.Dataset:
    """Mean and spread over seeds, at the largest n if there is any."""
    values, n = at_top(finished(data, variable))
    found = moments(values).assign(largest_n=np.nan if n is None else n)
    return found.reset_coords(drop=True)
