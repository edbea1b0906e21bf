"""How many numbers of a paper agree with ours, in one sentence."""

from __future__ import annotations

import re

import numpy as np
import xarray as xr
from markupsafe import escape

from hdica.analysis.printed.say import absent, is_own, judged, verdicts, wanted, what_of
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.sentences import listed
from hdica.analysis.show.words import count, number

TWO = 2
NAMED = 2
"""Numbers that differ and are told."""

EXACT = 1e-9
"""A relative difference below this is rounding."""


def answer(data: xr.Dataset) -> Answer | None:
    """Numbers that agree, of those with a result that the paper gives; what differs is listed."""
    every, data = data, judged(data)
    if not data.sizes["number"]:
        return None
    best, own = verdicts(data), is_own(data)
    paper = cited(str(data.attrs["paper"]))
    counted = own if own.any() else np.ones_like(own)
    agree, total = int((best[counted] == "agrees").sum()), int(counted.sum())
    kind = f"of {escape(paper)}" if own.any() else f"found apart from this code for {escape(paper)}"
    differ = [k for k in np.flatnonzero(counted) if best[k] == "differs"]
    verb = _agree(agree, total, bool(differ))
    text = f"{_share(agree, total)} {kind} {verb} with ours{_within(data, counted)}"
    if differ:
        more = f" and {count(len(differ) - NAMED)} more" if len(differ) > NAMED else ""
        text += f"; off are {listed([what_of(data, int(k)) for k in differ[:NAMED]])}{more}"
    if rest := int((~counted).sum()):
        good = int((best[~counted] == "agrees").sum())
        others = _share(good, rest, "other ")
        others = f"{others[0].lower()}{others[1:]}"
        off = bool((best[~counted] == "differs").any())
        text += f"; {others} found apart from this code {_agree(good, rest, off)}"
    text += absent(every)
    if differ:
        return Answer(f"{text}.", "differs", 1)
    return Answer(f"{text}.", "agrees" if agree == total else "undecided", 1)


def _share(agree: int, total: int, other: str = "") -> str:
    """So many of all numbers, as the subject of a sentence."""
    if total == 1:
        return f"The {other or 'one '}number"
    if agree == total:
        return f"{'Both' if total == TWO else f'All {count(total)}'} {other}numbers"
    return f"{count(agree)} of {count(total)} {other}numbers"


def _agree(agree: int, total: int, off: bool) -> str:
    if total == 1:
        return "agrees" if agree else "does not agree" if off else "cannot be compared"
    return "agrees" if agree == 1 and total > 1 else "agree"


def _within(data: xr.Dataset, counted: np.ndarray) -> str:
    """The largest relative difference, where all agree."""
    best = verdicts(data)
    theirs = wanted(data)
    some = counted & (theirs != 0) & (best == "agrees")
    if not (best[counted] == "agrees").all() or not some.any():
        return ""
    off = np.abs(data["ours"].values[some] / theirs[some] - 1)
    return f" (to within {number(100 * float(off.max()), 2)} %)" if off.max() > EXACT else ""


def cited(paper: str) -> str:
    """A reference cut down to names, or the title without any, and year; else as it is."""
    year = re.search(r"\b(?:19|20)\d\d\b", paper)
    names = paper.split(', "', 1)[0] if ', "' in paper else ""
    last = [part.split()[-1] for part in re.split(r", | and ", names) if part.split()]
    title = re.match(r'"([^":]+)', paper)
    if year and last:
        return f"{listed(last).replace(' and ', ' & ')} {year[0]}"
    return f"“{title[1]}” {year[0]}" if year and title else paper
