"""The limit (17) with batches, given signs that jump and sources that move.

The mean over m samples divides what comes of the square of a step by m; sources that drift turn
away from W at their rate:

    dR/dt = mu L(R) + (mu^2/m) D(R) - drift R,

with the Sigma of the present time; a jump by a share s leaves (1 - s) R. Of all samples at once,
m infinite, nothing is left but the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from hdica.ingredients.formula import Formula
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.sources import Source
from hdica.limits.numerics.solvers import integrate
from hdica.limits.overlap.drift import CONTROL, REFINED, coarser
from hdica.systems.hebbian_ica.limit.equation_17 import Field, Parts, Path, make_field
from hdica.systems.hebbian_ica.limit.moments import Array, Numbers
from hdica.systems.hebbian_ica.motion import STILL, Motion

Rate = Callable[[Array, float], Array]


@dataclass(frozen=True, eq=False)
class Problem:
    """A limit whose right-hand side changes with time."""

    phi: Formula
    sources: tuple[Source, ...]
    schedule: Schedule
    start: Array  # R at t = 0, shape (K, M)
    batch: float = 1.0  # samples of an update, infinite for all of them
    motion: Motion = STILL

    def rate(self, signs: tuple[float, ...], rough: bool = False, factor: float = 1.0) -> Rate:
        """dR/dt as a function of R and mu for these signs, ``factor`` times what (17) says."""
        parts = _parts(signs, self.phi, self.sources, rough)

        def rate(r: Array, mu: float) -> Array:
            learning, loss = parts(r)
            flow = factor * (mu * learning + mu**2 / self.batch * loss)
            return np.asarray(flow - self.motion.drift * r)

        return rate


@lru_cache(maxsize=64)
def _field(signs: tuple[float, ...], phi: Formula, sources: tuple[Source, ...]) -> Field:
    return make_field(signs, phi, sources)


def _parts(
    signs: tuple[float, ...], phi: Formula, sources: tuple[Source, ...], rough: bool
) -> Parts:
    """L and D; a rough one of K = M = 1 is off by as much as its series may be."""
    field = _field(signs, phi, sources)
    if not rough:
        return field.parts
    alone = field.scalar
    if alone is None:
        return field.rough

    def shifted(r: Numbers) -> tuple[Numbers, Numbers]:
        learning, loss = field.parts(r)
        return learning + alone.learning_error, loss + alone.loss_error

    return shifted


def pieces(breaks: Array, end: float) -> Iterator[tuple[float, float]]:
    """Intervals between breaks inside (0, end)."""
    edges = [0.0, *sorted({float(b) for b in breaks if 0 < b < end}), end]
    return pairwise(edges)


def from_time(schedule: Schedule, low: float) -> Schedule:
    """The same step size on a clock that starts at ``low``."""
    breaks = tuple(b - low for b in schedule.breaks if b > low)
    return Schedule(lambda t: schedule.value(t + low), schedule.constant, breaks)


def left_at(motion: Motion, time: float) -> float:
    """What a jump at a time leaves of R: 1 where there is none."""
    found = [left for t, left in zip(motion.times, motion.left, strict=True) if t == time]
    return found[0] if found else 1.0


def solve_steps(problem: Problem, jumps: Array, signs: Array, times: Array) -> Path:
    """The limit with signs (J + 1, K) that jump at J times, at increasing times (T,)."""

    def march(tolerance: float, rough: bool, factor: float) -> tuple[Array, float]:
        now, used = problem.start, tolerance
        found = np.empty((times.size, *now.shape))
        found[times <= 0] = now
        breaks = np.concatenate([jumps, problem.motion.times])
        for low, high in pieces(breaks, float(times[-1])):
            row = signs[np.searchsorted(jumps, low, side="right")]
            rate = problem.rate(tuple(row.tolist()), rough, factor)
            inside = (times > low) & (times <= high)
            asked = np.append(times[inside], high) - low
            begin = from_time(problem.schedule, low)
            states, close = integrate(rate, begin, now, asked, tolerance)
            found[inside] = states[:-1]
            now, used = states[-1] * left_at(problem.motion, high), max(used, close)
        return found, used

    fine, close = march(REFINED, False, 1.0)
    step = coarser(close)
    coarse, _ = march(step, True, 1.0)
    wrong, _ = march(step, True, CONTROL)
    return Path(fine, np.abs(fine - coarse) + close, wrong)
