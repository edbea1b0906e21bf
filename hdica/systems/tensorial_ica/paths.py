"""Single paths, and all d components of online tensorial ICA, each from samples of its own.

A path in the coordinates u of the data, and the error of Lemma 5 of Li and Jordan 2021. The rule
finds one component. All of them come from repeats, independent runs of which each ends at one of
the axes, until none is missing; or from deflation, one component after another, each in the
orthogonal complement of those before (Delfosse and Loubaton 1995, Signal Process. 45). Run or
component number r, from 1 on, draws its start from the part ``"start r"`` of the point's stream and
its samples from the part ``"source r"``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hdica.finite.random import LANES
from hdica.finite.random.streams import Stream
from hdica.finite.record import Values, contiguous, steps_of
from hdica.ingredients.plain import Array
from hdica.ingredients.quadrature import dot
from hdica.process.progress import check_deadline
from hdica.systems.tensorial_ica.rule import (
    TensorialRule,
    blank,
    block_of,
    draws,
    nearest_axis,
    run_together,
    sentence,
    unit,
)

Advance = Callable[[Array, Array], int]


def _law(rule: TensorialRule) -> Array:
    """The state of the sign for the kernels."""
    return np.array([0.0, rule.sign or 0.0, float(rule.sign is None)])


def _walk(
    rule: TensorialRule, times: Array, stream: Stream, advance: Advance, see: Callable[[int], None]
) -> int:
    """Blocks of steps up to every output time; the step at which ``advance`` stopped, or -1."""
    draw, done = draws(rule.source, rule.dimension, stream("source")), 0
    most = block_of(rule.dimension)
    for index, target in enumerate(steps_of(times, 1).tolist()):
        while done < target:
            check_deadline()
            stop = min(target, done + most)
            eta = contiguous(rule.schedule.value(np.arange(done, stop, dtype=float)))
            made = advance(draw(stop - done), eta)
            if made < stop - done:
                return done + made
            done = stop
        see(index)
    return -1


def run_observed(
    rule: TensorialRule,
    mixing: Array | None,
    times: Array,
    stream: Stream,
    keep: frozenset[str] = frozenset(),
) -> Values:
    """One trajectory in the coordinates of the data, u = A v, with X = A Z.

    Its start is u(0) = A v(0), with the orthonormal ``mixing`` A, shape (d, d), None for the
    identity. The same numbers as an entry of :func:`run_together`, up to rounding, and on request
    ``u``, shape (T, d).
    """
    from hdica.systems.tensorial_ica.kernels import nearest, observed_steps

    law = _law(rule)
    if mixing is None:
        transposed, u = np.zeros((0, 0)), rule.start(stream("start"))
    else:
        transposed = np.ascontiguousarray(mixing.T, dtype=float)
        u = np.sum(transposed * rule.start(stream("start"))[:, None], axis=0)
    path = blank(rule, times, keep)
    tangent, component = np.empty(1), np.empty(1)

    def see(index: int) -> None:
        v = u if mixing is None else np.array([dot(row, u) for row in transposed])
        nearest(v[:, None].copy(), tangent, component)
        now = {"tan2": tangent[0], "nearest": component[0], "update_sign": law[1], "v": v, "u": u}
        for name, values in path.items():
            values[index] = now[name]

    stopped = _walk(
        rule, times, stream, lambda z, eta: observed_steps(u, transposed, z, eta, law), see
    )
    return path, "" if stopped < 0 else sentence(stopped)


def run_vessel(rule: TensorialRule, stream: Stream, times: Array) -> Values:
    """How far a path strays from the product of its mean factors: Li and Jordan 2021, Lemma 5.

    The lemma bounds sup_t abs(U_k(t) - U_k(0) prod_s (1 - eta beta (v_m^2 - v_k^2))), U_k =
    v_k/v_m, along a path with abs(tan) <= 1/sqrt 2 to the axis m, which is the one nearest to
    v(0). It returns arrays of shape (T,), ``sup``, the mean over k != m of the running sup, which
    stops growing where the path leaves that vessel, ``sup_max``, the largest of them, and
    ``inside``, 1 until the path has left, then 0; and why it diverged, or "".
    """
    from hdica.systems.tensorial_ica.kernels import vessel_steps

    v, law = rule.start(stream("start")), _law(rule)
    m, beta = np.argmax(np.abs(v)), abs(rule.source.moment(4) - 3.0)
    expected, most = v / v[m], np.zeros(v.size)
    others = np.arange(v.size) != m
    path = {name: np.full(times.size, np.nan) for name in ("sup", "sup_max", "inside")}

    def write(places: Any, inside: bool) -> None:
        sup = most[others]
        path["sup"][places] = np.mean(sup) if sup.size else 0.0
        path["sup_max"][places] = np.max(sup) if sup.size else 0.0
        path["inside"][places] = inside

    left, stopped = dot(v[others], v[others]) > 0.5 * v[m] ** 2, 0
    if not left:
        stopped = _walk(
            *(rule, times, stream),
            lambda z, eta: vessel_steps(v, m, expected, most, z, eta, beta, law),
            partial(write, inside=True),
        )
    if stopped < 0:
        return path, ""
    if not np.all(np.isfinite(v)):
        return path, sentence(stopped)
    write(np.isnan(path["inside"]), inside=False)
    return path, ""


Counts = NDArray[np.int64]
Run = Callable[[Sequence[Stream]], Sequence[Values]]
"""Runs side by side, one a stream; of each, ``tan2`` and ``nearest`` at its end come last."""
WARM = 1 / 3
"""Squared tangent below which an iterate stays with its axis: v_m^2 > 3/4 (Li and Jordan 2021)."""


def coupon_mean(dimension: int, success: float = 1.0) -> float:
    """Expected number of runs until every axis is found, d H_d/q, about d ln d.

    A run finds an axis with probability ``success`` = q, each of them equally often, so that one of
    i missing axes takes d/(q i) runs on average.
    """
    missing = np.arange(1, dimension + 1)
    return np.sum(dimension / (success * missing))


def coupon_sd(dimension: int, success: float = 1.0) -> float:
    """Standard deviation of that number: geometric waiting times, sum_i (1 - p_i)/p_i^2.

    p_i = q i/d is the probability that a run finds one of the i axes that are missing.
    """
    p = success * np.arange(1, dimension + 1) / dimension
    return math.sqrt(np.sum((1 - p) / p**2))


def part_of(stream: Stream, number: int) -> Stream:
    """The stream of one run of a point: its part ``"source"`` is the point's ``"source 3"``."""
    return lambda part: stream(f"{part} {number}")


