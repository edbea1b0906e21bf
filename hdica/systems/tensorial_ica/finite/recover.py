"""All d components of online tensorial ICA, each from samples of its own.

The rule finds one component. All of them are found by repeats, independent runs of which each
finds one of the axes, until none is missing; or by deflation, one component after another, each
in the orthogonal complement of those found (Delfosse and Loubaton 1995, Signal Process. 45).
Run or component number r, from 1 on, draws its start from the part ``"start r"`` of the point's
stream and its samples from the part ``"source r"``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.random.streams import LANES, Stream
from hdica.finite.record import Values
from hdica.process.progress import check_deadline
from hdica.systems.tensorial_ica.finite.batch import nearest_axis, unit
from hdica.systems.tensorial_ica.finite.draws import draws
from hdica.systems.tensorial_ica.finite.path import TensorialRule, sentence, sizes
from hdica.systems.tensorial_ica.finite.rule import run_together

Array = NDArray[np.float64]
Counts = NDArray[np.int64]
Run = Callable[[Sequence[Stream]], Sequence[Values]]
"""Runs side by side, one a stream; of each, ``tan2`` and ``nearest`` at its end come last."""
WINDOW = 1024
"""Steps whose samples are drawn at once."""
WARM = 1 / 3
"""Squared tangent below which an iterate stays with its axis: v_m^2 > 3/4 (Li and Jordan 2021)."""


def coupon_mean(dimension: int, success: float = 1.0) -> float:
    """Expected number of runs until every axis is found, d H_d/q, about d ln d.

    Coupon collector: runs are independent, each finds an axis with probability ``success`` = q and
    each of them equally often, as a uniform start does by symmetry; i axes being missing, it takes
    on average d/(q i) runs to find one of them.
    """
    missing = np.arange(1, dimension + 1)
    return float(np.sum(dimension / (success * missing)))


def coupon_sd(dimension: int, success: float = 1.0) -> float:
    """Standard deviation of that number: geometric waiting times, sum_i (1 - p_i)/p_i^2.

    p_i = q i/d is the probability that a run finds one of the i axes that are missing.
    """
    p = success * np.arange(1, dimension + 1) / dimension
    return math.sqrt(float(np.sum((1 - p) / p**2)))


def part_of(stream: Stream, number: int) -> Stream:
    """The stream of one run of a point: its part ``"source"`` is the point's ``"source 3"``."""
    return lambda part: stream(f"{part} {number}")


@dataclass(frozen=True, eq=False)
class Repeats:
    """What independent runs found, in their order.

    ``count`` runs were made; ``components`` and ``tan2``, shape (count,), are the axis that a run
    ended at, -1 if its squared tangent was above the level, and that tangent, NaN after a
    divergence. ``found_by``, shape (d,), is the number of the run that found an axis first, 0 if
    none did, and ``errors`` its squared tangent, NaN if none did.
    """

    count: int
    components: Counts
    tan2: Array
    found_by: Counts
    errors: Array

    @property
    def complete(self) -> bool:
        """Whether every axis was found."""
        return bool(np.all(self.found_by > 0))

    @property
    def largest(self) -> float:
        """Largest squared tangent of all axes, NaN if one is missing."""
        return float(np.max(self.errors))


def runs_of(rule: TensorialRule, steps: int) -> Run:
    """Runs of a rule over a number of steps, at most LANES of them side by side."""
    times = np.array([float(steps)])
    return lambda streams: run_together([rule] * len(streams), times, streams)


def repeats(
    run: Run,
    dimension: int,
    stream: Stream,
    *,
    level: float = WARM,
    most: int | None = None,
) -> Repeats:
    """Independent runs on fresh samples, until every axis was found.

    Whether runs share a call changes nothing: those behind the one that completes the axes are
    dropped.

    Parameters
    ----------
    run
        The online rule from a start to its end, such as :func:`runs_of` gives it.
    dimension
        d.
    stream
        Random numbers of the point.
    level
        A run has found an axis if its squared tangent to it is at most this.
    most
        Runs after which to give up; None for 20 standard deviations more than expected.
    """
    if most is None:
        most = math.ceil(coupon_mean(dimension) + 20 * coupon_sd(dimension))
    found_by, errors = np.zeros(dimension, dtype=np.int64), np.full(dimension, np.nan)
    components: list[int] = []
    tan2: list[float] = []
    while len(tan2) < most and not np.all(found_by):
        numbers = range(len(tan2) + 1, min(len(tan2) + LANES, most) + 1)
        for values, _ in run([part_of(stream, r) for r in numbers]):
            tan2.append(float(values["tan2"][-1]))
            components.append(int(values["nearest"][-1]) if tan2[-1] <= level else -1)
            if components[-1] >= 0 and not found_by[components[-1]]:
                found_by[components[-1]], errors[components[-1]] = len(tan2), tan2[-1]
            if np.all(found_by):
                break
    return Repeats(
        len(tan2), np.array(components, dtype=np.int64), np.array(tan2), found_by, errors
    )


