"""What is said of where runs succeed."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.show.choose import evenly
from hdica.analysis.show.sentences import listed
from hdica.analysis.show.words import (
    count,
    measurement,
    number,
    p_value,
    place,
    plural,
    resolved,
    symbol,
)
from hdica.analysis.success.figure import event, maps
from hdica.verdict.powers import MISFIT

SAID = 4
"""Values of x at which the boundary is said."""


def success(data: xr.Dataset) -> list[str]:
    """For each map the boundary and its power of x, where there is none, and diverged runs."""
    out = []
    for other in maps(data):
        here = data.sel(other)
        lead = f"At {place(other).html}: " if other else ""
        found = [text for text in (_boundary(here), _beyond(here), _diverged(here)) if text]
        out += [lead + text[0].lower() + text[1:] if lead else text for text in found]
    return out


def _boundary(here: xr.Dataset) -> str:
    x, y = here.attrs["x"], here.attrs["y"]
    at, error = here["boundary"].values, here["boundary_error"].values
    known = np.flatnonzero(np.isfinite(at)).tolist()
    if not known:
        return f"The data hold no even odds of success ({event(here).html}): {_reasons(here)}."
    parts = [
        f"{measurement(at[k], at[k] * error[k])} at {place({x: here[x].values[k].item()}).html}"
        for k in evenly(known, SAID)
    ]
    some = f" ({len(parts)} of {len(known)} values)" if len(parts) < len(known) else ""
    return (
        f"Success ({event(here).html}) has even odds at {symbol(y).html} = {listed(parts)}{some}"
        f"{_moves(here)}."
    )


def _moves(here: xr.Dataset) -> str:
    """The power of x as which the boundary moves."""
    value, error, low, high = (
        float(here[f"exponent{end}"]) for end in ("", "_error", "_low", "_high")
    )
    if not np.isfinite(value + error):
        return ""
    x, p = symbol(str(here.attrs["x"])).html, float(here["p_value"])
    ends = f"[{resolved(low, error)}, {resolved(high, error)}]"
    text = f"; the boundary moves as {x}<sup>{_exponent(value, error)}</sup> (95 % interval {ends})"
    if p < MISFIT:
        wide = number(float(here["widening"]), 2)
        no_law = p_value(p).replace("<", "&lt;")
        text += f", which is no exact power ({no_law}): the interval is widened {wide} times"
    return text


def _exponent(value: float, error: float) -> str:
    return f"{resolved(value, error)} ± {resolved(error, error)}"


def _beyond(here: xr.Dataset) -> str:
    """Where the data do not bracket even odds though they do elsewhere, and why."""
    x = here.attrs["x"]
    missing = here.isel({x: np.flatnonzero(here["boundary"].isnull().values)})
    if missing.sizes[x] == 0 or missing.sizes[x] == here.sizes[x]:
        return ""
    return f"There are no even odds to be had where {_reasons(missing)}."


def _reasons(missing: xr.Dataset) -> str:
    """Why there are no even odds at these values of x."""
    x = missing.attrs["x"]
    share, y = missing["probability"], missing.attrs["y"]
    least, most = (f(share, y) for f in (_min, _max))
    none = ~np.isfinite(most)
    some = ~none & share.isnull().any(y).values
    reasons = {
        "no run is done": none,
        "no run is done at some of the values of {y}": some,
        "most runs fail everywhere": ~none & ~some & (most < 0.5),
        "most runs succeed everywhere": ~none & ~some & (least > 0.5),
    }
    parts = []
    left = np.ones(missing.sizes[x], dtype=bool)
    for reason, where in reasons.items():
        left &= ~where
        if where.any():
            reason = reason.replace("{y}", symbol(y).html)
            parts.append(f"{reason} at {_values(missing[x].values[where], x)}")
    if left.any():
        parts.append(f"the shares do not settle it at {_values(missing[x].values[left], x)}")
    return "; ".join(parts)


def _min(share: xr.DataArray, y: str) -> np.ndarray:
    return np.asarray(share.fillna(np.inf).min(y).values)


def _max(share: xr.DataArray, y: str) -> np.ndarray:
    return np.asarray(share.fillna(-np.inf).max(y).values)


def _values(values: np.ndarray, x: str) -> str:
    return f"{symbol(x).html} = {listed([number(v, 6) for v in values])}"


def _diverged(here: xr.Dataset) -> str:
    many, total = int(here["diverged"].sum()), int(here["trials"].sum())
    if not many:
        return ""
    verb = "counts as a failure" if many == 1 else "count as failures"
    return f"{plural(many, 'run')} of {count(total)} diverged and {verb}."
