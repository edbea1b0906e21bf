"""Densities of the estimate's entries, given the feature, alone and one time after another."""

from __future__ import annotations

from itertools import product

import numpy as np
import xarray as xr

from hdica.ingredients.save import Save
from hdica.show.choose import Point, evenly, shown, spread
from hdica.show.marks import ERRORS, color_of, known
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

SNAPSHOTS = 4
GROUPS = 3
PANELS = 12
"""No more panels than this; of the grid, of snapshots and of groups some are chosen evenly."""

SEEN = 2e-3
"""The axis covers where the density is above this share of its peak."""
WHAT = "densities over time"
FILMS = 3
"""Grid points of which a report has an animation, chosen evenly."""


def densities(data: xr.Dataset) -> list[Panel]:
    """One panel a snapshot and group: rows are snapshots, columns are groups."""
    grid, snapshots, features = chosen(data, "limit")
    cells = shown(data, grid, max(PANELS // (len(snapshots) * len(features)), 1))
    out: list[Panel] = []
    for cell, time, feature in product(cells, snapshots, features):
        at = {**cell, "snapshot": time}
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
    return symbol("xi") + f" = {number(known[0], 4)}" if len(known) else EMPTY


def headline(at: Point, group: Text) -> Text:
    """Time and group first, then the grid point."""
    rest = {k: v for k, v in at.items() if k != "snapshot"}
    lasting = np.isinf(float(at["snapshot"]))
    time = words("steady state") if lasting else place({"snapshot": at["snapshot"]})
    return titled(joined(time, group), rest)


def _drawn(here: xr.Dataset) -> bool:
    return "density" in here and bool(here["density"].notnull().any())


def _panel(here: xr.Dataset, at: Point, number_: int, columns: int) -> Panel:
    x, height = here["x"].values.astype(float), np.nan_to_num(here["limit"].values)
    steady = "overlap" in here
    name = words("steady density") if steady else limit_name(here.attrs["limit_method"])
    items = [Line(x, here["limit"].values, name, "ink", bold=True)]
    if _drawn(here):
        items.insert(0, _steps(here, EMPTY, OKABE_ITO[0]))
        height = np.maximum(height, np.nan_to_num(here["density"].values))
    return Panel(
        f"density_{number_}",
        headline(at, group_label(here)),
        "entry " + symbol("x") + " of the estimate",
        words("density"),
        tuple(items),
        _caption(here),
        x_range=_range(x, height),
        columns=columns if columns > 2 else 0,
    )


def _steps(here: xr.Dataset, lead: Text, color: str) -> Line:
    """The histogram as a step line with a band of its error."""
    at = np.repeat(Save(x=tuple(here["x"].values.astype(float))).edges, 2)[1:-1]
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
    found = [(c, over_time(data.sel(c), c)) for c in shown(data, chosen(data, "limit")[0], FILMS)]
    kept = [(cell, panels) for cell, panels in found if len(panels) > 1]
    return [
        film(f"densities_{k}", titled(words(WHAT), cell), panels)
        for k, (cell, panels) in enumerate(kept, start=1)
    ]


def over_time(data: xr.Dataset, cell: Point) -> list[Panel]:
    """A panel for every snapshot at which something is known, of many for some, evenly."""
    times = evenly(data["snapshot"].values.astype(float).tolist(), FRAMES)
    panels = [together(data.sel(snapshot=t), {"snapshot": t, **cell}) for t in times]
    return [one for one in panels if one.items]


def together(here: xr.Dataset, at: Point) -> Panel:
    """Histograms and limits of one snapshot, a colour for every group of entries.

    ``here`` has, over ``feature`` and ``x``, ``density`` with ``density_se``, or ``limit``, or
    both, and ``xi`` over ``feature``; its attributes say ``n`` and the methods. Steps with a band
    of two standard errors are histograms; smooth lines are the limit, in the colour of the group
    where there is no histogram.
    """
    places = spread(here.sizes["feature"], GROUPS)
    lines: list[Line] = []
    for k, where in enumerate(places):
        lines += _group(here.isel(feature=where), color_of(k, len(places)), k == 0)
    kept = tuple(sorted(known(lines), key=lambda line: line.dash != "solid"))
    band = " (band: ± 2 s.e.)" if any(line.low is not None for line in kept) else ""
    ends = [end for line in kept if (end := _range(line.x, np.nan_to_num(line.y)))]
    return Panel(
        "densities",
        headline(at, EMPTY),
        "entry " + symbol("x") + " of the estimate",
        words(f"density{band}"),
        kept,
        x_range=(min(low for low, _ in ends), max(high for _, high in ends)) if ends else None,
    )


def _group(here: xr.Dataset, color: str, first: bool) -> list[Line]:
    """Histogram and limit of a group, each at its own points."""
    group, out = group_label(here), []
    if "density" in here:
        runs = here[["density", "density_se"]].dropna("x", subset=["density"])
        if runs.sizes["x"] > 1:
            out.append(_steps(runs.assign_attrs(here.attrs), group, color))
    if "limit" in here:
        limit, alone = here["limit"].dropna("x"), "density" not in here
        label = group if alone and group else limit_name(str(here.attrs["limit_method"]))
        shade, dash = (color, "solid") if alone else ("ink", "dash")
        x, listed = limit["x"].values.astype(float), alone or first
        out.append(Line(x, limit.values, label, shade, dash, bold=True, listed=listed))
    return out
