"""As which powers of swept parameters a quantity falls or grows: fits, findings and figures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from hdica.analysis import reading
from hdica.analysis.dependence.dependence import predicted_like
from hdica.analysis.powers import Exponents
from hdica.show.choose import (
    Point,
    dims_of,
    evenly,
    has_values,
    numbers,
    points,
    positions,
    selection_note,
    shown,
    without,
)
from hdica.show.finding import Finding, Form, named
from hdica.show.marks import bars, colored, interval, level, lines_first, positive, tailed
from hdica.show.panel import Array, Item, Line, Panel, Points
from hdica.show.words import EMPTY, Text, axis, joined, method_name, place, symbol, words
from hdica.status import DIVERGED
from hdica.verdict.cells import CONFIDENCE, CONTROL, DIFFERS, UNDECIDED, judged
from hdica.verdict.ladder import pooled
from hdica.verdict.powers import MISFIT, moderated, power_law
from hdica.verdict.resample import resampled, shares_noise

LONG_NAMES = {
    "value": "{s} of {v} over seeds",
    **reading.interval_names("value", "the {s} of {v}"),
    "seeds": "seeds that are done",
    "diverged": "seeds that diverged",
    "used": "1 where a cell takes part in the fit",
    "fitted": "{s} of {v} by the fitted power law",
    "exponent": "exponent of the parameter in the {s} of {v}",
    **reading.interval_names("exponent", "the exponent"),
    "exponent_error": "standard error of the exponent",
    "chi2": "weighted sum of squared residuals of the power law",
    "dof": "its expectation if the power law is exact",
    "p_value": "p-value of the power law being exact",
    "widening": "factor by which scatter about the power law widens the intervals of exponents",
    "freedom": "degrees of freedom of the errors of the exponents",
    "cells": "cells in the fit",
    "left_out": "cells without two finished seeds, whose {s} is not positive beyond its noise, or "
    "without theory where others have one",
    "predicted": "{v} in theory",
    "predicted_exponent": "exponent of the parameter in theory, fitted to the same cells",
    "ratio": "{s} of {v} over theory",
    **reading.interval_names("ratio", "the ratio"),
    "ratio_error": "standard error of the ratio",
}
LOST = 0.025
"""A cell is left out if the statistic is not positive in more than this share of its resamples."""
FITS = 3
"""Of fits of one method at most so many are drawn."""
APART = 0.012
"""How far points of neighbouring colours are moved apart, as a share of the axis."""
WIDE = 5
"""Ratios to theory that differ by more have a logarithmic axis: else it had a single tick."""
STATISTICS: dict[str, Callable[..., Any]] = {"median": np.nanmedian, "mean": np.nanmean}
COUNTS = ("seeds", "diverged", "used", "cells", "left_out")


def exponents(tree: xr.DataTree, settings: Exponents) -> xr.Dataset:
    """Power laws of a statistic of seeds, fitted in logarithms, and their prediction.

    Over ``simulation`` and the swept parameters, with ``n`` where there is one: the statistic with
    its interval, whether the cell takes part, the fitted value; over ``simulation``, what is not
    in ``over`` (a fit each) and ``parameter``: exponents with 95 % intervals; and without
    ``parameter`` how far the law is exact. With a theory the same of it, by the same weights, and
    the ratio of both in each cell. Variances of cells come of seeds drawn again.
    """
    groups = reading.groups(tree, settings.simulation)
    for data in groups.values():
        for name in settings.over:
            reading.check_positive(data, name, "analysis.exponents.over")
    theory = None
    if settings.theory:
        theory = reading.at_end(reading.group(tree, settings.theory), settings.variable)
    parts = {name: _simulated(data, theory, settings) for name, data in groups.items()}
    out = reading.over(parts, "simulation", *COUNTS)
    out.attrs = {"variable": settings.variable, "statistic": settings.statistic}
    out.attrs["theory"] = settings.theory or ""
    out.attrs["noise"] = reading.noise_of(groups.values())
    return reading.described(out, LONG_NAMES, settings.variable, s=settings.statistic)


def _simulated(data: xr.Dataset, theory: xr.DataArray | None, settings: Exponents) -> xr.Dataset:
    """Fits of one method, one for each combination of what is not in ``over``."""
    values = reading.at_end(data, settings.variable)
    along = settings.over
    known = predicted_like(theory, values.isel(seed=0, drop=True))
    known = known.where((known > 0) & np.isfinite(known))
    axes = np.meshgrid(*(np.log(positions(values, d)) for d in along), indexing="ij")
    log_p, shape = np.stack([p.ravel() for p in axes], axis=1), axes[0].shape
    statistic, shared = STATISTICS[settings.statistic], shares_noise(data)

    def fit(runs: Array, predicted: Array) -> reading.Cell:
        runs = runs.reshape(len(log_p), -1)
        cells, laws, whole = _fitted(runs, log_p, predicted.ravel(), statistic, shared)
        own = {name: (along, one.reshape(shape)) for name, one in cells.items()}
        return {**own, **{name: (("parameter",), one) for name, one in laws.items()}, **whole}

    coords = {d: values[d].values for d in along} | {"parameter": list(along)}
    out = reading.cellwise(fit, (values, (*along, "seed")), (known, along), coords=coords)
    if theory is None:
        out = out.drop_vars([k for k in out if "predicted" in str(k) or "ratio" in str(k)])
    diverged = (data["status"] == DIVERGED).sum("seed")
    return out.assign(diverged=diverged)


def _fitted(
    values: Array, log_p: Array, predicted: Array, statistic: Callable[..., Any], shared: bool
) -> tuple[dict[str, Array], dict[str, Array], dict[str, float]]:
    """Numbers of one fit by their names: of its cells, of its parameters, and of the whole.

    ``values`` have shape (cells, seeds), NaN where a seed is not finished; ``log_p``, the
    logarithms of the parameters, (cells, parameters); ``predicted`` (cells,), positive, NaN without
    theory. ``statistic(values, axis)`` ignores NaN; ``shared`` says whether cells share noise.
    """
    seeds = (~np.isnan(values)).sum(axis=1)
    center, half, error = np.full((3, len(values)), np.nan)
    enough = seeds >= 2
    center[enough] = statistic(values[enough], axis=1)
    log_q, covariance, known = _noise(values, center, seeds, statistic, shared)
    used = np.isfinite(log_q)
    if np.isfinite(predicted[used]).any():  # both laws are of the same cells
        rows = np.flatnonzero(np.isfinite(predicted[used]))
        covariance = covariance[np.ix_(rows, rows)]
        used &= np.isfinite(predicted)
    law = power_law(log_p[used], log_q[used], covariance, known)
    error[used] = np.sqrt(np.diag(covariance))
    half[used] = stats.t.ppf(0.5 + CONFIDENCE / 2, known) * error[used]
    low, high = np.exp(log_q - half), np.exp(log_q + half)
    ratio = np.where(used, center, np.nan)
    cells = {
        "value": center,
        "value_low": low,
        "value_high": high,
        "ratio": ratio / predicted,
        "ratio_low": low / predicted,
        "ratio_high": high / predicted,
        "ratio_error": ratio * error / predicted,
        "seeds": seeds,
        "used": used.astype(int),
        "predicted": predicted,
        "fitted": np.exp(law.constant + log_p @ law.exponents),
    }
    laws = {
        "exponent": law.exponents,
        "exponent_low": law.low,
        "exponent_high": law.high,
        "exponent_error": law.error,
        "predicted_exponent": law.of(np.log(predicted[used])),
    }
    whole = {k: getattr(law, k) for k in ("chi2", "dof", "p_value", "widening", "freedom")}
    return cells, laws, {**whole, "cells": int(used.sum()), "left_out": int((~used).sum())}


def _noise(
    values: Array, center: Array, seeds: Array, statistic: Callable[..., Any], shared: bool
) -> tuple[Array, Array, float]:
    """Logarithms, NaN in cells left out; covariance of the others, its degrees of freedom."""
    log_q = np.full(len(center), np.nan)
    positive = np.flatnonzero(np.isfinite(center) & (center > 0))
    draws = resampled(values[positive], statistic, shared)
    sure = np.isnan(draws).mean(axis=0) <= LOST
    keep, draws = positive[sure], draws[:, sure]
    if not keep.size:
        return log_q, np.zeros((0, 0)), np.inf
    log_q[keep] = np.log(center[keep])
    draws = np.where(np.isnan(draws), np.nanmin(draws, axis=0), draws)
    one, known = moderated(draws.var(axis=0) * seeds[keep], seeds[keep] - 1.0)
    error = np.sqrt(one / seeds[keep])
    if not shared:
        return log_q, np.diag(error**2), known
    deviation = draws - draws.mean(axis=0)
    size = np.sqrt((deviation**2).mean(axis=0))
    scaled = deviation / np.where(size > 0, size, 1.0) * error
    together = scaled.T @ scaled / len(scaled)
    np.fill_diagonal(together, error**2)
    return log_q, together, known


def fits(data: xr.Dataset, most: int | None = None) -> list[Point]:
    """What tells fits apart: the method and what is not in ``over``, each at its largest n.

    At most so many of a method, evenly.
    """
    along = parameters(data)
    others = dims_of(data["value"], "simulation", "n", *along)
    some = evenly(points(data, others), most)
    out = []
    for method in data["simulation"].values:
        seeds = data["seeds"].sel(simulation=method)
        top = {"n": reading.largest_n(seeds.where(seeds > 0))} if "n" in data.dims else {}
        out += [{"simulation": str(method), **other, **top} for other in some]
    return out


def parameters(data: xr.Dataset) -> list[str]:
    """Parameters of the power law, in order."""
    return [str(name) for name in data["parameter"].values]


def findings(data: xr.Dataset) -> list[Finding]:
    """The exponents of every fit, its values over those of theory, and what it leaves out."""
    chosen = [p for p in fits(data) if np.isfinite(data.sel(p)["exponent_low"].values).all()]
    laws = [one for point in chosen for one in _exponents(data, point)]
    every = [{**point, **cell} for point in chosen for cell in points(data, parameters(data))]
    cells = [p for p in every if "ratio" in data and np.isfinite(data["ratio_error"].sel(p))]
    left = [one for point in fits(data) for one in _of_the_fit(data, point)]
    free = np.repeat([float(data["freedom"].sel(p)) for p in chosen], len(parameters(data)))
    return [*(_judged(data, laws, free, cells) if cells else laws), *left]


def _exponents(data: xr.Dataset, point: Point) -> list[Finding]:
    """A fit's exponent of every parameter."""
    name = f"the {data.attrs['statistic']} " + symbol(data.attrs["variable"])
    law, out = Finding(name, named(data, point), form=Form.POWER), []
    for k in range(data.sizes["parameter"]):
        here = data.sel(point).isel(parameter=k)
        base, theory = symbol(str(here["parameter"].item())), here.get("predicted_exponent", np.nan)
        value, error = float(here["exponent"]), float(here["exponent_error"])
        # Scatter about the law is no noise of seeds, and stays with more of them.
        seeds = np.inf if float(here["p_value"]) < MISFIT else np.nan
        one = replace(law, value=value, error=error, base=base, predicted=float(theory))
        out.append(replace(one, seeds=seeds))
    return out


