"""How long the three stages take: escape (N1), transient (N2), and the way to the floor (N3).

All laws are of x = beta eta t, at which the noiseless path from a random start reaches a level of
tan^2: a uniform start for N2, and for N1 what an unstable Ornstein-Uhlenbeck process makes of a
critical point, which is a normal start of variance eta Sigma_k k/(4 beta) in its directions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from hdica.errors import HdicaError
from hdica.ingredients.sources import Source
from hdica.systems.fields import source
from hdica.systems.method import (
    About,
    Array,
    Cost,
    Limit,
    Output,
    Outputs,
    PointResult,
    Role,
    Scope,
    refusal,
)
from hdica.systems.tensorial_ica.fluctuation import (
    first_order_level,
    median_factor,
    moments_for_noise,
    noise_on_support,
    stationary,
)
from hdica.systems.tensorial_ica.rule import Moments, moments_of
from hdica.systems.tensorial_ica.system import (
    AT_LIMIT,
    PAPER,
    TensorialICA,
    constant_eta,
    first_vector,
    fixed_vector,
    moments,
    trained,
)
from hdica.systems.tensorial_ica.transient import (
    ANY_SIGN,
    drift,
    elapsed_of,
    growth_to,
    solve,
    tan2_of,
    time_to,
)

WARM = 1 / 3  # tan^2 of a warm start
REPLICATES, _MOST, _ENTRIES, _SOBOL = 16, 2048, 1 << 22, 21_201
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
        whole = np.quantile(self.sample, at, method="inverted_cdf")
        each = np.quantile(self.sample, at, axis=1, method="inverted_cdf")
        with np.errstate(invalid="ignore"):
            error = each.std(axis=1, ddof=1) / math.sqrt(self.sample.shape[0])
        return whole, np.asarray(error)

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


def tangents(k: int) -> Array:
    """Normal vectors orthogonal to (1, ..., 1)."""
    z = normals(k)
    return np.asarray(z - z.mean(axis=-1, keepdims=True))


def escape_law(moments: Moments, k: int, eta: float, level: float = WARM) -> Law:
    """N1: x to tan^2 = ``level`` from exactly a critical point of support size ``k`` >= 2.

    Dimension d = k for a maximiser. The axes off the support, along which a saddle attracts, add
    nothing to leading order in eta and are left out. Where there is no noise it is inf: random
    signs on two axes.
    """
    _checked_level(level)
    width = escape_width(moments, k, eta)
    return Law(time_to(k**-0.5 + width * tangents(k), level))


@lru_cache(maxsize=16)
def _universal(k: int, level: float) -> Law:
    """The law of x - (k/4) ln(1/width^2) as the width tends to zero, the same for every source.

    With gamma_j = 2 sqrt(k) (z_m - z_j), z_m the largest, and e the root of sum_(j != m)
    1/(1 + e gamma_j) = level it is 1/2 [ln e + sum_(j != m) ln(e/(1 + e gamma_j))].
    """
    z = tangents(k)
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
    if noise_on_support(moments, k) == 0.0:
        return math.inf, math.nan
    law = _universal(k, level)
    return law.mean - k / 2 * math.log(escape_width(moments, k, 1.0)), law.error


def escape_asymptote(moments: Moments, k: int, eta: float, level: float = WARM) -> float:
    """(k/4) ln(1/eta) + c_k, the mean of N1 in x = beta eta t for small eta."""
    return k / 4 * math.log(1 / eta) + escape_constant(moments, k, level)[0]


def floor_time(start: float, floor: float) -> float:
    """N3: x from tan^2 = ``start`` to ``floor``, ln(start/floor)/2, zero if it is there."""
    _checked_level(start)
    _checked_level(floor)
    return max(0.0, math.log(start / floor) / 2)


CALM = 0.5
"""Largest eta1 d^2/beta at which phase one surely succeeds with random signs; it fails from 2."""
SURE = 0.99
_PLAIN = 1e6


@dataclass(frozen=True)
class TwoPhase:
    """A prediction of a training from a uniform start, nan for a phase that is not made.

    Medians are as of chi-squared variables, of a second phase alone around what its start leaves.
    """

    warm: float  # share of uniform starts that are warm at T/2 on the path without noise
    drag: float  # eta1 d^2/beta: where it is small, noise takes little from the drift of phase one
    half: float  # mean of tan^2 after phase one; nan where that is too noisy to have a level
    end: float  # the same after phase two
    half_median: float
    end_median: float

    @property
    def succeeds(self) -> bool:
        """Whether phase one has the time for 99 % of the starts, and little enough noise."""
        return self.warm >= SURE and self.drag <= CALM


def two_phase(
    source: Source,
    d: int,
    steps: float,
    first: float | None,
    second: float | None,
    left: float = math.nan,
    level: float = WARM,
) -> TwoPhase:
    """The prediction for two phases of ``steps`` = T/2 each.

    Parameters
    ----------
    source, d
        Law of the sources, and their number.
    steps
        Of each phase.
    first, second
        Step sizes eta1 and eta2; None for a phase that is not made.
    left
        tan^2 at the end of a second phase alone without noise: what is left of its start.
    level
        tan^2 of a warm start.

    Raises
    ------
    HdicaError
        If the fluctuations of phase two have no level.
    """
    moments = moments_of(source, order=6)
    half = end = end_median = warm = drag = math.nan
    factor = median_factor(d)
    if first is not None:
        with suppress(HdicaError):  # too noisy to have a level
            half = stationary(source, d, first).S2
        warm = float(uniform_law(d, level).reached(np.array([moments.beta * first * steps]))[0])
        drag = first * d * d / moments.beta
    if second is not None:
        floor, rest = stationary(source, d, second).S2, math.exp(-2 * moments.beta * second * steps)
        end = floor + (half - floor) * rest
        end_median = end * factor
        if first is None:
            end = floor * (1 - rest) + left
            end_median = _shifted_median(d, floor * (1 - rest), left)
    return TwoPhase(warm, drag, half, end, half * factor, end_median)


def _shifted_median(d: int, noise: float, left: float) -> float:
    """Median of |U|^2 of d - 1 normal entries of E |U - E U|^2 = ``noise``, |E U|^2 = ``left``."""
    from scipy.stats import ncx2

    unit = noise / (d - 1)
    # Where the start outweighs the noise by far, the median is the mean to that order.
    if not left < _PLAIN * unit:
        return noise + left
    return float(unit * ncx2.median(d - 1, left / unit))


def _two_phase(system: TensorialICA, *_: object) -> PointResult:
    training, left = trained(system), math.nan
    if training.first is None:
        v0 = fixed_vector(system, "the second phase alone")
        last = elapsed_of(system, np.array([training.end]))
        left = float(tan2_of(solve(v0, last).v)[0])
    etas = training.first, training.second
    ends = two_phase(source(system), system.dimension, training.total / 2, *etas, left=left)
    medians = {"tan2": ends.end_median, "half": ends.half_median}
    values = medians | {"mean": ends.end, "warm": ends.warm, "drag": ends.drag}
    return PointResult({name: np.asarray(value) for name, value in values.items()})


def _predictable(system: TensorialICA) -> None:
    training = trained(system)
    if training.first is None:
        fixed_vector(system, "the second phase alone")
    moments_of(source(system), 6)
    if training.second is not None:
        stationary(source(system), system.dimension, training.second)


TWO_PHASE = Limit[TensorialICA](
    name="two_phase",
    role=Role.LIMIT,
    about=About(
        text="the median of tan² at the ends of a training, where its first phase succeeds",
        accuracy="approximate",
        equations=f"{PAPER}, Corollary 8, with the stationary level in place of its bound",
        engines=AT_LIMIT,
    ),
    outputs=Outputs(
        (
            Output("tan2", (), "median of tan2 at the end of the second phase"),
            Output("half", (), "median of tan2 at the end of the first phase"),
            Output("mean", (), "mean of tan2 at the end of the second phase"),
            Output("warm", (), "share of uniform starts that have the time for the first phase"),
            Output("drag", (), "eta_1 d^2/beta, below about 1 where noise lets the first succeed"),
        )
    ),
    cost=Cost(seconds=lambda system, n, last: 3e-2),
    scope=Scope(refuses=refusal(_predictable), ignores=ANY_SIGN),
    run=_two_phase,
)
_ON = ("quantile",)
OUTPUTS = (
    Output("N1", (), "mean time from a critical point to tan^2 = 1/3", "steps"),
    Output("N1_se", (), "standard error of N1", "steps"),
    Output("N1_median", (), "median of the same", "steps"),
    Output("N1_quantiles", _ON, "its quantiles", "steps"),
    Output("N1_order", (), "its leading terms for small eta", "steps"),
    Output("N2", (), "time from any other start to tan^2 = 1/3, mean over uniform ones", "steps"),
    Output("N2_se", (), "standard error of N2", "steps"),
    Output("N2_median", (), "median of the same", "steps"),
    Output("N2_quantiles", _ON, "its quantiles", "steps"),
    Output("N2_order", (), "its leading term for large d", "steps"),
    Output("N3", (), "time from tan^2 = 1/3, or a nearer start, to the stationary level", "steps"),
)
STILL = 1e-12  # A start whose drift is smaller is a critical point, whose smaller entries are zeros


def _support(v0: Array) -> int:
    """Support size of the critical point that a start is; 0 if it is none."""
    at_rest = np.abs(drift(v0)).max() <= STILL
    return int(np.count_nonzero(np.abs(v0) > STILL)) if at_rest else 0


def _first_stage(system: TensorialICA, v0: Array | None) -> dict[str, Array | float]:
    """N1 or N2 in units of beta eta t."""
    k = 0 if v0 is None else _support(v0)
    if v0 is not None and k < 2:
        x = time_to(v0, WARM)
        every = np.full(len(PROBABILITIES), float(x))
        return {"N2": x, "N2_median": x, "N2_se": 0.0, "N2_quantiles": every}
    if v0 is None:
        name, law = "N2", uniform_law(system.dimension)
        order = uniform_asymptote(system.dimension)
    else:
        noise, eta = moments_for_noise(system, k), constant_eta(system)
        name, law = "N1", escape_law(noise, k, eta)
        order = escape_asymptote(noise, k, eta)
    quantiles = law.quantiles((0.5, *PROBABILITIES))[0]
    return {
        name: law.mean,
        f"{name}_se": law.error,
        f"{name}_median": quantiles[0],
        f"{name}_quantiles": quantiles[1:],
        f"{name}_order": order,
    }


def _traverse(system: TensorialICA, *_: object) -> PointResult:
    eta, v0, d = constant_eta(system), first_vector(system), system.dimension
    unit = 1 / (moments(system).beta * eta)
    blank = {o.name: np.full((len(PROBABILITIES),) * len(o.dims), math.nan) for o in OUTPUTS}
    values = blank | _first_stage(system, v0)
    near = math.inf if v0 is None else float(tan2_of(v0))
    floor = first_order_level(moments_for_noise(system, 1), d, eta)
    values["N3"] = np.asarray(floor_time(min(near, WARM), floor) if near > 0 else 0.0)
    return PointResult({name: unit * np.asarray(value) for name, value in values.items()})


def _check_moments(system: TensorialICA) -> None:
    """Refuse a step size that changes, and a source without the moments that its stages need."""
    constant_eta(system)
    v0 = first_vector(system)
    moments_for_noise(system, 1 if v0 is None else _support(v0) or 1)


TRAVERSE = Limit[TensorialICA](
    name="traverse",
    role=Role.OTHER,
    about=About(
        text="steps of the three stages N₁, N₂, N₃: mean and quantiles, over uniform starts too",
        accuracy="approximate",
        equations=f"{PAPER}, traverse times of the three stages, with their constants",
        engines=AT_LIMIT,
    ),
    outputs=Outputs(OUTPUTS, coords=lambda times: {"quantile": np.array(PROBABILITIES)}),
    cost=Cost(seconds=lambda system, n, last: 0.5),
    scope=Scope(refuses=refusal(_check_moments), ignores=ANY_SIGN),
    run=_traverse,
)
METHODS = (TWO_PHASE, TRAVERSE)
