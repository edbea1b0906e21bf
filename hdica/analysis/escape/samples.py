"""How many samples are enough: quantiles of first passages in theory, and what runs have of them.

A quantile of a passage is the number of samples within which it happens with a probability. Runs
are held to it by their share that has escaped by then, of which a binomial law knows the error.
"""

from __future__ import annotations

import math

import numpy as np
import xarray as xr
from scipy.optimize import brentq

from hdica.analysis import reading
from hdica.analysis.escape import Samples
from hdica.analysis.escape.compute import UNITS, gridded, hazards, paired, steps, unit_of
from hdica.show.choose import Point, dims_of, points, positions, shown
from hdica.show.finding import THEORY, Finding, named
from hdica.show.marks import bars, captioned, colored, known, level, tailed
from hdica.show.panel import Item, Line, Panel
from hdica.show.words import Text, number, p_value, symbol, titled, words
from hdica.verdict.cells import AGREES, DIFFERS, UNDECIDED, Array, judged
from hdica.verdict.survival import EscapeTimes, Hazard, survival_curve

LONG_NAMES = {
    "needed": "samples that are enough with the probability, in theory",
    "limit": "the same for n = infinity",
    "measured": "samples within which that share of runs has escaped (Kaplan-Meier)",
    **reading.interval_names("measured", "those samples"),
    "share": "share of runs that have escaped within the samples of theory",
    "runs": "runs that are done",
    "margin": "by how much that share is off with the samples of the control",
    "verdict": "agrees, differs or undecided",
    "p_value": "p-value of the share, corrected for all that are judged",
    "seeds_needed": "runs that would decide an undecided share",
}
TIMES = ("needed", "limit", "measured", "measured_low", "measured_high")
_MOST = 1e15
"""Times beyond which nothing is awaited."""


def samples(tree: xr.DataTree, settings: Samples) -> xr.Dataset:
    """Samples that are enough with each probability, in theory and of runs, over the grid and n.

    Times are in the unit of the methods, n^3 steps or n^2 steps. A share of runs is known if none
    of them ended earlier; it is judged by its binomial error, with the control that there are fewer
    samples, or more.
    """
    data, theory = (reading.group(tree, one) for one in (settings.simulation, settings.theory))
    chances = np.array(settings.probabilities)
    pairs = paired(data, theory, "first")
    out = gridded(
        data, [_cell(*one, chances, settings.control) for one in pairs], probability=chances
    )
    if settings.limit is not None:
        far = hazards(reading.group(tree, settings.limit), "first")
        values = np.array([_needed(one, chances) for one in far.values.flat])
        shape = (*far.shape, chances.size)
        coords = {**far.coords, "probability": chances}
        out["limit"] = xr.DataArray(values.reshape(shape), coords, (*far.dims, "probability"))
    dims = out["share"].dims
    chance, runs = (out[name].broadcast_like(out["share"]) for name in ("probability", "runs"))
    noise = (chance * (1 - chance) / runs.where(runs > 0)) ** 0.5
    difference, error, margin, many = (
        one.transpose(*dims).values for one in (out["share"] - chance, noise, out["margin"], runs)
    )
    result = judged(difference, error, margin, level=settings.level)
    out = out.assign(
        verdict=(dims, np.where((many > 0) & (result.verdict == ""), UNDECIDED, result.verdict)),
        p_value=(dims, result.p_value),
        seeds_needed=(dims, np.ceil(result.seeds * many)),
    )
    out.attrs = {"control": settings.control, "unit": unit_of(data)}
    return reading.described(out, LONG_NAMES, units=dict.fromkeys(TIMES, unit_of(data)))


def _needed(hazard: Hazard | None, chances: Array) -> Array:
    """Times within which a passage happens with each probability; infinite if it never does."""
    if hazard is None:
        return np.full(chances.size, np.nan)

    def beyond(time: float, target: float) -> float:
        return float(hazard(np.array([time]))[0]) - target

    out = []
    for target in -np.log1p(-chances):
        end = 1.0
        while beyond(end, target) < 0 and end < _MOST:
            end *= 4
        found = end < _MOST
        out.append(brentq(beyond, 0.0, end, args=(target,), rtol=1e-12) if found else math.inf)
    return np.array(out)


def _cell(
    runs: EscapeTimes | None, hazard: Hazard | None, chances: Array, control: float
) -> reading.Cell:
    """Theory's samples, and the runs that have escaped within them, at one point and n."""
    needed, nothing = _needed(hazard, chances), np.full(chances.size, np.nan)
    share, margin, seen = nothing.copy(), nothing.copy(), [nothing] * 3
    if hazard is not None:
        less, more = (
            -np.expm1(-hazard(part * needed)) for part in (1 - control, 1 / (1 - control))
        )
        margin = np.minimum(chances - less, more - chances)
    if runs is not None:
        seen = _quantiles(runs, chances)
        for k, time in enumerate(needed):
            before = runs.times <= time
            if time >= 0 and not np.any(before & ~runs.escaped):
                share[k] = before.mean()
    columns = {"needed": needed, "share": share, "margin": margin}
    columns |= dict(zip(("measured", "measured_low", "measured_high"), seen, strict=True))
    out: dict[str, tuple[tuple[str, ...], Array] | float] = {
        name: (("probability",), values) for name, values in columns.items()
    }
    return {**out, "runs": 0 if runs is None else runs.times.size}


