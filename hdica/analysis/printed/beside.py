"""What a paper itself gives, in a clause beside the answer of another analysis."""

from __future__ import annotations

import numpy as np
import xarray as xr
from markupsafe import escape

from hdica.analysis.printed.answer import cited
from hdica.analysis.printed.say import absent, is_own, judged, verdicts, wanted, what_of
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.sentences import listed
from hdica.analysis.show.words import count, measurement, number

FEW = 2
"""So many numbers are each told; of more one is, and how many agree."""
DIGITS = 6


def beside(data: xr.Dataset) -> Answer | None:
    """The paper's own numbers beside ours: a clause, with ``"differs"`` if one of them is off.

    Numbers that were derived or simulated apart from this code are none of the paper. Those
    without a result here are counted at the end.
    """
    every, data = data.isel(number=is_own(data)), judged(data)
    own = np.flatnonzero(is_own(data))
    if not own.size:
        return None
    best = verdicts(data)[own]
    paper = escape(cited(str(data.attrs["paper"])))
    verdict = "differs" if (best == "differs").any() else ""
    if own.size <= FEW:
        told = listed([_pair(data, int(k)) for k in own])
        return Answer(f"{paper} has {told}{absent(every)}", verdict)
    shown = _furthest(data, own)
    agree = int((best == "agrees").sum())
    share = "all" if agree == own.size else f"{count(agree)} of"
    verb = "agrees" if agree == 1 else "agree"
    text = f"{share} {count(own.size)} numbers that {paper} has for it {verb}"
    lead = ", such as" if agree == own.size else "; of them, the furthest off is"
    return Answer(f"{text}{lead} {_pair(data, shown)}{absent(every)}", verdict)


def _furthest(data: xr.Dataset, own: np.ndarray) -> int:
    """The number that is furthest off as a part of itself; the first where none is off."""
    theirs = wanted(data)[own]
    size = np.where(theirs == 0, 1.0, np.abs(theirs))
    off = np.nan_to_num(np.abs(data["ours"].values[own] - theirs) / size)
    return int(own[int(np.argmax(off))])


def _pair(data: xr.Dataset, k: int) -> str:
    """A number as the paper has it, what it is, and ours with its error."""
    here = data.isel(number=k)
    corrected = float(here["corrected"])
    said = f", corrected {number(corrected, DIGITS)}," if np.isfinite(corrected) else ""
    if str(here["origin"].item()) == "formula":
        said = f", by its formula{said or ','}"
    se = float(here["se"])
    ours = float(here["ours"])
    mine = measurement(ours, se) if se > 0 else number(ours, DIGITS)
    theirs = number(float(here["printed"]), DIGITS)
    return f"{theirs}{said} for “{what_of(data, k)}”, which is {mine} here"
