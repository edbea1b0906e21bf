"""Where runs succeed: shares, the boundary of even odds, and its power of a parameter."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import special

from hdica.analysis import reading
from hdica.analysis.phase import Success, refined
from hdica.analysis.phase.compute import shares
from hdica.show.choose import Point, dims_of, evenly, has_values, numbers, points, positions
from hdica.show.finding import Finding, Form
from hdica.show.marks import SHARES, colored, interval, lines_first, map_of, tailed
from hdica.show.panel import Item, Line, Panel, Points
from hdica.show.words import Text, axis, number, place, simple, symbol, titled, words
from hdica.status import DIVERGED, DONE
from hdica.verdict.cells import CONTROL, Array, judged
from hdica.verdict.odds import SURE, even_odds
from hdica.verdict.powers import MISFIT, power_law
from hdica.verdict.resample import shares_noise

LONG_NAMES = {
    "successes": "seeds that succeed",
    "trials": "seeds that are done, and those that diverged, which failed",
    "diverged": "seeds that diverged",
    "probability": "share of seeds that succeed",
    "probability_low": "lower end of the 95 % Wilson interval",
    "probability_high": "upper end of the 95 % Wilson interval",
    "boundary": "{y} with even odds of success, by a logistic curve in log {y}",
    **reading.interval_names("boundary", "{y} with even odds"),
    "boundary_error": "standard error of the logarithm of {y} with even odds",
    "slope": "slope of the logit in log {y} at even odds",
    "bend": "quadratic term of the logit in log {y} about even odds",
    "exponent": "exponent of {x} in the boundary",
    "exponent_error": "standard error of the exponent",
    **reading.interval_names("exponent", "the exponent"),
    "prefactor": "boundary of the fitted power law at {x} = 1",
    "p_value": "p-value of the boundary being a power of {x}",
    "widening": "factor by which scatter about the power law widens the exponent's interval",
}
MAPS = 3
"""Of further swept parameters at most so many combinations are drawn."""
SLICES = 6
CELLS = 150
"""Numbers are written in the cells of a map that has no more."""
SMOOTH = 101
Runs = NDArray[np.bool_]
"""Of one map: over x, y and seed."""


def success(tree: xr.DataTree, settings: Success) -> xr.Dataset:
    """Probability of an event over two parameters, and where its odds are even.

    Over ``x``, ``y``, further swept parameters and ``n`` where there is one: counts and shares with
    95 % Wilson intervals, diverged runs among the failures; over ``x``: the ``y`` with even odds,
    NaN where the shares do not bracket it; without either: the power of ``x`` as which that moves.
    Where points share their noise, errors of the boundary are over whole seeds.
    """
    data = reading.group(tree, settings.simulation)
    for key in ("x", "y"):
        reading.check_positive(data, getattr(settings, key), f"analysis.success.{key}")
    x, y = settings.x, settings.y
    values = reading.at_end(data, settings.variable)
    lost = data["status"] == DIVERGED
    others = dims_of(values, x, y, "seed")
    order = (*others, x, y, "seed")
    every = (settings.event(values), values.notnull() | lost, lost)
    event, tried, lost = (v.transpose(*order).sortby([x, y]) for v in every)
    shared = shares_noise(data)
    log_x, log_y = (np.log(positions(event, d)) for d in (x, y))
    boundary = partial(_boundary, x=x, log_x=log_x, log_y=log_y, shared=shared)
    own, at = (x, y, "seed"), {x: event[x].values}
    fits = reading.cellwise(boundary, (event, own), (tried, own), coords=at)
    counts = {"successes": event, "trials": tried, "diverged": lost}
    out = xr.Dataset({name: each.sum("seed") for name, each in counts.items()})
    out = out.assign(shares(out["successes"], out["trials"], out["trials"] > 0)).merge(fits)
    if (nearest := refined.nearest(tree, data, x, y)) is not None:
        out["nearest"] = nearest
    out.attrs = {"variable": settings.variable, "x": x, "y": y, "simulation": settings.simulation}
    bounds = {"below": settings.below, "above": settings.above}
    out.attrs |= {k: bound for k, bound in bounds.items() if bound is not None}
    if settings.powers:
        out.attrs["laws"] = json.dumps(dict(settings.powers), ensure_ascii=False)
    out.attrs["noise"] = reading.noise_of([data])
    if "time" in data[settings.variable].dims:
        out.attrs["time"] = float(data["time"].values[-1])
    return reading.described(out.transpose(x, y, ...), LONG_NAMES, settings.variable, x=x, y=y)


def sides(tree: xr.DataTree, settings: Success) -> xr.DataArray:
    """Whether few, half and nearly all runs succeed in each cell."""
    data = reading.group(tree, settings.simulation)
    status = data["status"]
    counted = (status == DONE) | (status == DIVERGED)
    event = settings.event(reading.at_end(data, settings.variable))
    return refined.contours(event, counted, status)


def _boundary(
    success: Runs, tried: Runs, x: str, log_x: Array, log_y: Array, shared: bool
) -> reading.Cell:
    """Boundary of one map and its exponent, of runs over x, y and seed."""
    odds = even_odds(log_y, success.sum(axis=-1), tried.sum(axis=-1))
    covariance = np.diag(odds.error**2)
    if shared:
        covariance = _jackknife(success, tried, log_y) + np.diag(odds.within)
    error = np.sqrt(np.diag(covariance))
    known = np.flatnonzero(np.isfinite(odds.at) & (error > 0))
    law = power_law(log_x[known][:, None], odds.at[known], covariance[np.ix_(known, known)])
    ends = {"": 0.0, "_low": -SURE, "_high": SURE}
    fit: dict[str, Array | float] = {
        **{f"boundary{k}": np.exp(odds.at + sign * error) for k, sign in ends.items()},
        "boundary_error": error,
        "slope": odds.slope,
        "bend": odds.bend,
        "exponent": law.exponents[0],
        "exponent_error": law.error[0],
        "exponent_low": law.low[0],
        "exponent_high": law.high[0],
        "prefactor": np.exp(law.constant),
        "p_value": law.p_value,
        "widening": law.widening,
    }
    return {k: ((x,), np.asarray(v)) if np.ndim(v) else float(v) for k, v in fit.items()}


def _jackknife(success: Runs, tried: Runs, log_y: Array) -> Array:
    """Covariance over x of the boundary's logarithm, with one seed fewer at a time."""
    seeds, without = tried.shape[-1], []
    for runs in (success, tried):
        others = runs.sum(axis=-1) - np.moveaxis(runs, -1, 0)
        without.append(others.reshape(-1, log_y.size))
    parts = even_odds(log_y, *without).at.reshape(seeds, -1)
    deviation = parts - parts.mean(axis=0)
    return np.asarray((seeds - 1) / seeds * deviation.T @ deviation)


