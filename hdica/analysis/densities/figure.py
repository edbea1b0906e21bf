"""Densities of the estimate's entries, given the feature."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.show.choose import Point, evenly, shown, spread
from hdica.analysis.show.panel import Line, Panel
from hdica.analysis.show.words import (
    EMPTY,
    OKABE_ITO,
    Text,
    limit_name,
    method_name,
    named_at,
    number,
    place,
    symbol,
    titled,
    words,
)
from hdica.ingredients.save import Save

SNAPSHOTS = 4
GROUPS = 3
PANELS = 12
"""No more panels than this; of the grid, of snapshots and of groups some are chosen evenly."""

SEEN = 2e-3
"""The axis covers where the density is above this share of its peak."""

ERRORS = 2.0


def densities(data: xr.Dataset) -> list[Panel]:
    """One panel a snapshot and group: rows are snapshots, columns are groups."""
    grid, snapshots, features = chosen(data, "limit")
    cells = shown(data, grid, max(PANELS // (len(snapshots) * len(features)), 1))
    out: list[Panel] = []
    for cell in cells:
        for snapshot in snapshots:
            for feature in features:
                at = {**cell, "snapshot": snapshot}
                here = data.sel(at).isel(feature=feature)
                if bool(here["limit"].notnull().any()) or _drawn(here):
                    out.append(_panel(here, at, len(out) + 1, len(features)))
    return out


def chosen(data: xr.Dataset, name: str) -> tuple[list[str], list[float], list[int]]:
    """Grid, snapshots and positions of groups of a variable over both and x."""
    grid = [str(d) for d in data[name].dims if d not in ("snapshot", "feature", "x")]
    snapshots = evenly(data["snapshot"].values.astype(float).tolist(), SNAPSHOTS)
    return grid, snapshots, spread(data.sizes["feature"], GROUPS)


def group_label(here: xr.Dataset) -> Text:
    """A group by its value of xi."""
    values = np.asarray(here["xi"].values, dtype=float).ravel()
    known = values[np.isfinite(values)]
    return symbol("xi") + words(f" = {number(known[0], 4)}") if len(known) else EMPTY


def headline(at: Point, group: Text) -> Text:
    """Time and group first, then the grid point."""
    rest = {k: v for k, v in at.items() if k != "snapshot"}
    lasting = np.isinf(float(at["snapshot"]))
    title = words("steady state") if lasting else place({"snapshot": at["snapshot"]})
    return titled(title + words(", ") + group if group else title, rest)


def _name(here: xr.Dataset) -> Text:
    """What the limit's line is called."""
    steady = "overlap" in here
    return words("steady density") if steady else limit_name(here.attrs["limit_method"])


def _drawn(here: xr.Dataset) -> bool:
    return "density" in here and bool(here["density"].notnull().any())


def _panel(here: xr.Dataset, at: Point, number_: int, columns: int) -> Panel:
    x = here["x"].values.astype(float)
    items = [Line(x, here["limit"].values, _name(here), "ink", bold=True)]
    if _drawn(here):
        items.insert(0, steps(here, x))
    return Panel(
        f"density_{number_}",
        headline(at, group_label(here)),
        words("entry ") + symbol("x") + words(" of the estimate"),
        words("density"),
        tuple(items),
        caption=_caption(here),
        x_range=range_of(here, x),
        columns=columns if columns > 2 else 0,
    )


def steps(here: xr.Dataset, x: np.ndarray) -> Line:
    """The histogram as a step line with a band of its error."""
    edges = Save(x=tuple(x)).edges
    at = np.repeat(edges, 2)[1:-1]
    density, error = (np.repeat(here[k].values, 2) for k in ("density", "density_se"))
    error = ERRORS * np.nan_to_num(error)
    label = named_at(here.attrs["simulation_method"], here.attrs["n"])
    low, high = np.maximum(density - error, 0.0), density + error
    return Line(at, density, label, OKABE_ITO[0], low=low, high=high)


def _limit(here: xr.Dataset) -> str:
    """What the line is."""
    if "overlap" not in here:
        return f"the limit ({method_name(here.attrs['limit_method']).html})"
    q, bulk = float(here["overlap"]), float(here["bulk"])
    which = "nearest to the runs" if _drawn(here) else "of the largest overlap"
    state = f"the steady density of the stable state {which}, <i>Q</i> = {number(q, 4)}"
    if bulk < 1:
        share = f"a share {number(1 - bulk, 3)} of |<i>x</i>|²"
        return f"{state}, of all but few entries, which hold {share}"
    return state


def _caption(here: xr.Dataset) -> str:
    limit = f"Line: {_limit(here)}."
    if not _drawn(here):
        return limit
    seeds = int(here["count"])
    of = f"mean over {seeds} seeds" if seeds > 1 else "one seed"
    error = "over seeds" if seeds > 1 else "of independent entries"
    return (
        f"Steps: histogram, {of}, with ± 2 standard errors {error}. "
        f"Line: {_limit(here)}, mean over each of these bins."
    )


def range_of(here: xr.Dataset, x: np.ndarray) -> tuple[float, float] | None:
    """Where there is something to see, and a little more."""
    height = np.nan_to_num(here["limit"].values)
    if _drawn(here):
        height = np.maximum(height, np.nan_to_num(here["density"].values))
    seen = np.flatnonzero(height > SEEN * height.max(initial=0.0))
    if len(seen) < 2:
        return None
    low, high = x[seen[0]], x[seen[-1]]
    return float(low - 0.03 * (high - low)), float(high + 0.03 * (high - low))
