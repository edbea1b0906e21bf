"""Steps of uncoupled entries: (15) of Wang and Lu 2017.

    z_{k+1} = z_k + Gamma(z_k, xi, Q_{k/n}, R_{k/n})/n + sqrt(Lambda(Q_{k/n})/n) w_k

for each entry by itself, with Q and R given and w_k independent standard normal numbers: Euler's
method for dZ = Gamma dt + sqrt(Lambda) dB with steps of 1/n, where Lambda = 2 g.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from hdica.limits.mean_field.entries.order import Order
from hdica.limits.mean_field.family import MeanField
from hdica.limits.mean_field.particles.step import Cloud, velocity

Array = NDArray[np.float64]
_RUN = 4096


def first_entries(field: MeanField, xi: Array, rng: np.random.Generator) -> Array:
    """Entries at t = 0, shape (n,): independent of each other given the feature ``xi``."""
    mean, variance = field.start.conditional(xi)
    return np.asarray(mean + math.sqrt(variance) * rng.standard_normal(xi.size))


@dataclass(frozen=True, eq=False)
class Walk:
    """Entries ``z``, shape (n,) as the feature ``xi``, which are changed in place.

    ``order`` are Q and R that they are told, ``n`` is how many steps they make a unit of time, and
    ``draw(size)`` gives standard normal numbers.
    """

    field: MeanField
    order: Order
    xi: Array
    z: Array
    n: int
    draw: Callable[[int], Array]

    @np.errstate(over="ignore", invalid="ignore")
    def advance(self, first: int, last: int) -> int:
        """Make the steps ``first`` to ``last - 1``; how many were made with a finite result."""
        for begin in range(first, last, _RUN):
            steps = np.arange(begin, min(begin + _RUN, last))
            # Only what rounding adds to a time lies beyond what is known.
            times = steps / self.n
            known = int(np.searchsorted(times, self.order.known * (1 + 1e-12), side="right"))
            q, r = self.order.at(times[:known])
            tau = np.broadcast_to(self.field.schedule.value(times[:known]), (known,))
            self._run(q, r, tau)
            if not np.all(np.isfinite(self.z)) or known < times.size:
                return begin + known - first
        return last - first

    def _run(self, q: Array, r: Array, tau: Array) -> None:
        """Steps at given Q, R and step sizes."""
        field, z = self.field, self.z
        for now in zip(q.tolist(), r.tolist(), tau.tolist(), strict=True):
            there = Cloud(z, field.phi.value(z), now[0], now[1])
            drift = velocity(field, self.xi, there, now[:2], now[2])
            z += drift / self.n
            z += math.sqrt(2 * field.diffusion(now[0], now[2]) / self.n) * self.draw(z.size)