def maps(data: xr.Dataset, most: int | None = None) -> list[Point]:
    """What tells maps apart, at the largest n; at most so many, evenly."""
    own = (data.attrs["x"], data.attrs["y"], "n")
    others = dims_of(data["probability"], *own)
    top = {"n": int(data["n"].values[-1])} if "n" in data.dims else {}
    return [{**other, **top} for other in evenly(points(data, others), most)]


def event(data: xr.Dataset) -> Text:
    """What counts as success: "tan² ≤ 1/3"."""
    below = "below" in data.attrs
    mark, bound = ("≤", data.attrs["below"]) if below else ("≥", data.attrs["above"])
    sign = Text(f" {mark} ", r" $\leq$ " if below else r" $\geq$ ", f" {mark} ")
    return symbol(data.attrs["variable"]) + sign + words(simple(float(bound)))


def findings(data: xr.Dataset) -> list[Finding]:
    """The power of x as which the boundary moves, each law of it, and the boundary itself."""
    chosen = maps(data)
    moving = [m for m in chosen if np.isfinite(data["exponent_error"].sel(m))]
    name, base = "the " + _even_odds(data), symbol(data.attrs["x"])
    powers = [(m, float(data["exponent"].sel(m))) for m in moving]
    errors = data["exponent_error"]
    bent = words("the factor by which scatter about the power law widens its error")
    misfits = [m for m in moving if float(data["p_value"].sel(m)) < MISFIT]
    without = "the number of values of " + base
    without += f", of {data.sizes[data.attrs['x']]}, without even odds"
    missing = [float((~np.isfinite(data["boundary"].sel(m))).sum()) for m in chosen]
    return [
        *(Finding(name, m, p, float(errors.sel(m)), form=Form.POWER, base=base) for m, p in powers),
        *_laws(data, moving),
        *(_bracketed(data, chosen) or _extremes(data, chosen)),
        *(Finding(bent, m, float(data["widening"].sel(m)), digits=2) for m in misfits),
        *(Finding(without, m, many) for m, many in zip(chosen, missing, strict=True) if many),
    ]


