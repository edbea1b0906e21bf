"""Recovery of the feature's support by thresholding the estimate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr

from hdica.analysis.laws import Support
from hdica.analysis.laws.distances import COMPANIONS, OF_AGREEMENT, Part, agreement
from hdica.analysis.reading import compared, described, finished, group, keeping, with_companions
from hdica.analysis.settings import Suiting
from hdica.show.choose import (
    Point,
    at_largest_n,
    cells_of,
    dims_of,
    has_values,
    numbers,
    shown,
    spread,
    without,
)
from hdica.show.finding import Finding, judgement, named
from hdica.show.marks import ERRORS, GREY, SYMBOLS, colored
from hdica.show.panel import Item, Line, Panel, Points
from hdica.show.words import count, method_name, place, symbol, titled, words
from hdica.verdict.trajectory import controlled

RATES = {
    "tpr": "true positive rate",
    "fpr": "false positive rate",
    "misclassified": "misclassified share",
}
LONG_NAMES = {
    **OF_AGREEMENT,
    **{rate: f"{what}, mean over seeds" for rate, what in RATES.items()},
    **{f"{rate}_se": f"standard error of the {what}" for rate, what in RATES.items()},
    **{f"{rate}_limit": f"limit of the {what}" for rate, what in RATES.items()},
    "area_limit": "area under the limit's true against false positive rate",
}

TITLES = {
    "roc": ("True against false positives", "true positive rate"),
    "rates": ("Rates against the threshold", "rate"),
    "wrong": ("Misclassified entries", "misclassified share of the entries"),
}
"""Titles of panels, and what is on their vertical axes."""

CELLS = 2
SNAPSHOTS = 6
MARKERS = 13


def support(tree: xr.DataTree, settings: Support) -> xr.Dataset:
    """True and false positive rates of the support {i: |x_i| > threshold}, against the limit's.

    Over ``simulation``, the swept parameters, ``n``, ``snapshot`` and ``threshold``: the rates'
    means over seeds with standard errors, and the limit's rates; per snapshot the area under the
    limit's curve of true against false positives, and the verdict of
    :func:`hdica.analysis.laws.distances.agreement` on both rates together.
    """
    limits = group(tree, settings.limit)
    curves = {
        rate: controlled(with_companions(limits, rate, *COMPANIONS[1:]), settings.control)
        for rate in RATES
    }
    compare = partial(_compare, limits=limits, curves=curves)
    out = compared(tree, settings, "tpr", "threshold", compare, "count")
    for rate in RATES:
        out[f"{rate}_limit"] = curves[rate]["limit"]
    out["area_limit"] = area(out["tpr_limit"], out["fpr_limit"])
    return described(out, LONG_NAMES)


def _compare(
    data: xr.Dataset, level: float, limits: xr.Dataset, curves: Mapping[str, xr.Dataset]
) -> xr.Dataset:
    rates = {rate: finished(data, rate) for rate in RATES}
    count = rates["tpr"].notnull().all("threshold").sum("seed")
    out = xr.Dataset({"count": count, **{rate: one.mean("seed") for rate, one in rates.items()}})
    for rate, values in rates.items():
        out[f"{rate}_se"] = values.std("seed", ddof=1) / np.sqrt(count)
    active = xr.DataArray(0.5)  # where no method keeps the share of entries with xi != 0
    if "weight" in limits and "xi" in limits:
        active = finished(limits, "weight").where(finished(limits, "xi") != 0).sum("feature")
    active = active.expand_dims(n=data["n"].values)
    parts = [
        Part(rates[rate], curves[rate], share, "threshold")
        for rate, share in (("tpr", active), ("fpr", 1 - active))
    ]
    return xr.merge([out, agreement(parts, level)], join="exact")


def area(tpr: xr.DataArray, fpr: xr.DataArray) -> xr.DataArray:
    """Area under the true positive rate as a function of the false one, by trapezoids.

    The curve is closed by its ends (0, 0) and (1, 1); NaN where a rate is NaN.
    """
    tpr, fpr = (rate.transpose(..., "threshold") for rate in xr.broadcast(tpr, fpr))
    # Rates fall as the threshold rises: from (1, 1) to (0, 0).
    one, zero = np.ones((*tpr.shape[:-1], 1)), np.zeros((*tpr.shape[:-1], 1))
    y, x = (np.concatenate([one, rate.values, zero], axis=-1) for rate in (tpr, fpr))
    result = -np.trapezoid(y, x, axis=-1)
    return tpr.isel(threshold=0, drop=True).copy(data=result)


def findings(data: xr.Dataset) -> list[Finding]:
    """What the best threshold misclassifies, with the verdict on both rates; areas at the end."""
    judged, last = data.get("verdict", data["area_limit"]), data["area_limit"].isel(snapshot=-1)
    name = words("the area under the limit’s curve of true against false positives")
    time = {"t": float(last["snapshot"])}
    return [
        *(_misclassified(data, one) for one in cells_of(judged)),
        *(Finding(name, cell | time, float(last.sel(cell)), digits=6) for cell in cells_of(last)),
    ]


def _misclassified(data: xr.Dataset, cell: Point) -> Finding:
    """The share in percent at the threshold at which that of the limit is least."""
    here = data.sel(cell)
    best = int(here["misclassified_limit"].fillna(np.inf).values.argmin())
    at = here.isel(threshold=best)
    limit = 100 * float(at["misclassified_limit"])
    place_of = without(named(data, cell), "snapshot") | {
        "threshold": float(at["threshold"]),
        "t": float(cell["snapshot"]),
    }
    name, unit = "the share of entries that the best threshold misclassifies", words("%")
    if "verdict" not in data:
        return Finding(words(f"{name} in the limit"), place_of, limit, unit=unit)
    top = at_largest_n(at, at["count"] > 0)
    place_of["n"] = int(top["n"])
    share, error = (100 * one for one in numbers(top, {}, "misclassified", "misclassified_se"))
    theory = Finding(words(name), place_of, share, error, unit=unit, **judgement(data, cell))
    return replace(theory, predicted=limit, theory=words("the limit"))


def suits(tree: xr.DataTree) -> Suiting:
    """The limiting rates at the snapshots, with a simulation's if it keeps them."""
    runs, limits = keeping(tree, "tpr", "snapshot", "threshold")
    return {"simulation": runs, "limit": limits[0]} if limits else None