def _judged(
    data: xr.Dataset, laws: list[Finding], freedom: Array, cells: Sequence[Point]
) -> list[Finding]:
    """Exponents, the mean ratio of cells to theory, and each ratio.

    ``freedom`` is that of the exponents' errors, of which the mean ratio has the least. The mean
    ratio and the exponents are judged together, with a control. A single value can show
    that theory is wrong but hardly that it is right: values have verdicts only where one differs.
    """
    rows = [numbers(data, cell, "ratio", "ratio_error", "seeds") for cell in cells]
    ratio, errors, seeds = np.transpose(rows)
    name = "ratio of measured to predicted " + symbol(data.attrs["variable"])
    values = [
        Finding("the " + name, named(data, cell), *pair)
        for cell, *pair in zip(cells, ratio.tolist(), errors.tolist(), strict=True)
    ]
    each = judged(ratio - 1, errors, CONTROL, np.maximum(seeds - 1.0, 1.0)).verdict
    if DIFFERS in each:
        values = [
            replace(one, predicted=1.0, verdict=str(verdict))
            for one, verdict in zip(values, each, strict=True)
        ]
    mean = pooled(ratio, errors, data.attrs["noise"] == "shared")
    total = Finding("the mean " + name, {}, *mean, predicted=1.0)
    if not np.isfinite(total.value):
        return [*laws, *values]
    together = [*laws, total]
    off, error = (np.array([getattr(one, key) for one in together]) for key in ("off", "error"))
    result = judged(off, error, CONTROL, np.append(freedom, freedom.min()))
    evidence = f"control: a factor or an exponent off by {CONTROL:g}"
    # Where scatter about a law widens its error, no number of seeds decides.
    needed = np.where([np.isinf(one.seeds) for one in together], np.inf, result.seeds)
    together = [
        replace(one, verdict=str(v), evidence=evidence, seeds=float(s * seeds.max()))
        for one, v, s in zip(together, result.verdict, needed, strict=True)
    ]
    return [*together, *values]


