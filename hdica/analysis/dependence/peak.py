"""Whether means are largest where theory has them largest, in a clause of an answer."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.dependence.figure import at, curves, named
from hdica.analysis.show.sentences import among, listed
from hdica.analysis.show.words import count, number, symbol

FEW = 3
"""So many curves are each told."""
SIGMAS = 2.0
"""Means so many standard errors apart, or less, are not told apart."""
LEAST = 3


def peaks(cut: xr.Dataset) -> str:
    """Where theory has the maxima that lie within the swept values, and whether means have them.

    Empty if theory has none. A mean has one there if no other is larger beyond both errors.
    """
    x = str(cut.attrs["over"])
    found = []
    for curve in curves(cut):
        here = at(cut, curve).dropna(x, subset=["mean", "predicted", "se"])
        k = _inside(here["predicted"].values)
        if k is not None:
            label = named(curve, cut).html if len(curves(cut)) > 1 else ""
            where = number(float(here[x].values[k]), 6)
            found.append((_largest(here, k), f"{where} ({label})" if label else where))
    if not found:
        return ""
    held = sum(one for one, _ in found)
    lead = "; within errors it is largest where the prediction is"
    if held < len(found):
        return f"{lead} in {count(held)} of {count(len(found))} curves"
    if len(found) > FEW:
        return f"{lead}, in all {count(len(found))} curves with a maximum{among()}"
    return f"{lead}, at {symbol(x).html} = {listed([text for _, text in found])}"


def _inside(values: np.ndarray) -> int | None:
    """The place of a largest value that is at neither end."""
    if values.size < LEAST:
        return None
    k = int(np.argmax(values))
    return k if 0 < k < values.size - 1 else None


def _largest(here: xr.Dataset, k: int) -> bool:
    """Whether no mean is larger than that at a place, beyond both errors."""
    mean, se = here["mean"].values, here["se"].values
    return bool(np.all(mean - mean[k] <= SIGMAS * np.hypot(se, se[k])))
