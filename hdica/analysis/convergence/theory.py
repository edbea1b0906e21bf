"""Where runs of each n lie by theory at order 1/n: edges of bands, and where there are none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.show.choose import Point
from hdica.analysis.show.panel import Line
from hdica.analysis.show.words import count, number, words

Array = NDArray[np.float64]
Band = tuple[Array, Array, NDArray[np.bool_]]


def deviations(band: float) -> str:
    """So many standard deviations, in words."""
    return "standard deviation" if band == 1 else f"{number(band)} standard deviations"


def _at(data: xr.Dataset, point: Point, n: int) -> Band:
    """Mean and standard deviation of runs at n, and where they are wrong by construction."""
    limit, sd, bias, least = (
        data[name].sel({k: v for k, v in point.items() if k in data[name].dims}).values
        for name in ("limit", "limit_sd", "limit_bias", "limit_from_n")
    )
    return limit + np.nan_to_num(bias) / n, sd / np.sqrt(n), np.asarray(least > n)


def edges(
    data: xr.Dataset, members: Sequence[Point], drawn: Sequence[tuple[int, str]]
) -> list[Line]:
    """Edges of the bands in which runs lie, of ``drawn`` n in their colours, where they hold.

    Near an unstable state runs part or linger and are not normal: there a band ends.
    """
    time, out = data["time"].values.astype(float), list[Line]()
    for n, color in drawn:
        for point in members:
            center, sd, wrong = _at(data, point, n)
            size = np.where(wrong, np.nan, data.attrs["band"] * sd)
            if not np.isfinite(size).any():
                continue
            for edge in (center - size, center + size):
                out.append(Line(time, edge, words("by theory"), color, "dot", listed=not out))
    return out


def said(data: xr.Dataset, members: Sequence[Point], sizes: Sequence[int]) -> str:
    """What the edges are, and at which n they end, with the reason; empty without theory."""
    known = [(n, *_at(data, point, n)) for n in sizes for point in members]
    known = [one for one in known if np.isfinite(one[2]).any()]
    if not known:
        return ""
    if all(wrong[np.isfinite(sd)].all() for _, _, sd, wrong in known):
        return (
            " No band of theory is drawn: three standard deviations reach an unstable state, where "
            "runs part or linger, and a normal band is wrong."
        )
    term = " + <i>m</i>/<i>n</i>" if bool(data["limit_bias"].notnull().any()) else ""
    text = f" Dotted: limit{term} ± {deviations(data.attrs['band'])} by the central limit theorem."
    partial = sorted({n for n, _, sd, wrong in known if (wrong & np.isfinite(sd)).any()})
    drawn = {n for n, _, sd, wrong in known if (~wrong & np.isfinite(sd)).any()}
    where = [
        f"{verb} at <i>n</i> = {', '.join(map(count, some))}"
        for verb, some in (
            ("ends", [n for n in partial if n in drawn]),
            ("is missing", [n for n in partial if n not in drawn]),
        )
        if some
    ]
    if not where:
        return text
    return (
        f"{text} It {' and '.join(where)}, where three standard deviations reach an unstable "
        "state: runs part or linger there, and a normal band is wrong."
    )
