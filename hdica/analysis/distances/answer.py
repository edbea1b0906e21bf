"""Whether the entries follow the limiting density, in one sentence."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.distances.figure import grid_of, law_label
from hdica.analysis.show.agreement import agreement, law, verdict_of
from hdica.analysis.show.answer import Answer
from hdica.analysis.show.choose import Point, at_largest_n, points
from hdica.analysis.show.sentences import N, among
from hdica.analysis.show.words import count, method_name, number, with_error
from hdica.verdict.cells import AGREES, together


def _beside_draws(top: xr.Dataset) -> str:
    """The distances over those of as many independent draws."""
    expected = top["ks_expected"].broadcast_like(top["ks"])
    ratio = (top["ks"] / expected.where(expected > 0)).values.ravel()
    ratio = ratio[np.isfinite(ratio)]
    if not ratio.size:
        return ""
    ends = " to ".join(dict.fromkeys(number(float(f(ratio)), 2) for f in (np.min, np.max)))
    return f" ({ends} times that of as many independent draws)"


def answer(data: xr.Dataset) -> Answer | None:
    """Agreement of the laws, and the distance of one run with its decay in n."""
    cells = points(data, ["simulation", *grid_of(data)])
    known = (data["count"] > 0).any([d for d in data["count"].dims if d != "n"])
    top = at_largest_n(data, known)
    size, error = top["ks"].values.ravel(), top["ks_se"].values.ravel()
    if not np.isfinite(size).any():
        return None
    worst = int(np.nanargmax(size))

    def name(point: Point) -> str:
        rest = {k: v for k, v in point.items() if k != "simulation"}
        return f"{method_name(point['simulation']).html}, {law_label(data, rest).html}"

    text = agreement(data, cells, "The density of the estimate", name)
    power, usual = law(data, "ks") if data.sizes["n"] > 1 else ("", AGREES)
    falls = f" and falls as {power}" if power else ""
    distance = with_error(float(size[worst]), float(error[worst]))
    measured = (
        f"he Kolmogorov–Smirnov distance of one run from the limit is at most {distance} at {N} = "
        f"{count(float(top['n']))}{among()}{_beside_draws(top)}{falls}"
    )
    verdict = together([verdict_of(data, cells), usual])
    # What is known comes before what is not.
    known_first = f"T{measured}; {text[0].lower()}{text[1:]}."
    said = known_first if verdict == "undecided" else f"{text}; t{measured}."
    return Answer(said, verdict, covers=1)
