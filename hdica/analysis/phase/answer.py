"""Up to where learning is possible, in theory and in simulation, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.phase.boundary import agreement, gaps
from hdica.analysis.phase.figure import critical_symbol, critical_values, unstable_symbol
from hdica.analysis.phase.say import compared, unseparated
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import at_last_n
from hdica.analysis.show.sentences import size_of
from hdica.analysis.show.words import number, symbol, with_error
from hdica.analysis.terms import spoken, steps
from hdica.verdict.cells import AGREES, CONTROL, UNDECIDED

HALF = 0.5
"""Share of runs from which on most of them succeed."""


def answer(data: xr.Dataset) -> Answer | None:
    """The critical value, and where simulation puts the boundary; or how many cells agree."""
    theory = _theory(data)
    if early := unseparated(data, most=True):
        return Answer(early, UNDECIDED)
    measured, verdict = _boundary(data)
    if not measured and theory:
        measured, verdict = _stop(data)
    if not measured:
        measured, verdict = _cells(data)
    parts = [text for text in (theory, measured) if text]
    if not parts:
        return None
    text = "; ".join(parts)
    covered = agreement(data) if gaps(data) is not None else []
    return Answer(f"{text[0].upper()}{text[1:]}.", verdict, len(covered))


def _theory(data: xr.Dataset) -> str:
    """Where the limit learns."""
    known = critical_values(data)
    if not known:
        return ""
    value = min(v for v, _ in known) if not _upward(data) else max(v for v, _ in known)
    side, on = ("up to", "") if _upward(data) else ("from", " on")
    who = spoken() or "The rule"
    return f"{who} learns {side} {critical_symbol(data).html} = {number(value, 4)}{on}"


def _upward(data: xr.Dataset) -> bool:
    """Whether learning is lost as x grows."""
    return data.attrs["x"] in steps()


def _lead(data: xr.Dataset) -> str:
    size = size_of(at_last_n(data))
    return f"simulation at {size}" if size else "simulation"


def _boundary(data: xr.Dataset) -> tuple[str, str]:
    """Mean distance of the measured from the theoretical boundary in the start, and a verdict."""
    found = gaps(data)
    if found is None or not np.isfinite(found.mean):
        return "", ""
    name = unstable_symbol(data).html
    return (
        f"{_lead(data)} puts the start from which learning succeeds "
        f"{with_error(found.mean, found.error)} from theory’s boundary {name}",
        found.verdict,
    )


def _stop(data: xr.Dataset) -> tuple[str, str]:
    """Between which values of x most runs stop to succeed from every start."""
    value = next(v for v, _ in critical_values(data))
    last = at_last_n(data)
    x = data.attrs["x"]
    others = [d for d in last["probability"].dims if d != x]
    share = last["probability"].max(others)
    # Where no start succeeds, one from which runs have not separated may be one that does.
    sure = (share > HALF) | last["probability"].notnull().all(others)
    share = share[sure.values]
    at, most = share[x].values.astype(float), share.values > HALF
    if not _upward(data):
        at, most = at[::-1], most[::-1]
    # A start that is pending may be one from which learning succeeds.
    if not most.any() or most.all() or not bool((last["trials"] > 0).all()):
        return "", ""
    k = int(np.flatnonzero(most)[-1])
    if k == len(at) - 1:
        return "", ""
    off = max(abs(at[k] - value), abs(at[k + 1] - value))
    inside = min(at[k], at[k + 1]) <= value <= max(at[k], at[k + 1])
    name = symbol(x).html
    return (
        f"{_lead(data)} stops to learn between {name} = {number(at[k], 4)} and "
        f"{number(at[k + 1], 4)}, within {number(off, 2)} of theory",
        AGREES if inside and off <= CONTROL * abs(value) else UNDECIDED,
    )


def _cells(data: xr.Dataset) -> tuple[str, str]:
    """In how many cells most runs go where the limit goes."""
    if "agreement_share" not in data:
        return "", ""
    last = at_last_n(data)
    share = float(last["agreement_share"])
    cells = compared(data)
    if not np.isfinite(share):
        return "", ""
    error = 100 * np.sqrt(share * (1 - share) / max(cells, 1))
    own = error > 0 and "agreement_share_low" not in data
    told = with_error(100 * share, error) if own else number(100 * share, 4)
    return f"in {_lead(data)} most runs go where the limit goes in {told} % of {cells} cells", ""