@dataclass(frozen=True, eq=False)
class Deflation:
    """Components in the order in which they were found; NaN and -1 behind a divergence.

    ``vectors``, shape (d, d), are orthonormal rows v = A'u; ``components`` and ``tan2``, shape
    (d,), the nearest axis of each and its squared tangent; ``steps``, shape (d,), the first step
    after which that was at most the level, -1 if never. ``diverged`` is empty or says which
    component stopped, and at which step.
    """

    vectors: Array
    components: Counts
    tan2: Array
    steps: Counts
    level: float
    diverged: str

    @property
    def complete(self) -> bool:
        """Whether every axis is near one of the vectors."""
        axes = set(self.components.tolist())
        return len(axes) == self.tan2.size and self.largest <= self.level

    @property
    def largest(self) -> float:
        """Largest squared tangent of all components."""
        return float(np.max(self.tan2))


def deflation(rule: TensorialRule, steps: int, stream: Stream, *, level: float = WARM) -> Deflation:
    """One component after another, each orthogonal to those before it.

    Component r starts uniformly on the unit sphere of the complement of components 1 to r - 1 and
    makes ``steps`` steps v' = Pi P {v + eta s y^3 Z} on samples of its own, with P the projector
    onto that complement, the schedule from t = 0 and, if it is estimated, the sign from nothing. Of
    the last one only the sign is free, and it makes no steps.

    All components are about equally far from their axes: with a constant step size, component r has
    the variance eta mu6/(2 beta) along every axis that is found later, as the rule itself does, and
    minus the error of that one along itself on every axis that was found before; so E tan^2 =
    (d - 1) eta mu6/(2 beta) for each, and errors do not add up.

    Parameters
    ----------
    rule
        The online rule; its own start is not used.
    steps
        Steps for each component but the last.
    stream
        Random numbers of the point.
    level
        Squared tangent whose first passage is noted, and that a component found stays below.

    Raises
    ------
    HdicaError
        If the number of steps is negative.
    """
    if steps < 0:
        raise HdicaError(f"steps = {steps} is not allowed (0 or more)")
    d = rule.dimension
    basis = np.zeros((d, d + -d % LANES))  # padded for the kernel
    components, reached = np.full((2, d), -1, dtype=np.int64)
    tan2, diverged = np.full(d, np.nan), ""
    for r in range(d):
        own = part_of(stream, r + 1)
        basis[r, :d] = start_in_complement(basis[:r, :d], own("start"))
        reached[r], made = _descend(rule, steps if r < d - 1 else 0, own, basis, r, level)
        if made < steps and r < d - 1:
            diverged = f"component {r + 1}: {sentence(made)}"
            basis[r:] = np.nan
            break
        tan2[r], components[r] = nearest_axis(basis[r, :d])
    return Deflation(basis[:, :d].copy(), components, tan2, reached, level, diverged)


def start_in_complement(found: Array, generator: np.random.Generator) -> Array:
    """A uniform unit vector orthogonal to orthonormal rows, shape (d,).

    It is projected twice, since the first time loses digits where little is left.
    """
    v = unit(generator.standard_normal((found.shape[1],)))
    rows: list[Array] = [*found, *found]
    for row in rows:
        check_deadline()
        v = unit(v - np.sum(row * v) * row)
    return v


def _descend(
    rule: TensorialRule, steps: int, stream: Stream, basis: Array, r: int, level: float
) -> tuple[int, int]:
    """Run row r of the basis in the complement of those above; its first passage, steps made."""
    from hdica.systems.tensorial_ica.finite.deflation_kernels import deflated_steps

    d, v = rule.dimension, basis[r]
    warm = nearest_axis(v[:d])[0] <= level
    reached, learnt = np.array([0, 0 if warm else -1]), np.zeros(1)
    draw = draws(rule.source, d, stream("source"))
    samples = np.zeros((min(WINDOW, steps), v.size))
    for low in range(0, steps, WINDOW):
        check_deadline()
        size = min(WINDOW, steps - low)
        samples[:size, :d] = draw(size)
        eta = sizes(rule.schedule, np.arange(low, low + size, dtype=float))
        made = deflated_steps(
            v, basis[:r], learnt, samples[:size], eta, rule.sign or 0.0, level, reached
        )
        if made < size:
            break
    return int(reached[1]), int(reached[0])
