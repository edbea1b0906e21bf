"""Which variable comes first, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.curves.figure import cells_of, over
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import selected
from hdica.analysis.show.sentences import listed
from hdica.analysis.show.words import count, measurement, number, symbol

HALF = 0.5


def answer(data: xr.Dataset) -> Answer | None:
    """At how many grid points one variable is half-way first; else where the first is largest."""
    return _order(data) if "rise" in data else _largest(data)


def _order(data: xr.Dataset) -> Answer | None:
    """The variable that is half-way before the others at most points, with its mean places."""
    known = [c for c in cells_of(data) if bool(selected(data["rise"], c).notnull().all())]
    if not known or data.sizes["variable"] < 2:
        return None
    first = np.array([selected(data["first"], c).values > HALF for c in known]).sum(axis=0)
    winner = int(first.argmax())
    names = [str(name) for name in data["variable"].values]
    rises = [
        np.array([float(selected(data["rise"], {**c, "variable": name})) for c in known])
        for name in names
    ]
    units = str(data.attrs["over_units"])
    unit = f" {units}" if units not in ("", "1") else ""
    told = [f"{symbol(k).html} at {_range(at)}" for k, at in zip(names, rises, strict=True)]
    own = told.pop(winner)
    after = listed(told)
    return Answer(
        f"{own[0].upper()}{own[1:]}{unit} is half-way first in {count(int(first[winner]))} of "
        f"{count(len(known))} cases; {after} follow{'s' if len(told) == 1 else ''}."
    )


def _range(at: np.ndarray) -> str:
    """The range of means over the grid points."""
    low, high = number(float(at.min())), number(float(at.max()))
    return low if low == high else f"{low} to {high}"


def _largest(data: xr.Dataset) -> Answer | None:
    """Where the first variable is largest inside the range of the dimension, at the first point."""
    name = str(data["variable"].values[0])
    for cell in cells_of(data):
        mean, se = (selected(data[k], {**cell, "variable": name}).values for k in ("mean", "se"))
        top = int(np.argmax(mean)) if np.isfinite(mean).all() else 0
        if 0 < top < len(mean) - 1:
            value = measurement(float(mean[top]), float(se[top]))
            at = number(float(data["at"].values[top]), 4)
            return Answer(f"{symbol(name).html} is largest at {over(data).html} = {at}: {value}.")
    return None
