"""The predicted probability of success in every cell of a phase diagram, at its n."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import special, stats

from hdica.analysis.reading import finished
from hdica.analysis.show.panel import Line
from hdica.analysis.show.sentences import among, at_size
from hdica.analysis.show.words import count, number, place, words

Array = NDArray[np.float64]
LONG_NAMES = {
    "odds": "predicted probability that a run succeeds",
    "odds_p": "p-value of the share of runs beside the predicted probability",
    "odds_chance": "chance that this p-value is below 0.05 if the prediction is right",
}
LEVEL = 0.05
"""Of a cell's own interval."""
SHOWN, DASHES_OF_LEVELS = (0.1, 0.9), ("dot", "dash")
_ALIKE = 1e-7


def odds(theory: xr.Dataset, out: xr.Dataset) -> xr.Dataset:
    """The prediction in the cells of a diagram, and how the shares of runs lie beside it."""
    share = out["probability"]
    _, known = xr.align(share, finished(theory, "predicted").reset_coords(drop=True), join="left")
    known = known.broadcast_like(share).transpose(*share.dims)
    p, chance = np.full(share.shape, np.nan), np.full(share.shape, np.nan)
    trials = out["trials"].transpose(*share.dims).values
    hits = out["successes"].transpose(*share.dims).values
    for many in np.unique(trials[trials > 0]):
        cells = (trials == many) & np.isfinite(known.values) & np.isfinite(share.values)
        p[cells], chance[cells] = _beside(hits[cells], int(many), known.values[cells])
    found = {"odds": known, "odds_p": share.copy(data=p), "odds_chance": share.copy(data=chance)}
    return xr.Dataset(found)


def _beside(hits: Array, many: int, p0: Array) -> tuple[Array, Array]:
    """Exact two-sided p-values of shares, and the chance that such a one is below the level."""
    mass = stats.binom.pmf(np.arange(many + 1), many, p0[:, None])
    # As improbable or more: the sum of all that are, for each number of successes.
    less = mass[:, None, :] <= mass[:, :, None] * (1 + _ALIKE)
    every = np.minimum(np.sum(np.where(less, mass[:, None, :], 0.0), axis=2), 1.0)
    chance = np.sum(np.where(every < LEVEL, mass, 0.0), axis=1)
    return every[np.arange(hits.size), hits.astype(int)], chance


def lines(here: xr.Dataset) -> list[Line]:
    """Where the predicted probability is 0.1 and 0.9, between which noise decides."""
    if "odds" not in here:
        return []
    x, y = str(here.attrs["x"]), str(here.attrs["y"])
    at: Array = here[x].values.astype(float)
    out: list[Line] = []
    for level, dash in zip(SHOWN, DASHES_OF_LEVELS, strict=True):
        cross = np.array([_crossing(here["odds"].isel({x: k}), y, level) for k in range(at.size)])
        if np.isfinite(cross).any():
            label = words(f"predicted probability {number(level)}")
            out.append(Line(at, cross, label, "#d55e00", dash))
    return out


def _crossing(share: xr.DataArray, y: str, level: float) -> float:
    """Where a share that rises along y passes a level, linear in its normal score."""
    known = share.sortby(y).dropna(y)
    at, p = known[y].values.astype(float), known.values
    after = np.flatnonzero((p[:-1] < level) & (p[1:] >= level)) if p.size > 1 else np.empty(0)
    if not after.size:
        return float("nan")
    k = int(after[0])
    low, high = special.ndtri(np.clip(p[k : k + 2], 1e-12, 1 - 1e-12))
    part = (special.ndtri(level) - low) / (high - low)
    return float(at[k] + part * (at[k + 1] - at[k]))


def curve(cut: xr.Dataset, y: str, color: str) -> list[Line]:
    """The prediction along y."""
    if "odds" not in cut or not bool(cut["odds"].notnull().any()):
        return []
    at = cut[y].values.astype(float)
    label = words("predicted probability")
    return [Line(at, cut["odds"].values, label, color, "dot", listed=False)]


def sentence(data: xr.Dataset) -> list[str]:
    """In how many cells the share of runs is off the prediction beyond its error."""
    if "odds" not in data:
        return []
    last = data.isel(n=-1) if "n" in data["odds_p"].dims else data
    p, chance = last["odds_p"], last["odds_chance"]
    cells = int(p.notnull().sum())
    if not cells:
        return []
    off, expected = int((p < LEVEL).sum()), float(chance.sum())
    least = float(p.min()) * cells
    text = (
        f"{at_size(last, 'the share of runs')} differs from the predicted probability beyond its "
        f"95 % error in {count(off)} of {count(cells)} cells, where {number(expected, 2)} would by "
        f"chance"
    )
    if least >= 1:
        return [f"{text}."]
    worst = p.argmin(...)
    where = p.isel({str(d): int(k) for d, k in worst.items()})
    at = {str(d): where[d].item() for d in p.dims}
    here = last.sel(at)
    return [
        f"{text}; the farthest off{among()} is {number(float(here['probability']), 3)} beside "
        f"{number(float(here['odds']), 3)} at {place(at).html} (p = {number(least, 2)} among all)."
    ]