def _of_the_fit(data: xr.Dataset, point: Point) -> list[Finding]:
    """How far a law is from a power, and which cells it leaves out."""
    here, place, out = data.sel(point), named(data, point), []
    if float(here["p_value"]) < MISFIT:
        name = words("the factor by which scatter about the power law widens its errors")
        out.append(Finding(name, place, float(here["widening"]), digits=2))
    left, total = int(here["left_out"]), int(here["left_out"] + here["cells"])
    if left:
        name = words(f"the number of cells, of {total}, that the fit leaves out")
        reason = "without two finished seeds, without a value above its noise, or without theory"
        claimed = "predicted" in here and bool(here["predicted"].where(here["used"] == 0).count())
        verdict = UNDECIDED if claimed else ""
        out.append(Finding(name, place, float(left), verdict=verdict, evidence=reason))
    return out


def panels(data: xr.Dataset) -> list[Panel]:
    """For every fit the data with the law, and the ratio to theory if there is one."""
    out = []
    for tail, point in tailed(fits(data, FITS)):
        here = data.sel(point)
        method = method_name(point["simulation"]) if tail else EMPTY
        named = joined(method, place(without(point, "simulation")))
        end = " · " + named if named else EMPTY
        if has_values(here["value"]):
            out.append(_law(here, "Power law" + end, tail))
            if "ratio" in here and has_values(here["ratio"]):
                out.append(_ratio(here, "Measured over predicted" + end, tail))
    return out


