"""What the ensemble of runs says, the answer first."""

from __future__ import annotations

import numpy as np
import xarray as xr
from markupsafe import escape

from hdica.analysis.ensemble.figure import crossed, grid_of, theory_name, unit
from hdica.analysis.show.choose import Point, evenly, points, selected
from hdica.analysis.show.sentences import listed
from hdica.analysis.show.words import count, measurement, number, place, plural, symbol

CELLS = 3
CLOSE = 2.0
"""Outputs that lie further apart than so many standard errors of a time limit what it says."""


def ensemble(data: xr.Dataset) -> list[str]:
    """When the median run gets there, where runs end, and what theory says of both."""
    out = []
    for cell in evenly(points(data, grid_of(data)), CELLS):
        if int(selected(data["count"], cell)) == 0:
            continue
        found = [*_passages(data, cell), *_ends(data, cell), *_bounds(data, cell)]
        lead = f"At {place(cell).html}: " if cell else ""
        out += [lead + (text if lead else text[0].upper() + text[1:]) for text in found]
    return out


def at(data: xr.Dataset, value: float, error: float = 0.0) -> str:
    """A time with its unit: "(1.70 ± 0.01) × 10⁶ steps", or after "t =" where it has none."""
    text = measurement(value, error)
    return f"{text} {escape(unit(data))}" if unit(data) else f"<i>t</i> = {text}"


def _passages(data: xr.Dataset, cell: Point) -> list[str]:
    if "passage" not in data:
        return []
    return [_passage(data, cell, float(level)) for level in data["crossing"].values]


def _passage(data: xr.Dataset, cell: Point, level: float) -> str:
    """When the median run first goes below a value."""
    here = data.sel({**cell, "crossing": level})
    done, reached, never = (int(here[name]) for name in ("count", "reached", "never"))
    middle, error = (float(here[name].sel(share=0.5)) for name in ("passage", "passage_se"))
    what = crossed(data, level).html
    end = at(data, float(data["time"].values[-1]))
    theory = _theory(data, cell, level)
    if not np.isfinite(middle):
        which = "no run reaches" if reached == 0 else f"only {count(reached)} of {done} runs reach"
        return f"{which} {what} by {end}{theory}."
    run = "the median run" if done > 1 else "the one run"
    if middle <= float(data["time"].values[0]):
        text = f"{run} is at {what} from the first output ({at(data, middle)}) on{theory}"
    else:
        span = f" ({_span(here, end)})" if done > 1 else ""
        text = f"{run} reaches {what} after {at(data, middle, error)}{span}{theory}"
    gap = float(here["passage_gap"])
    if error > 0 and gap > CLOSE * error:
        text += f"; outputs there lie up to {measurement(gap, 0.0)} apart"
    if never:
        text += f"; {count(never)} of {plural(done, 'run')} never {_did(never)} by {end}"
    return f"{text}."


def _span(here: xr.Dataset, end: str) -> str:
    """Times of nine tenths of the runs, and their mean."""
    low, high = (float(here["passage"].sel(share=share)) for share in (0.05, 0.95))
    span = f"5–95 %: {measurement(low, 0.0)} to " + (
        measurement(high, 0.0) if np.isfinite(high) else f"beyond {end}"
    )
    mean = float(here["passage_mean"])
    if np.isfinite(mean):
        span += f"; mean {measurement(mean, float(here['passage_mean_se']))}"
    return span


def _did(many: int) -> str:
    return "does" if many == 1 else "do"


def _theory(data: xr.Dataset, cell: Point, level: float) -> str:
    """What every prediction says of a first passage, after a semicolon; empty if none does."""
    found: list[str] = []
    for name in data["limit"].values if "predicted_passage" in data else ():
        if bool(data["moving"].sel(limit=name) > 0):
            point = {**cell, "limit": name, "crossing": level}
            names = ("predicted_passage", "passed_by")
            found.append(_prediction(data, theory_name(name).html, *names, point))
    for name in data["stage"].values if "stage_time" in data else ():
        if float(data["stage_crossing"].sel(stage=name)) == level:
            point = {**cell, "stage": name}
            names = ("stage_time", "stage_passed_by")
            found.append(_prediction(data, symbol(str(name)).html, *names, point))
    known = [text for text in found if text]
    return f"; theory {listed(known)}" if known else ""


def _prediction(data: xr.Dataset, label: str, time: str, passed: str, point: Point) -> str:
    """A predicted time, and how many of the runs are there by then."""
    value = float(selected(data[time], point))
    if not np.isfinite(value):
        return "" if np.isnan(value) else f"never ({label})"
    share, low, high = (
        100 * float(selected(data[f"{passed}{end}"], point)) for end in ("", "_low", "_high")
    )
    ends = f"[{number(low, 2)}, {number(high, 2)}]"
    return f"{measurement(value, 0.0)} ({label}: by then {number(share, 2)} % {ends} of runs)"


def _ends(data: xr.Dataset, cell: Point) -> list[str]:
    """Median and mean at the last time, over what is predicted if anything is."""
    end = at(data, float(data["time"].values[-1]))
    if "ratio" not in data:
        return _level(data.sel(cell).isel(time=-1), end)
    out = []
    for name in data["limit"].values:
        point = {**cell, "limit": name}
        pairs = [
            [float(selected(data[f"{kind}{tail}"], point)) for tail in ("", "_se")]
            for kind in ("ratio", "mean_ratio")
        ]
        if not np.isfinite(pairs[0][0]):
            continue
        middle, mean = (measurement(*pair) for pair in pairs)
        moving = bool(data["moving"].sel(limit=name) > 0)
        what = "what theory" if moving else "the level of theory"
        out.append(
            f"at the end ({end}) the median is {middle} times {what} ({theory_name(name).html})"
            f"{' gives' if moving else ''}, the mean {mean} times."
        )
    return out


def _level(here: xr.Dataset, end: str) -> list[str]:
    """Median and mean at the last time."""
    middle, mean = (
        [float(one) for one in pair]
        for pair in (
            (here["quantile"].sel(share=0.5), here["median_se"]),
            (here["mean"], here["mean_se"]),
        )
    )
    if not np.isfinite(middle[0]):
        return []
    name = symbol(str(here.attrs["variable"])).html
    return [
        f"at the end ({end}) the median of {name} is {measurement(*middle)}, the mean "
        f"{measurement(*mean)}."
    ]


def _bounds(data: xr.Dataset, cell: Point) -> list[str]:
    """How far bounds are above the runs at the end."""
    if "looseness" not in data:
        return []
    parts = [
        f"{symbol(str(name)).html} {number(float(f'{value:.3g}'))} times"
        for name in data["term"].values
        if np.isfinite(value := float(selected(data["looseness"], {**cell, "term": name})))
    ]
    return [f"at the end the bounds are, over the median: {listed(parts)}."] if parts else []
