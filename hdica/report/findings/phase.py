"""What the phase diagram says."""

from __future__ import annotations

import numpy as np
import xarray as xr

from hdica.report.choose import spread
from hdica.report.figures.phase import critical_symbol, critical_values
from hdica.report.findings.sentences import N, listed
from hdica.report.words import count, number, place, symbol


def phase(data: xr.Dataset) -> list[str]:
    """Sentences on where learning stops."""
    side, beyond = ("up to", "") if data.attrs["x"] == "tau" else ("from", " on")
    out = []
    for value, overlap in critical_values(data):
        critical = critical_symbol(data).html
        out.append(
            f"In theory learning is possible {side} {critical} = {number(value, 6)}{beyond}, "
            f"where the informative fixed points meet at <i>Q</i> = {number(overlap, 4)}."
        )
    out += _agreement(data)
    return out + (_boundary(data) if "threshold" in data else [])


def _agreement(data: xr.Dataset) -> list[str]:
    if "agreement_share" not in data:
        return []
    share = float(data["agreement_share"].isel(n=-1))
    cells = int(np.prod([data.sizes[d] for d in data["agreement"].dims if d != "n"]))
    if not np.isfinite(share):
        return []
    return [
        f"At {N} = {count(data['n'].values[-1])} and <i>t</i> = {number(data.attrs['time'])} the "
        f"majority of seeds is on the limit's side in {number(100 * share, 4)} % of "
        f"{count(cells)} cells{_over_seeds(data)}."
    ]


def _over_seeds(data: xr.Dataset) -> str:
    """Interval of the share of cells, where they share seeds."""
    if "agreement_share_low" not in data:
        return ""
    ends = [number(100 * float(data[f"agreement_share_{k}"][-1]), 4) for k in ("low", "high")]
    return f" (95 % interval over seeds, which the cells share: {ends[0]} … {ends[1]} %)"


def _boundary(data: xr.Dataset) -> list[str]:
    """Measured against theoretical start with even odds, at a few values of x."""
    x, y = data.attrs["x"], data.attrs["y"]
    last = data.isel({d: -1 for d in data["threshold"].dims if d != x})
    found, error = last["threshold"].values, last["threshold_se"].values
    theory = last["boundary"].values if "boundary" in last else np.full_like(found, np.nan)
    keep = np.flatnonzero(np.isfinite(found))
    if not len(keep):
        return []
    parts = []
    for k in (int(keep[i]) for i in spread(len(keep), 3)):
        here = f"{number(found[k])} ± {number(error[k], 1)}"
        if y == "Q0" and np.isfinite(theory[k]):
            what = "boundary" if data.attrs.get("divides", 1) else "unstable state"
            here += f" ({what} {symbol('Q_u').html} = {number(theory[k])})"
        parts.append(f"{here} at {place({x: last[x].values[k]}).html}")
    return [
        f"At {N} = {count(data['n'].values[-1])} half of the seeds succeed from "
        f"{symbol(y).html} = {listed(parts)}.",
        *_shift(last, x, y),
    ]


def _shift(last: xr.Dataset, x: str, y: str) -> list[str]:
    """How far the start with even odds moves between neighbouring values of x, seed by seed."""
    if "threshold_shift" not in last:
        return []
    shift, error = last["threshold_shift"].values, last["threshold_shift_se"].values
    keep = np.flatnonzero(np.isfinite(error))
    if not len(keep):
        return []
    parts = [
        f"{number(shift[k], 2)} ± {number(error[k], 1)} up to {place({x: last[x].values[k]}).html}"
        for k in (int(keep[i]) for i in spread(len(keep), 3))
    ]
    return [
        f"From one {symbol(x).html} to the next this {symbol(y).html} moves, seed by seed, by "
        f"{listed(parts)}."
    ]
