"""Where runs of each n lie by theory at order 1/n: edges of bands, and where there are none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.show.choose import Point, selected
from hdica.show.panel import Array, Line
from hdica.show.words import count, number, words

REACHED = "three standard deviations reach an unstable state"


def deviations(band: float) -> str:
    """So many standard deviations, in words."""
    return "standard deviation" if band == 1 else f"{number(band)} standard deviations"


def _at(data: xr.Dataset, point: Point, n: int) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Mean and standard deviation of runs at n, and where they are wrong by construction."""
    limit, sd, bias, least = (
        selected(data[name], point).values
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


def caption(data: xr.Dataset, members: Sequence[Point], sizes: Sequence[int]) -> str:
    """What the edges are, and at which n they end, with the reason; empty without theory."""
    right, wrong = set[int](), set[int]()
    for n in sizes:
        for point in members:
            _, sd, off = _at(data, point, n)
            off = off[np.isfinite(sd)]
            if (~off).any():
                right.add(n)
            if off.any():
                wrong.add(n)
    if not right and not wrong:
        return ""
    if not right:
        return (
            f" No band of theory is drawn: {REACHED}, where runs part or linger, and a normal band "
            "is wrong."
        )
    term = " + <i>m</i>/<i>n</i>" if bool(data["limit_bias"].notnull().any()) else ""
    text = f" Dotted: limit{term} ± {deviations(data.attrs['band'])} by the central limit theorem."
    some = {"ends": sorted(wrong & right), "is missing": sorted(wrong - right)}
    where = [f"{verb} at <i>n</i> = {', '.join(map(count, ns))}" for verb, ns in some.items() if ns]
    if not where:
        return text
    return (
        f"{text} It {' and '.join(where)}, where {REACHED}: runs part or linger there, and a "
        "normal band is wrong."
    )
