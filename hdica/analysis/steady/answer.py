"""Where steady states change, and whether simulations end on them, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import Point, points
from hdica.analysis.show.sentences import N, listed
from hdica.analysis.show.words import count, critical, measurement, number, place, size
from hdica.analysis.steady.compute import ALLOWANCE, ERRORS, TRANSITIONS
from hdica.analysis.steady.say import ended, places
from hdica.systems.kinds import FOLD

CELLS = 3
"""Grid points of which the transition is told."""
EVERY = 0.9
"""Share of simulations on a steady state, or where a limit is on its way to one, from which on they
are said to follow theory."""


def answer(data: xr.Dataset) -> Answer | None:
    """The fold in every cell, and how many simulated means end where theory has them."""
    parts = _changes(data)
    known = ended(data)
    if not parts and not known:
        return None
    on, moving = places(known)
    ends = f"{count(on)} of {count(len(known))} simulated means end on a stable steady state"
    if moving:
        ends += (
            f" and {count(moving)} more where the limit is at <i>t</i> = "
            f"{number(float(data.attrs['until']))}, still on its way to one"
        )
    if known:
        ends += f", within {ERRORS:g} standard errors and {ALLOWANCE:g}/√{N}"
    follow = on + moving >= EVERY * len(known)
    verdict = "" if not known else ("agrees" if follow else "undecided")
    if not parts:
        return Answer(f"{ends}.", verdict)
    return Answer(f"{listed(parts)}{'; ' + ends if known else ''}.", verdict)


def _changes(data: xr.Dataset) -> list[str]:
    """Where the informative state appears or vanishes."""
    if "transition_value" not in data:
        return []
    dims = [str(d) for d in data["transition_value"].dims if d != "transition"]
    found = [one for p in points(data, dims) if (one := _change(data, p))]
    if not found:
        return []
    lead = f"The informative state appears or vanishes at {critical(str(data.attrs['x'])).html}"
    return [f"{lead} = {listed(found[:CELLS])}"]


def _change(data: xr.Dataset, point: Point) -> str:
    """The folds of one cell, or its first transition, with the error where there is any."""
    here = data.sel(point)
    value, kind = here["transition_value"].values, here["transition_kind"].values
    error = here["transition_error"].values if "transition_error" in here else 0 * value
    known = np.flatnonzero(np.isfinite(value))
    chosen = [k for k in known if kind[k] == FOLD] or list(known[:1])
    if not chosen:
        return ""
    overlap, name = here["transition_Q"].values, size(str(data.attrs["variable"])).html
    told = [
        f"{_value(float(value[k]), float(error[k]))}, a {TRANSITIONS[int(kind[k])]} with {name} = "
        f"{number(abs(float(overlap[k])), 4)}"
        for k in chosen
    ]
    return " and ".join(told) + (f" ({place(point).html})" if point else "")


def _value(value: float, error: float) -> str:
    """Six digits, or with its error where that is seen in them."""
    return measurement(value, error) if error > 1e-6 * abs(value) else number(value, 6)
