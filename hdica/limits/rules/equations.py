"""The limit of a rule of K estimates and M features: equations of R and P, and their path.

With D = <F u'> + <u F'> + <F F'> - lambda P - P lambda,

    dR/dt = <F v'> - lambda R - B R,      dP/dt = D - B P - P B',

where B keeps what the rule normalises: 0 of a free norm, diag(D)/2 of every norm by itself, D/2 of
the symmetric orthonormalisation, and the part of D below its diagonal with half of that of Gram
and Schmidt (the last two for P = 1).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy as sp

from hdica.ingredients import switches
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import gram, root_of
from hdica.ingredients.schedules import Schedule
from hdica.limits.numerics.solvers import integrate
from hdica.limits.rules.averages import (
    FIRST,
    MOST_POINTS,
    REPLICATES,
    Averages,
    Means,
    Sample,
)
from hdica.limits.rules.points import LEVELS

FINE, COARSE, LOOSE, JUMPING = 1e-12, 1e-10, 1e-7, 1e-4
CONTROL = 1.02
"""Factor by which the equations of the negative control are wrong."""
GOAL = 1e-8
"""Difference of two levels of refinement from which averages are refined no more."""
SAFETY = 3.0
"""How many differences of the last two levels an error is taken for."""
QUANTILE = 3.5
"""Standard errors of the mean of eight replicates that hold 99 % of it (Student)."""


@dataclass(frozen=True, eq=False)
class Equations:
    """A rule in the limit."""

    sample: Sample
    shrinkage: Array
    """lambda_k of psi_k(x) = -lambda_k x, shape (K,)."""
    normalise: str
    """One of :data:`hdica.ingredients.update.NORMALISATIONS`."""
    step: Schedule | None = None
    """tau(t), by which an update without t is multiplied."""

    @property
    def shape(self) -> tuple[int, int]:
        """K and M."""
        return len(self.sample.update.u), len(self.sample.update.v)

    @cached_property
    def restored(self) -> Array:
        """B/D: the share of what a step adds to each product that the rule takes away."""
        estimates = self.shape[0]
        if self.normalise == "none":
            return np.zeros((estimates, estimates))
        if self.normalise == "symmetric":
            return np.full((estimates, estimates), 0.5)
        half = np.eye(estimates) / 2
        return half if self.normalise == "norm" else half + np.tri(estimates, k=-1)

    def joined(self, r: Array, p: Array) -> Array:
        """R and P as one state, shape (K, M + K)."""
        return np.concatenate([r, p], axis=1)

    def split(self, state: Array) -> tuple[Array, Array]:
        """R and P of a state of shape (K, M + K)."""
        features = self.shape[1]
        r, p = state[:, :features], state[:, features:]
        return r, p if len(p) == 1 else (p + p.T) / 2

    def within(self, state: Array) -> Array:
        """A state, or one nearby where no estimates have its P.

        Two estimates that have become one, or one that is the feature, are at the edge of what
        there is; beyond it, where rounding leads, equations may lead away.
        """
        r, p = self.split(state)
        root = root_of(p - gram(r))
        return state if np.all(np.diag(root) > 0) else self.joined(r, gram(r) + gram(root))

    def means(self, averages: Averages, state: Array, t: float) -> Means:
        """The averages at a state and a time, or for a rule with a step size at its value."""
        return self._means(averages, *self.split(state), t)

    def _means(self, averages: Averages, r: Array, p: Array, t: float) -> Means:
        if self.step is None:
            return averages.at(r, p, t)
        of_one = averages.at(r, p, 0.0)
        return Means(t * of_one.v, t * of_one.u, t * t * of_one.square)

    def rate(self, averages: Averages, state: Array, t: float) -> Array:
        """d(R, P)/dt at a state of shape (K, M + K); ``t`` as in :meth:`means`."""
        r, p = self.split(state)
        return self.joined(*self.rates(self._means(averages, r, p, t), r, p))

    def rates(self, means: Means, r: Array, p: Array) -> tuple[Array, Array]:
        """dR/dt and dP/dt, given the averages."""
        shrinks = self.shrinkage[:, None]
        d = means.u + means.u.T + means.square - shrinks * p - p * shrinks.T
        back = self.restored * d
        return means.v - shrinks * r - back @ r, d - back @ p - p @ back.T

    @property
    def clock(self) -> Schedule:
        """The step size where there is one, else the time itself."""
        return self.step or Schedule(lambda t: np.asarray(t), None, self.breaks)

    @property
    def breaks(self) -> tuple[float, ...]:
        """Times at which the update switches."""
        update = self.sample.update
        atoms = (one.atoms(*switches.SWITCHES) for one in update.expressions)
        decided = (switches.decides(switch) for switch in set().union(*atoms))
        in_time = (one for one in decided if one.free_symbols == {update.t})
        times = {t for one in in_time for t in switches.kinks_of(sp.Abs(one), update.t)}
        return tuple(sorted(t for t in times if t > 0))


@dataclass(frozen=True)
class Path:
    """The limit at the output times: arrays of shape (T, K, M + K), R and then P.

    ``error`` is the difference to a run at the level of refinement before and of a hundred times
    coarser tolerance, or of replicates what their scatter leaves open; ``control`` the same limit
    with its rates wrong by 2 %.
    """

    state: Array
    error: Array
    control: Array


def follow(equations: Equations, r: Array, p: Array, times: Array) -> Path:
    """R and P at increasing times from those of the start."""
    start = equations.joined(r, p)
    clock = equations.clock

    def solved(level: int, tolerance: float, factor: float = 1.0) -> tuple[Array, float]:
        averages = Averages(equations.sample, level)
        return integrate(
            lambda state, t: factor * equations.rate(averages, equations.within(state), t),
            clock,
            start,
            times,
            tolerance,
        )

    sample = equations.sample
    if sample.is_random:
        # Means over fixed points jump where one of them comes to the other side of a switch.
        step = JUMPING if sample.update.factors else LOOSE
        runs = np.array([solved(replicate, step)[0] for replicate in range(REPLICATES)])
        error = QUANTILE * runs.std(axis=0, ddof=1) / np.sqrt(REPLICATES)
        return Path(runs.mean(axis=0), error + 3 * step, solved(0, step, CONTROL)[0])
    if sample.is_known:
        fine, close = solved(0, FINE)
        step = max(COARSE, close)
        error = np.abs(fine - solved(0, step)[0]) + close
        return Path(fine, error, solved(0, step, CONTROL)[0])
    level = FIRST
    state, close = solved(level, FINE)
    loose = np.abs(state - solved(level, max(COARSE, close))[0]) + close
    while True:
        level += 1
        before, (state, close) = state, solved(level, FINE)
        gap = np.abs(state - before)
        last = level == LEVELS - 1 or sample.size(level + 1) > MOST_POINTS
        if gap.max() < GOAL or last:
            break
    return Path(state, SAFETY * gap + loose + close, solved(FIRST, COARSE, CONTROL)[0])
