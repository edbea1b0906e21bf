"""What a phase diagram finds: critical values, and the measured boundary beside theory."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy import stats

from hdica.analysis.phase.compute import CELL_LEVEL
from hdica.analysis.phase.figure import critical_values, unstable_symbol
from hdica.show.choose import Point, at_last_n
from hdica.show.finding import Finding, verdict_of
from hdica.show.terms import spoken, starts, steps
from hdica.show.words import (
    CALLED,
    axis,
    count,
    critical,
    number,
    p_value,
    rounded,
    symbol,
    words,
)
from hdica.verdict.cells import AGREES, CLEAR, CONTROL, DIFFERS, LEVEL, UNDECIDED, judged

SURE = 0.05
"""Below this probability, or as near to 1, noise does not decide."""
HALF = 0.5
"""Share of runs from which on most of them succeed."""


def findings(data: xr.Dataset) -> list[Finding]:
    """Up to where the limit learns, and where the boundary of the simulation lies beside it."""
    early = _separation(data)
    answer = [*_critical(data), *(_gap(data) or _stop(data))]
    answer = [*early, *answer] if verdict_of(early) else [*answer, *early]
    return [*answer, *_odds(data), *_majorities(data), *_starts(data)]


def _size(data: xr.Dataset) -> Point:
    """The largest n as a place."""
    return {"n": int(data["n"].values[-1])} if "n" in data.dims else {}


def _critical(data: xr.Dataset) -> list[Finding]:
    """The critical value up to which, or from which on, the limit learns."""
    values = critical_values(data)
    if not values:
        return []
    x = str(data.attrs["x"])
    upward = x in steps()  # learning is lost as a step size grows
    value, overlap = (max if upward else min)(values)
    side, rule = "up to" if upward else "from", spoken() or "the rule"
    name = f"the {CALLED.get(x, '')}" + critical(x) + f" {side} which {rule} learns"
    meeting = f"two informative states meet at {symbol(data.attrs['variable']).html}"
    return [Finding(name, {}, value, evidence=f"{meeting} = {number(overlap)}", digits=6)]


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
    return [
        Finding(
            words("the share of points whose runs have reached a state"),
            {**_size(data), "t": data.attrs["time"]},
            100 * (1 - many / total),
            verdict=UNDECIDED if 2 * many > total else "",
            evidence=why,
            unit=words("%"),
            digits=3,
        )
    ]


def _gap(data: xr.Dataset) -> list[Finding]:
    """The measured less the theoretical boundary, over the values of x at which both are known.

    Nothing where fewer than two are. The verdict compares them with a boundary that is off by
    :data:`CONTROL`.
    """
    divides = data.attrs["y"] in starts() and data.attrs["divides"]
    if not divides or "boundary" not in data:
        return []
    last = data.isel({d: -1 for d in data["threshold"].dims if d != data.attrs["x"]})
    gap, error = (last["threshold"] - last["boundary"]).values, last["threshold_se"].values
    if gap.ndim != 1:
        return []
    known = np.isfinite(gap) & (error > 0)
    many = int(known.sum())
    if many < 2:
        return []
    gap, error, margin = gap[known], error[known], CONTROL * np.abs(last["boundary"].values[known])
    z = gap / error
    edge = " of the start with even odds from theory’s " + unstable_symbol(data)
    if data.attrs["noise"] == "shared":  # no plain error of what is put together from such points
        name, value, se = "the largest distance" + edge, float(np.abs(z).max()), np.nan
        name += ", in standard errors,"
        p = min(1.0, many * 2 * float(stats.norm.sf(value)))
        verdict = judged(gap, error, margin).whole
    else:
        weight = 1 / error**2
        value, se = float(weight @ gap / weight.sum()), float(weight.sum() ** -0.5)
        p = float(stats.chi2.sf((z**2).sum(), many))
        # The gaps are as large as chance allows, and their mean is within the margin.
        mean = judged(np.array([value]), np.array([se]), float(margin.min()))
        name, verdict = "the mean offset" + edge, _stricter(mean.whole, p)
    test = f"{p_value(p)} for all {many} values of {symbol(data.attrs['x']).html}"
    return [Finding(name, _size(data), value, se, predicted=0.0, verdict=verdict, evidence=test)]


def _stricter(verdict: str, p: float) -> str:
    """A verdict, or what the p-value of a second test makes of it."""
    if p >= LEVEL or verdict == DIFFERS:
        return verdict
    return DIFFERS if p < LEVEL / CLEAR else UNDECIDED


def _stop(data: xr.Dataset) -> list[Finding]:
    """Between which values of x most runs stop to succeed from every start."""
    known = critical_values(data)
    if not known:
        return []
    value, last, x = known[0][0], at_last_n(data), str(data.attrs["x"])
    others = [d for d in last["probability"].dims if d != x]
    share = last["probability"].max(others)
    # Where no start succeeds, one from which runs have not separated may be one that does.
    sure = (share > HALF) | last["probability"].notnull().all(others)
    share = share[sure.values]
    at, most = share[x].values.astype(float), share.values > HALF
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
    return [
        Finding(
            f"the {CALLED.get(x, '')}" + symbol(x) + " at which runs stop to succeed",
            _size(data),
            (low + high) / 2,
            low=low,
            high=high,
            predicted=value,
            verdict=AGREES if low <= value <= high and off <= CONTROL * abs(value) else UNDECIDED,
            evidence="between two values of the grid",
        )
    ]


def _odds(data: xr.Dataset) -> list[Finding]:
    """Shares of runs less predicted probabilities, over all cells in which noise decides."""
    if "odds" not in data:
        return []
    top = at_last_n(data)
    p0, trials = top["odds"].values, top["trials"].values.astype(float)
    known = np.isfinite(top["odds_p"].values) & (trials > 0)
    if not known.any():
        return []
    p = top["odds_p"].values[known]
    off, expected = int((p < CELL_LEVEL).sum()), float(top["odds_chance"].values[known].sum())
    # Elsewhere every run does what is sure, under a wrong prediction as well.
    open_ = known & (p0 > SURE) & (p0 < 1 - SURE)
    total = max(float(trials[open_].sum()), 1.0)
    difference = float((top["successes"].values - trials * p0)[open_].sum() / total)
    error = float(np.sqrt((trials * p0 * (1 - p0))[open_].sum()) / total) or np.nan
    verdict = judged(np.array([difference]), np.array([error]), CONTROL).whole
    return [
        Finding(
            words(
                "the share of successful runs less its predicted probability, where noise decides,"
            ),
            _size(data),
            difference,
            error,
            predicted=0.0,
            verdict=_stricter(verdict, min(1.0, float(p.min()) * p.size)),
            evidence=f"{count(off)} of {count(p.size)} cells are off beyond 95 %, where "
            f"{number(expected, 2)} are by chance",
        )
    ]


def _majorities(data: xr.Dataset) -> list[Finding]:
    """In how many cells most runs go where the limit goes, and how many runs still decay."""
    top, out = at_last_n(data), []
    if "agreement_share" in data:
        low, high = (100 * float(top.get(f"agreement_share_{k}", np.nan)) for k in ("low", "high"))
        name = words("the share of points at which most runs go where the limit goes")
        share = 100 * float(top["agreement_share"])
        out.append(Finding(name, _size(data), share, low=low, high=high, unit=words("%"), digits=3))
    if many := int(top["decaying"].sum()):
        name = words("the number of runs that are large at the end and fail, as they still decay,")
        out.append(Finding(name, {**_size(data), "t": data.attrs["time"]}, many))
    return out


def _starts(data: xr.Dataset) -> list[Finding]:
    """The start with even odds at every value of x, beside theory."""
    x, y = str(data.attrs["x"]), str(data.attrs["y"])
    last = data.isel({d: -1 for d in data["threshold"].dims if d != x})
    divided = y in starts() and "boundary" in last
    theory = last["boundary"].values if divided else np.full(last.sizes[x], np.nan)
    place = {str(d): last[d].item() for d in data["threshold"].dims if d not in (x, "n")}
    columns = (last[x], last["threshold"], last["threshold_se"], xr.DataArray(theory))
    name = "the " + axis(y) + " with even odds"
    return [
        Finding(name, {**place, x: at, **_size(data)}, value, error, predicted=predicted)
        for at, value, error, predicted in zip(*(c.values.tolist() for c in columns), strict=True)
        if np.isfinite(value)
    ]
