"""Does a law agree with its limit? The test of a trajectory along a law."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hdica.analysis.reading import Cell, assembled, optional
from hdica.verdict import trajectory
from hdica.verdict.ladder import MIN_SEEDS, ladder
from hdica.verdict.trajectory import Verdict, judge, nothing

Array = NDArray[np.float64]

PLACES = 15
"""A law is tested at no more places than this; neighbours tell the same."""

TAIL = 0.02
"""No place is tested where less than this share of the law lies beyond it."""

BEYOND = 20
"""No place is tested with fewer entries of all seeds together expected beyond it: means of so
rare events are not normal."""

LONG_NAMES = {
    **trajectory.LONG_NAMES,
    "p_value": "p-value of mean = limit + C/n over all places of the law",
    "score": "largest normal score over the places of the law",
}

COMPANIONS = ("limit", "error", "control")
SEEDS = ("seeds_needed", "seeds_needed_error")
KEPT = ("verdict", "why", "p_value", "score", "control_p", "power", *SEEDS, "n_from")


@dataclass(frozen=True)
class Part:
    """A distribution function, or another share that rises or falls from one end to the other.

    ``values`` are over the grid, ``n``, ``seed`` and ``place``, the dimension along the law;
    ``curves`` are ``limit``, ``error`` and ``control`` over (some of) the grid and ``place``, NaN
    where unknown; ``share``, over (some of) the grid and n, is that of the entries which are
    counted, as a fraction of n.
    """

    values: xr.DataArray
    curves: xr.Dataset
    share: xr.DataArray
    place: str


def companions(data: xr.Dataset, name: str, limit: xr.DataArray) -> xr.Dataset:
    """A limit with its solver error and its negative control, NaN where it has none."""
    extra = {k: optional(data, f"{name}_{k}", limit) for k in COMPANIONS[1:]}
    return xr.Dataset({"limit": limit, **extra}).reset_coords(drop=True)


def agreement(parts: Sequence[Part], level: float) -> xr.Dataset:
    """Verdict of every cell of the grid; several parts over the same are tested together, as one.

    The mean over seeds of an empirical distribution function is compared with the limit by
    :func:`hdica.verdict.trajectory.judge`, with places along the law where that has times:
    a term C/n is free at every place where there are several n, and the largest statistic over
    places is judged with the correlations of neighbouring places. Places are chosen by the limit
    alone, evenly in probability. ``level`` is the chance of a false "differs" for each cell.
    """
    first = parts[0]
    grid = [str(d) for d in first.values.dims if d not in ("n", "seed", first.place)]
    n = first.values["n"].values.astype(float)
    arrays = [_arrays(part, grid) for part in parts]
    shape = [first.values.sizes[d] for d in grid]
    cells = [
        _described(_judged([{k: v[i] for k, v in a.items()} for a in arrays], n, level))
        for i in np.ndindex(*shape)
    ]
    return assembled(cells, grid, {d: first.values[d].values for d in grid})


def _arrays(part: Part, grid: list[str]) -> dict[str, Array]:
    """Values (grid, n, seed, place), curves (grid, place) and share (grid, n) as plain arrays."""
    values = part.values.transpose(*grid, "n", "seed", part.place)
    like = values.isel(n=0, seed=0, drop=True)
    seedless = values.isel(seed=0, drop=True).isel({part.place: 0}, drop=True)
    curves = {
        k: part.curves[k].broadcast_like(like).transpose(*grid, part.place).values
        for k in COMPANIONS
    }
    share = part.share.broadcast_like(seedless).transpose(*grid, "n").values
    return {"values": values.values, "share": share, **curves}


def _judged(parts: Sequence[Mapping[str, Array]], n: Array, level: float) -> Verdict:
    """Verdict of one cell."""
    parts = [p for p in parts if np.isfinite(p["limit"]).all()]
    if not parts:
        return nothing(np.zeros(0), "the limit has no result here")
    seeds = np.isfinite(parts[0]["values"]).all(axis=2).sum(axis=1)
    if seeds.max(initial=0) < MIN_SEEDS:
        return nothing(np.zeros(0), f"no n has {MIN_SEEDS} finished seeds")
    entries = seeds * n * np.min([p["share"] for p in parts], axis=0)
    enough = entries * 0.5 >= BEYOND
    if not enough.any():
        return nothing(np.zeros(0), "all seeds together have too few entries here")
    tail = max(TAIL, BEYOND / float(entries[enough].min()))
    places = [thinned(p["limit"], tail) for p in parts]
    values, limit, error, control = (
        np.concatenate([p[name][..., k] for p, k in zip(parts, places, strict=True)], axis=-1)
        for name in ("values", *COMPANIONS)
    )
    if not len(limit):
        return nothing(limit, "the places of the law are too coarse")
    runs = ladder(values[enough], n[enough])
    return judge(runs, limit, np.nan_to_num(error), control, level)


def thinned(law: Array, tail: float = TAIL) -> NDArray[np.intp]:
    """Which places of a law to test: evenly in probability, with at least ``tail`` on either side.

    The law runs from near 0 to near 1 or back, shape (places,); positions increase.
    """
    levels = np.linspace(tail, 1 - tail, PLACES)
    nearest = np.unique(np.abs(law[:, None] - levels).argmin(axis=0))
    inside = (law[nearest] >= tail) & (law[nearest] <= 1 - tail)
    return np.asarray(nearest[inside])


def _described(verdict: Verdict) -> Cell:
    values = {name: getattr(verdict, name) for name in KEPT}
    values |= {
        "control_rejected": float(verdict.control_rejected),
        "n_count": float(verdict.n_count),
    }
    return {name: ((), value) for name, value in values.items()}
