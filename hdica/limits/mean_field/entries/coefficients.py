"""What steps of uncoupled entries are told: the same for all seeds of a point."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.limits.mean_field.entries.order import Order
from hdica.limits.mean_field.family import MeanField

Array = NDArray[np.float64]
_KEPT = 32
"""Runs of steps of which the coefficients are kept, of a few thousand steps each."""


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Drift and noise of the steps of 1/n in a limit whose Q and R are known."""

    field: MeanField
    order: Order
    n: int

    def told(self, first: int, last: int) -> Array:
        """Of the steps ``first`` to ``last - 1`` as far as Q and R are known: a row a step.

        The columns are those of :mod:`hdica.limits.mean_field.entries.kernels`.
        """
        return _told(self, first, last)


# By identity: whoever walks with many seeds hands the same coefficients to each of them.
@lru_cache(maxsize=_KEPT)
def _told(steps: Coefficients, first: int, last: int) -> Array:
    times = np.arange(first, last) / steps.n
    # Only what rounding adds to a time lies beyond what is known.
    end = steps.order.known * (1 + 1e-12)
    times = times[: int(np.searchsorted(times, end, side="right"))]
    q, r = steps.order.at(times)
    tau = np.broadcast_to(steps.field.schedule.value(times), times.shape)
    each = zip(q.tolist(), r.tolist(), tau.tolist(), strict=True)
    rows = [_row(steps.field, *now, n=steps.n) for now in each]
    return np.array(rows).reshape(len(rows), 4)


def _row(field: MeanField, q: float, r: float, tau: float, *, n: int) -> tuple[float, ...]:
    spread = math.sqrt(2 * field.diffusion(q, tau) / n)
    return field.pull(q, tau), field.strength(tau), field.curvature(q, r, tau), spread
