"""Whether runs of every n lie on the law, and whether wrong powers of n would have been seen."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.collapse.judge import verdict
from hdica.analysis.collapse.say import cells_of, told, wrong
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.words import count, number, plural, symbol
from hdica.verdict.cells import AGREES, CLEAR, DIFFERS

WHAT = {
    "fold": "Near the fold, times of falls",
    "separatrix": "Beside the unstable overlap, shares of runs that go up",
    "pitchfork": "Near the pitchfork, steady means of {v}²",
}


def answer(data: xr.Dataset) -> Answer | None:
    """One sentence: chi-square of all points, and the control."""
    p, control = float(data["p_value"]), float(data["p_control"])
    level = float(data.attrs["level"])
    said = verdict(p, control, level)
    if not said:
        return None
    many = "do not lie" if said == DIFFERS else "lie"
    sizes = data["n"].values
    span = count(sizes[0]) if len(sizes) == 1 else f"{count(sizes[0])} to {count(sizes[-1])}"
    what = WHAT[str(data.attrs["kind"])].format(v=symbol(str(data.attrs["variable"])).html)
    seen = "they do not" if control < level / CLEAR else "they do not clearly fail to"
    if said != AGREES and control >= level / CLEAR:
        seen = "the runs cannot tell it"
    return Answer(
        f"{what} at {symbol('n').html} = {span} {many} on one curve, no exponent fitted: "
        f"{_chi2(data)}; with {wrong(data)} {seen} ({told(control)}).",
        said,
    )


def _chi2(data: xr.Dataset) -> str:
    """Chi-square of the points that are normal enough, and its p-value with the worst point's."""
    points, total = int(data["points"]), len(cells_of(data))
    p = told(float(data["p_value"]))
    if not points:
        return f"{p} of {plural(total, 'point')}"
    chi2 = float(data["chi2"])
    expected = f"χ² = {number(chi2, 3) if chi2 < 1e3 else number(chi2, 2)}"
    error = np.sqrt(2 * points)
    rest = total - points
    more = f" and {plural(rest, 'point')} where nearly all runs go one way" if rest else ""
    judged = f"{p} together with the farthest point"
    return f"{expected} for {points} ± {number(error, 2)}{more}, {judged}"
