"""Histograms of the estimate's entries, given the feature, beside the limit's density."""

from __future__ import annotations

from itertools import product

import numpy as np
import xarray as xr

from hdica.analysis.laws import Densities
from hdica.analysis.reading import described, finished, group, keeping, largest_n, overlap_in
from hdica.analysis.settings import Suiting
from hdica.ingredients.save import Save
from hdica.show.choose import (
    Point,
    dims_of,
    evenly,
    has_values,
    points,
    positions,
    shown,
    spread,
    without,
)
from hdica.show.finding import Finding
from hdica.show.marks import ERRORS, colored, known
from hdica.show.panel import FRAMES, Array, Film, Line, Panel, film
from hdica.show.words import (
    EMPTY,
    OKABE_ITO,
    Text,
    joined,
    limit_name,
    method_name,
    named_at,
    number,
    place,
    symbol,
    titled,
    words,
)

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

SNAPSHOTS = 4
GROUPS = 3
PANELS = 12
"""No more panels than this; of the grid, of snapshots and of groups some are chosen evenly."""
SEEN = 2e-3
"""The axis covers where the density is above this share of its peak."""
WHAT = "densities over time"
FILMS = 3
"""Grid points of which a report has an animation, chosen evenly."""


def densities(tree: xr.DataTree, settings: Densities) -> xr.Dataset:
    """Density of the estimate given the feature, by the limit and at the largest n.

    Over the swept parameters, ``snapshot``, ``feature`` and ``x``: the limit, its mean over the
    bins of the histograms where there are any; the mean of the histograms over seeds with its
    standard error (with a single seed, that of independent entries); ``xi`` of each group. The
    attribute ``n`` is the dimension of the histograms, 0 if there are none; a plot of runs alone
    has no limit. Of steady states there are ``overlap`` and ``bulk`` of the one that is drawn, and
    without histograms one ``snapshot``, infinite.
    """
    out = xr.Dataset()
    if settings.limit:
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
        out = out if "xi" in out else out.assign(xi=xi_of(data))
        attrs |= {"simulation_method": settings.simulation, "n": n, "seeds": int(count.max())}
    if settings.limit:
        out["limit_center"] = _center(out["limit"])
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
        near = near.rename(time="snapshot")
    off = abs(finished(states, name) - near).where(finished(states, "stable") == 1)
    known = off.notnull().any("fixed_point")
    state = states.isel(fixed_point=off.fillna(np.inf).argmin("fixed_point"))
    state = state.drop_vars("fixed_point", errors="ignore")
    state = state.assign({k: state[k].where(known) for k in ("density", "cdf", name, "bulk")})
    return state, {"overlap": finished(state, name), "bulk": finished(state, "bulk")}


def over_bins(data: xr.Dataset) -> xr.DataArray:
    """The mean of a density over each bin around ``x``, which is what a histogram has.

    It is by the distribution function at the edges; of a method that keeps none, the density at
    ``x``.
    """
    if "cdf" not in data:
        return finished(data, "density")
    share = finished(data, "cdf").diff("edge").rename(edge="x").assign_coords(x=data["x"])
    width = xr.DataArray(np.diff(positions(data, "edge")), dims="x")
    return (share / width).clip(min=0.0)


def xi_of(data: xr.Dataset) -> xr.DataArray:
    """Value of xi of every group: its coordinate, or its own variable where the prior is swept."""
    return finished(data, "xi") if "xi" in data else data["feature"].astype(float)


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
    out = []
    for cell in points(last, dims_of(last["limit_center"], "feature")):
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


def suits(tree: xr.DataTree) -> Suiting:
    """The limiting density at the snapshots, with a simulation's histograms if there are any."""
    runs, limits = keeping(tree, "density", "snapshot", "feature", "x")
    return {"limit": limits[0], "simulation": runs[0] if runs else ""} if limits else None


