"""Trajectories of one grid point at several dimensions n."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

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
