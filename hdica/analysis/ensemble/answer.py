"""When runs get there and where they end, beside theory, in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import xarray as xr
from scipy import stats

from hdica.analysis.ensemble.figure import crossed, grid_of, theory_name
from hdica.analysis.ensemble.say import at
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import Point, points, selected
from hdica.analysis.show.sentences import among, listed
from hdica.analysis.show.words import (
    measurement,
    number,
    place,
    symbol,
    with_error,
)
from hdica.verdict.cells import CLEAR

LEVEL = 0.01
"""Chance that a right prediction is said not to agree."""

Measured = tuple[Point, float, float]
"""A grid point, and a number there with its standard error."""


def answer(data: xr.Dataset) -> Answer | None:
    """The time of the median run to the first value, or else the median at the end."""
    cells = [p for p in points(data, grid_of(data)) if int(selected(data["count"], p)) > 0]
    text, verdict = _arrival(data, cells)
    if not text:
        text, verdict = _end(data, cells)
        text = text or _level(data, cells)
        text += _above(data, cells) if text else ""
    if not text:
        return None
    return Answer(f"{text}.", verdict, 1 if len(cells) == 1 else 0)


def _arrival(data: xr.Dataset, cells: list[Point]) -> tuple[str, str]:
    """When the median run is there, and how that compares with the predicted time."""
    if "passage" not in data:
        return "", ""
    level = float(data["crossing"].values[0])
    here = data.sel(crossing=level)
    middle, error = (here[name].sel(share=0.5) for name in ("passage", "passage_se"))
    known = _measured(middle, error, cells)
    if not known:
        return "", ""
    told = _both_ends(known, partial(at, data))
    lead = f"The median run reaches {crossed(data, level).html} after {told}"
    ratios = _over_predicted(data, level, known)
    over = f", {_span(ratios)} times the predicted time{_within(data)}{among()}" if ratios else ""
    return f"{lead}{over}", _verdict(ratios, _allowed(data))


def _both_ends(known: list[Measured], said: Callable[[float, float], str]) -> str:
    """What was measured in the first and in the last cell, and which they are."""
    ends = [known[0], known[-1]] if len(known) > 1 else known
    return " and ".join(
        f"{said(value, se)}{f' at {place(cell).html}' if cell else ''}" for cell, value, se in ends
    )


def _over_predicted(data: xr.Dataset, level: float, known: list[Measured]) -> list[Measured]:
    """Measured over predicted times of one stage, or of the first prediction in time."""
    times = _predicted(data, level)
    if times is None:
        return []
    return [
        (cell, value / theory, se / theory)
        for cell, value, se in known
        if np.isfinite(theory := float(selected(times, cell))) and theory > 0
    ]


def _predicted(data: xr.Dataset, level: float) -> xr.DataArray | None:
    """Predicted times to the value."""
    if "stage_time" in data:
        own = data["stage_crossing"].values == level
        if own.any():
            return data["stage_time"].isel(stage=int(np.flatnonzero(own)[0]))
    if "predicted_passage" in data:
        moving = np.flatnonzero(data["moving"].values > 0)
        if len(moving):
            return data["predicted_passage"].sel(crossing=level).isel(limit=int(moving[0]))
    return None


def _end(data: xr.Dataset, cells: list[Point]) -> tuple[str, str]:
    """The median at the last time over the first prediction that is known."""
    if "ratio" not in data:
        return "", ""
    for name in data["limit"].values:
        here = data.sel(limit=name)
        known = _measured(here["ratio"], here["ratio_se"], cells)
        if known:
            variable = symbol(str(data.attrs["variable"])).html
            end = at(data, float(data["time"].values[-1]))
            times = f"{_span(known)} times what theory predicts ({theory_name(name).html})"
            verdict = _verdict(known, _allowed(data))
            return (
                f"After {end} the median of {variable} is {times}{_within(data)}{among()}",
                verdict,
            )
    return "", ""


def _above(data: xr.Dataset, cells: list[Point]) -> str:
    """How far each bound is above the median at the last time."""
    if "looseness" not in data:
        return ""
    parts = []
    for name in data["term"].values:
        found = [float(selected(data["looseness"], {**cell, "term": name})) for cell in cells]
        known = sorted(value for value in found if np.isfinite(value))
        if known:
            ends = dict.fromkeys(number(float(f"{v:.3g}")) for v in (known[0], known[-1]))
            parts.append(f"{' to '.join(ends)} ({symbol(str(name)).html})")
    lead = "the bound is" if len(parts) == 1 else "the bounds are"
    return f"; {lead} {listed(parts)} times it" if parts else ""


def _allowed(data: xr.Dataset) -> float:
    """Part of a prediction by which runs may miss it."""
    return float(data.attrs.get("within", 0.0))


def _within(data: xr.Dataset) -> str:
    """What counts as agreement, where that is not equality."""
    allowed = _allowed(data)
    return f", where up to {number(100 * allowed, 3)} % off counts as agreement" if allowed else ""


def _verdict(ratios: list[Measured], within: float = 0.0) -> str:
    """Whether all ratios are 1 within their errors, at a level that they share.

    Where a part may be missed, they agree if no interval leaves that part, and differ if one lies
    outside of it.
    """
    known = [(abs(ratio - 1) - within, se) for _, ratio, se in ratios if se > 0]
    if not known:
        return ""
    score = max(miss / se for miss, se in known)
    p = min(1.0, float(2 * stats.norm.sf(score)) * len(known))
    if p < LEVEL / CLEAR:
        return "differs"
    if not within:
        return "agrees" if p >= LEVEL else "undecided"
    return "agrees" if score <= -stats.norm.isf(LEVEL / (2 * len(known))) else "undecided"


def _level(data: xr.Dataset, cells: list[Point]) -> str:
    """The median at the last time, where nothing is predicted."""
    last = data.isel(time=-1)
    known = _measured(last["quantile"].sel(share=0.5), last["median_se"], cells)
    if not known:
        return ""
    told = _both_ends(known, measurement)
    variable = symbol(str(data.attrs["variable"])).html
    end = at(data, float(data["time"].values[-1]))
    return f"After {end} the median of {variable} is {told}"


def _measured(value: xr.DataArray, error: xr.DataArray, cells: list[Point]) -> list[Measured]:
    """What is finite, cell by cell."""
    pairs = [(c, float(selected(value, c)), float(selected(error, c))) for c in cells]
    return [one for one in pairs if np.isfinite(one[1])]


def _span(ratios: list[Measured]) -> str:
    """One ratio with its error, or the least and the largest with their places."""
    ordered = sorted(ratios, key=lambda one: one[1])
    ends = [ordered[0], ordered[-1]] if len(ratios) > 1 else ordered
    return " to ".join(
        with_error(value, se) + (f" (at {place(cell).html})" if cell else "")
        for cell, value, se in ends
    )
