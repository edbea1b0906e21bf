"""A path of online tensorial ICA: the rule of Li and Jordan 2021, its start and its end."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.finite.random.streams import Stream
from hdica.finite.record import contiguous, not_finite
from hdica.ingredients.quadrature import dot
from hdica.ingredients.schedules import Schedule
from hdica.ingredients.sources import Source

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TensorialRule:
    """v' = Pi{v + eta sgn y^3 Z}, y = v.Z, in the coordinates v = A'u of the components.

    Pi makes a vector of length one; the data are X = A Z with orthonormal A, so that u follows the
    same rule on X. One unit of time is one step.
    """

    dimension: int  # d
    source: Source  # law of the independent Z_k
    sign: float | None  # sgn; None for the sign of the mean of y^4 - 3 so far
    schedule: Schedule  # eta of step k at t = k
    start: Callable[[np.random.Generator], Array]  # v(0), shape (d,), of length one

    @property
    def alike(self) -> Hashable:
        """What paths in one call must have in common."""
        return self.dimension, self.source


def first(rule: TensorialRule, stream: Stream) -> Array:
    """v(0), shape (d,), from the stream ``"start"``."""
    v = np.asarray(rule.start(stream("start")), dtype=float)
    if v.shape != (rule.dimension,) or not abs(dot(v, v) - 1) < 1e-9:
        raise HdicaError(
            f"start: a vector of shape {v.shape} and length {np.sqrt(np.sum(v * v)):.9g} is not "
            f"allowed (shape ({rule.dimension},) and length 1)"
        )
    return v


def sizes(schedule: Schedule, when: Array) -> Array:
    """Step sizes of steps that begin at these times."""
    if schedule.constant is not None:
        return np.full(when.shape, schedule.constant)
    return contiguous(schedule.value(when))


def sentence(step: int) -> str:
    """Why a path stopped."""
    return f"{not_finite()} at step {step} (t = {step:.6g})"
