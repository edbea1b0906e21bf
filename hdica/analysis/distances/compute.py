"""Distance between the empirical law of the estimate's entries and the limit's."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.convergence.compute import exponent
from hdica.analysis.densities.compute import FEATURE, xi_of
from hdica.analysis.describe import assembled, described
from hdica.analysis.distances.record import Distances
from hdica.analysis.laws import LONG_NAMES as AGREEMENT
from hdica.analysis.laws import Part, agreement, companions
from hdica.analysis.reading import comparisons_in, finished, group, over
from hdica.verdict.exponents import decay_exponent

EXPONENT = {
    "": "a in {d} ~ n^-a",
    "_low": "lower end of the 95 % interval of a for {d}",
    "_high": "upper end of the 95 % interval of a for {d}",
    "_n_from": "smallest n in the fit of a for {d}",
    "_error": "standard error of a for {d}",
    "_resolved": "1 where a for {d} is determined by the data",
}


def _distance(name: str, words: str) -> dict[str, str]:
    return {
        name: f"{words} distance of one run, mean over seeds",
        f"{name}_se": f"standard error of the {words} distance",
        f"{name}_expected": f"{words} distance of as many independent entries",
        f"{name}_pooled": f"{words} distance of the law pooled over seeds",
        f"{name}_pooled_expected": f"{words} distance of as many pooled independent entries",
        **{f"{name}_exponent{k}": text.format(d=words) for k, text in EXPONENT.items()},
    }


LONG_NAMES = {
    **AGREEMENT,
    **_distance("ks", "Kolmogorov-Smirnov"),
    **_distance("w1", "Wasserstein-1"),
    "outside": "share of entries outside the edges",
    "outside_limit": "share of the limit's mass outside the edges",
    "xi": FEATURE,
}

BRIDGES = 1000
"""Brownian bridges whose mean maximum is taken: good to one percent."""

DENSE = 1000
"""More edges than this are thinned for it, evenly in probability; that costs two percent."""

KINDS = ("ks", "w1")


def distances(tree: xr.DataTree, settings: Distances) -> xr.Dataset:
    """Compare the law of the estimate's entries, given the feature, with the limit's density.

    Two distances of distribution functions F and G: Kolmogorov and Smirnov's, max |F - G| over the
    edges of the histogram, and Wasserstein's W1, the integral of |F - G| over the range of the
    edges by the trapezoidal rule. Mass outside the edges is not seen by W1; it is reported.

    Over ``simulation``, the swept parameters, ``n``, ``snapshot`` and ``feature``: both distances
    of one run, mean over seeds with standard error; both of the law pooled over seeds; their size
    if the entries were independent draws. Per snapshot and feature the exponents of decay in n, and
    the verdict of :func:`hdica.analysis.laws.agreement`.
    """
    simulations, limit_name, level = settings.simulation, settings.limit, settings.level
    limits = group(tree, limit_name)
    curves = companions(limits, "cdf", finished(limits, "cdf"))
    groups = [group(tree, name) for name in simulations]
    tests = comparisons_in(groups, "cdf", "edge")
    parts = [_compare(data, curves, _weight(data, limits), level / tests) for data in groups]
    out = over(parts, "simulation", simulations, ["count"])
    out["xi"] = xi_of(limits)
    out["outside_limit"] = _outside(curves["limit"])
    out.attrs = {"limit_method": limit_name, "level": level, "tests": tests}
    out.attrs["level_each"] = level / tests
    return described(out, LONG_NAMES)


def _weight(data: xr.Dataset, limits: xr.Dataset) -> xr.DataArray:
    """Share of the entries in every group, over the grid and n."""
    if "weight" in data:
        return finished(data, "weight").mean("seed").reset_coords(drop=True)
    share = finished(limits, "weight").reset_coords(drop=True)
    return share.expand_dims(n=data["n"].values)


def _compare(
    data: xr.Dataset, curves: xr.Dataset, weight: xr.DataArray, level: float
) -> xr.Dataset:
    """One simulation method against the limit."""
    values = finished(data, "cdf").reset_coords(drop=True)
    gap = values - curves["limit"]
    single = _sizes(gap)
    count = single["ks"].notnull().sum("seed")
    out = xr.Dataset({"count": count, "outside": _outside(values).mean("seed")})
    entries = weight * data["n"]
    pooled, one = _sizes(gap.mean("seed")), _independent(curves["limit"], entries)
    together = _independent(curves["limit"], entries * count)
    for kind in KINDS:
        out[kind] = single[kind].mean("seed")
        out[f"{kind}_se"] = single[kind].std("seed", ddof=1) / np.sqrt(count)
        out[f"{kind}_expected"] = one[kind]
        out[f"{kind}_pooled"] = pooled[kind]
        out[f"{kind}_pooled_expected"] = together[kind].where(count > 0)
    part = Part(values, curves, weight, "edge")
    return xr.merge([out, _decay(out), agreement([part], level)], join="exact")


def _sizes(gap: xr.DataArray) -> dict[str, xr.DataArray]:
    """Both distances of a difference of distribution functions; NaN where it has a NaN."""
    size = abs(gap)
    return {"ks": size.max("edge", skipna=False), "w1": size.integrate("edge")}


def _independent(law: xr.DataArray, entries: xr.DataArray) -> dict[str, xr.DataArray]:
    """Mean distances of so many independent draws from their law, to leading order.

    sqrt(m) |F_m - F| tends to the size of a Brownian bridge B at F, and
    E|B(F)| = sqrt(2 F (1 - F)/pi).
    """
    bridge = (2 * (law * (1 - law)).clip(min=0) / math.pi) ** 0.5
    largest = xr.apply_ufunc(
        bridge_maximum, law, input_core_dims=[["edge"]], output_core_dims=[[]], vectorize=True
    )
    root = entries.where(entries > 0) ** 0.5
    return {"ks": largest / root, "w1": bridge.integrate("edge") / root}


def bridge_maximum(law: NDArray[np.float64]) -> float:
    """Mean of the largest |B(F)| over the values F of a distribution function at its edges.

    For dense edges this is the mean of the Kolmogorov law, sqrt(pi/2) log 2 = 0.8687; coarse
    edges miss the peaks, and the mean is smaller by an amount that matters. From bridges drawn
    with a fixed seed; NaN if the law has a NaN.
    """
    if not np.isfinite(law).all():
        return np.nan
    at = np.unique(np.clip(law, 0.0, 1.0))
    if len(at) > DENSE:
        at = at[np.unique(np.searchsorted(at, np.linspace(0, at[-1], DENSE)))]
    steps = np.sqrt(np.diff(at, prepend=0.0, append=1.0))
    draws = np.random.default_rng(0).standard_normal((BRIDGES, len(steps)))
    path = np.cumsum(draws * steps, axis=1)
    bridge = path[:, :-1] - at * path[:, -1:]
    return float(np.abs(bridge).max(axis=1).mean())


def _outside(law: xr.DataArray) -> xr.DataArray:
    """Share of the entries below the first or above the last edge."""
    return law.isel(edge=0, drop=True) + 1 - law.isel(edge=-1, drop=True)


def _decay(out: xr.Dataset) -> xr.Dataset:
    """Exponents in n of both distances of one run."""
    grid = [str(d) for d in out["ks"].dims if d != "n"]
    data = out.transpose(*grid, "n", ...)
    n = data["n"].values.astype(float)
    dof = max(float(data["count"].max()) - 1, 1.0)
    cells = []
    for i in np.ndindex(*(data.sizes[d] for d in grid)):
        cell: dict[str, Any] = {}
        for kind in KINDS:
            mean, se = data[kind].values[i], data[f"{kind}_se"].values[i]
            cell |= exponent(f"{kind}_exponent", decay_exponent(n, mean, se, dof))
        cells.append(cell)
    return assembled(cells, grid, {d: data[d].values for d in grid})