def _even_odds(data: xr.Dataset) -> Text:
    return symbol(data.attrs["y"]) + " at which half of the runs have " + event(data)


def _laws(data: xr.Dataset, chosen: Sequence[Point]) -> list[Finding]:
    """Each law's power beside that of every map; the nearest is judged, the others are its rivals.

    The control of the nearest is half-way to the next law. A law that says at most is off only
    where the power is larger, and of several the least is the nearest. Rivals that are off are no
    fault of what the page claims, and have no verdict.
    """
    stated = {name: str(one) for name, one in json.loads(data.attrs.get("laws", "{}")).items()}
    if not stated or not chosen:
        return []
    value, error = np.transpose([numbers(data, m, "exponent", "exponent_error") for m in chosen])
    bounds = [name for name, text in stated.items() if text.startswith("<=")]
    power = {name: float(text.removeprefix("<=")) for name, text in stated.items()}
    off = {name: value - one for name, one in power.items()}
    off |= {name: np.maximum(off[name], 0.0) for name in bounds}
    scores = {name: np.abs(one / error) for name, one in off.items()}
    laws = sorted(stated, key=lambda name: (float(scores[name].max()), power[name]))
    nearest = laws[0]
    others = [one for one in power.values() if one != power[nearest]]
    margin = min((abs(power[nearest] - one) / 2 for one in others), default=CONTROL)
    result = judged(off[nearest], error, margin, rivals=len(set(power.values())))
    quantity = "the power of " + symbol(data.attrs["x"]) + " in the " + _even_odds(data)
    out = []
    for law in laws:
        text = f"{law} (at most {number(power[law])})" if law in bounds else law
        predicted = np.nan if law in bounds else power[law]
        for k, m in enumerate(chosen):
            one = Finding(quantity, m, value[k], error[k], predicted=predicted, theory=words(text))
            evidence = f"{number(scores[law][k], 2)} standard errors off"
            if law == nearest:
                evidence = f"control: a power off by {number(margin)}"
                seeds = float(result.seeds[k] * data["trials"].max())
                one = replace(one, verdict=str(result.verdict[k]), seeds=seeds)
            out.append(replace(one, evidence=evidence))
    return out


def _bracketed(data: xr.Dataset, chosen: Sequence[Point]) -> list[Finding]:
    """The y with even odds at every x where the shares bracket it."""
    places = [{**m, **at} for m in chosen for at in points(data, [data.attrs["x"]])]
    name, out = "the " + _even_odds(data), []
    for point in places:
        here = data.sel(point)
        if np.isfinite(at := float(here["boundary"])):
            out.append(Finding(name, point, at, float(here["boundary"] * here["boundary_error"])))
    return out


def _extremes(data: xr.Dataset, chosen: Sequence[Point]) -> list[Finding]:
    """The largest and the least share of success, where there is no boundary."""
    own = [str(data.attrs[k]) for k in ("x", "y")]
    cells = [{**m, **cell} for m in chosen for cell in points(data, own)]
    shares = [(float(data["probability"].sel(cell)), cell) for cell in cells]
    known = [pair for pair in shares if np.isfinite(pair[0])]
    name, out = "the share of runs with " + event(data), []
    for form, pick in ((Form.LARGEST, max), (Form.SMALLEST, min)):
        for share, cell in [pick(known, key=lambda pair: pair[0])] if known else []:
            low, high = numbers(data, cell, "probability_low", "probability_high")
            out.append(Finding(name, cell, share, low=low, high=high, form=form))
    return out


