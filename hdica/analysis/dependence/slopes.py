"""How the end of a run changes along a parameter, seed by seed, where points share their noise."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy import stats

from hdica.analysis.reading import at_end, described, groups, over, overlaps, requested, swept
from hdica.show.choose import at_last_n, dims_of, points_in, positions, shown
from hdica.show.finding import Finding
from hdica.show.marks import SYMBOLS, colored, interval
from hdica.show.panel import Panel, Points
from hdica.show.terms import entries
from hdica.show.words import count, leading, method_name, number, of_n, symbol
from hdica.verdict.cells import CONFIDENCE
from hdica.verdict.resample import shares_noise

DRAWN = 3
"""Grid points in a panel: intervals of more would hide each other."""
LONG_NAMES = {
    "": "change of the mean of {v} at the last time per unit of {p}",
    "_low": "lower end of the 95 % interval of the change per unit of {p}",
    "_high": "upper end of the 95 % interval of the change per unit of {p}",
    "_se": "standard error of the change per unit of {p}, over seeds that both ends share",
    "_se_apart": "the same with independent noise at both ends",
    "_count": "seeds that are done at both ends",
}
"""By ending of the name; the slope itself is ``slope_p``."""

ASKED = ("phase", "steady", "convergence", "compare")
"""Analyses whose variable is taken, in this order."""


def slopes(tree: xr.DataTree) -> xr.Dataset | None:
    """Slope of the mean at the last time from one value of a parameter to the next.

    Points that share their noise rise and fall together, so that the difference of two of them,
    formed for each seed alone, varies much less than either.

    For every swept number p, over ``simulation``, the swept parameters with ``p_between`` in place
    of p (the middles of its values) and ``n``: ``slope_p`` with its 95 % interval by Student's t
    and its standard error ``slope_p_se``; ``slope_p_se_apart``, that with noise of their own;
    ``slope_p_count``, the seeds finished on both sides. None if no method shares noise or no number
    is swept.
    """
    asked = (requested(tree, name) for name in ASKED)
    named = [settings.variable for settings in asked if settings is not None]
    variable = next(iter((*named, *overlaps(tree))), "")
    names = [
        name
        for name, node in tree.children.items()
        if shares_noise(node.to_dataset()) and "time" in getattr(node.get(variable), "dims", ())
    ]
    every_group, parts = groups(tree, names), {}
    for name, data in every_group.items():
        ends, parts[name] = at_end(data, variable), xr.Dataset()
        for p in swept(ends):
            number = p not in entries() and ends[p].dtype.kind in "fiu"
            if number and ends.sizes[p] > 1:
                parts[name] = parts[name].assign(paired_slope(ends, p))
    every = (str(k) for part in parts.values() for k in part)
    counts = dict.fromkeys(k for k in every if k.endswith("_count"))
    if not counts:
        return None
    out = over(parts, "simulation", *counts)
    out.attrs = {"variable": variable, "time": float(every_group[names[0]]["time"].values[-1])}
    table = {
        f"slope_{p}{ending}": text.format(p=p, v=variable)
        for p in parameters_of(out)
        for ending, text in LONG_NAMES.items()
    }
    return described(out, table, variable)


def paired_slope(ends: xr.DataArray, parameter: str) -> dict[str, xr.DataArray]:
    """Slope between neighbouring values of a parameter, from differences within each seed.

    By name, over ``<parameter>_between`` in place of the parameter, of ends over it, ``seed`` and
    more; NaN where a run is not finished.
    """
    at, between = positions(ends, parameter), f"{parameter}_between"
    ends, middles = ends.rename({parameter: between}), {between: (at[1:] + at[:-1]) / 2}
    left, right = (
        ends.isel({between: cut}).assign_coords(middles) for cut in (slice(-1), slice(1, None))
    )
    width = xr.DataArray(np.diff(at), middles)
    difference = right - left
    both = difference.notnull()
    count = both.sum("seed")
    root = np.sqrt(count.where(count > 1))
    slope, error = difference.mean("seed") / width, difference.std("seed", ddof=1) / root / width
    alone = sum(side.where(both).var("seed", ddof=1) for side in (left, right))
    half = error * xr.apply_ufunc(stats.t.ppf, 0.5 + CONFIDENCE / 2, (count - 1).clip(min=1))
    parts = {
        "": slope,
        "_low": slope - half,
        "_high": slope + half,
        "_se": error,
        "_se_apart": alone**0.5 / root / width,
        "_count": count,
    }
    return {f"slope_{parameter}{ending}": values for ending, values in parts.items()}


def parameters_of(data: xr.Dataset) -> list[str]:
    """Parameters along which there are slopes, in order."""
    names = [str(name) for name in data if str(name).endswith("_se_apart")]
    return [name.removesuffix("_se_apart").removeprefix("slope_") for name in names]


def findings(data: xr.Dataset) -> list[Finding]:
    """How much smaller than with noise of their own the errors of differences are."""
    top = at_last_n(data)
    place = ({"n": int(top["n"])} if "n" in top.coords else {}) | {"t": data.attrs["time"]}
    out = []
    for name in parameters_of(data):
        error, apart = (top[f"slope_{name}{k}"].values for k in ("_se", "_se_apart"))
        known = np.isfinite(error) & (error > 0)
        if not known.any():
            continue
        ratio = error[known] / apart[known]
        change = "the standard error of Δ" + symbol(data.attrs["variable"]) + "/Δ"
        change += symbol(name) + " over that with independent noise"
        ends = f"from {number(ratio.min(), 2)} to {number(ratio.max(), 2)}"
        evidence = f"median of {count(ratio.size)} points, {ends}"
        out.append(Finding(change, place, float(np.median(ratio)), evidence=evidence, digits=2))
    return out


def panels(data: xr.Dataset) -> list[Panel]:
    """A panel for each parameter: slope between neighbours at the last n, for some points."""
    drawn = [_panel(at_last_n(data), name) for name in parameters_of(data)]
    return [panel for panel in drawn if panel.items]


def _panel(top: xr.Dataset, name: str) -> Panel:
    """A colour for every grid point, a marker for every method."""
    quantity, x = symbol(top.attrs["variable"]), symbol(name)
    others = dims_of(top[f"slope_{name}"], "simulation", f"{name}_between")
    total = points_in(top, others)
    chosen = shown(top, others, DRAWN)
    some = f" {len(chosen)} of {total} grid points, chosen evenly." if len(chosen) < total else ""
    at = f" ({of_n(float(top['n'])).html})" if "n" in top.coords else ""
    between, items = positions(top, f"{name}_between"), []
    for color, point in colored(chosen):
        for j, method in enumerate(top["simulation"].values):
            here = top.sel({"simulation": method, **point})
            y, low, high = interval(here, f"slope_{name}")
            if np.isfinite(y).any():
                label, mark = leading(point) + method_name(method), SYMBOLS[j % 4]
                items.append(Points(between, y, label, color, low, high, mark, joined=True))
    caption = (
        f"Mean over seeds of the change of {quantity.html} from one value to the next at "
        f"<i>t</i> = {number(top.attrs['time'])}, with 95 % intervals over seeds, whose noise "
        f"both values share{at}.{some}"
    )
    labels, wide = (x, "Δ" + quantity + "/Δ" + x), len(parameters_of(top)) == 1
    title = "Change along " + x
    return Panel(f"slopes_{name}", title, *labels, tuple(items), caption, wide=wide)