@dataclass(frozen=True, eq=False)
class Repeats:
    """What independent runs end at, in their order."""

    count: int
    components: Counts  # the axis that a run ends at, -1 if it is too far from it, shape (count,)
    tan2: Array  # its squared tangent, NaN after a divergence
    first_runs: Counts  # the number of the run that reaches an axis first, 0 if none, shape (d,)
    errors: Array  # its squared tangent, NaN if none

    @property
    def complete(self) -> bool:
        """Whether every axis was reached."""
        return bool(np.all(self.first_runs > 0))

    @property
    def largest(self) -> float:
        """Largest squared tangent of all axes, NaN if one is missing."""
        return np.max(self.errors)


def runs_of(rule: TensorialRule, steps: int) -> Run:
    """Runs of a rule over a number of steps, at most LANES of them side by side."""
    times = np.array([float(steps)])
    return lambda streams: run_together([rule] * len(streams), times, streams)


def repeats(run: Run, dimension: int, stream: Stream, *, most: int | None = None) -> Repeats:
    """Independent runs on fresh samples, until every axis was found.

    A run has found an axis if its squared tangent to it is at most 1/3 at the end. Runs behind the
    one that completes the axes are dropped; after ``most`` runs, None for 20 standard deviations
    more than expected, it is given up.
    """
    if most is None:
        most = math.ceil(coupon_mean(dimension) + 20 * coupon_sd(dimension))
    first_runs, errors = np.zeros(dimension, dtype=np.int64), np.full(dimension, np.nan)
    components: list[int] = []
    tan2: list[float] = []
    while len(tan2) < most and not np.all(first_runs):
        numbers = range(len(tan2) + 1, min(len(tan2) + LANES, most) + 1)
        for values, _ in run([part_of(stream, r) for r in numbers]):
            tan2.append(float(values["tan2"][-1]))
            components.append(int(values["nearest"][-1]) if tan2[-1] <= WARM else -1)
            if components[-1] >= 0 and not first_runs[components[-1]]:
                first_runs[components[-1]], errors[components[-1]] = len(tan2), tan2[-1]
            if np.all(first_runs):
                break
    axes = np.array(components, dtype=np.int64)
    return Repeats(len(tan2), axes, np.array(tan2), first_runs, errors)