def panels(data: xr.Dataset) -> list[Panel]:
    """A heat map and slices for each combination of the other parameters."""
    out = []
    for tail, other in tailed(maps(data, MAPS)):
        here = data.sel(other)
        out += [_map(here, other, tail), _slices(here, other, tail)]
    return out


def _map(here: xr.Dataset, other: Point, tail: str) -> Panel:
    whole = refined.spread_out(here, here.attrs["x"], here.attrs["y"])
    share = whole["probability"].transpose(here.attrs["y"], here.attrs["x"])
    when = f" at <i>t</i> = {number(here.attrs['time'])}" if "time" in here.attrs else ""
    caption = [f"Share of seeds with {event(here).html}{when}."]
    if has_values(here["boundary"]):
        caption.append("Dots: even odds, with 95 % intervals.")
    if np.isfinite(float(here["exponent"])):
        caption.append("Dashed: the power law through them.")
    if int(here["diverged"].sum()):
        caption.append("Diverged runs count as failures.")
    few = share.size <= CELLS
    written = tuple(
        tuple("" if np.isnan(p) else f"{p:.2f}" for p in row) for row in share.values if few
    )
    titles = titled("Probability that " + event(here), other), words("probability")
    text, over = " ".join(caption) + refined.note_of(here), _even(here)
    return map_of(share, f"success{tail}", titles, text, over, other, log=True, written=written)


def _even(here: xr.Dataset) -> list[Item]:
    """The boundary with its intervals and the power law through it, to be seen on any colour."""
    known = np.isfinite(here["boundary"].values)
    at_x = positions(here, here.attrs["x"])[known]
    at, low, high = (values[known] for values in interval(here, "boundary"))
    if not known.any():
        return []
    out: list[Item] = []
    if np.isfinite(float(here["exponent"])):
        law = float(here["prefactor"]) * at_x ** float(here["exponent"])
        out.append(Line(at_x, law, words("fitted power law"), "#000000", "dash", cased=True))
    # A line for each interval, with a gap after it.
    ends = np.stack([low, high, np.full(at.size, np.nan)], axis=1).ravel()
    label = words("95 % interval")
    out.append(Line(np.repeat(at_x, 3), ends, label, "#000000", cased=True, listed=False))
    return [*out, Points(at_x, at, words("even odds"), "#ffffff")]


def _slices(here: xr.Dataset, other: Point, tail: str) -> Panel:
    x, y = here.attrs["x"], here.attrs["y"]
    at = positions(here, y)
    fine = np.geomspace(at[0], at[-1], SMOOTH)
    kept = evenly(list(range(here.sizes[x])), SLICES)
    items: list[Item] = []
    for color, k in colored(kept):
        cut = here.isel({x: k})
        label = place({x: here[x].values[k].item()})
        share, low, high = interval(cut, "probability")
        items.append(Points(at, share, label, color, low, high))
        if np.isfinite(float(cut["boundary"])):
            curve = _curve(np.log(fine / float(cut["boundary"])), cut)
            items.append(Line(fine, curve, label, color, listed=False))
    text = (
        "Share of seeds with 95 % Wilson intervals; lines: logistic curves in log "
        f"{symbol(y).html}, where the shares bracket one half."
    )
    if here.attrs["noise"] == "shared":
        text += " Points share their noise and so rise and fall together."
    labels = titled(words("Slices"), other), axis(y), "probability that " + event(here)
    key = f"success_slices{tail}"
    return Panel(key, *labels, lines_first(items), text, True, y_range=SHARES)


def _curve(z: Array, cut: xr.Dataset) -> Array:
    """The fitted probability by log y about even odds, as far as it rises or falls one way."""
    slope, bend = float(cut["slope"]), float(cut["bend"])
    one_way = (slope + 2 * bend * z) * slope > 0
    return np.where(one_way, special.expit(slope * z + bend * z**2), np.nan)
