"""What the collapse says."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.collapse.figure import power
from hdica.analysis.collapse.judge import LEAST_P
from hdica.analysis.show.choose import Point, points
from hdica.analysis.show.sentences import among
from hdica.analysis.show.words import count, measurement, number, place, plural, symbol

LEAST_TOLD = 1e-4
"""Below, a p-value is told by its power of ten."""


def told(p: float) -> str:
    """A p-value in a sentence, of the smallest the order of magnitude."""
    if p >= LEAST_TOLD:
        return f"p = {number(p, 2)}"
    exponent = int(np.floor(np.log10(max(p, LEAST_P)))) + 1
    return f"p &lt; {number(10.0**exponent, 1)}"


def cells_of(data: xr.Dataset) -> list[Point]:
    """Cells that are judged."""
    dims = [str(d) for d in data["measured"].dims]
    return [p for p in points(data, dims) if np.isfinite(float(data["score"].sel(p)))]


def collapse(data: xr.Dataset) -> list[str]:
    """How all points lie, the worst of them, the control, and what is left out."""
    out = [_worst(data), _control(data), _offset(data), _left_out(data)]
    return [text for text in out if text]


def _worst(data: xr.Dataset) -> str:
    known = cells_of(data)
    if not known:
        return ""
    worst = max(known, key=lambda p: abs(float(data["score"].sel(p))))
    here = data.sel(worst)
    return (
        f"The point farthest from its prediction is that at {place(worst).html}{among()}: "
        f"{_beside(here)}, {number(abs(float(here['score'])), 2)} standard "
        f"errors off, which among {plural(len(known), 'point')} has "
        f"{told(float(data['worst']))}."
    )


def _beside(here: xr.Dataset) -> str:
    """What was measured and predicted, with the error by which it is judged."""
    found, known = float(here["measured"]), float(here["predicted"])
    if "sd" not in here:
        return f"{measurement(found, float(here['se']))} beside {number(known, 4)}"
    error = float(here["sd"]) / float(here["runs"]) ** 0.5
    return f"{number(found, 4)} beside {measurement(known, error)}"


def _control(data: xr.Dataset) -> str:
    p = float(data["p_control"])
    if not np.isfinite(p):
        return ""
    score = np.abs(data["score_control"].values)
    many = int((score > 3).sum())
    return (
        f"With {wrong(data)} {count(many)} of {plural(len(cells_of(data)), 'point')} "
        f"{'is' if many == 1 else 'are'} more than three standard errors off ({told(p)})."
    )


def wrong(data: xr.Dataset) -> str:
    """The powers of the control, beside the right ones."""
    what = "times" if str(data.attrs["kind"]) == "fold" else "squares"
    pairs = [
        (noun, float(data.attrs[f"wrong_{k}"]) * sign, float(data.attrs[k]) * sign)
        for noun, k, sign in (("a window", "window", -1), (what, "size", 1))
    ]
    parts = [
        f"{noun} of {power(bad).html} in place of {power(good).html}"
        for noun, bad, good in pairs
        if abs(bad - good) > 1e-12
    ]
    return " and ".join(parts) or "the same powers"


def _offset(data: xr.Dataset) -> str:
    """What the prediction at n has beyond the law, at both ends of n."""
    kind = str(data.attrs["kind"])
    size = abs(data["shift"] if kind == "separatrix" else data["offset"])
    if kind == "pitchfork":
        size = 100 * size / data["predicted"]
    known = size.where(data["score"].notnull())
    ends = [data["n"].values[0], data["n"].values[-1]]
    largest = [float(known.sel(n=n).max()) for n in ends]
    if ends[0] == ends[1] or not np.isfinite(largest).all():
        return ""
    unit = {"fold": " in <i>t</i>", "separatrix": " in <i>z</i>", "pitchfork": " %"}[kind]
    told = [
        f"{number(one, 2)}{unit} at {symbol('n').html} = {count(n)}"
        for one, n in zip(largest, ends, strict=True)
    ]
    return (
        "What the prediction at <i>n</i> has beyond the law of all <i>n</i>, which is taken off "
        f"and not fitted, is up to {told[0]} and {told[1]}."
    )


def _left_out(data: xr.Dataset) -> str:
    still, lost = int((data["open"] > 0).sum()), int(data["diverged"].sum())
    parts = []
    if still:
        parts.append(
            f"{plural(still, 'cell')} {'has' if still == 1 else 'have'} runs that ended before "
            "they fell, and no mean"
        )
    if lost:
        parts.append(f"{plural(lost, 'run')} diverged or failed and {_is(lost)} missing")
    return f"{'; '.join(parts)}." if parts else ""


def _is(many: int) -> str:
    return "is" if many == 1 else "are"
