"""Steps of uncoupled entries: (15) of Wang and Lu 2017.

    z_{k+1} = z_k + Gamma(z_k, xi, Q_{k/n}, R_{k/n})/n + sqrt(Lambda(Q_{k/n})/n) w_k

for each entry by itself, with Q and R given and w_k independent standard normal numbers: Euler's
method for dZ = Gamma dt + sqrt(Lambda) dB with steps of 1/n, where Lambda = 2 g.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import sympy as sp
from numpy.typing import NDArray

from hdica.ingredients.formula import Formula
from hdica.limits.mean_field.entries.coefficients import Coefficients
from hdica.limits.mean_field.family import MeanField
from hdica.process.progress import check_deadline

Array = NDArray[np.float64]
_RUN = 4096
"""Steps between two looks at whether all entries are finite."""
_CACHE = 8192
"""Normal numbers that are drawn at once: they and the entries stay in the second cache."""
_WHOLE = 16
"""Rows of noise are a multiple of so many numbers long, as generators draw them."""


def first_entries(field: MeanField, xi: Array, rng: np.random.Generator) -> Array:
    """Entries at t = 0, shape (n,): independent of each other given the feature ``xi``."""
    mean, variance = field.start.conditional(xi)
    return np.asarray(mean + math.sqrt(variance) * rng.standard_normal(xi.size))


@dataclass(frozen=True, eq=False)
class Walk:
    """Entries ``z``, shape (n,) as the feature ``xi``, which are changed in place.

    ``coefficients`` are what they are told, and how many steps they make a unit of time;
    ``draw(size)`` gives standard normal numbers. A step takes the first n of the next multiple of
    sixteen: so many steps may be drawn at once, and are those of a step at a time.
    """

    coefficients: Coefficients
    xi: Array
    z: Array
    draw: Callable[[int], Array]

    @cached_property
    def _net(self) -> tuple[float, float] | None:
        return _as_net(self.coefficients.field.phi)

    @np.errstate(over="ignore", invalid="ignore")
    def advance(self, first: int, last: int) -> int:
        """Make the steps ``first`` to ``last - 1``; how many were made with a finite result."""
        # From whole runs, so that seeds share coefficients whenever they are looked at.
        for begin in range(first - first % _RUN, last, _RUN):
            low, high = max(begin, first), min(begin + _RUN, last)
            told = self.coefficients.told(begin, begin + _RUN)[low - begin : high - begin]
            self._run(told)
            if not np.all(np.isfinite(self.z)) or len(told) < high - low:
                return low + len(told) - first
        return last - first

    def _run(self, told: Array) -> None:
        """Steps at given coefficients."""
        from hdica.limits.mean_field.entries.kernels import net_steps, one_step

        n, long = float(self.coefficients.n), self.z.size + -self.z.size % _WHOLE
        many = 1 if self._net is None else max(1, _CACHE // long)
        for k in range(0, len(told), many):
            check_deadline()
            rows = told[k : k + many]
            noise = self.draw(len(rows) * long).reshape(len(rows), long)
            if self._net is not None:
                net_steps(self.z, self.xi, *self._net, rows, noise, n)
                continue
            phi = np.require(self.coefficients.field.phi.value(self.z), requirements=["C", "W"])
            one_step(self.z, self.xi, phi, rows[0], noise[0], n)


def _as_net(phi: Formula) -> tuple[float, float] | None:
    """(a, b) of a function that is written as a sign(x) + b x, or one of both.

    The same function written otherwise may round otherwise, and is left to NumPy, which computes
    any function of many entries as fast as compiled code does.
    """
    found = phi.elastic_net
    if found is None or sp.expand(phi.expression) != phi.expression:
        return None
    terms = 0 if phi.expression == 0 else len(sp.Add.make_args(phi.expression))
    return found if terms == np.count_nonzero(found) else None
