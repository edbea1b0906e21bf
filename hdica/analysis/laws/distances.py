"""Whether laws of the entries agree with those of the limit, and their distances against n."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis import reading
from hdica.analysis.convergence.compute import exponent, half_power
from hdica.analysis.convergence.figure import grid_of
from hdica.analysis.laws import Distances
from hdica.analysis.laws.densities import FEATURE, group_label, xi_of
from hdica.analysis.settings import Suiting
from hdica.show.choose import (
    MOST,
    Point,
    at_largest_n,
    numbers,
    points,
    points_in,
    positions,
    selected,
    shown,
    without,
)
from hdica.show.finding import Finding, Form, judgement, named
from hdica.show.marks import ERRORS, GREY, NOWHERE, against_n, guide, methods_of, over_n
from hdica.show.panel import Array, Item, Line, Panel, Points
from hdica.show.words import EMPTY, Text, place, words
from hdica.verdict import trajectory
from hdica.verdict.ladder import MIN_SEEDS, ladder, moments
from hdica.verdict.powers import decay_exponent
from hdica.verdict.trajectory import Verdict, controlled, judge, nothing

PLACES = 15
"""A law is tested at no more places than this; neighbours tell the same."""
TAIL = 0.02
"""No place is tested where less than this share of the law lies beyond it."""
BEYOND = 20
"""No place is tested with fewer entries of all seeds together expected beyond it: means of so
rare events are not normal."""

OF_AGREEMENT = {
    **trajectory.LONG_NAMES,
    "p_value": "p-value of mean = limit + C/n over all places of the law",
    "score": "largest normal score over the places of the law",
}

COMPANIONS = ("limit", "error", "control")
SEEDS = ("seeds_needed", "seeds_needed_error")
KEPT = ("verdict", "why", "p_value", "score", "control_p", "power", *SEEDS, "n_from")


@dataclass(frozen=True)
class Part:
    """A distribution function, or another share that rises or falls from one end to the other.

    ``values`` are over the grid, ``n``, ``seed`` and ``place``, the dimension along the law;
    ``curves`` are ``limit``, ``error`` and ``control`` over (some of) the grid and ``place``, NaN
    where unknown; ``share``, over (some of) the grid and n, is that of the entries which are
    counted, as a fraction of n.
    """

    values: xr.DataArray
    curves: xr.Dataset
    share: xr.DataArray
    place: str


def agreement(parts: Sequence[Part], level: float) -> xr.Dataset:
    """Verdict of every cell of the grid; several parts over the same are tested together, as one.

    The mean over seeds of an empirical distribution function is compared with the limit by
    :func:`hdica.verdict.trajectory.judge`, with places along the law where that has times:
    a term C/n is free at every place where there are several n, and the largest statistic over
    places is judged with the correlations of neighbouring places. Places are chosen by the limit
    alone, evenly in probability. ``level`` is the chance of a false "differs" for each cell.
    """
    n = positions(parts[0].values, "n")
    names, columns = ("values", "share", *COMPANIONS), list[tuple[xr.DataArray, tuple[str, ...]]]()
    for part in parts:
        columns += [(part.values, ("n", "seed", part.place)), (part.share, ("n",))]
        columns += [(part.curves[name], (part.place,)) for name in COMPANIONS]

    def verdict(*arrays: Array) -> reading.Cell:
        each = [arrays[k : k + len(names)] for k in range(0, len(arrays), len(names))]
        result = _judged([dict(zip(names, a, strict=True)) for a in each], n, level)
        return {name: getattr(result, name) for name in KEPT}

    return reading.cellwise(verdict, *columns)


def _judged(parts: Sequence[Mapping[str, Array]], n: Array, level: float) -> Verdict:
    parts = [p for p in parts if np.isfinite(p["limit"]).all()]
    if not parts:
        return nothing(np.zeros(0), "the limit has no result here")
    seeds = np.isfinite(parts[0]["values"]).all(axis=2).sum(axis=1)
    if seeds.max(initial=0) < MIN_SEEDS:
        return nothing(np.zeros(0), f"no n has {MIN_SEEDS} finished seeds")
    entries = seeds * n * np.min([p["share"] for p in parts], axis=0)
    enough = entries * 0.5 >= BEYOND
    if not enough.any():
        return nothing(np.zeros(0), "all seeds together have too few entries here")
    tail = max(TAIL, BEYOND / float(entries[enough].min()))
    places = [thinned(p["limit"], tail) for p in parts]
    values, limit, error, control = (
        np.concatenate([p[name][..., k] for p, k in zip(parts, places, strict=True)], axis=-1)
        for name in ("values", *COMPANIONS)
    )
    if not len(limit):
        return nothing(limit, "the places of the law are too coarse")
    runs = ladder(values[enough], n[enough])
    return judge(runs, limit, np.nan_to_num(error), control, level)


def thinned(law: Array, tail: float = TAIL) -> NDArray[np.intp]:
    """Places of a law, shape (places,), to test: even in probability, ``tail`` on either side."""
    levels = np.linspace(tail, 1 - tail, PLACES)
    nearest = np.unique(np.abs(law[:, None] - levels).argmin(axis=0))
    inside = (law[nearest] >= tail) & (law[nearest] <= 1 - tail)
    return np.asarray(nearest[inside])


NAMES = {"ks": "Kolmogorov–Smirnov", "w1": "Wasserstein-1"}
SHORT = {"ks": words("KS"), "w1": Text("<i>W</i><sub>1</sub>", "$W_1$", "W₁")}
OF_DISTANCE = {
    "": "{d} distance of one run, mean over seeds",
    "_se": "standard error of the {d} distance",
    "_expected": "{d} distance of as many independent entries",
    "_pooled": "{d} distance of the law pooled over seeds",
    "_pooled_expected": "{d} distance of as many pooled independent entries",
    "_exponent": "a in {d} ~ n^-a",
    **reading.exponent_names("_exponent", "a", " for {d}"),
}
LONG_NAMES = {
    **OF_AGREEMENT,
    **{
        kind + ending: text.format(d=name.replace("–", "-"))
        for kind, name in NAMES.items()
        for ending, text in OF_DISTANCE.items()
    },
    "outside": "share of entries outside the edges",
    "outside_limit": "share of the limit's mass outside the edges",
    "xi": FEATURE,
}

BRIDGES = 1000
"""Brownian bridges whose mean maximum is taken: good to one percent."""
DENSE = 1000
"""More edges than this are thinned for it, evenly in probability; that costs two percent."""
Sized = tuple[float, Point, xr.Dataset]
"""A size with the place of its law and its numbers."""

UNSEEN = 1e-4
"""A share outside the edges below this is none."""


def distances(tree: xr.DataTree, settings: Distances) -> xr.Dataset:
    """Compare the law of the estimate's entries, given the feature, with the limit's density.

    Two distances of distribution functions F and G: Kolmogorov and Smirnov's, max |F - G| over the
    edges of the histogram, and Wasserstein's W1, the integral of |F - G| over the range of the
    edges by the trapezoidal rule. Mass outside the edges is not seen by W1; it is reported.

    Over ``simulation``, the swept parameters, ``n``, ``snapshot`` and ``feature``: both distances
    of one run, mean over seeds with standard error; both of the law pooled over seeds; their size
    if the entries were independent draws. Per snapshot and feature the exponents of decay in n, and
    the verdict of :func:`agreement`.
    """
    limits = reading.group(tree, settings.limit)
    companions = reading.with_companions(limits, "cdf", *COMPANIONS[1:])
    curves = controlled(companions, settings.control)
    compare = partial(_compare, limits=limits, curves=curves)
    out = reading.compared(tree, settings, "cdf", "edge", compare, "count")
    out["xi"] = xi_of(limits)
    out["outside_limit"] = _outside(curves["limit"])
    return reading.described(out, LONG_NAMES)


def _compare(data: xr.Dataset, level: float, limits: xr.Dataset, curves: xr.Dataset) -> xr.Dataset:
    if "weight" in data:  # the share of the entries in every group, over the grid and n
        weight = reading.finished(data, "weight").mean("seed")
    else:
        weight = reading.finished(limits, "weight").expand_dims(n=data["n"].values)
    values = reading.finished(data, "cdf")
    gap = values - curves["limit"]
    single = _sizes(gap)
    count = single["ks"].notnull().sum("seed")
    out = xr.Dataset({"count": count, "outside": _outside(values).mean("seed")})
    entries = weight * data["n"]
    pooled, one = _sizes(gap.mean("seed")), _independent(curves["limit"], entries)
    together = _independent(curves["limit"], entries * count)
    for kind in NAMES:
        result = moments(single[kind])
        out[kind], out[f"{kind}_se"] = result["mean"], result["se"]
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
    n, dof = positions(out, "n"), max(float(out["count"].max()) - 1, 1.0)
    columns = [(out[f"{kind}{end}"], ("n",)) for kind in NAMES for end in ("", "_se")]

    def exponents(*arrays: Array) -> reading.Cell:
        pairs = zip(NAMES, arrays[::2], arrays[1::2], strict=True)
        fits = ((f"{k}_exponent", decay_exponent(n, mean, se, dof)) for k, mean, se in pairs)
        return {name: value for fit in fits for name, value in exponent(*fit).items()}

    return reading.cellwise(exponents, *columns)


def findings(data: xr.Dataset) -> list[Finding]:
    """Verdicts on the laws, distances of one run beside those of draws, and their powers of n.

    A verdict is on the mean law of all runs and the limit, up to a term of order 1/n. The entries
    of a run are no independent draws: a distance unlike that of draws differs from no limit.
    """
    laws = [(cell, *_law(data, cell)) for cell in points(data, ["simulation", *grid_of(data)])]
    law, theory = words("the law of the entries of the estimate"), words("the limit")
    unit = words("from the limit (Kolmogorov–Smirnov distance of all runs together)")
    apart = Finding(law, theory=theory, unit=unit, digits=2)
    out = [
        replace(apart, place=at, value=float(top["ks_pooled"]), **judgement(data, cell))
        for cell, at, top in laws
    ]
    largest = Finding(EMPTY, form=Form.LARGEST, digits=2)
    for kind, name in NAMES.items():
        sizes = [(float(top[kind]), at, top) for _, at, top in laws]
        for size, at, top in _most(sizes, 0.0):
            quantity = words(f"the {name} distance of one run from the limit")
            error, expected = numbers(top, {}, f"{kind}_se", f"{kind}_expected")
            one = replace(largest, quantity=quantity, place=at, value=size, error=error)
            draws = words("as many independent draws")
            out.append(replace(one, predicted=expected, theory=draws))
    for kind, name in NAMES.items():
        # The distance of independent draws falls as the power −1/2.
        out += half_power(data, f"{kind}_exponent", words(f"the {name} distance of one run"))
    # No distance sees these entries.
    outside = [
        (float(np.fmax(top["outside"], top["outside_limit"])), at, top) for _, at, top in laws
    ]
    for share, at, _ in _most(outside, UNSEEN):
        quantity = words("the share of entries outside the edges of the histogram")
        one = replace(largest, quantity=quantity, place=at, value=100 * share)
        out.append(replace(one, unit=words("%")))
    return out


def _law(data: xr.Dataset, cell: Point) -> tuple[Point, xr.Dataset]:
    """The place of one law, and its numbers at the largest n with any."""
    here = data.sel(cell)
    top = at_largest_n(here, here["ks"].notnull())
    at = without(named(data, cell), "snapshot", "feature")
    if "feature" in cell:
        xi = float(top["xi"])
        at["xi"] = float(f"{xi if np.isfinite(xi) else cell['feature']:.4g}")
    return {**at, "n": int(top["n"]), "t": float(cell["snapshot"])}, top


def _most(laws: list[Sized], least: float) -> list[Sized]:
    """The law of the largest size, if any size is above a bound."""
    return sorted((law for law in laws if law[0] > least), key=itemgetter(0))[-1:]


def suits(tree: xr.DataTree) -> Suiting:
    """Simulations with n that keep densities against the limit's."""
    runs, limits = reading.keeping(tree, "cdf", "snapshot", "feature", "edge")
    return {"simulation": runs, "limit": limits[0]} if runs and limits else None


