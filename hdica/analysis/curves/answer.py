"""Which variable comes first, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.curves.figure import cells_of, over
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import Point, selected
from hdica.analysis.show.sentences import among, listed
from hdica.analysis.show.words import capital, count, measurement, number, symbol

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
    places = [_range(at, data, known, k) for k, at in zip(names, rises, strict=True)]
    first_at = f"{places.pop(winner)}{unit}"
    who = symbol(names.pop(winner)).html
    told = [f"{symbol(k).html} at {at}" for k, at in zip(names, places, strict=True)]
    many = int(first[winner])
    cases = "" if len(known) == 1 else f" in {_of(many, len(known))} cases{among()}"
    return Answer(
        f"{capital(who)} is half-way before the others{cases}, at {first_at}; {listed(told)} "
        f"follow{'s' if len(told) == 1 else ''}."
    )


def _of(many: int, total: int) -> str:
    if many == total:
        return "both" if total == 2 else f"all {count(total)}"
    return f"{count(many)} of {count(total)}"


def _range(at: np.ndarray, data: xr.Dataset, known: list[Point], name: str) -> str:
    """The range of means over the grid points, or one with its standard error."""
    if len(known) == 1:
        error = float(selected(data["rise_se"], {**known[0], "variable": name}))
        return measurement(float(at[0]), error)
    low, high = number(float(at.min())), number(float(at.max()))
    return low if low == high else f"{low} to {high}"


def _largest(data: xr.Dataset) -> Answer | None:
    """Where the first variable is largest inside the range of the dimension, over all points."""
    name = str(data["variable"].values[0])
    found: list[tuple[float, float, float]] = []
    known = 0
    for cell in cells_of(data):
        mean, se = (selected(data[k], {**cell, "variable": name}).values for k in ("mean", "se"))
        whole = bool(np.isfinite(mean).all())
        known += whole
        top = int(np.argmax(mean)) if whole else 0
        if 0 < top < len(mean) - 1:
            at = float(data["at"].values[top])
            found.append((at, float(mean[top]), float(se[top])))
    if not found:
        return None
    who = symbol(name).html
    places = list(dict.fromkeys(number(at, 4) for at in sorted(at for at, _, _ in found)))
    sizes = sorted((value, error) for _, value, error in found)
    ends = [sizes[0], sizes[-1]] if len(sizes) > 1 else sizes
    span = " to ".join([places[0], places[-1]] if len(places) > 1 else places)
    told = " to ".join(measurement(*one) for one in ends)
    every = f" in {_of(len(found), known)} cases" if len(found) > 1 else ""
    return Answer(
        f"{capital(who)} is largest at {over(data).html} = {span}{every}{among()}: {told}."
    )
