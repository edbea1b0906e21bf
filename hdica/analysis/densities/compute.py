"""Histograms of the estimate's entries, given the feature, beside the limit's density."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from hdica.analysis.densities import Densities
from hdica.analysis.describe import described
from hdica.analysis.reading import finished, gives, group, largest_n, overlap_in
from hdica.analysis.settings import BY_X, Dims
from hdica.ingredients.save import Save
from hdica.show.choose import points
from hdica.show.finding import Finding
from hdica.show.words import words

FEATURE = "value of xi of the group"

LONG_NAMES = {
    "limit": "limit of the density of x given xi, mean over the bins of the histogram",
    "density": "histogram density of x given xi, mean over seeds",
    "density_se": "standard error of the histogram density",
    "count": "seeds that are done",
    "mean": "mean entry given xi by the histogram, mean over seeds",
    "mean_se": "standard error of the mean entry over seeds, NaN for one seed",
    "limit_center": "mean entry given xi by the limit's density",
    "xi": FEATURE,
    "overlap": "overlap of the steady state",
    "bulk": "E[x^2] of all but o(n) entries in the steady state",
}


def densities(tree: xr.DataTree, settings: Densities) -> xr.Dataset:
    """Density of the estimate given the feature, by the limit and at the largest n.

    Over the swept parameters, ``snapshot``, ``feature`` and ``x``: the limit, its mean over the
    bins of the histograms where there are any; the mean of the histograms over seeds with its
    standard error (over seeds; with a single seed, that of independent entries). ``xi`` is the
    value of xi of a group. The attribute ``n`` is the dimension of the histograms, 0 if there are
    none. Where the limit is that of steady states there are ``overlap`` and ``bulk`` of the state
    that is drawn, and without histograms one ``snapshot``, which is infinite.
    """
    limits = group(tree, settings.limit)
    state: dict[str, xr.DataArray] = {}
    if "fixed_point" in limits["density"].dims:
        limits, state = reached(tree, limits, settings.simulation)
    limit = over_bins(limits) if settings.simulation else finished(limits, "density")
    out = xr.Dataset({"limit": limit, "xi": xi_of(limits), **state})
    attrs = {"limit_method": settings.limit, "simulation_method": "", "n": 0, "seeds": 0}
    if settings.simulation:
        data = group(tree, settings.simulation)
        n = largest_n(finished(data, "density"))
        data = data.sel(n=n, drop=True)
        histogram, center = histogram_of(data, n), _center(finished(data, "density"))
        count = histogram["count"]
        error = (center.std("seed", ddof=1) / np.sqrt(count)).where(count > 1)
        histogram = histogram.assign(mean=center.mean("seed"), mean_se=error)
        out = out.merge(histogram, join="outer")
        attrs |= {"simulation_method": settings.simulation, "n": n, "seeds": int(count.max())}
    out["limit_center"] = _center(out["limit"])
    out = out.reset_coords(drop=True)
    out.attrs = attrs
    at_x = {} if settings.simulation else {"limit": "limit of the density of x given xi, at x"}
    return described(out, LONG_NAMES | at_x)


def reached(
    tree: xr.DataTree, states: xr.Dataset, simulation: str | None
) -> tuple[xr.Dataset, dict[str, xr.DataArray]]:
    """The stable steady state that runs are nearest to at each snapshot, its overlap and bulk.

    Without runs it is that of the largest overlap. NaN where no state is stable.
    """
    name = overlap_in(tree, states)
    near = xr.DataArray([1.0], dims="snapshot", coords={"snapshot": [np.inf]})
    if simulation:
        data = group(tree, simulation)
        at = data.sel(n=largest_n(finished(data, name)), drop=True)
        near = finished(at, name).mean("seed").sel(time=data["snapshot"].values)
        near = near.rename(time="snapshot").reset_coords(drop=True)
    off = abs(finished(states, name) - near).where(finished(states, "stable") == 1)
    known = off.notnull().any("fixed_point")
    found = states.isel(fixed_point=off.fillna(np.inf).argmin("fixed_point"))
    found = found.drop_vars("fixed_point", errors="ignore")
    found = found.assign({k: found[k].where(known) for k in ("density", "cdf", name, "bulk")})
    return found, {"overlap": finished(found, name), "bulk": finished(found, "bulk")}


def over_bins(data: xr.Dataset) -> xr.DataArray:
    """The mean of a density over each bin around ``x``, which is what a histogram has.

    It is the share of the law between the edges of the bin over its width, from the distribution
    function there; of a method that keeps none, the density at ``x``.
    """
    if "cdf" not in data:
        return finished(data, "density")
    share = finished(data, "cdf").diff("edge").rename(edge="x").assign_coords(x=data["x"])
    width = xr.DataArray(np.diff(data["edge"].values.astype(float)), dims="x")
    return (share / width).clip(min=0.0)


def xi_of(data: xr.Dataset) -> xr.DataArray:
    """Value of xi of every group: its coordinate, or its own variable where the prior is swept."""
    found = finished(data, "xi") if "xi" in data else data["feature"].astype(float)
    return found.reset_coords(drop=True)


def histogram_of(data: xr.Dataset, n: float | xr.DataArray) -> xr.Dataset:
    """Mean over seeds with its standard error; NaN for one seed if n is."""
    values = finished(data, "density")
    count = values.notnull().all("x").sum("seed")
    mean = values.mean("seed")
    over_seeds = values.std("seed", ddof=1) / np.sqrt(count)
    weight = finished(data, "weight").mean("seed") if "weight" in data else xr.DataArray(1.0)
    width = _widths(data["x"])
    share = (mean * width).clip(0, 1)
    binomial = np.sqrt(share * (1 - share) / (weight * n)) / width
    error = xr.where(count > 1, over_seeds, binomial)
    return xr.Dataset({"density": mean, "density_se": error, "count": count})


def _widths(x: xr.DataArray) -> xr.DataArray:
    """Widths of the bins around some entries."""
    return xr.DataArray(np.diff(Save(x=tuple(x.values)).edges), dims="x")


def _center(density: xr.DataArray) -> xr.DataArray:
    """Mean of a density over ``x``; NaN where any of it is, or all of it lies outside."""
    share = density * _widths(density["x"])
    total = share.sum("x", skipna=False)
    return (share * density["x"]).sum("x", skipna=False) / total.where(total > 0)


def findings(data: xr.Dataset) -> list[Finding]:
    """The mean entry of the last group at the last snapshot, beside that of the limit."""
    if not data.sizes["snapshot"]:
        return []
    last = data.isel(snapshot=-1)
    time = float(last["snapshot"])
    steady = " in the steady state" if np.isinf(time) else ""
    grid = [str(d) for d in last["limit_center"].dims if d != "feature"]
    out = []
    for cell in points(last, grid):
        groups = last.sel(cell)
        known = np.flatnonzero(np.isfinite(groups["limit_center"].values))
        if not len(known):
            continue
        here = groups.isel(feature=int(known[-1]))
        limit = float(here["limit_center"])
        at = {**cell, "xi": float(f"{float(here['xi']):.4g}")} | ({} if steady else {"t": time})
        if "mean" in here and np.isfinite(here["mean"]):
            at["n"] = int(data.attrs["n"])
            name = words("the mean entry of the estimate")
            theory = words("the steady density" if "overlap" in data else "the limit")
            value, error = float(here["mean"]), float(here["mean_se"])
            out.append(Finding(name, at, value, error, predicted=limit, theory=theory))
        else:
            out.append(Finding(words(f"the mean entry of the limiting density{steady}"), at, limit))
    return out


def suits(tree: xr.DataTree) -> dict[str, Any] | None:
    """The limiting density at the snapshots, with a simulation's histograms if there are any."""
    runs, limit = keeping(tree, "density", BY_X)
    return {"limit": limit} | ({"simulation": runs[0]} if runs else {}) if limit else None


def keeping(tree: xr.DataTree, output: str, dims: Dims) -> tuple[list[str], str]:
    """Simulations with n and the first limit that keep an output; empty without any."""
    known = {m: has for m, has in gives(tree).items() if has.outputs.get(output) == dims}
    runs = [m for m, has in known.items() if has.stochastic and has.n]
    return runs, next((m for m, has in known.items() if not has.stochastic), "")
