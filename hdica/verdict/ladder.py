"""Finished runs of one grid point at several n, with their moments and pooled means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy import stats

from hdica.verdict.cells import CONFIDENCE

Array = NDArray[np.float64]

MIN_SEEDS = 6
"""An n with fewer finished seeds takes no part in any inference.

From five seeds down the estimated variances are so uncertain that false alarms at a level of
1e-4 become several times too frequent; from six on they are as rare as stated."""


@dataclass(frozen=True)
class Ladder:
    """Finished runs of one grid point: (seeds, times) for each of N increasing dimensions n.

    Seeds may differ in number between n.
    """

    n: Array
    runs: tuple[Array, ...]

    @property
    def counts(self) -> Array:
        """Number of seeds, shape (N,)."""
        return np.array([len(r) for r in self.runs], dtype=float)

    @property
    def means(self) -> Array:
        """Mean over seeds, shape (N, times)."""
        return np.array([r.mean(axis=0) for r in self.runs])

    @property
    def variances(self) -> Array:
        """Unbiased variance over seeds, shape (N, times)."""
        return np.array([r.var(axis=0, ddof=1) for r in self.runs])

    @property
    def weights(self) -> Array:
        """Number of seeds times n, shape (N,): the inverse variance of a mean up to a factor.

        The central limit theorem fixes the ratio of these weights beforehand. Estimated
        variances would make them random, and a linear combination with random weights is
        neither unbiased nor Student distributed.
        """
        return self.counts * self.n

    def __len__(self) -> int:
        return len(self.n)

    def above(self, index: int) -> Ladder:
        """The ladder without its first ``index`` dimensions."""
        return Ladder(self.n[index:], self.runs[index:])

    def from_n(self, least: float) -> Ladder:
        """The ladder from a dimension on."""
        return self.above(int(np.searchsorted(self.n, least)))

    def without(self, term: Array) -> Ladder:
        """The runs less a term C(t)/n that is known, C of shape (times,)."""
        pairs = zip(self.n.tolist(), self.runs, strict=True)
        return Ladder(self.n, tuple(run - term / n for n, run in pairs))


def ladder(values: Array, n: Array) -> Ladder:
    """The usable runs of values (N, seeds, times), NaN where a point is not done, at each n."""
    runs = [v[np.isfinite(v).all(axis=1)] for v in values]
    usable = sorted((float(k), r) for k, r in zip(n, runs, strict=True) if len(r) >= MIN_SEEDS)
    return Ladder(np.array([k for k, _ in usable]), tuple(r for _, r in usable))


def moments(values: xr.DataArray) -> xr.Dataset:
    """Mean over seeds with its standard error, standard deviation, and how many runs there are.

    ``mean``, ``sd``, ``se`` = sd/sqrt(count), each without ``seed``, and ``count``, without
    ``time`` too, of values that are NaN where a run is not finished; ``sd`` and ``se`` are NaN for
    a single run.
    """
    known = values.notnull()
    count = (known.all("time") if "time" in values.dims else known).sum("seed")
    sd = values.std("seed", ddof=1)
    se = sd / np.sqrt(count)
    return xr.Dataset({"mean": values.mean("seed"), "sd": sd, "se": se, "count": count})


def student(values: xr.DataArray) -> xr.Dataset:
    """Mean over finished seeds with its 95 % interval by Student's t; NaN without any.

    ``mean``, ``se``, ``low``, ``high``, ``sd`` and the number of ``seeds``.
    """
    seeds = values.notnull().sum("seed")
    mean, sd = values.mean("seed"), values.std("seed", ddof=1).where(seeds > 1)
    se = sd / np.sqrt(seeds.where(seeds > 0))
    score = stats.t.ppf(0.5 + CONFIDENCE / 2, np.maximum(seeds.values - 1, 1))
    half = se * xr.DataArray(score, seeds.coords, seeds.dims)
    ends = {"low": mean - half, "high": mean + half}
    return xr.Dataset({"mean": mean, "se": se, **ends, "sd": sd, "seeds": seeds})


def pooled(values: Array, errors: Array) -> tuple[float, float]:
    """Mean of measurements by their errors, with its standard error; both of shape (measurements,).

    Where they scatter more than their errors say, the error is widened by the square root of
    chi-square over its degrees of freedom. NaN without any measurement that has an error.
    """
    known = np.isfinite(values) & np.isfinite(errors) & (errors > 0)
    if not known.any():
        return float("nan"), float("nan")
    value, weight = values[known], errors[known] ** -2
    mean = float(weight @ value / weight.sum())
    chi2 = float(weight @ (value - mean) ** 2)
    dof = len(value) - 1
    widening = max(np.sqrt(chi2 / dof), 1.0) if dof else 1.0
    return mean, float(widening * weight.sum() ** -0.5)