def _quantiles(runs: EscapeTimes, chances: Array) -> list[Array]:
    """Times by which shares of the runs have escaped, with 95 % intervals; infinite if unknown."""
    curve = survival_curve(runs)
    out = []
    # Where all runs have escaped, or none, an end of the interval is not known.
    for band, unknown in (
        (curve.survival, curve.survival),
        (curve.low, curve.survival),
        (curve.high, 1.0),
    ):
        band = np.where(np.isfinite(band), band, unknown)
        reached = [curve.times[band <= 1 - p + 1e-12] for p in chances]
        out.append(np.array([float(t[0]) if t.size else math.inf for t in reached]))
    return out


def _size(data: xr.Dataset, point: Point) -> float:
    """Samples in the unit of the times, at the n of a point."""
    return float(point["n"]) ** UNITS[str(data.attrs["unit"])][0]


def _others(data: xr.Dataset) -> list[str]:
    return dims_of(data["needed"], "n", "probability")


def findings(data: xr.Dataset) -> list[Finding]:
    """The samples for each probability: at the largest n, as n -> infinity, and at smaller n."""
    first, last = list[Finding](), list[Finding]()
    sizes = [int(n) for n in data["n"].values]
    for chance in data["probability"].values.tolist():
        quantity = words("the number of samples that are enough with probability ") + number(chance)
        for other in points(data, _others(data)):
            for n in sorted(sizes, reverse=True):
                point = {**other, "n": n, "probability": chance}
                if not str(data["verdict"].sel(point).item()):
                    continue
                if n == max(sizes):
                    first.append(_finding(data, quantity, point))
                else:
                    last.append(_finding(data, quantity + " at smaller " + symbol("n"), point))
            if "limit" in data:
                far = float(data["limit"].sel({**other, "probability": chance}))
                text = quantity + " as " + symbol("n") + " → ∞"
                first.append(Finding(text, other, far, unit=steps(data)))
    return [*first, *last]


def _finding(data: xr.Dataset, quantity: Text, point: Point) -> Finding:
    here, size = data.sel(point), _size(data, point)
    value, low, high = (
        size * float(here[name]) for name in ("measured", "measured_low", "measured_high")
    )
    verdict, runs = str(here["verdict"].item()), float(here["runs"])
    evidence = "some runs ended before they escaped: let them last longer"
    if not np.isfinite(float(here["needed"])):
        evidence = "theory has no law at this point and n"
    if np.isfinite(share := float(here["share"])):
        evidence = f"{round(share * runs)} of {int(runs)} runs have escaped by then, "
        evidence += p_value(float(here["p_value"]))
        if verdict != DIFFERS:
            be = "are" if verdict == AGREES else "would not be"
            part = number(100 * data.attrs["control"])
            evidence += f"; samples wrong by {part} % {be} rejected"
    return Finding(
        quantity,
        named(data, {k: v for k, v in point.items() if k != "probability"}),
        value if np.isfinite(value) else np.nan,
        low=low,
        high=high,
        predicted=size * float(here["needed"]),
        theory=THEORY,
        verdict=verdict,
        evidence=evidence,
        seeds=float(here["seeds_needed"]),
    )


def panels(data: xr.Dataset) -> list[Panel]:
    """Samples against n for every probability, a panel a point of the grid."""
    return [_panel(data.sel(cell), cell, tail) for tail, cell in tailed(shown(data, _others(data)))]


def _panel(here: xr.Dataset, cell: Point, tail: str) -> Panel:
    items, n = list[Item](), positions(here, "n")
    for color, chance in colored(sorted(here["probability"].values.tolist())):
        cut, label = here.sel(probability=chance), words("probability ") + number(chance)
        items.append(Line(n, cut["needed"].values, label + ", theory", color))
        if "limit" in cut and np.isfinite(far := float(cut["limit"])):
            text = label + ", " + symbol("n") + " → ∞"
            items.append(level(n, far, text, color, dash="dash", listed=False))
        ends = [cut[name].values for name in ("measured", "measured_low", "measured_high")]
        items += bars(n, [np.where(np.isfinite(end), end, np.nan) for end in ends], label, color)
    drawn = known(items)
    caption = captioned(
        drawn,
        {
            "points": "Markers: samples within which that share of the runs has escaped, with 95 % "
            "intervals.",
            "solid": "Lines: theory at each <i>n</i>.",
            "dash": "Dashed: theory for <i>n</i> → ∞.",
        },
    )
    title = titled(words("Samples that are enough"), cell)
    labels = title, "dimension " + symbol("n"), "samples, " + steps(here)
    return Panel(f"samples{tail}", *labels, tuple(drawn), " ".join(caption), True, True)