def panels(data: xr.Dataset) -> list[Panel]:
    """True against false positives, both against the threshold, and the misclassified share."""
    grid = dims_of(data["tpr_limit"], "snapshot", "threshold")
    threshold = "threshold on " + symbol("|x|")
    columns, out = 3 if has_values(data["fpr_limit"]) else 0, []
    for k, cell in enumerate(shown(data, grid, CELLS)):
        here = data.sel(cell)
        text, dashed = _caption(here), "Solid: true positive rate; dashed: false positive rate. "
        chance = Line(np.array([0.0, 1.0]), np.array([0.0, 1.0]), words("chance"), GREY, "dot")
        roc = [chance, *_curves(here, "fpr", "tpr")]
        rates = [*_curves(here, "threshold", "tpr"), *_curves(here, "threshold", "fpr", "dash")]
        missed = _curves(here, "threshold", "misclassified")
        each_point = f"{text} One point a threshold on |<i>x</i>|."
        drawn = {
            "roc": (words("false positive rate"), roc, each_point),
            "rates": (threshold, rates, dashed + text),
            "wrong": (threshold, missed, text),
        }
        if not has_values(here["fpr_limit"]):
            del drawn["roc"]
        for key, (x, items, caption) in drawn.items():
            name = f"support_{key}" + (f"_{k + 1}" if k else "")
            labels = titled(words(TITLES[key][0]), cell), x, words(TITLES[key][1])
            panel = Panel(name, *labels, tuple(items), caption, columns=columns)
            across = (-0.02, 1.02) if key == "roc" else None
            up = None if key == "wrong" else (-0.02, 1.04)
            out.append(replace(panel, x_range=across, y_range=up))
    return out


def _caption(here: xr.Dataset) -> str:
    text = f"Lines: the limit ({method_name(here.attrs['limit_method']).html})."
    parts = []
    for _, own in _methods(here.isel(snapshot=0)):
        method = method_name(own["simulation"].item()).html
        parts.append(f"{method} at {symbol('n').html} = {count(float(own['n']))}")
    return f"{text} Markers: {' and '.join(parts)}, ± 2 standard errors." if parts else text


def _methods(one: xr.Dataset) -> list[tuple[str, xr.Dataset]]:
    """Marker and data of every simulation at its largest n."""
    names = one["simulation"].values if "simulation" in one.dims else ()
    own = [one.sel(simulation=m) for m in names]
    return [(SYMBOLS[j % 4], at_largest_n(m, m["count"] > 0)) for j, m in enumerate(own)]


def _curves(here: xr.Dataset, x: str, y: str, dash: str = "solid") -> list[Item]:
    """A rate at some snapshots: the limit's curve, and simulations at a few thresholds."""
    items: list[Item] = []
    kept = spread(here.sizes["snapshot"], SNAPSHOTS)
    for color, k in colored(kept):
        one = here.isel(snapshot=k)
        label = place({"snapshot": float(one["snapshot"])})
        across = one["threshold" if x == "threshold" else f"{x}_limit"].values.astype(float)
        curve, listed = one[f"{y}_limit"].values, dash == "solid"
        items.append(Line(across, curve, label, color, dash, bold=True, listed=listed))
        for mark, own in _methods(one):
            if x == "threshold":
                keep = np.array(spread(own.sizes[x], MARKERS))
            else:
                keep = _spaced(own[x].values, own[y].values)
            at, height = (own[name].values[keep].astype(float) for name in (x, y))
            bar = ERRORS * np.nan_to_num(own[f"{y}_se"].values[keep])
            ends = height - bar, height + bar
            items.append(Points(at, height, label, color, *ends, mark, listed=False))
    return items


def _spaced(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    known = np.flatnonzero(np.isfinite(x) & np.isfinite(y))
    if len(known) < 2:
        return known
    steps = np.hypot(np.diff(x[known]), np.diff(y[known]))
    length = np.concatenate([[0.0], np.cumsum(steps)])
    even = np.linspace(0.0, length[-1], MARKERS)
    return np.asarray(known[np.unique(np.abs(length[:, None] - even).argmin(axis=0))])
