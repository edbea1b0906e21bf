"""How long the three stages take: escape (N1), transient (N2), and the way to the floor (N3).

All laws are of x = beta eta t, at which the noiseless path from a random start reaches a level of
tan^2: a uniform start for N2, and for N1 what an unstable Ornstein-Uhlenbeck process makes of a
critical point, which is a normal start of variance eta Sigma_k k/(4 beta) in its directions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from hdica.errors import HdicaError
from hdica.systems.tensorial_ica.limit.fluctuation import first_order_level, noise_on_support
from hdica.systems.tensorial_ica.limit.moments import Moments
from hdica.systems.tensorial_ica.limit.transient import growth_to, time_to

Array = NDArray[np.float64]
WARM = 1 / 3
"""tan^2 of a warm start."""
REPLICATES = 16
_MOST, _ENTRIES, _SOBOL = 2048, 1 << 22, 21_201
PROBABILITIES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True, eq=False)
class Law:
    """Law of x = beta eta t to a level, from a sample in independent replicates.

    ``sample`` has shape (replicates, size); standard errors are those between replicates.
    """

    sample: Array = field(repr=False)

    @property
    def mean(self) -> float:
        """Mean of x."""
        return float(self.sample.mean())

    @property
    def error(self) -> float:
        """Standard error of the mean; nan where the level is never reached."""
        if not np.isfinite(self.mean):
            return math.nan
        return float(self.sample.mean(axis=1).std(ddof=1) / math.sqrt(self.sample.shape[0]))

    def quantiles(self, at: Sequence[float] = PROBABILITIES) -> tuple[Array, Array]:
        """Quantiles of x at some probabilities, and their standard errors."""
        found = np.quantile(self.sample, at, method="inverted_cdf")
        each = np.quantile(self.sample, at, axis=1, method="inverted_cdf")
        with np.errstate(invalid="ignore"):
            error = each.std(axis=1, ddof=1) / math.sqrt(self.sample.shape[0])
        return found, np.asarray(error)

    def reached(self, elapsed: Array) -> Array:
        """Share of starts that have reached the level at x = ``elapsed``."""
        at = np.searchsorted(np.sort(self.sample, axis=None), elapsed, side="right")
        return np.asarray(at / self.sample.size)


def normals(d: int) -> Array:
    """Quasi-random standard normal vectors, shape (replicates, size, d), always the same.

    Sobol points, as many as are quick to use, shifted at random in every replicate.
    """
    size = _MOST
    while size > 4 and size * REPLICATES * d > _ENTRIES:
        size //= 2
    streams = [np.random.default_rng([d, i]) for i in range(REPLICATES)]
    if d > _SOBOL:
        return np.array([rng.standard_normal((size, d)) for rng in streams])
    from scipy.special import ndtri
    from scipy.stats import qmc

    points = qmc.Sobol(d, scramble=False).random(size)
    shifted = np.array([(points + rng.random(d)) % 1.0 for rng in streams])
    return np.asarray(ndtri(np.clip(shifted, 2.0**-53, 1 - 2.0**-53)))


def _checked_level(level: float) -> None:
    if not 0 < level < math.inf:
        raise HdicaError(f"tan2 = {level} is not allowed (a finite number > 0)")


def _checked_dimension(d: int) -> None:
    if d < 2:
        raise HdicaError(f"dimension = {d} is not allowed (at least 2)")


@lru_cache(maxsize=16)
def uniform_law(d: int, level: float = WARM) -> Law:
    """N2: x to tan^2 = ``level`` from starts that are uniform on the sphere."""
    _checked_dimension(d)
    _checked_level(level)
    return Law(time_to(normals(d), level))


def uniform_asymptote(d: int) -> float:
    """d/(4 ln d), to which the mean of N2 slowly tends: it is 1.5 times that at d = 1000."""
    _checked_dimension(d)
    return d / (4 * math.log(d))


def escape_width(moments: Moments, k: int, eta: float) -> float:
    """Standard deviation of the effective start at a critical point of support size ``k``."""
    return math.sqrt(eta * noise_on_support(moments, k) * k / (4 * moments.beta))


def escape_law(moments: Moments, k: int, eta: float, level: float = WARM) -> Law:
    """N1: x to tan^2 = ``level`` from exactly a critical point of support size ``k`` >= 2.

    Dimension d = k for a maximiser. The axes off the support, along which a saddle attracts, add
    nothing to leading order in eta and are left out. Where there is no noise it is inf: random
    signs on two axes.
    """
    _checked_level(level)
    width = escape_width(moments, k, eta)
    return Law(time_to(k**-0.5 + width * _within(k), level))


def _within(k: int) -> Array:
    """Normal vectors orthogonal to (1, ..., 1)."""
    z = normals(k)
    return np.asarray(z - z.mean(axis=-1, keepdims=True))


@lru_cache(maxsize=16)
def _universal(k: int, level: float) -> Law:
    """The law of x - (k/4) ln(1/width^2) as the width tends to zero, the same for every source.

    With gamma_j = 2 sqrt(k) (z_m - z_j), z_m the largest, and e the root of sum_(j != m)
    1/(1 + e gamma_j) = level it is 1/2 [ln e + sum_(j != m) ln(e/(1 + e gamma_j))].
    """
    z = _within(k)
    gap = 2 * math.sqrt(k) * (z.max(axis=-1, keepdims=True) - z)
    rows = gap.reshape(-1, k)
    e = growth_to(np.ones_like(rows), rows, np.full(rows.shape[0], level))[:, None]
    x = np.sum(np.log(e / (1 + e * rows)), axis=1) / 2
    return Law(x.reshape(z.shape[:-1]))


def escape_constant(moments: Moments, k: int, level: float = WARM) -> tuple[float, float]:
    """c_k of the mean of N1 as eta -> 0, (k/4) ln(1/eta) + c_k, and its standard error."""
    _checked_level(level)
    if not level < k - 1:
        raise HdicaError(f"tan2 = {level} is not allowed (below {k - 1} at support {k})")
    known = _universal(k, level)
    if noise_on_support(moments, k) == 0.0:
        return math.inf, math.nan
    return known.mean - k / 2 * math.log(escape_width(moments, k, 1.0)), known.error


def escape_asymptote(moments: Moments, k: int, eta: float, level: float = WARM) -> float:
    """(k/4) ln(1/eta) + c_k, the mean of N1 in x = beta eta t for small eta."""
    return k / 4 * math.log(1 / eta) + escape_constant(moments, k, level)[0]


def floor_time(start: float, floor: float) -> float:
    """N3: x from tan^2 = ``start`` to ``floor``, ln(start/floor)/2, zero if it is there."""
    _checked_level(start)
    _checked_level(floor)
    return max(0.0, math.log(start / floor) / 2)


@dataclass(frozen=True)
class Stage:
    """Mean number of steps of a stage, its standard error, and what the paper says of its order."""

    steps: float
    error: float
    order: float


@dataclass(frozen=True)
class ThreeStages:
    """Steps of the three stages at a constant step size.

    ``escape`` (N1) is from exactly a critical point and ``transient`` (N2) from a uniform or given
    start, both to tan^2 = ``level``: one or the other happens, not both. ``fluctuation`` (N3) is
    from there to ``floor`` = S0. ``escape_small`` and ``transient_large`` are the asymptotes of N1
    for small eta and of N2 for large d (of a uniform start).
    """

    escape: Stage
    transient: Stage
    fluctuation: Stage
    escape_small: float
    transient_large: float
    level: float
    floor: float

    @property
    def from_critical(self) -> float:
        """N1 + N3."""
        return self.escape.steps + self.fluctuation.steps

    @property
    def from_start(self) -> float:
        """N2 + N3."""
        return self.transient.steps + self.fluctuation.steps


def three_stages(
    moments: Moments,
    d: int,
    eta: float,
    start: Array | None = None,
    support: int | None = None,
    level: float = WARM,
) -> ThreeStages:
    """The whole prediction: N1 from support ``support`` (d if None), N2 from ``start``, and N3.

    ``start`` is a vector of shape (d,), from which N2 is exact (inf on a tie), or None: uniform.
    """
    _checked_dimension(d)
    if not eta > 0:
        raise HdicaError(f"eta = {eta} is not allowed (a step size is a number > 0)")
    k, unit = d if support is None else support, 1 / (moments.beta * eta)
    escape = escape_law(moments, k, eta, level)
    if start is None:
        law = uniform_law(d, level)
        mean, error = law.mean, law.error
    else:
        mean, error = float(time_to(np.asarray(start, dtype=float), level)), 0.0
    floor, log = first_order_level(moments, d, eta), math.log(1 / eta)
    return ThreeStages(
        Stage(unit * escape.mean, unit * escape.error, unit * d * log),
        Stage(unit * mean, unit * error, unit * d),
        Stage(unit * floor_time(level, floor), 0.0, unit * log),
        unit * escape_asymptote(moments, k, eta, level),
        unit * uniform_asymptote(d),
        level,
        floor,
    )
