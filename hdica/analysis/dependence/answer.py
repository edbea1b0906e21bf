"""Whether a mean follows its prediction and from where on, or how it changes, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr
from scipy import stats

from hdica.analysis.dependence.contrast import contrast
from hdica.analysis.dependence.figure import at, curves, named, others
from hdica.analysis.dependence.peak import peaks
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import at_last_n, points
from hdica.analysis.show.sentences import among
from hdica.analysis.show.words import count, measurement, number, place, symbol, value_of
from hdica.analysis.statistics.verdict import CLEAR

FEW = 2
"""Of so many curves each is told."""
LEVEL = 0.01
"""Chance that means of a right prediction are said to be off it."""
TINY = 1e-300
LEAST = 3
"""Cells from which on it is said that a part of the grid follows the prediction."""


def answer(data: xr.Dataset) -> Answer | None:
    """The first output beside its prediction, or without one at both ends of its curves."""
    output = str(data["output"].values[0])
    cut = at_last_n(data).sel(output=output)
    if bool((cut["difference"].notnull() & cut["se"].notnull()).any()):
        return _followed(cut, output)
    if sided := contrast(at_last_n(data)):
        return Answer(sided)
    told = [text for text in (_ends(cut, k) for k in range(len(curves(cut)))) if text]
    if not told:
        return None
    chosen = told if len(told) <= FEW else [told[0], told[-1]]
    return Answer(f"Mean {symbol(output).html} is {', and '.join(chosen)}.")


def _followed(cut: xr.Dataset, output: str) -> Answer:
    """Where means lie where theory has them, and how far off they are elsewhere."""
    name = symbol(output).html
    whole = _verdict(cut)
    total = int(_known(cut).sum())
    if whole == "agrees":
        where = "the one point" if total == 1 else f"all {count(total)} points{among()}"
        text = f"Mean {name} follows the prediction {_within(cut)} at {where}{peaks(cut)}"
        return Answer(f"{text}.", whole)
    parts = [(d, _from(cut, d)) for d in (str(cut.attrs["over"]), *others(cut))]
    found = [(dim, part) for dim, part in parts if part is not None]
    if found:
        dim, part = max(found, key=lambda one: int(_known(one[1]).sum()))
        first = number(float(part[dim][0]), 6)
        return Answer(
            f"Mean {name} follows the prediction {_within(part)} from {symbol(dim).html} = {first} "
            f"on; before that it is {_worst(cut)}.",
            "agrees",
        )
    inside, told = _inside(cut)
    if inside is not None:
        held = int(_known(inside).sum())
        return Answer(
            f"Mean {name} follows the prediction {_within(inside)} at {told} ({count(held)} of "
            f"{count(total)} points); elsewhere it is {_worst(cut)}.",
            whole,
        )
    half = float(np.median(np.abs(cut["difference"].values[_known(cut)])))
    return Answer(
        f"Mean {name} is within {number(half, 2)} of the prediction at half of {count(total)} "
        f"points, and {_worst(cut)}.",
        whole,
    )


def _known(cut: xr.Dataset) -> np.ndarray:
    return np.asarray((cut["difference"].notnull() & cut["se"].notnull()).values)


def _verdict(cut: xr.Dataset) -> str:
    """Whether the means are the prediction, by the least p-value of all cells together."""
    known = _known(cut)
    score = np.abs(cut["difference"].values[known]) / np.maximum(cut["se"].values[known], TINY)
    seeds = cut["seeds"].broadcast_like(cut["mean"]).transpose(*cut["mean"].dims).values[known]
    p = float(2 * stats.t.sf(score, np.maximum(seeds - 1, 1)).min() * score.size)
    return "agrees" if p >= LEVEL else ("differs" if p < LEVEL / CLEAR else "undecided")


def _within(cut: xr.Dataset) -> str:
    """The largest difference of a part of the cells, as a bound."""
    size = np.abs(cut["difference"].values[_known(cut)])
    return f"within {number(float(size.max()), 2)}"


def _from(cut: xr.Dataset, dim: str) -> xr.Dataset | None:
    """The largest part of the cells from some value of a dimension on that follows theory."""
    if cut[dim].dtype.kind not in "fiu":
        return None
    ordered = cut.sortby(dim)
    for k in range(1, cut.sizes[dim]):
        part = ordered.isel({dim: slice(k, None)})
        if int(_known(part).sum()) >= LEAST and _verdict(part) == "agrees":
            return part
    return None


def _inside(cut: xr.Dataset) -> tuple[xr.Dataset | None, str]:
    """The largest part between two values of what means depend on that follows theory, in words.

    Of all curves, or of those from some value of one other parameter on.
    """
    x = str(cut.attrs["over"])
    if cut[x].dtype.kind not in "fiu":
        return None, ""
    best: xr.Dataset | None = None
    ordered, told, most = cut.sortby(x), "", LEAST - 1
    for rows, where in [(ordered, ""), *_rows(ordered)]:
        values = rows[x].values
        for low in range(values.size - 1):
            for high in range(values.size - 1, low, -1):
                part = rows.isel({x: slice(low, high + 1)})
                held = int(_known(part).sum())
                if held <= most:
                    break
                if _verdict(part) == "agrees":
                    ends = f"{place({x: float(values[low])}).html} to {value_of(values[high])}"
                    best, told, most = part, f"{ends}{where}", held
                    break
    return best, told


def _rows(ordered: xr.Dataset) -> list[tuple[xr.Dataset, str]]:
    """Curves from some value of one other parameter on, and which they are."""
    found = []
    for dim in others(ordered):
        if ordered[dim].dtype.kind not in "fiu":
            continue
        rows = ordered.sortby(dim)
        for k in range(1, rows.sizes[dim]):
            first = place({dim: rows[dim].values[k].item()}).html
            where = f" with {first}" + (" or more" if k < rows.sizes[dim] - 1 else "")
            found.append((rows.isel({dim: slice(k, None)}), where))
    return found


def _worst(cut: xr.Dataset) -> str:
    """The largest difference in standard errors with its error, and where it is."""
    dims = ["simulation", *others(cut), str(cut.attrs["over"])]
    size = abs(cut["difference"]).where(cut["se"].notnull())
    cells = [p for p in points(cut, dims) if np.isfinite(float(size.sel(p)))]
    worst = max(cells, key=lambda p: float(size.sel(p)))
    here = cut.sel(worst)
    where = place({k: v for k, v in worst.items() if k != "simulation"}).html
    off = measurement(float(here["difference"]), float(here["se"]))
    return f"off by up to {off}{among()}, at {where}"


def _ends(cut: xr.Dataset, k: int) -> str:
    """Means at both ends of one curve."""
    curve, x = curves(cut)[k], str(cut.attrs["over"])
    here = at(cut, curve).dropna(x, subset=["mean"])
    if not here.sizes[x]:
        return ""
    told = [
        f"{measurement(float(one['mean']), float(one['se']))} at {symbol(x).html} = "
        f"{number(float(one[x]), 6)}"
        for one in (here.isel({x: i}) for i in sorted({0, here.sizes[x] - 1}))
    ]
    where = f" ({named(curve, cut).html})" if len(curves(cut)) > 1 else ""
    return f"{' and '.join(told)}{where}"
