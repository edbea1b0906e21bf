"""Online ICA with several features at finite n: what both simulations take, and how they begin.

One has the overlaps alone, exact in law, eight chains in a call of the kernel; the other all n
coordinates, with features in general position.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.projected.chain import address, lane_polynomials, powers
from hdica.finite.random import LANES
from hdica.finite.random.streams import Stream
from hdica.finite.record import Observation, Track, Values, contiguous, record
from hdica.ingredients.formula import Formula
from hdica.ingredients.quadrature import dot
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.sources import Source

Array = NDArray[np.float64]
NAME = "Q"


@dataclass(frozen=True, eq=False)
class Rule:
    """x <- x - (tau/sqrt n) f(y.x/sqrt n) y, then abs(x)^2 = n, from given overlaps."""

    sources: tuple[Source, ...]  # laws of c_1 ... c_M
    nonlinearity: Formula  # f
    schedule: Schedule  # tau(t)
    start: Array  # Q at t = 0, shape (M,)

    @property
    def features(self) -> int:
        """M."""
        return len(self.sources)

    @property
    def terms(self) -> Array:
        """Coefficients of a polynomial f, the highest power first; empty for another f."""
        return powers(self.nonlinearity)

    @property
    def alike(self) -> object:
        """What chains in one call must have in common: M, and f if it is no polynomial."""
        return self.features, None if self.terms.size else self.nonlinearity.expression

    @property
    def rest(self) -> float:
        """Length of the part of x/sqrt(n) that is orthogonal to the features, at t = 0."""
        return math.sqrt(max(0.0, 1.0 - dot(self.start, self.start)))


def check_dimension(rule: Rule, n: int) -> None:
    """Refuse an n in which the features and the estimate leave no other direction."""
    if n < rule.features + 2:
        raise HdicaError(
            f"n = {n} is not allowed with {rule.features} features (n >= {rule.features + 2})"
        )


def track(rule: Rule, stream: Stream, overlaps: Callable[[], Array]) -> Track:
    """A point as the recording loop takes it: a step takes M numbers, each from its own stream."""
    rngs = [stream(f"source {j}" if j else "source") for j in range(rule.features)]

    def draw(size: int) -> Array:
        columns = [s.sample(r, size) for s, r in zip(rule.sources, rngs, strict=True)]
        return contiguous(columns[0] if len(columns) == 1 else np.stack(columns, axis=1))

    return Track(Observation(lambda: {NAME: overlaps()}), draw, rule.schedule)


def _first(rules: Sequence[Rule]) -> Array:
    """Q and s of the lanes at t = 0, shape (M + 1, LANES); one that is left over stands still."""
    state = np.zeros((rules[0].features + 1, LANES))
    state[-1] = 1.0
    for lane, rule in enumerate(rules):
        state[:, lane] = [*rule.start, rule.rest]
    return state


def run_chains(
    rules: Sequence[Rule], times: Array, n: int, streams: Sequence[Stream]
) -> list[Values]:
    """Overlaps of at most eight points, one a lane of the kernel.

    Parameters
    ----------
    rules
        Problems with equal :attr:`Rule.alike`; a chain's numbers do not depend on the others.
    times
        Shape (T,), in samples per dimension.
    n
        Dimension, at least M + 2.
    streams
        ``stream(part)`` of every point.

    Returns
    -------
    list
        For every point ``Q`` of shape (T, M), NaN after a step that was not finite; and empty, or
        why it stopped.
    """
    check_dimension(rules[0], n)
    # Imported here, because loading compiled code takes about a second.
    from hdica.finite.projected.chain_kernels import chain_steps
    from hdica.finite.random.gaussian import side_by_side

    m, state, terms = rules[0].features, _first(rules), lane_polynomials([r.terms for r in rules])
    lanes, made = side_by_side([s("noise") for s in streams]), np.zeros(LANES, dtype=np.int64)
    parameters, f = np.zeros((3, LANES)), address(rules[0].nonlinearity)
    parameters[0, : len(rules)], parameters[1] = -1.0 / n, 1.0

    def advance(source: Array, tau: Array) -> NDArray[np.int64]:
        numbers = source.reshape(-1, LANES)
        chain_steps(lanes, state, n, numbers, tau, parameters, terms, f, m, None, made)
        return made

    def one(lane: int) -> Track:
        return track(rules[lane], streams[lane], lambda: state[:m, lane].copy())

    return record(advance, [one(lane) for lane in range(len(rules))], times, n, LANES, m)


def _orthonormal(rng: np.random.Generator, count: int, n: int) -> Array:
    """Random orthonormal rows, shape (count, n), by Gram and Schmidt twice: no threads of BLAS."""
    rows = rng.standard_normal((count, n))
    for i, row in enumerate(rows):
        for other in (*rows[:i], *rows[:i]):
            row -= dot(other, row) * other
        row /= np.sqrt(dot(row, row))
    return rows


def run_vector(rule: Rule, times: Array, n: int, stream: Stream) -> Values:
    """Overlaps of one point by all n coordinates.

    Parameters
    ----------
    rule
        The problem.
    times
        Shape (T,), in samples per dimension.
    n
        Dimension, at least M + 2.
    stream
        ``stream(part)``: the generator of one part of the point.

    Returns
    -------
    tuple
        ``Q`` of shape (T, M), NaN after a step that was not finite; and empty, or why it stopped.
    """
    check_dimension(rule, n)
    # Imported here, because loading compiled code takes about a second.
    from hdica.finite.random.gaussian import lanes_of
    from hdica.finite.random.lanes import CHUNK
    from hdica.systems.several_ica.vector_kernels import several_vector_steps

    m = rule.features
    rows = _orthonormal(stream("start"), m + 1, n)
    weights = np.array([*rule.start, rule.rest])
    x = contiguous(np.sum(weights[:, None] * rows, axis=0))
    features, y, lanes = contiguous(rows[:m]), np.zeros(n + -n % CHUNK), lanes_of(stream("noise"))
    terms, f = rule.terms, address(rule.nonlinearity)

    def advance(source: Array, tau: Array) -> NDArray[np.int64]:
        numbers = source.reshape(-1, m)
        made = several_vector_steps(lanes, features, x, y, n, numbers, tau, terms, f)
        return np.full(1, made)

    def overlaps() -> Array:
        return np.array([dot(feature, x) for feature in features])

    return record(advance, [track(rule, stream, overlaps)], times, n, 1, m, n * m)[0]
