"""Errors without a model: of quantiles, and of what is put together from points that share noise.

With ``noise: shared`` points of equal n and seed see the same noise whatever their parameters, so
that cells of the grid are not independent: what is put together from several of them has an honest
error only if a seed is left out, or drawn again, in all of them at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import xarray as xr
from scipy import stats

from hdica.verdict.cells import CONFIDENCE, Array

RESAMPLES = 1000
AT_ONCE = 2**20
"""Numbers in the resamples that are held at a time."""


def shares_noise(data: xr.Dataset) -> bool:
    """Whether points of equal n and seed share their noise; not in stores that do not say so."""
    return str(data.attrs.get("noise", "own")) == "shared"


def jackknife_error(without: xr.DataArray, seeds: xr.DataArray) -> xr.DataArray:
    """Standard error of a statistic from its values ``without`` one seed at a time, over ``seed``.

    For statistics that are linear in means over seeds it is exact. ``seeds`` is how many of them
    take part: the others change nothing when they are left out.
    """
    deviation = without - without.mean("seed", skipna=False)
    # A seed without any run leaves the statistic of all, whose deviation is the mean's rounding.
    return ((seeds - 1) / seeds * (deviation**2).sum("seed", skipna=False)) ** 0.5


def resampled_shares(success: xr.DataArray, finished: xr.DataArray) -> Iterator[xr.DataArray]:
    """Shares of successes among seeds drawn with replacement, the same seeds in all cells.

    Over ``resample`` and the cells: together 1000 resamples, always the same. A seed that is not
    finished in a cell is not counted there.
    """
    arrays = [a.transpose("seed", ...).astype(float) for a in (success & finished, finished)]
    seeds, cells = arrays[0].sizes["seed"], arrays[0].isel(seed=0, drop=True)
    draws = np.random.default_rng(0).multinomial(seeds, np.full(seeds, 1 / seeds), RESAMPLES)
    parts = min(RESAMPLES, -(-RESAMPLES * max(cells.size, 1) // AT_ONCE))
    for some in np.array_split(draws, parts):
        # Sums of whole numbers have the same bits in any order.
        hits, trials = (np.tensordot(some.astype(float), a.values, 1) for a in arrays)
        share = np.divide(hits, trials, out=np.full_like(hits, np.nan), where=trials > 0)
        yield xr.DataArray(share, cells.coords, ("resample", *cells.dims))


def interval(resampled: Array) -> tuple[Array, Array]:
    """Ends of the 95 % percentile interval along the first axis."""
    low, high = np.quantile(resampled, [0.5 - CONFIDENCE / 2, 0.5 + CONFIDENCE / 2], axis=0)
    return low, high


def resampled(values: Array, statistic: Callable[..., Any], shared: bool) -> Array:
    """A statistic of seeds drawn with replacement in every cell, always the same 1000 draws.

    Deviations from the statistic itself are enlarged in their logarithms by sqrt(m/(m - 1)) for m
    seeds in a cell, without which the variance of few is too small.

    Parameters
    ----------
    values
        Shape (cells, seeds), NaN where a seed is not finished; at least two are finished in every
        cell, and the statistic of each cell is positive.
    statistic
        ``statistic(values, axis)`` ignores NaN, such as :func:`numpy.nanmedian`.
    shared
        Whether the same seeds are drawn in all cells, because they share their noise.

    Returns
    -------
    array
        Logarithms of the statistic, shape (resamples, cells); NaN where it is not positive or not
        finite.
    """
    rng = np.random.default_rng(0)
    seeds = values.shape[1]
    common = rng.integers(seeds, size=(RESAMPLES, seeds)) if shared else None
    redrawn = np.empty((RESAMPLES, len(values)))
    for k, row in enumerate(values):
        done = row if shared else row[~np.isnan(row)]
        draws = rng.integers(done.size, size=(RESAMPLES, done.size)) if common is None else common
        parts = min(RESAMPLES, -(-draws.size // AT_ONCE))
        drawn = [statistic(done[some], axis=1) for some in np.array_split(draws, parts)]
        redrawn[:, k] = np.concatenate(drawn)
    center, count = statistic(values, axis=1), (~np.isnan(values)).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.log(np.where((redrawn > 0) & np.isfinite(redrawn), redrawn, np.nan))
    return np.log(center) + (logs - np.log(center)) * np.sqrt(count / (count - 1))


@dataclass(frozen=True, eq=False)
class Quantile:
    """A quantile with its 95 % interval and standard error, each of the same shape.

    Ends that the runs do not bound are infinite, and the error is NaN.
    """

    value: Array
    low: Array
    high: Array
    error: Array


def quantile(ordered: Array, share: float) -> Quantile:
    """Quantile of values that increase along the first axis, infinite values included.

    The interval is between two order statistics, whose ranks are binomial quantiles: it covers with
    at least 95 % whatever the (continuous) law (Thompson 1936). The standard error is the width of
    the interval over twice the normal quantile of the chance with which it does cover.
    """
    many = len(ordered)
    if many == 0:
        nothing = np.full(ordered.shape[1:], math.nan)
        return Quantile(nothing, nothing, nothing, nothing)
    below, above, reach = _ranks(many, share)
    whole = round(many * share, 9)
    first = max(math.ceil(whole) - 1, 0)
    second = min(first + (whole == math.floor(whole)), many - 1)
    value = (ordered[first] + ordered[second]) / 2
    low = ordered[below] if below >= 0 else np.full_like(value, -math.inf)
    high = ordered[above] if above < many else np.full_like(value, math.inf)
    with np.errstate(invalid="ignore"):
        width = high - low  # NaN where both ends are infinite or nothing is covered
        error = np.where(np.isfinite(width), width / (2 * reach), math.nan)
    return Quantile(value, low, high, error)


@cache
def _ranks(many: int, share: float) -> tuple[int, int, float]:
    """Indices of the ends (-1 and ``many`` for none) and the normal quantile of their coverage."""
    tail, law = (1 - CONFIDENCE) / 2, stats.binom(many, share)
    lower, upper = int(law.ppf(tail)), int(law.ppf(1 - tail)) + 1
    covered = float(law.cdf(upper - 1) - (law.cdf(lower - 1) if lower > 0 else 0.0))
    return lower - 1, upper - 1, float(stats.norm.isf((1 - covered) / 2))


def share_interval(hits: Array, many: Array | int) -> tuple[Array, Array]:
    """Ends of the exact 95 % interval of a chance, by Clopper and Pearson (1934).

    ``hits`` of ``many`` runs, any shape; NaN where either is.
    """
    tail = (1 - CONFIDENCE) / 2
    low = stats.beta.ppf(tail, np.maximum(hits, 1), many - hits + 1)
    high = stats.beta.isf(tail, hits + 1, np.maximum(many - hits, 1))
    return np.where(hits == 0, 0.0, low), np.where(hits == many, 1.0, high)
