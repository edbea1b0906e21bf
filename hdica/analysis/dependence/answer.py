"""Whether a mean follows its prediction and from where on, or how it changes, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.dependence.contrast import contrast
from hdica.analysis.dependence.figure import at, curves, named, others
from hdica.analysis.dependence.peak import peaks
from hdica.analysis.dependence.record import bound
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import at_last_n
from hdica.analysis.show.sentences import among, listed
from hdica.analysis.show.words import count, measurement, number, place, rounded, symbol
from hdica.verdict.cells import AGREES, DIFFERS, UNDECIDED, together

FEW = 2
"""Of so many curves each is told."""


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
    """At how many points means agree with the prediction, and how far off they are elsewhere."""
    claimed = cut["claimed"].values == 1
    verdicts = cut["verdict"].values
    judged = claimed & (verdicts != "")
    whole = together(verdicts[judged].tolist())
    total, name = int(judged.sum()), symbol(output).html
    part = _place(cut) if not claimed.all() else ""
    every = f"the one point{part}" if total == 1 else f"all {count(total)} points{part}{among()}"
    if whole == AGREES:
        text = f"Mean {name} agrees with the prediction {_within(cut, judged)} at {every}"
        outside = ~claimed & (verdicts == DIFFERS)
        more = f"; elsewhere it is {_worst(cut, outside)}" if outside.any() else ""
        return Answer(f"{text}{peaks(cut)}{more}.", whole)
    agree, differ, left = (judged & (verdicts == one) for one in (AGREES, DIFFERS, UNDECIDED))
    if not differ.any() and not agree.any():
        be = "is" if total == 1 else "are"
        return Answer(
            f"Too few seeds tell whether mean {name} agrees with the prediction: {every} {be} "
            f"undecided{_needed(cut, left)}.",
            whole,
        )
    told = []
    if agree.any():
        told.append(
            f"agrees with the prediction {_within(cut, agree)} at {count(int(agree.sum()))}"
        )
    if differ.any():
        told.append(
            f"differs from it at {count(int(differ.sum()))}"
            if told
            else f"differs from the prediction at {count(int(differ.sum()))}"
        )
    of = f" of {count(total)} points{part}"
    told[0] += of
    if differ.any():
        told[-1] += f" ({_worst(cut, differ)})"
    if left.any():
        be = "is" if left.sum() == 1 else "are"
        told.append(f"{count(int(left.sum()))} {be} undecided{_needed(cut, left)}")
    return Answer(f"Mean {name} {listed(told)}.", whole)


def _place(cut: xr.Dataset) -> str:
    """The part of the grid that the study claims, in words."""
    bounds = [bound(text) for text in cut.attrs["where_bounds"]]
    pairs = zip(cut.attrs["where"], bounds, strict=True)
    signs = {"<=": "≤", "<": "&lt;", ">=": "≥", ">": "&gt;"}
    told = [
        f"{symbol(name).html} {signs[sign]} {number(value, 6)}" for name, (sign, value) in pairs
    ]
    return f" with {listed(told)}"


def _within(cut: xr.Dataset, cells: np.ndarray) -> str:
    """The largest difference of some cells, as a bound."""
    return f"within {number(float(np.abs(cut['difference'].values[cells]).max()), 2)}"


def _needed(cut: xr.Dataset, cells: np.ndarray) -> str:
    """How many seeds would decide undecided cells, and against which control."""
    many = cut["seeds_needed"].values[cells]
    share = number(100 * float(cut.attrs["control"]), 3)
    control = f"a prediction off by {share} % of its largest value would not be rejected"
    known = many[np.isfinite(many)]
    if not known.size:
        return f" ({control})"
    return f" ({control}; {rounded(float(known.max()))} seeds would decide)"


def _worst(cut: xr.Dataset, cells: np.ndarray) -> str:
    """The largest difference of some cells with its error, and where it is."""
    size = np.where(cells, np.abs(cut["difference"].values), -1.0)
    index = np.unravel_index(int(size.argmax()), size.shape)
    here = cut.isel(dict(zip(cut["difference"].dims, index, strict=True)))
    dims = [*others(cut), str(cut.attrs["over"])]
    where = place({d: here[d].item() for d in dims}).html
    return f"off by up to {measurement(float(here['difference']), float(here['se']))}, at {where}"


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
