"""Uncoupled entries: each diffuses in the effective potential that the limit prescribes.

Their steps are (15) of Wang and Lu 2017,

    z_{k+1} = z_k + Gamma(z_k, xi, Q_{k/n}, R_{k/n})/n + sqrt(Lambda(Q_{k/n})/n) w_k

for each entry by itself, with Q and R of the limit and w_k independent standard normal numbers:
Euler's method for dZ = Gamma dt + sqrt(Lambda) dB with steps of 1/n, where Lambda = 2 g. The
compiled lines have neither sums nor fused operations: every entry goes through the same roundings
as in plain NumPy, however wide the processor is.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numba
import numpy as np
import scipy
import sympy as sp

from hdica.ingredients.plain import Array
from hdica.limits.mean_field.density.solve import solve as solve_density
from hdica.limits.mean_field.family import MeanField
from hdica.limits.mean_field.normal import solve as solve_normal
from hdica.process.progress import check_deadline

VERSION = 1
PULL, STRENGTH, CURVATURE, SPREAD = range(4)
"""Columns of coefficients: b, B and 2 h of the drift b xi - B phi - 2 h z, and the standard
deviation of the noise of a step."""


@numba.njit(
    "void(float64[::1], float64[::1], float64, float64, float64[:, ::1], float64[:, ::1], float64)",
    cache=True,
    nogil=True,
)
def net_steps(z, xi, jump, slope, coefficients, noise, n):  # type: ignore[no-untyped-def]
    """Steps of 1/n with phi(z) = jump sign(z) + slope z, in place; a row a step.

    A row of ``noise`` may be longer than ``z``: what is beyond is not used.
    """
    for k in range(coefficients.shape[0]):
        row, w = coefficients[k], noise[k]
        pull, strength, curvature, spread = row[PULL], row[STRENGTH], row[CURVATURE], row[SPREAD]
        for i in range(z.size):
            x = z[i]
            side = jump if x > 0.0 else (-jump if x < 0.0 else 0.0)
            drift = pull * xi[i] - strength * (side + slope * x) - curvature * x
            z[i] = (x + drift / n) + spread * w[i]


@numba.njit(
    "void(float64[::1], float64[::1], float64[::1], float64[::1], float64[::1], float64)",
    cache=True,
    nogil=True,
)
def one_step(z, xi, phi, coefficients, noise, n):  # type: ignore[no-untyped-def]
    """One step of 1/n where phi(z) is known, in place."""
    pull, strength, curvature = coefficients[PULL], coefficients[STRENGTH], coefficients[CURVATURE]
    for i in range(z.size):
        drift = pull * xi[i] - strength * phi[i] - curvature * z[i]
        z[i] = (z[i] + drift / n) + coefficients[SPREAD] * noise[i]


TOLERANCE = 1e-5
"""Error of Q at which the limit is no further refined."""
KNOTS = 500
"""Times at which it is solved: what is between them is right to 1e-8 unless the step size jumps."""


class Order(NamedTuple):
    """Q and R of a solved limit.

    ``last`` is the time until which they are, ``stopped`` why they are not later, or empty.
    """

    q: scipy.interpolate.PchipInterpolator
    r: scipy.interpolate.PchipInterpolator
    last: float
    stopped: str

    def at(self, times: Array) -> tuple[Array, Array]:
        """Q and R at times up to ``last``, each of their shape; |Q| <= 1."""
        return np.clip(self.q(times), -1.0, 1.0), self.r(times)


def order_of(field: MeanField, last: float, knots: int = KNOTS) -> Order:
    """Q and R of a limit from t = 0 to ``last`` > 0."""
    # Denser where everything begins, with the jumps of the step size.
    even = last * np.linspace(0.0, 1.0, knots) ** 2
    jumps = [t for t in field.schedule.breaks if 0 < t < last]
    times = np.unique(np.concatenate([even, jumps]))
    if field.phi.slope_if_linear is not None:
        path = solve_normal(field, times)
    else:
        path = solve_density(field, times, tolerance=TOLERANCE)
    reached = np.isfinite(path.q) & np.isfinite(path.r)
    times, q, r = times[reached], path.q[reached], path.r[reached]
    q_at, r_at = (scipy.interpolate.PchipInterpolator(times, values) for values in (q, r))
    return Order(q_at, r_at, float(times[-1]), path.stopped)


_CACHED = 32
"""Runs of steps of which the coefficients are kept, of a few thousand steps each."""


@dataclass(frozen=True, eq=False)
class Coefficients:
    """Drift and noise of the steps of 1/n in a limit that is solved: the same for all seeds."""

    field: MeanField
    order: Order
    n: int


# By identity: walks with many seeds share the same coefficients.
@lru_cache(maxsize=_CACHED)
def rows_of(steps: Coefficients, first: int, last: int) -> Array:
    """Coefficients of the steps ``first`` to ``last - 1`` as far as Q and R are solved."""
    times, field = np.arange(first, last) / steps.n, steps.field
    # Only what rounding adds to a time lies beyond the last one.
    end = steps.order.last * (1 + 1e-12)
    times = times[: np.searchsorted(times, end, side="right")]
    q, r = steps.order.at(times)
    tau = np.broadcast_to(field.schedule.value(times), times.shape)
    rows = []
    for q_now, r_now, size in zip(q.tolist(), r.tolist(), tau.tolist(), strict=True):
        spread = math.sqrt(2 * field.diffusion(q_now, size) / steps.n)
        curvature = field.curvature(q_now, r_now, size)
        rows.append((field.pull(q_now, size), field.strength(size), curvature, spread))
    return np.array(rows).reshape(len(rows), 4)


_RUN = 4096
"""Steps between two looks at whether all entries are finite."""
_CACHE = 8192
"""Normal numbers that are drawn at once: they and the entries stay in the second cache."""
_WHOLE = 16
"""Rows of noise are a multiple of so many numbers long, as generators draw them."""


def first_entries(field: MeanField, xi: Array, rng: np.random.Generator) -> Array:
    """Entries at t = 0, shape (n,): independent of each other given the feature ``xi``."""
    mean, variance = field.start.conditional(xi)
    return mean + math.sqrt(variance) * rng.standard_normal(xi.size)


@dataclass(frozen=True, eq=False)
class Walk:
    """Entries ``z``, shape (n,) as the feature ``xi``, which are changed in place.

    ``coefficients`` are those of their steps, n of them a unit of time; ``draw(size)`` gives
    standard normal numbers. A step takes the first n of the next multiple of sixteen: so many steps
    may be drawn at once, and are those of a step at a time.
    """

    coefficients: Coefficients
    xi: Array
    z: Array
    draw: Callable[[int], Array]

    @cached_property
    def _net(self) -> tuple[float, float] | None:
        """(a, b) of a phi that is written as a sign(x) + b x, or one of both.

        The same function written otherwise may round otherwise, and is left to NumPy, which
        computes any function of many entries as fast as compiled code does.
        """
        phi = self.coefficients.field.phi
        net = phi.elastic_net
        if net is None or sp.expand(phi.expression) != phi.expression:
            return None
        terms = 0 if phi.expression == 0 else len(sp.Add.make_args(phi.expression))
        return net if terms == np.count_nonzero(net) else None

    @np.errstate(over="ignore", invalid="ignore")
    def advance(self, first: int, last: int) -> int:
        """Make the steps ``first`` to ``last - 1``; how many were made with a finite result."""
        # From whole runs, so that seeds share coefficients whenever they are looked at.
        for begin in range(first - first % _RUN, last, _RUN):
            low, high = max(begin, first), min(begin + _RUN, last)
            rows = rows_of(self.coefficients, begin, begin + _RUN)[low - begin : high - begin]
            self._run(rows)
            if not np.all(np.isfinite(self.z)) or len(rows) < high - low:
                return low + len(rows) - first
        return last - first

    def _run(self, coefficients: Array) -> None:
        """Steps at these coefficients."""
        n, long = float(self.coefficients.n), self.z.size + -self.z.size % _WHOLE
        many = 1 if self._net is None else max(1, _CACHE // long)
        for k in range(0, len(coefficients), many):
            check_deadline()
            rows = coefficients[k : k + many]
            noise = self.draw(len(rows) * long).reshape(len(rows), long)
            if self._net is not None:
                net_steps(self.z, self.xi, *self._net, rows, noise, n)
                continue
            phi = np.require(self.coefficients.field.phi.value(self.z), requirements=["C", "W"])
            one_step(self.z, self.xi, phi, rows[0], noise[0], n)