def panels(data: xr.Dataset) -> list[Panel]:
    """One panel a snapshot and group: rows are snapshots, columns are groups."""
    grid, snapshots, features = chosen(data, "limit")
    cells = shown(data, grid, max(PANELS // (len(snapshots) * len(features)), 1))
    out: list[Panel] = []
    for cell, time, feature in product(cells, snapshots, features):
        at = {**cell, "snapshot": time}
        here = data.sel(at).isel(feature=feature)
        if has_values(here["limit"]) or _drawn(here):
            out.append(_panel(here, at, len(out) + 1, len(features)))
    return out


def chosen(data: xr.Dataset, name: str) -> tuple[list[str], list[float], list[int]]:
    """Grid, snapshots and positions of groups of a variable over both and x."""
    grid = dims_of(data[name], "snapshot", "feature", "x")
    snapshots = evenly(positions(data, "snapshot").tolist(), SNAPSHOTS)
    return grid, snapshots, spread(data.sizes["feature"], GROUPS)


def group_label(xi: xr.DataArray) -> Text:
    """A group by its value of xi."""
    known = xi.values[np.isfinite(xi.values)]
    return symbol("xi") + f" = {number(known[0], 4)}" if len(known) else EMPTY


def headline(at: Point, group: Text) -> Text:
    """Time and group first, then the grid point."""
    lasting = np.isinf(float(at["snapshot"]))
    time = words("steady state") if lasting else place({"snapshot": at["snapshot"]})
    return titled(joined(time, group), without(at, "snapshot"))


def _drawn(here: xr.Dataset) -> bool:
    return "density" in here and has_values(here["density"])


def _panel(here: xr.Dataset, at: Point, number_: int, columns: int) -> Panel:
    x, height = positions(here, "x"), np.nan_to_num(here["limit"].values)
    steady = "overlap" in here
    name = words("steady density") if steady else limit_name(here.attrs["limit_method"])
    items = [Line(x, here["limit"].values, name, "ink", bold=True)]
    if _drawn(here):
        items.insert(0, _steps(here, EMPTY, OKABE_ITO[0]))
        height = np.maximum(height, np.nan_to_num(here["density"].values))
    labels, seen = _labels(headline(at, group_label(here["xi"]))), _range(x, height)
    text, columns = _caption(here), columns if columns > 2 else 0
    key = f"density_{number_}"
    return Panel(key, *labels, tuple(items), text, x_range=seen, columns=columns)


def _labels(title: Text, band: str = "") -> tuple[Text, Text, Text]:
    return title, "entry " + symbol("x") + " of the estimate", words(f"density{band}")


def _steps(here: xr.Dataset, lead: Text, color: str) -> Line:
    """The histogram as a step line with a band of its error."""
    at = np.repeat(Save(x=tuple(positions(here, "x"))).edges, 2)[1:-1]
    density, error = (np.repeat(here[k].values, 2) for k in ("density", "density_se"))
    error = ERRORS * np.nan_to_num(error)
    label = joined(lead, named_at(here.attrs["simulation_method"], here.attrs["n"]))
    low, high = np.maximum(density - error, 0.0), density + error
    return Line(at, density, label, color, low=low, high=high)


def _caption(here: xr.Dataset) -> str:
    drawn = _drawn(here)
    if "overlap" not in here:
        limit = f"the limit ({method_name(here.attrs['limit_method']).html})"
    else:
        q, bulk = float(here["overlap"]), float(here["bulk"])
        which = "nearest to the runs" if drawn else "of the largest overlap"
        limit = f"the steady density of the stable state {which}, <i>Q</i> = {number(q, 4)}"
        if bulk < 1:
            share = f"a share {number(1 - bulk, 3)} of |<i>x</i>|²"
            limit += f", of all but few entries, which hold {share}"
    if not drawn:
        return f"Line: {limit}."
    seeds = int(here["count"])
    of = f"mean over {seeds} seeds" if seeds > 1 else "one seed"
    error = "over seeds" if seeds > 1 else "of independent entries"
    return (
        f"Steps: histogram, {of}, with ± 2 standard errors {error}. "
        f"Line: {limit}, mean over each of these bins."
    )


def _range(x: Array, height: Array) -> tuple[float, float] | None:
    """Where there is something to see, and a little more."""
    seen = x[height > SEEN * height.max(initial=0.0)]
    if len(seen) < 2:
        return None
    margin = 0.03 * (seen[-1] - seen[0])
    return float(seen[0] - margin), float(seen[-1] + margin)


def films(data: xr.Dataset) -> list[Film]:
    """Densities over time, at a few grid points; none where there is one snapshot."""
    out: list[Film] = []
    for cell in shown(data, chosen(data, "limit")[0], FILMS):
        frames = over_time(data.sel(cell), cell)
        if len(frames) > 1:
            out.append(film(f"densities_{len(out) + 1}", titled(words(WHAT), cell), frames))
    return out


def over_time(data: xr.Dataset, cell: Point) -> list[Panel]:
    """A panel for every snapshot at which something is known, of many for some, evenly."""
    times = evenly(positions(data, "snapshot").tolist(), FRAMES)
    frames = [together(data.sel(snapshot=t), {"snapshot": t, **cell}) for t in times]
    return [one for one in frames if one.items]


def together(here: xr.Dataset, at: Point) -> Panel:
    """Histograms and limits of one snapshot, a colour for every group of entries.

    ``here`` has ``density`` with ``density_se``, or ``limit``, or both, over ``feature`` and ``x``,
    ``xi`` over ``feature``, and attributes ``n`` and the methods. Steps have a band of two standard
    errors.
    """
    places = spread(here.sizes["feature"], GROUPS)
    lines: list[Line] = []
    for color, k in colored(places):
        lines += _group(here.isel(feature=k), color, k == 0)
    kept = tuple(sorted(known(lines), key=lambda line: line.dash != "solid"))
    band = " (band: ± 2 s.e.)" if any(line.low is not None for line in kept) else ""
    ends = [end for line in kept if (end := _range(line.x, np.nan_to_num(line.y)))]
    seen = (min(low for low, _ in ends), max(high for _, high in ends)) if ends else None
    return Panel("densities", *_labels(headline(at, EMPTY), band), kept, x_range=seen)


def _group(here: xr.Dataset, color: str, first: bool) -> list[Line]:
    """Histogram and limit of a group, each at its own points."""
    group, out = group_label(here["xi"]), []
    if "density" in here:
        runs = here[["density", "density_se"]].dropna("x", subset=["density"])
        if runs.sizes["x"] > 1:
            out.append(_steps(runs.assign_attrs(here.attrs), group, color))
    if "limit" in here:
        limit, alone = here["limit"].dropna("x"), "density" not in here
        label = group if alone and group else limit_name(here.attrs["limit_method"])
        shade, dash = (color, "solid") if alone else ("ink", "dash")
        x, listed = positions(limit, "x"), alone or first
        out.append(Line(x, limit.values, label, shade, dash, bold=True, listed=listed))
    return out
