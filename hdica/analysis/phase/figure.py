"""Phase diagram: maps of overlap and success with theory, critical values and boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import special, stats

from hdica.analysis.phase import refined
from hdica.analysis.phase.compute import CELL_LEVEL
from hdica.show.choose import Point, at_last_n, cells_of, evenly, has_values, positions
from hdica.show.finding import Finding, verdict_of
from hdica.show.marks import SHARES, captioned, colored, interval, map_of, tailed
from hdica.show.marks import upright as across
from hdica.show.panel import Array, Item, Line, Panel, Points, Vertical
from hdica.show.terms import spoken, starts, steps
from hdica.show.words import (
    CALLED,
    Text,
    axis,
    count,
    critical,
    number,
    p_value,
    place,
    rounded,
    size,
    symbol,
    titled,
    words,
)
from hdica.verdict.cells import AGREES, CLEAR, CONTROL, DIFFERS, LEVEL, UNDECIDED, judged

MAPS = 3
"""Of further swept parameters at most so many combinations are drawn."""
SIZES = 4
"""... each at several n, of which there are at most so many of all combinations together."""
ORDER = ("overlap", "success", "decaying", "slices")
SLICES = 4
LEVELS = {"dot": 0.1, "dash": 0.9}
"""Predicted probabilities between which noise decides, by the dashes of their lines."""


def phase(data: xr.Dataset) -> list[Panel]:
    """Heat maps and slices at each n, for each combination of the other parameters.

    Maps of one quantity follow each other from the largest n down; the first has the plain key.
    """
    x, y = data.attrs["x"], data.attrs["y"]
    if any(data[axis].dtype.kind not in "fiu" for axis in (x, y)):
        return []
    every = cells_of(data["overlap"], x, y, "n")
    chosen = evenly(every, MAPS)
    known = data["n"].values[::-1].tolist() if "n" in data.dims else []
    sizes = [{"n": int(n)} for n in evenly(known, SIZES // len(chosen))] or [{}]
    out: list[Panel] = []
    for tail, other in tailed(chosen):
        at = [{**other, **one} for one in sizes]
        tails = [tail, *(f"{tail}_n{one['n']}" for one in sizes[1:])]
        cuts = [(data.sel(one), one, end) for one, end in zip(at, tails, strict=True)]
        panels = [panel for cut in cuts for panel in (*_maps(*cut), _slices(*cut))]
        out += sorted(panels, key=lambda panel: ORDER.index(panel.key.split("_")[1]))
    if len(chosen) < len(every):
        left = f"{len(chosen)} of {len(every)} values of the other parameters, chosen evenly."
        out[0] = replace(out[0], caption=f"{out[0].caption} {left}")
    return out


def success(data: xr.Dataset) -> str:
    """What counts as success, in words."""
    variable, limit = size(data.attrs["variable"]).html, number(data.attrs["success"])
    by_limit = data["by_limit"].values
    trend = f"is above {variable} = {limit} and not falling over the last third of the time"
    basin = "lies in the basin of an informative state of the limit"
    if (by_limit == 1).all():
        return f"a run succeeds if it {basin}"
    if (by_limit == 0).all():
        return f"a run succeeds if it {trend}"
    return f"a run succeeds if it {basin}, or, where that is not known, {trend}"


def unstable_symbol(here: xr.Dataset) -> Text:
    """The overlap of the unstable fixed point."""
    return symbol(f"{here.attrs['variable']}_u")


def unstable(here: xr.Dataset) -> str:
    """What the unstable fixed point is: the boundary, where the overlap alone evolves."""
    q = f"unstable fixed point {unstable_symbol(here).html}"
    if here.attrs["divides"]:
        return f"{q}, the boundary in theory"
    return f"{q}, which is no boundary, since more than the start's overlap decides"


def _maps(here: xr.Dataset, other: Point, tail: str) -> list[Panel]:
    """Maps of the overlap, of success, and of runs that are large and do not succeed, if any."""
    x, y, note = here.attrs["x"], here.attrs["y"], refined.note_of(here)
    here = refined.spread_out(here, x, y)
    quantity, time = size(here.attrs["variable"]), place({"snapshot": here.attrs["time"]})
    trials, when = here["trials"], f"at <i>t</i> = {number(here.attrs['time'])}"
    of_overlap = f"Mean of {quantity.html} over seeds at {time.html}."
    of_success = f"A{success(here)[1:]} {when}; shown is the share of such runs."
    if bool(((trials > 0) & here["probability"].isnull()).any()):
        of_success += " Cells are empty where most runs are still closer to their start than to "
        of_success += "the state to which they go."
    of_decay = (
        f"Share of runs with {quantity.html} &gt; {number(here.attrs['success'])} {when} that do "
        "not succeed: they are on their way down."
    )
    decaying = (here["decaying"] / trials).where(trials > 0)
    share = words("success probability")
    drawn = (
        ("overlap", here["overlap"], "Overlap at " + time, "mean " + quantity, of_overlap),
        ("success", here["probability"], words("Success probability"), share, of_success),
        ("decaying", decaying, words("Still decaying"), words("share still decaying"), of_decay),
    )
    items = _theory(here, positions(here, x))
    level = "where the predicted probability of success is"
    marks = {
        "solid": f"Solid line: {unstable(here)}.",
        "points": f"Dots: {'start' if y in starts() else symbol(y).html} with even odds in the "
        "simulation.",
        "upright": f"Upright dashed line: {critical(x).html}.",
        "dot": f"Dotted: {level} {number(LEVELS['dot'])}.",
        "dash": f"Dashed: {level} {number(LEVELS['dash'])}.",
    }
    out = []
    for name, values, title, label, caption in drawn if (decaying > 0).any() else drawn[:2]:
        whole = " ".join([caption, *captioned(items, marks)]) + note
        key, titles = f"phase_{name}{tail}", (titled(title, other), label)
        scale, at = "viridis" if name == "overlap" else "cividis", values.transpose(y, x)
        out.append(map_of(at, key, titles, whole, items, other, scale=scale))
    return out


def critical_values(data: xr.Dataset) -> list[tuple[float, float]]:
    """Critical values with their overlaps; only where they do not depend on a swept parameter."""
    if "critical_value" not in data or data["critical_value"].ndim != 1:
        return []
    pairs = zip(data["critical_value"].values, data["critical_overlap"].values, strict=True)
    return [(float(v), float(q)) for v, q in pairs if np.isfinite(v)]


def _theory(here: xr.Dataset, at_x: Array) -> Sequence[Item]:
    out: list[Item] = []
    known = critical_values(here)
    if "boundary" in here and here["boundary"].ndim == 1 and here.attrs["y"] in starts():
        boundary = here["boundary"].values
        keep = np.isfinite(boundary)
        line_x, line_y = at_x[keep], boundary[keep]
        beyond = [c for c in known if len(line_x) and c[0] >= line_x[-1]]
        if beyond and len(line_x) < len(at_x):  # close the branch at its fold
            line_x, line_y = np.append(line_x, beyond[0][0]), np.append(line_y, beyond[0][1])
        if len(line_x):
            label = unstable_symbol(here) + " (theory)"
            out.append(Line(line_x, line_y, label, "#000000", bold=True, cased=True))
    out += [
        Vertical(value, critical(here.attrs["x"]) + f" = {number(value, 4)}")
        for value, _ in known
        if at_x[0] <= value <= at_x[-1]
    ]
    out += lines(here)
    even = np.where(_placed(here), here["threshold"].values, np.nan)
    if np.isfinite(even).any():
        out.append(Points(at_x, even, words("even odds"), "#ffffff"))
    return out


def _placed(here: xr.Dataset) -> NDArray[np.bool_]:
    """Where the start with even odds is known to within a step; across a gap of cells it is not."""
    step = np.abs(np.diff(positions(here, here.attrs["y"]))).max(initial=0.0)
    return np.asarray(~(here["threshold_se"].values >= step))


def _slices(here: xr.Dataset, other: Point, tail: str) -> Panel:
    """The share along y at a few values of x, evenly among those where the start decides."""
    x, y = here.attrs["x"], here.attrs["y"]
    at = positions(here, y)
    span = (here["probability"].max(y) - here["probability"].min(y)).values
    telling = np.flatnonzero(span >= 0.5) if (span >= 0.5).any() else np.arange(span.size)
    kept = evenly(telling.tolist(), SLICES)
    items: list[Item] = []
    for color, k in colored(kept):
        cut = here.isel({x: k})
        label, (p, low, high) = place({x: here[x].values[k]}), interval(cut, "probability")
        items.append(Points(at, p, label, color, low, high, joined=True))
        if "odds" in cut and has_values(cut["odds"]):
            predicted = words("predicted probability")
            items.append(Line(at, cut["odds"].values, predicted, color, "dot", listed=False))
        edge = cut.get("boundary", xr.DataArray(np.nan))
        if edge.ndim == 0 and y in starts() and np.isfinite(edge):
            items.append(across(float(edge), label, color, "dash", listed=False))
    text = "Share of seeds that succeed, with 95 % Wilson intervals"
    if here.attrs["noise"] == "shared":
        text += " of single points, which share their noise and so rise and fall together"
    text += "."
    if y in starts() and "boundary" in here and has_values(here["boundary"]):
        text += f" Dashed: {unstable(here)}."
    text += " Dotted: the predicted probability." if "odds" in here else ""
    labels = titled(words("Slices"), other), axis(y), words("success probability")
    key = f"phase_slices{tail}"
    return Panel(key, *labels, tuple(items), text, wide=True, y_range=SHARES)


def lines(here: xr.Dataset) -> list[Line]:
    """Where the predicted probability is 0.1 and 0.9, between which noise decides."""
    if "odds" not in here:
        return []
    x, y = here.attrs["x"], here.attrs["y"]
    at: Array = positions(here, x)
    out: list[Line] = []
    for dash, level in LEVELS.items():
        cross = np.array([_crossing(here["odds"].isel({x: k}), y, level) for k in range(at.size)])
        if np.isfinite(cross).any():
            label = words(f"predicted probability {number(level)}")
            out.append(Line(at, cross, label, "#d55e00", dash))
    return out


def _crossing(share: xr.DataArray, y: str, level: float) -> float:
    """Where a share that rises along y passes a level, linear in its normal score."""
    known = share.sortby(y).dropna(y)
    at, p = positions(known, y), known.values
    after = np.flatnonzero((p[:-1] < level) & (p[1:] >= level))
    if not after.size:
        return float("nan")
    k = int(after[0])
    low, high = special.ndtri(np.clip(p[k : k + 2], 1e-12, 1 - 1e-12))
    part = (special.ndtri(level) - low) / (high - low)
    return float(at[k] + part * (at[k + 1] - at[k]))


HALF = 0.5
"""Share of runs from which on most of them succeed."""


def findings(data: xr.Dataset) -> list[Finding]:
    """Up to where the limit learns, and where the boundary of the simulation lies beside it."""
    early = _separation(data)
    cuts = _each_theory(data)
    answer = [one for cut in cuts for one in _critical(*cut)]
    answer += _gap(data) or [one for cut in cuts for one in _stop(*cut)]
    answer = [*early, *answer] if verdict_of(early) else [*answer, *early]
    return [*answer, *_odds(data), *_majorities(data), *_starts(data)]


def _size(data: xr.Dataset) -> Point:
    """The largest n as a place."""
    return {"n": int(np.ravel(data["n"].values)[-1])} if "n" in data.coords else {}


def _each_theory(data: xr.Dataset) -> list[tuple[xr.Dataset, Point]]:
    """The data at each of the other parameters on which critical values depend."""
    if "critical_value" not in data:
        return []
    *others, transition = data["critical_value"].dims
    if {data.attrs["x"], data.attrs["y"]} & {*others}:
        return []
    return [(data.sel(cell), cell) for cell in cells_of(data["critical_value"], str(transition))]


def _critical(data: xr.Dataset, other: Point) -> list[Finding]:
    """The critical value up to which, or from which on, the limit learns."""
    values = critical_values(data)
    if not values:
        return []
    x = data.attrs["x"]
    upward = x in steps()  # learning is lost as a step size grows
    value, overlap = (max if upward else min)(values)
    side, rule = "up to" if upward else "from", spoken() or "the rule"
    name = f"the {CALLED.get(x, '')}" + critical(x) + f" {side} which {rule} learns"
    meeting = f"two informative states meet at {symbol(data.attrs['variable']).html}"
    return [Finding(name, other, value, evidence=f"{meeting} = {number(overlap)}", digits=6)]


def _separation(data: xr.Dataset) -> list[Finding]:
    """In how many points most runs have come close to a state; undecided if in less than half."""
    top = at_last_n(data)
    begun = top["trials"] > 0
    many, total = int((begun & top["probability"].isnull()).sum()), int(begun.sum())
    if not many:
        return []
    needed = top["time_needed"].values[np.isfinite(top["time_needed"].values)]
    elsewhere = "" if many == total else "elsewhere "
    why = f"{elsewhere}most runs are still closer to their start than to the state to which they go"
    if needed.size:
        why += f"; most of them need about <i>t</i> = {rounded(float(np.median(needed)), 1)}"
    name = words("the share of points whose runs have reached a state")
    at, share = {**_size(data), "t": data.attrs["time"]}, 100 * (1 - many / total)
    verdict = UNDECIDED if 2 * many > total else ""
    return [Finding(name, at, share, verdict=verdict, evidence=why, unit=words("%"), digits=3)]


def _gap(data: xr.Dataset) -> list[Finding]:
    """The measured less the theoretical boundary, for each combination of the other parameters."""
    divides = data.attrs["y"] in starts() and data.attrs["divides"]
    if not divides or "boundary" not in data:
        return []
    top, x = at_last_n(data), data.attrs["x"]
    cells = cells_of(top["threshold"], x)
    return [one for cell in cells for one in _offset(top.sel(cell), cell)]


def _offset(here: xr.Dataset, other: Point) -> list[Finding]:
    """The offset where both boundaries are known, with a control that is off by :data:`CONTROL`."""
    gap, error = (here["threshold"] - here["boundary"]).values, here["threshold_se"].values
    there = np.isfinite(gap)
    if gap.ndim != 1 or there.sum() < 2:
        return []
    known = there & _placed(here)
    known = known if known.sum() >= 2 else there
    many, margin = int(known.sum()), CONTROL * np.abs(here["boundary"].values[known])
    gap, error = gap[known], error[known]
    result = judged(gap, error, margin)
    # What more seeds leave of the error: between two starts a rise may be anywhere.
    left = here.get("threshold_spacing", xr.zeros_like(here["threshold_se"])).values[known]
    coarse = judged(gap, left, margin).whole == UNDECIDED
    edge = " of the start with even odds from theory’s " + unstable_symbol(here)
    values = f"{count(many)} values" if many > 2 else "both values"
    test = f"of {values} of {symbol(here.attrs['x']).html}, each with a control"
    test += f" off by {number(100 * CONTROL)} %"
    if apart := int(there.sum()) - many:
        test += f"; at {count(apart)} more too few runs have reached a state to place it"
    name, value, se = "the mean offset" + edge, float(gap.mean()), np.nan
    if here.attrs["noise"] == "shared" and (error > 0).all():
        # No plain error of what is put together from such points.
        name, value = "the largest distance" + edge, float(np.abs(gap / error).max())
        name += ", in standard errors,"
    elif (error > 0).all():
        weight = 1 / error**2
        value, se = float(weight @ gap / weight.sum()), float(weight.sum() ** -0.5)
    p, more = np.nanmin(result.p_value, initial=1.0), np.nanmax(result.seeds, initial=0.0)
    if np.isfinite(se):
        p = min(p, stats.chi2.sf(((gap / error) ** 2).sum(), many))
    verdict, seeds = _stricter(result.whole, float(p)), np.nan
    if verdict == UNDECIDED and coarse:
        test += "; no seeds decide, only starts that are closer together"
    elif verdict == UNDECIDED and more:
        seeds = float(np.ceil(more * here["trials"].max()))
    evidence = f"{p_value(float(p))}: {test}"
    if np.isnan(error).all():
        evidence = "one run has no error"
    one = Finding(name, {**other, **_size(here)}, value, se, predicted=0.0)
    return [replace(one, verdict=verdict, evidence=evidence, seeds=seeds)]


def _stricter(verdict: str, p: float) -> str:
    """A verdict, or what the p-value of a second test makes of it."""
    if p >= LEVEL or verdict == DIFFERS:
        return verdict
    return DIFFERS if p < LEVEL / CLEAR else UNDECIDED


def _stop(data: xr.Dataset, other: Point) -> list[Finding]:
    """Between which values of x most runs stop succeeding from every start."""
    known = critical_values(data)
    if not known or data[data.attrs["x"]].dtype.kind not in "fiu":
        return []
    value, x = known[0][0], data.attrs["x"]
    last = at_last_n(refined.spread_out(data, x, data.attrs["y"]))
    others = [d for d in last["probability"].dims if d != x]
    share = last["probability"].max(others)
    # Where no start succeeds, one from which runs have not separated may be one that does.
    sure = (share > HALF) | last["probability"].notnull().all(others)
    share = share[sure.values]
    at, most = positions(share, x), share.values > HALF
    if x not in steps():
        at, most = at[::-1], most[::-1]
    # A start that is pending may be one from which learning succeeds.
    if not most.any() or most.all() or not bool((last["trials"] > 0).all()):
        return []
    k = int(np.flatnonzero(most)[-1])
    if k == len(at) - 1:
        return []
    low, high = sorted((float(at[k]), float(at[k + 1])))
    off = max(abs(low - value), abs(high - value))
    verdict = AGREES if low <= value <= high and off <= CONTROL * abs(value) else UNDECIDED
    name = f"the {CALLED.get(x, '')}" + symbol(x) + " at which runs stop succeeding"
    at_n = {**other, **_size(data)}
    one = Finding(name, at_n, (low + high) / 2, low=low, high=high, predicted=value)
    inside = "" if low <= value <= high else ", between which theory’s does not lie"
    return [replace(one, verdict=verdict, evidence=f"between two values of the grid{inside}")]


EXCESS = {
    "excess": "the share of successful runs less its predicted probability, where noise decides,",
    "rise": "the rise of that share from unlikely to likely success less the predicted rise",
}


def _odds(data: xr.Dataset) -> list[Finding]:
    """Shares of runs less predicted probabilities, over all cells in which noise decides."""
    if "odds" not in data:
        return []
    top = at_last_n(data)
    trials = positions(top, "trials")
    known = np.isfinite(top["odds_p"].values) & (trials > 0)
    if not known.any():
        return []
    p = top["odds_p"].values[known]
    off, expected = int((p < CELL_LEVEL).sum()), float(top["odds_chance"].values[known].sum())
    chance = f"{number(expected, 2)} are by chance"
    why = f"{count(off)} of {count(p.size)} cells are off beyond 95 %, where {chance}"
    # Where success is sure every run succeeds, under a wrong prediction as well.
    rows = [(top[name], top[f"{name}_se"], text) for name, text in EXCESS.items()]
    difference, error = (np.array([float(row[k]) for row in rows]) for k in (0, 1))
    freedom = trials.max() - 1 if data.attrs["noise"] == "shared" else np.inf
    result = judged(difference, error, CONTROL, freedom)
    seeds = np.ceil(result.seeds * trials.max())
    return [
        Finding(
            words(text), _size(data), difference[k], error[k], predicted=0.0,
            verdict=_stricter(str(result.verdict[k]), min(1.0, float(p.min()) * p.size)),
            evidence=why, seeds=float(seeds[k]),
        )
        for k, (*_, text) in enumerate(rows)
        if np.isfinite(difference[k])
    ]  # fmt: skip


def _majorities(data: xr.Dataset) -> list[Finding]:
    """In how many cells most runs go where the limit goes, and how many runs still decay."""
    top, out = at_last_n(data), []
    if "agreement_share" in data:
        low, high = (100 * float(top.get(f"agreement_share_{k}", np.nan)) for k in ("low", "high"))
        name = words("the share of points at which most runs go where the limit goes")
        share = 100 * float(top["agreement_share"])
        out.append(Finding(name, _size(data), share, low=low, high=high, unit=words("%"), digits=3))
    if many := int(top["decaying"].sum()):
        name = words("the number of runs that are still large at the end but decaying")
        out.append(Finding(name, {**_size(data), "t": data.attrs["time"]}, many))
    return out


def _starts(data: xr.Dataset) -> list[Finding]:
    """The start with even odds at every value of x, beside theory."""
    top, y = at_last_n(data), data.attrs["y"]
    divided = y in starts() and "boundary" in top
    theory = top["boundary"] if divided else xr.full_like(top["threshold"], np.nan)
    columns = xr.broadcast(top["threshold"], top["threshold_se"], theory)
    name, out = "the " + axis(y) + " with even odds", []
    for at in cells_of(top["threshold"]):
        value, error, predicted = (float(column.sel(at)) for column in columns)
        if np.isfinite(value):
            out.append(Finding(name, {**at, **_size(data)}, value, error, predicted=predicted))
    return out
