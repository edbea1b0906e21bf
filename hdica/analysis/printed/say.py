"""What the comparison with a paper's numbers says, and its table."""

from __future__ import annotations

import numpy as np
import xarray as xr
from markupsafe import escape

from hdica.analysis.show.table import MOST_ROWS, Table
from hdica.analysis.show.words import count, number, plural, probability, typeset

NAMED = 3
"""Numbers that differ and are named in a sentence."""
APART = ("derived", "simulated")
"""Origins of numbers that a paper does not have itself."""
_ORDER = {"differs": 0, "undecided": 1, "agrees": 2}
"""Verdicts on numbers that have a result here; others have none to judge."""


def printed(data: xr.Dataset) -> list[str]:
    """One sentence: how many agree, which do not, and how many have no result yet."""
    every, data = data, judged(data)
    if not data.sizes["number"]:
        return [f"No number of {escape(data.attrs['paper'])} has a result here{absent(every)}."]
    best = verdicts(data)
    counts = {kind: int((best == kind).sum()) for kind in _ORDER}
    ours = f"{counts['agrees']} of {plural(best.size, 'number')} {_are(counts['agrees'])} ours"
    text = f"{ours}, of {escape(data.attrs['paper'])}{_told(data, best)}"
    repaired = (data["corrected_verdict"] == "agrees") & (data["verdict"] == "differs")
    if fixed := int(repaired.sum()):
        text += f", {fixed} of them only as corrected by an erratum"
    off = [int(k) for k in np.flatnonzero(best == "differs")]
    if off:
        shown = [what_of(data, k) for k in off[:NAMED]]
        more = f" and {len(off) - NAMED} more" if len(off) > NAMED else ""
        verb = "this differs" if len(off) == 1 else "these differ"
        text += f"; {verb}: {'; '.join(shown)}{more}"
    if counts["undecided"]:
        text += f"; {counts['undecided']} cannot be decided"
    return [f"{text}{absent(every)}."]


def judged(data: xr.Dataset) -> xr.Dataset:
    """The numbers that have a result here, with which they agree or not."""
    return data.isel(number=np.isin(verdicts(data), list(_ORDER)))


def absent(data: xr.Dataset) -> str:
    """How many numbers have no result, as the end of a sentence; empty if all have one."""
    best = verdicts(data)
    endings = {
        "pending": "pending",
        "no result": "without a result, as all runs diverged or failed",
    }
    counts = {text: int((best == kind).sum()) for kind, text in endings.items()}
    parts = [f"; {count(k)} {'is' if k == 1 else 'are'} {text}" for text, k in counts.items() if k]
    return "".join(parts)


def _are(many: int) -> str:
    return "agrees with" if many == 1 else "agree with"


def _told(data: xr.Dataset, best: np.ndarray) -> str:
    """How many of the numbers the paper gives itself, where others are among them."""
    own = is_own(data)
    if own.all():
        return ""
    if not own.any():
        return " (none is printed there: they were found apart from this code)"
    agree = int((best[own] == "agrees").sum())
    return (
        f" ({agree} of {int(own.sum())} that it prints or whose formula it does, the others found "
        "apart from this code)"
    )


def what_of(data: xr.Dataset, k: int) -> str:
    """A number of the paper in words, HTML; its name in the file where the file has none."""
    what = typeset(str(data["what"].values[k]))
    return str(escape(what or str(data["number"].values[k])))


def is_own(data: xr.Dataset) -> np.ndarray:
    """Which numbers the paper gives itself, or the formula of which it prints."""
    return np.isin(data["origin"].values, APART, invert=True)


def verdicts(data: xr.Dataset) -> np.ndarray:
    """The verdict that counts: on the corrected number where there is one."""
    corrected = data["corrected_verdict"].values
    return np.where(corrected == "", data["verdict"].values, corrected)


def wanted(data: xr.Dataset) -> np.ndarray:
    """The paper's numbers, corrected where an erratum does."""
    return np.where(np.isfinite(data["corrected"]), data["corrected"], data["printed"])


def table(data: xr.Dataset) -> Table:
    """A row for each number, what differs first."""
    told = ("", "number", "where", "theirs", "ours", "verdict", "<i>p</i>")
    head = (*told, "corrected", "verdict on that")
    best = verdicts(data)
    order = sorted(range(best.size), key=lambda k: _ORDER.get(str(best[k]), 3))
    rows = tuple((str(k + 1), *_cells(data.isel(number=k))) for k in order[:MOST_ROWS])
    numeric = (True, False, False, True, True, False, True, True, False)
    return Table(head, rows, numeric, len(order))


def _cells(here: xr.Dataset) -> tuple[str, ...]:
    origin = str(here["origin"].item())
    where = str(here["where"].item()) + ("" if origin == "printed" else f" ({origin})")
    corrected = float(here["corrected"])
    return (
        typeset(str(here["what"].item())) or str(here["number"].item()),
        where,
        _shown(float(here["printed"]), float(here["printed_error"])),
        _shown(float(here["ours"]), float(here["se"])),
        str(here["verdict"].item()),
        probability(float(here["p_value"])),
        number(corrected, 6) if np.isfinite(corrected) else "",
        str(here["corrected_verdict"].item()),
    )


def _shown(value: float, error: float) -> str:
    return f"{number(value, 6)} ± {number(error, 2)}" if error > 0 else number(value, 6)