def panels(data: xr.Dataset) -> list[Panel]:
    """One panel a distance, on logarithmic axes; nothing for a single n or without results."""
    if data.sizes["n"] < 2 or not bool((data["count"] > 0).any()):
        return []
    return [_panel(data, kind) for kind in NAMES]


def _law_label(data: xr.Dataset, point: Point) -> Text:
    """A snapshot and group, and the grid point if there are several; a time always tells laws."""
    group = group_label(selected(data["xi"], point))
    alone = [k for k in point if k != "snapshot" and data.sizes[k] == 1]
    several = without(point, "feature", *alone)
    return place(several) + ", " + group if group else place(point)


def _panel(data: xr.Dataset, kind: str) -> Panel:
    marks: list[Points] = []
    lines: list[Line] = []
    chosen = shown(data, grid_of(data))
    named = [(_law_label(data, point), point) for point in chosen]
    for here, look in over_n(data, data[kind].notnull(), named):
        n, size = positions(here, "n"), here[kind].values
        bar = ERRORS * np.nan_to_num(here[f"{kind}_se"].values)
        marks.append(
            Points(n, size, low=np.maximum(size - bar, size * 1e-2), high=size + bar, **look)
        )
        expected = here[f"{kind}_expected"].values
        lines.append(Line(n, expected, look["label"], look["color"], "dash", listed=False))
    dashed = Line(NOWHERE, NOWHERE, words("independent draws"), GREY, "dash")
    laws = points_in(data, grid_of(data))
    text = (
        "Markers: distance between the law of the entries in one run and the limit's, mean over "
        "seeds ± 2 standard errors. Dashed: as many independent draws from the limit. Dotted: "
        "slope −1/2." + (f" {len(chosen)} laws of {laws}, chosen evenly." if laws > MOST else "")
    )
    items: tuple[Item, ...] = (*lines, *marks, *methods_of(data), dashed, *guide(marks, 0.5))
    title, label = words(f"{NAMES[kind]} distance"), SHORT[kind] + " distance of one run"
    return against_n(f"distance_{kind}", title, label, items, text)