@dataclass(frozen=True, eq=False)
class Deflation:
    """Components in the order in which they are extracted; NaN and -1 behind a divergence."""

    vectors: Array  # orthonormal rows v = A'u, shape (d, d)
    components: Counts  # the nearest axis of each, shape (d,)
    tan2: Array  # its squared tangent
    steps: Counts  # the first step after which that was at most 1/3, -1 if never
    diverged: str  # empty, or which component stopped, and at which step

    @property
    def complete(self) -> bool:
        """Whether every axis is near one of the vectors."""
        axes = set(self.components.tolist())
        return len(axes) == self.tan2.size and self.largest <= WARM

    @property
    def largest(self) -> float:
        """Largest squared tangent of all components."""
        return np.max(self.tan2)


def deflation(rule: TensorialRule, steps: int, stream: Stream) -> Deflation:
    """One component after another, each orthogonal to those before it.

    Component r starts uniformly on the unit sphere of the complement of components 1 to r - 1 and
    makes ``steps`` steps v' = Pi P {v + eta s y^3 Z} on samples of its own, P the projector onto
    that complement; the last one, of which only the sign is free, makes none. The start of the rule
    is not used. Errors do not add up: E tan^2 is (d - 1) eta mu6/(2 beta) for each, as of the rule
    itself.
    """
    d = rule.dimension
    basis = np.zeros((d, d + -d % LANES))  # padded for the kernel
    components, reached = np.full((2, d), -1, dtype=np.int64)
    tan2, diverged = np.full(d, np.nan), ""
    for r in range(d):
        own = part_of(stream, r + 1)
        basis[r, :d] = start_in_complement(basis[:r, :d], own("start"))
        reached[r], made = _descend(rule, steps if r < d - 1 else 0, own, basis, r)
        if made < steps and r < d - 1:
            diverged = f"component {r + 1}: {sentence(made)}"
            basis[r:] = np.nan
            break
        tan2[r], components[r] = nearest_axis(basis[r, :d])
    return Deflation(basis[:, :d].copy(), components, tan2, reached, diverged)


def start_in_complement(basis: Array, generator: np.random.Generator) -> Array:
    """A uniform unit vector orthogonal to orthonormal rows; projected twice, for all its digits."""
    v = unit(generator.standard_normal((basis.shape[1],)))
    for row in np.concatenate([basis, basis]):
        check_deadline()
        v = unit(v - np.sum(row * v) * row)
    return v


def _descend(
    rule: TensorialRule, steps: int, stream: Stream, basis: Array, r: int
) -> tuple[int, int]:
    """Run row r of the basis in the complement of those above; its first passage, steps made."""
    from hdica.systems.tensorial_ica.kernels import deflated_steps

    d, v = rule.dimension, basis[r]
    reached = np.array([0, 0 if nearest_axis(v[:d])[0] <= WARM else -1])
    learnt = np.zeros(1)

    def advance(z: Array, eta: Array) -> int:
        samples = np.pad(z, ((0, 0), (0, v.size - d)))
        rest = learnt, samples, eta, rule.sign or 0.0, WARM, reached
        return int(deflated_steps(v, basis[:r], *rest))

    _walk(rule, np.array([float(steps)]), stream, advance, lambda index: None)
    return int(reached[1]), int(reached[0])
