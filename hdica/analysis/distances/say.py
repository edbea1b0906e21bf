"""What the laws of the estimate's entries say, and its table."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.distances.figure import NAMES, SHORT, grid_of, law_label
from hdica.analysis.show.choose import Point, at_largest_n, points
from hdica.analysis.show.sentences import N, among, counted, exponents
from hdica.analysis.show.table import VERDICT_HEAD, Table, exponent, of_verdicts, verdict
from hdica.analysis.show.words import count, method_name, number, with_error

UNSEEN = 1e-4
"""Mass outside the edges below this is not worth a sentence."""

ALONE = (
    "With a single <i>n</i> a finite-<i>n</i> term is not separated from the limit: a difference "
    "would be undecided."
)


def distances(data: xr.Dataset) -> list[str]:
    """Sentences on verdicts, sizes and exponents of the distances between laws."""
    cells = points(data, ["simulation", *grid_of(data)])

    def name(point: Point) -> str:
        rest = {k: v for k, v in point.items() if k != "simulation"}
        return f"{method_name(point['simulation']).html}, {law_label(data, rest).html}"

    out = counted(data, cells, "comparisons of the entries' law with the limit", name)
    out += [ALONE] if data.sizes["n"] == 1 else []
    for kind, words in NAMES.items():
        out += _sizes(data, kind, words)
        out += exponents(data, kind, f"{words} distance", SHORT[kind].html, "a", 0.5)
    return out + _outside(data)


def _sizes(data: xr.Dataset, kind: str, words: str) -> list[str]:
    """Size of a distance at the largest n, alone, against independent draws, and pooled."""
    top = at_largest_n(data, (data["count"] > 0).any([d for d in data["count"].dims if d != "n"]))
    moving = top[kind].values > 0
    size, error = top[kind].values[moving], np.nan_to_num(top[f"{kind}_se"].values[moving])
    expected = top[f"{kind}_expected"].broadcast_like(top[kind]).transpose(*top[kind].dims)
    ratio = size / expected.values[moving]
    pooled = top[f"{kind}_pooled"].values[moving]
    if not len(size):
        return []
    one = with_error(float(size[0]), float(error[0]))
    return [
        f"At {N} = {count(float(top['n']))} the {words} distance of one run from the limit is "
        f"{one if len(size) == 1 else _between(size)}, {_between(ratio)} times that of as many "
        f"independent draws; pooled over seeds it is {_between(pooled)}."
    ]


def _between(values: np.ndarray) -> str:
    """One number, or the range of several."""
    known = values[np.isfinite(values)]
    if not len(known):
        return "–"
    low, high = number(float(known.min()), 2), number(float(known.max()), 2)
    return low if low == high else f"{low} … {high}"


def _outside(data: xr.Dataset) -> list[str]:
    worst = max(float(data[k].max()) for k in ("outside", "outside_limit"))
    if not worst > UNSEEN:
        return []
    return [
        f"Up to {number(100 * worst, 2)} % of the entries lie outside the edges of the histograms, "
        f"where the Wasserstein distance does not see them{among()}."
    ]


def table(data: xr.Dataset) -> Table:
    """One row for each law; whatever does not agree comes first."""
    columns = tuple(
        (f"{short}, largest <i>n</i>", f"{short} of independent draws")
        for short in (SHORT["ks"].html, SHORT["w1"].html)
    )
    head = (
        "law",
        *VERDICT_HEAD,
        *columns[0],
        *columns[1],
        "<i>a</i> (KS)",
        f"<i>a</i> ({SHORT['w1'].html})",
    )

    def row(point: Point, here: xr.Dataset) -> tuple[str, ...]:
        rest = {k: v for k, v in point.items() if k != "simulation"}
        last = at_largest_n(here, here["ks"].notnull())
        return (
            f"{method_name(point['simulation']).plain}, {law_label(data, rest).plain}",
            *verdict(here),
            *(text for k in ("ks", "w1") for text in _distance(last, k)),
            *(exponent(here, f"{k}_exponent") for k in ("ks", "w1")),
        )

    return of_verdicts(data, [str(d) for d in data["verdict"].dims], head, row)


def _distance(last: xr.Dataset, kind: str) -> tuple[str, str]:
    """A distance with its error, and that of independent draws."""
    value, error = float(last[kind]), float(last[f"{kind}_se"])
    own = with_error(value, error) if error > 0 else number(value, 2)
    return own, number(float(last[f"{kind}_expected"]), 2)
