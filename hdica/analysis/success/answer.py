"""How much it takes for runs to succeed, in one sentence."""

from __future__ import annotations

import json

import numpy as np
import xarray as xr
from markupsafe import escape

from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import Point, evenly
from hdica.analysis.show.sentences import among, listed
from hdica.analysis.show.words import count, number, place, resolved, symbol, with_error
from hdica.analysis.success.figure import event, maps

MAPS = 3
"""Maps of which the power is told."""


def answer(data: xr.Dataset) -> Answer | None:
    """The power of x as which the boundary moves, in every map that has one, or the boundary."""
    known = [m for m in maps(data) if np.isfinite(_power(data.sel(m))).all()]
    x, y, what = symbol(data.attrs["x"]).html, symbol(data.attrs["y"]).html, event(data).html
    if known:
        powers = listed([_law(data.sel(m), x, m) for m in evenly(known, MAPS)])
        laws = _laws(data, known)
        return Answer(f"Even odds of {what} need {y} ∼ {powers}{laws}.")
    at = [(m, k) for m in maps(data) for k in _bracketed(data.sel(m))]
    if not at:
        return _shares(data, what)
    ends = [at[0], at[-1]] if len(at) > 1 else at
    parts = [_even(data.sel(m), k, m) for m, k in ends]
    return Answer(f"Runs reach {what} with even odds from {y} = {listed(parts)} on.")


def _laws(data: xr.Dataset, maps_: list[Point]) -> str:
    """Which of the powers that laws have is nearest in every map, and how far off each is."""
    laws = {name: float(p) for name, p in json.loads(data.attrs.get("laws", "{}")).items()}
    if not laws:
        return ""
    found = [_power(data.sel(m)) for m in maps_]
    far = {name: [abs(value - p) / error for value, error in found] for name, p in laws.items()}
    order = sorted(far, key=lambda name: max(far[name]))
    told = [f"{number(laws[name])} ({escape(name)}) by {_errors(far[name])}" for name in order]
    return f"; this is off {listed(told)} standard errors"


def _errors(far: list[float]) -> str:
    """The least and the largest of the distances."""
    ends = list(dict.fromkeys(number(one, 2) for one in (min(far), max(far))))
    return " to ".join(ends)


def _power(here: xr.Dataset) -> tuple[float, float]:
    return float(here["exponent"]), float(here["exponent_error"])


def _law(here: xr.Dataset, x: str, other: Point) -> str:
    value, error = _power(here)
    where = f" ({place(other).html})" if other else ""
    return f"{x}<sup>{resolved(value, error)} ± {resolved(error, error)}</sup>{where}"


def _shares(data: xr.Dataset, what: str) -> Answer | None:
    """Shares of success where none of them is told to be more or less than even odds."""
    shares = np.concatenate([data["probability"].sel(m).values.ravel() for m in maps(data)])
    shares = shares[np.isfinite(shares)]
    if not shares.size:
        return None
    low, high = (f"{100 * share:.0f}" for share in (shares.min(), shares.max()))
    between = low if low == high else f"{low} to {high}"
    return Answer(
        f"Where runs reach {what} with even odds is open: {between} % do at {count(shares.size)} "
        f"points{among()}."
    )


def _bracketed(here: xr.Dataset) -> list[int]:
    """Values of x with a boundary, by place."""
    found: list[int] = np.flatnonzero(np.isfinite(here["boundary"].values)).tolist()
    return found


def _even(here: xr.Dataset, k: int, other: Point) -> str:
    x, at = here.attrs["x"], float(here["boundary"].values[k])
    point = {x: here[x].values[k].item(), **other}
    return f"{with_error(at, at * float(here['boundary_error'].values[k]))} at {place(point).html}"
