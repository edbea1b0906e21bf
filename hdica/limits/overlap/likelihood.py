"""Likelihood of an overlap that was measured at several times.

Its differences from the limit, x_j at t_j, are a Markov chain: given the one before, x_j is normal
with mean phi_j x_{j-1} and variance (S_j - phi_j^2 S_{j-1})/n, where phi_j = exp int D'(Q) dt from
t_{j-1} to t_j and S = n Var Q. To leading order in 1/n this is exact.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from hdica.ingredients.plain import Array
from hdica.ingredients.schedules import Schedule
from hdica.limits.numerics.compiled import overlap_rhs
from hdica.limits.numerics.series import packed
from hdica.limits.numerics.solvers import integrate
from hdica.limits.overlap.drift import Drift, packed_flow

_TOLERANCE = 1e-8
_STILL = 1e-12
"""Variance of a step between two times, as a share of the largest, below which nothing varies."""


class Chain(NamedTuple):
    """The chain of the differences, each array of shape (T,): its limit, phi_j and n Var x_j.

    The last is that of a step, given the difference before.
    """

    q: Array
    kept: Array
    variance: Array

    def residuals(self, curves: Array, n: int) -> Array:
        """Independent normal numbers of variance 1, if the curves, (..., T), are of this chain.

        NaN at times at which nothing varies.
        """
        x = curves - self.q
        before = np.concatenate([np.zeros((*x.shape[:-1], 1)), x[..., :-1]], axis=-1)
        varies = self.variance > _STILL * self.variance.max(initial=0.0)
        scale = np.sqrt(np.where(varies, self.variance, np.nan) / n)
        return np.asarray((x - self.kept * before) / scale)

    def log_likelihood(self, curves: Array, n: int) -> float:
        """The logarithm of the density of all curves at their times."""
        z = self.residuals(curves, n)
        scale = np.broadcast_to(np.sqrt(2 * math.pi * self.variance / n), z.shape)
        seen = np.isfinite(z)
        return float(-np.sum(z[seen] ** 2) / 2 - np.sum(np.log(scale[seen])))


def chain(drift: Drift, schedule: Schedule, q0: float, spread0: float, times: Array) -> Chain:
    """The chain at increasing times from Q and n Var Q at t = 0, for a drift with a noise."""
    assert drift.noise is not None
    coefficients = [*packed_flow(drift), *(packed(series) for series in drift.noise)]
    out, probe = np.empty(2), np.zeros(2)

    def rate(state: Array, tau: float) -> Array:
        probe[:] = state[0], 0.0
        overlap_rhs(tau, probe, 1.0, *coefficients, out)
        moved, noise = out
        probe[1] = 0.5
        overlap_rhs(tau, probe, 1.0, *coefficients, out)
        slope = out[1] - noise
        return np.array([moved, 2 * slope * state[1] + noise, slope])

    begin = np.array([q0, spread0, 0.0])
    q, spread, grown = integrate(rate, schedule, begin, times, _TOLERANCE).states.T
    kept = np.exp(np.diff(grown, prepend=grown[0]))
    before = np.concatenate([[0.0], spread[:-1]])
    kept[0] = 0.0  # nothing before
    return Chain(q, kept, np.maximum(spread - kept**2 * before, 0.0))
