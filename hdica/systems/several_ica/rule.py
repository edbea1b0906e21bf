"""Online ICA with several features at finite n: what both simulations take, and how they begin."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.observe import Observation
from hdica.finite.random.streams import Stream
from hdica.finite.record import Track, contiguous
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
        found = self.nonlinearity.coefficients
        return np.empty(0) if found is None else found[::-1].copy()

    @property
    def address(self) -> int:
        """Where the kernels find f; 0 for a polynomial, which they need not call."""
        return 0 if self.terms.size else int(self.nonlinearity.compiled.address)

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
