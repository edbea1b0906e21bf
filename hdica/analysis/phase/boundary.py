"""What a phase diagram says of its boundary: measured against theory."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from markupsafe import escape
from scipy import stats

from hdica.analysis.phase.figure import unstable_symbol
from hdica.analysis.show.choose import evenly
from hdica.analysis.show.sentences import N, among, at_size, listed
from hdica.analysis.show.words import number, p_value, place, symbol, with_error
from hdica.analysis.terms import starts
from hdica.verdict.cells import CLEAR, CONTROL, DIFFERS, LEVEL, UNDECIDED, judged


@dataclass(frozen=True)
class Gaps:
    """The measured less the theoretical boundary, over the values of x at which both are known.

    ``z`` is their distance in standard errors; ``mean`` and ``error`` are NaN where points share
    their noise; ``p`` is the chance of gaps this large if the boundary lies where theory puts it,
    and ``verdict`` compares them with a boundary that is off by :data:`CONTROL`.
    """

    z: np.ndarray
    mean: float
    error: float
    p: float
    verdict: str


def gaps(data: xr.Dataset) -> Gaps | None:
    """Distances between both boundaries; None where fewer than two are known."""
    divides = data.attrs["y"] in starts() and data.attrs["divides"]
    if not divides or "boundary" not in data:
        return None
    last = data.isel({d: -1 for d in data["threshold"].dims if d != data.attrs["x"]})
    gap, error = (last["threshold"] - last["boundary"]).values, last["threshold_se"].values
    if gap.ndim != 1:
        return None
    known = np.isfinite(gap) & (error > 0)
    many = int(known.sum())
    if many < 2:
        return None
    z, margin = gap[known] / error[known], CONTROL * np.abs(last["boundary"].values[known])
    if data.attrs["noise"] == "shared":  # no plain error of what is put together from such points
        p = min(1.0, many * 2 * float(stats.norm.sf(np.abs(z).max())))
        return Gaps(z, np.nan, np.nan, p, judged(gap[known], error[known], margin).whole)
    weight = 1 / error[known] ** 2
    mean, se = float(weight @ gap[known] / weight.sum()), float(weight.sum() ** -0.5)
    p = float(stats.chi2.sf((z**2).sum(), many))
    # The gaps are as large as chance allows, and their mean is within the margin.
    verdict = judged(np.array([mean]), np.array([se]), float(margin.min())).whole
    if p < LEVEL:
        verdict = DIFFERS if p < LEVEL / CLEAR else UNDECIDED
    return Gaps(z, mean, se, p, verdict)


def agreement(data: xr.Dataset) -> list[str]:
    """Whether the boundary lies where theory puts it, over all x at which both are known."""
    found = gaps(data)
    return [] if found is None else _against(data, found)


def boundary(data: xr.Dataset) -> list[str]:
    """Start with even odds at a few values of x, beside the theoretical one."""
    x, y = data.attrs["x"], data.attrs["y"]
    last = data.isel({d: -1 for d in data["threshold"].dims if d != x})
    found, error = last["threshold"].values, last["threshold_se"].values
    theory = last["boundary"].values if "boundary" in last else np.full_like(found, np.nan)
    keep = np.flatnonzero(np.isfinite(found))
    if not len(keep):
        return []
    parts = []
    for k in evenly(keep.tolist(), 3):
        here = with_error(float(found[k]), float(error[k]))
        if y in starts() and np.isfinite(theory[k]):
            what = "boundary" if data.attrs["divides"] else "unstable state"
            here += f" ({what} {unstable_symbol(data).html} = {number(theory[k])})"
        parts.append(f"{here} at {place({x: last[x].values[k]}).html}")
    return [
        at_size(data, f"half of the seeds succeed from {symbol(y).html} = {listed(parts)}."),
        *_shift(last, x, y),
    ]


def _against(data: xr.Dataset, found: Gaps) -> list[str]:
    """The sentence for the gaps between both."""
    p, many = found.p, len(found.z)
    if np.isfinite(found.mean):
        size = f"the difference is {with_error(found.mean, found.error)} on average"
    else:
        apart = number(float(np.abs(found.z).max()), 2)
        size = f"they are at most {apart} standard errors apart"
    test = f"{escape(p_value(p))} for all {many} values of {symbol(data.attrs['x']).html}{among()}"
    q_u = unstable_symbol(data).html
    where = "at" if p >= LEVEL else "off"
    told = f"learning begins {where} the boundary {q_u} of theory: {size} ({test})"
    if p < LEVEL and "n" in data.dims:
        n = float(data["n"].values[-1])
        told += (
            f"; noise decides within a distance of order {N}<sup>−1/2</sup> = {number(n**-0.5, 2)} "
            f"of {q_u}"
        )
    return [at_size(data, f"{told}.")]


def _shift(last: xr.Dataset, x: str, y: str) -> list[str]:
    """How far the start with even odds moves between neighbouring values of x, seed by seed."""
    if "threshold_shift" not in last:
        return []
    shift, error = last["threshold_shift"].values, last["threshold_shift_se"].values
    keep = np.flatnonzero(np.isfinite(error))
    if not len(keep):
        return []
    parts = [
        f"{with_error(float(shift[k]), float(error[k]))} up to {place({x: last[x].values[k]}).html}"
        for k in evenly(keep.tolist(), 3)
    ]
    return [
        f"From one {symbol(x).html} to the next this {symbol(y).html} moves, seed by seed, by "
        f"{listed(parts)}."
    ]
