"""Particles whose feature moves: some of them take each other's places."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Lots:
    """Who takes part in an exchange, and in which order, each of shape (count,).

    A particle takes part in one of a share above its lot, so that a later exchange holds an earlier
    one.
    """

    lots: Array
    order: NDArray[np.int64]

    def exchanged(self, z: Array, share: float) -> Array:
        """Each particle that takes part goes to the feature's entry of the next one."""
        chosen = self.order[self.lots[self.order] < share]
        found = z.copy()
        found[chosen] = z[np.roll(chosen, 1)]
        return found


def drawn(rng: np.random.Generator, count: int) -> Lots:
    """New lots."""
    return Lots(rng.random(count), rng.permutation(count))


def share_of(rate: float, dt: float) -> float:
    """Share of the entries that have changed places after a time."""
    return -math.expm1(-rate * dt)