def _law(here: xr.Dataset, title: Text, tail: str) -> Panel:
    x, curves = _curves(here)
    quantity = f"{here.attrs['statistic']} " + symbol(here.attrs["variable"])
    items: list[Item] = []
    for color, curve in colored(curves):
        items += _curve(here.sel(curve), x, place(curve) or quantity, color)
    statistic = here.attrs["statistic"].capitalize()
    caption = [f"{statistic} over seeds with 95 % intervals, and the fitted power law."]
    if "predicted" in here and has_values(here["predicted"]):
        caption.append("Dashed: theory.")
    if bool(((here["used"] == 0) & here["value"].notnull()).any()):
        caption.append("Open: not in the fit.")
    caption += selection_note(here, [name for name in parameters(here) if name != x], len(curves))
    labels, text = (title, axis(x), quantity), " ".join(caption)
    return Panel(f"exponents{tail}", *labels, lines_first(items), text, True, True)


def _curves(here: xr.Dataset) -> tuple[str, list[Point]]:
    """The parameter with most values, and values of the others that are drawn."""
    x = max(parameters(here), key=lambda name: here.sizes[name])
    return x, shown(here, [name for name in parameters(here) if name != x])


def _curve(here: xr.Dataset, x: str, label: Text, color: str) -> list[Item]:
    """Data of one colour, the fitted law through them, and theory."""
    seen, ordered = here.isel({x: np.flatnonzero(here["value"].values > 0)}), here.sortby(x)
    if not seen.sizes[x]:
        return []
    at, filled = positions(seen, x), seen["used"].values > 0
    out: list[Item] = [*bars(at, interval(seen, "value"), label, color, filled=filled)]
    for name, dash in (("fitted", "solid"), ("predicted", "dash")):
        if name in ordered and has_values(ordered[name]):
            along, y = positions(ordered, x), ordered[name].values
            out.append(Line(along, y, label, color, dash, listed=False))
    return out


def _ratio(here: xr.Dataset, title: Text, tail: str) -> Panel:
    x, curves = _curves(here)
    at = positions(here, x)
    items: list[Item] = [level(at, 1.0, words("theory"), "ink", listed=False)]
    width = np.log(at.max() / at.min())
    for k, (color, curve) in enumerate(colored(curves)):
        ratio, low, high = interval(here.sel(curve), "ratio")
        if np.isfinite(ratio).any():
            moved = at * np.exp(APART * width * (k - (len(curves) - 1) / 2))
            label = place(curve) or words("measured / predicted")
            items.append(Points(moved, ratio, label, color, low, high))
    ends = positive(end.ravel() for end in interval(here, "ratio"))
    log = ends is not None and ends[1] / ends[0] > WIDE
    apart = "; series are moved apart a little." if len(curves) > 1 else "."
    label = symbol(here.attrs["variable"]) + " measured / predicted"
    text = f"Ratio to theory with 95 % intervals{apart}"
    return Panel(f"ratios{tail}", title, axis(x), label, tuple(items), text, True, log)
