"""Which single runs reach the threshold, and when."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.analysis.paths.figure import grid_of, levels
from hdica.analysis.show.choose import Point, points
from hdica.analysis.show.sentences import N, listed
from hdica.analysis.show.words import count, number, place, plural, size

TOLD = 3
"""Times that are told of one run."""
MILLION = 1e6


def paths(data: xr.Dataset) -> list[str]:
    """Which grid points reach the threshold, and where the barriers are."""
    return [*_passages(data), *_barriers(data)]


def _passages(data: xr.Dataset) -> list[str]:
    if "reached" not in data:
        return []
    there, not_there = [], []
    for cell in points(data, grid_of(data)):
        runs = _runs(data, cell)
        if not runs:
            continue
        where = f" at {place(cell).html}" if cell else ""
        if any(times.size for times in runs):
            there.append(f"{_when(data, runs)}{where}")
        else:
            not_there.append(place(cell).html)
    if not (there or not_there):
        return []
    lead = f"Within {_span(data, float(data['time'][-1]))} {size(data.attrs['variable']).html}"
    level = number(data.attrs["threshold"])
    parts = [f"reaches {level} {listed(there)}"] if there else []
    if not_there:
        never = f"at {listed(not_there)}" if any(not_there) else ""
        few = "" if there else f" {level}"
        parts.append(f"{'not' if there else 'does not reach'}{few} {never}".rstrip())
    return [f"{lead} {', and '.join(parts)}."]


def _runs(data: xr.Dataset, cell: Point) -> list[np.ndarray]:
    """Of every run that is done, the times at which its entries reach the threshold, in order."""
    out = []
    for seed in data["seed"].values:
        if not np.isfinite(data["path"].sel(cell).sel(seed=seed)).any():
            continue
        times = data["reached"].sel(cell).sel(seed=seed).values.ravel()
        out.append(np.sort(times[np.isfinite(times)]))
    return out


def _when(data: xr.Dataset, runs: list[np.ndarray]) -> str:
    """When a run reaches it, entry by entry; of several runs how many do, and the first when."""
    if len(runs) == 1:
        (times,) = runs
        shown = [_span(data, t, unit=k == min(times.size, TOLD) - 1) for k, t in enumerate(times)]
        return f"after {listed(shown[:TOLD])}"
    some = [times[0] for times in runs if times.size]
    first = _span(data, min(some))
    return f"in {count(len(some))} of {plural(len(runs), 'run')}, first after {first},"


def _span(data: xr.Dataset, time: float, unit: bool = True) -> str:
    """A time in steps, or in t where there is no n."""
    if "n" not in data.attrs:
        return f"<i>t</i> = {number(time)}"
    steps = time * data.attrs["n"]
    if steps < MILLION:
        return count(steps) + (" steps" if unit else "")
    return f"{number(steps / MILLION)}" + (" million steps" if unit else "")


def _barriers(data: xr.Dataset) -> list[str]:
    """Where the barriers are at every grid point."""
    cells = points(data, grid_of(data))
    told = [
        f"{listed([f'±{number(one)}' for one in found])}" + (f" at {place(c).html}" if c else "")
        for c in cells
        if (found := levels(data, c))
    ]
    if not told:
        return []
    where = f"At that {N}" if data.attrs["level_at_n"] else f"For {N} → ∞"
    return [f"{where} the potential is highest at {listed(told)} (dashed lines)."]
