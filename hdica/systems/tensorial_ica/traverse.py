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
from hdica.systems import method
from hdica.systems.fields import source
from hdica.systems.method import Array, Output, PointResult
from hdica.systems.tensorial_ica import fluctuation, transient
from hdica.systems.tensorial_ica import system as model
from hdica.systems.tensorial_ica.rule import Moments, moments_of
from hdica.systems.tensorial_ica.system import AT_LIMIT, PAPER, TensorialICA
from hdica.systems.tensorial_ica.transient import ANY_SIGN

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
        return self.sample.mean()

    @property
    def error(self) -> float:
        """Standard error of the mean; nan where the level is never reached."""
        if not np.isfinite(self.mean):
            return math.nan
        return self.sample.mean(axis=1).std(ddof=1) / math.sqrt(self.sample.shape[0])

    def quantiles(self, at: Sequence[float] = PROBABILITIES) -> tuple[Array, Array]:
        """Quantiles of x at some probabilities, and their standard errors."""
        whole = np.quantile(self.sample, at, method="inverted_cdf")
        each = np.quantile(self.sample, at, axis=1, method="inverted_cdf")
        with np.errstate(invalid="ignore"):
            error = each.std(axis=1, ddof=1) / math.sqrt(self.sample.shape[0])
        return whole, error

    def reached(self, elapsed: Array) -> Array:
        """Share of starts that have reached the level at x = ``elapsed``."""
        at = np.searchsorted(np.sort(self.sample, axis=None), elapsed, side="right")
        return at / self.sample.size


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
    return ndtri(np.clip(shifted, 2.0**-53, 1 - 2.0**-53))


@lru_cache(maxsize=16)
def uniform_law(d: int) -> Law:
    """N2: x to tan^2 = 1/3 from starts that are uniform on the sphere, in d >= 2 dimensions."""
    return Law(transient.time_to(normals(d), WARM))


def uniform_asymptote(d: int) -> float:
    """d/(4 ln d), to which the mean of N2 slowly tends: it is 1.5 times that at d = 1000."""
    return d / (4 * math.log(d))


def escape_width(moments: Moments, k: int, eta: float) -> float:
    """Standard deviation of the effective start at a critical point of support size ``k``."""
    return math.sqrt(eta * fluctuation.noise_on_support(moments, k) * k / (4 * moments.beta))


def tangents(k: int) -> Array:
    """Normal vectors orthogonal to (1, ..., 1)."""
    z = normals(k)
    return z - z.mean(axis=-1, keepdims=True)


def escape_law(moments: Moments, k: int, eta: float) -> Law:
    """N1: x to tan^2 = 1/3 from exactly a critical point of support size ``k`` >= 2.

    Dimension d = k for a maximiser. The axes off the support, along which a saddle attracts, add
    nothing to leading order in eta and are left out. Where there is no noise it is inf: random
    signs on two axes.
    """
    width = escape_width(moments, k, eta)
    return Law(transient.time_to(k**-0.5 + width * tangents(k), WARM))


@lru_cache(maxsize=16)
def _universal(k: int) -> Law:
    """The law of x - (k/4) ln(1/width^2) as the width tends to zero, the same for every source.

    With gamma_j = 2 sqrt(k) (z_m - z_j), z_m the largest, and e the root of sum_(j != m)
    1/(1 + e gamma_j) = 1/3 it is 1/2 [ln e + sum_(j != m) ln(e/(1 + e gamma_j))].
    """
    z = tangents(k)
    gap = 2 * math.sqrt(k) * (z.max(axis=-1, keepdims=True) - z)
    rows = gap.reshape(-1, k)
    e = transient.growth_to(np.ones_like(rows), rows, np.full(rows.shape[0], WARM))[:, None]
    x = np.sum(np.log(e / (1 + e * rows)), axis=1) / 2
    return Law(x.reshape(z.shape[:-1]))


def escape_constant(moments: Moments, k: int) -> tuple[float, float]:
    """c_k of the mean of N1 as eta -> 0, (k/4) ln(1/eta) + c_k, and its standard error."""
    if fluctuation.noise_on_support(moments, k) == 0.0:
        return math.inf, math.nan
    law = _universal(k)
    return law.mean - k / 2 * math.log(escape_width(moments, k, 1.0)), law.error


def escape_asymptote(moments: Moments, k: int, eta: float) -> float:
    """(k/4) ln(1/eta) + c_k, the mean of N1 in x = beta eta t for small eta."""
    return k / 4 * math.log(1 / eta) + escape_constant(moments, k)[0]


def floor_time(start: float, floor: float) -> float:
    """N3: x from tan^2 = ``start`` to ``floor``, ln(start/floor)/2, zero if it is there."""
    return max(0.0, math.log(start / floor) / 2)


_PLAIN = 1e6


def two_phase(
    source: Source,
    d: int,
    steps: float,
    first: float | None,
    second: float | None,
    left: float = math.nan,
) -> dict[str, float]:
    """The outputs of :data:`TWO_PHASE`, nan for a phase that is not made, of step size None.

    Each phase has ``steps`` = T/2. ``left`` is what a second phase alone leaves of the tan^2 of its
    start without noise. Medians are as of chi-squared variables; ``warm`` is about the path without
    noise, from which noise takes little where ``drag`` is small.

    Refused if the fluctuations of phase two have no level.
    """
    moments = moments_of(source, order=6)
    half = end = end_median = warm = drag = math.nan
    factor = fluctuation.median_factor(d)
    if first is not None:
        with suppress(HdicaError):  # too noisy to have a level
            half = fluctuation.stationary(source, d, first).S2
        warm = uniform_law(d).reached(np.array([moments.beta * first * steps]))[0]
        drag = first * d * d / moments.beta
    if second is not None:
        floor = fluctuation.stationary(source, d, second).S2
        rest = math.exp(-2 * moments.beta * second * steps)
        end = floor + (half - floor) * rest
        end_median = end * factor
        if first is None:
            end = floor * (1 - rest) + left
            end_median = _shifted_median(d, floor * (1 - rest), left)
    return {"tan2": end_median, "half": half * factor, "mean": end, "warm": warm, "drag": drag}


def _shifted_median(d: int, noise: float, left: float) -> float:
    """Median of |U|^2 of d - 1 normal entries of E |U - E U|^2 = ``noise``, |E U|^2 = ``left``."""
    from scipy.stats import ncx2

    unit = noise / (d - 1)
    # Where the start outweighs the noise by far, the median is the mean to that order.
    if not left < _PLAIN * unit:
        return noise + left
    return unit * ncx2.median(d - 1, left / unit)


def _two_phase(system: TensorialICA, *_: object) -> PointResult:
    training, left = model.trained(system), math.nan
    if training.first is None:
        v0 = model.fixed_vector(system, "the second phase alone")
        last = transient.elapsed_of(system, np.array([training.end]))
        left = transient.tan2_of(transient.solve(v0, last).v)[0]
    etas = training.first, training.second
    values = two_phase(source(system), system.dimension, training.total / 2, *etas, left=left)
    return PointResult(method.arrays(**values))


def _predictable(system: TensorialICA) -> None:
    training = model.trained(system)
    if training.first is None:
        model.fixed_vector(system, "the second phase alone")
    moments_of(source(system), 6)
    if training.second is not None:
        fluctuation.stationary(source(system), system.dimension, training.second)


TWO_PHASE = method.Limit[TensorialICA](
    name="two_phase",
    role=method.Role.LIMIT,
    about=method.About(
        text="the median of tan² at the ends of a training, where its first phase succeeds",
        accuracy="approximate",
        equations=f"{PAPER}, Corollary 8, with the stationary level in place of its bound",
        engines=AT_LIMIT,
    ),
    outputs=method.Outputs(
        (
            Output("tan2", (), "median of tan2 at the end of the second phase"),
            Output("half", (), "median of tan2 at the end of the first phase"),
            Output("mean", (), "mean of tan2 at the end of the second phase"),
            Output("warm", (), "share of uniform starts that have the time for the first phase"),
            Output("drag", (), "eta_1 d^2/beta, below about 1 where noise lets the first succeed"),
        )
    ),
    cost=method.Cost(seconds=lambda system, n, last: 3e-2),
    scope=method.Scope(refuses=method.refusal(_predictable), ignores=ANY_SIGN),
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
    at_rest = np.abs(transient.drift(v0)).max() <= STILL
    return int(np.count_nonzero(np.abs(v0) > STILL)) if at_rest else 0


def _first_stage(system: TensorialICA, v0: Array | None) -> dict[str, Array | float]:
    """N1 or N2 in units of beta eta t."""
    k = 0 if v0 is None else _support(v0)
    if v0 is not None and k < 2:
        x = transient.time_to(v0, WARM)
        every = np.full(len(PROBABILITIES), x)
        return {"N2": x, "N2_median": x, "N2_se": 0.0, "N2_quantiles": every}
    if v0 is None:
        name, law = "N2", uniform_law(system.dimension)
        order = uniform_asymptote(system.dimension)
    else:
        noise, eta = fluctuation.moments_for_noise(system, k), model.constant_eta(system)
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
    eta, v0, d = model.constant_eta(system), model.first_vector(system), system.dimension
    unit = 1 / (model.moments(system).beta * eta)
    blank = {o.name: np.full((len(PROBABILITIES),) * len(o.dims), math.nan) for o in OUTPUTS}
    values = blank | _first_stage(system, v0)
    near = math.inf if v0 is None else float(transient.tan2_of(v0))
    floor = fluctuation.first_order_level(fluctuation.moments_for_noise(system, 1), d, eta)
    values["N3"] = floor_time(min(near, WARM), floor) if near > 0 else 0.0
    return PointResult({name: unit * np.asarray(value) for name, value in values.items()})


def _check_moments(system: TensorialICA) -> None:
    """Refuse a step size that changes, and a source without the moments that its stages need."""
    model.constant_eta(system)
    v0 = model.first_vector(system)
    fluctuation.moments_for_noise(system, 1 if v0 is None else _support(v0) or 1)


TRAVERSE = method.Limit[TensorialICA](
    name="traverse",
    role=method.Role.OTHER,
    about=method.About(
        text="steps of the three stages N₁, N₂, N₃: mean and quantiles, over uniform starts too",
        accuracy="approximate",
        equations=f"{PAPER}, traverse times of the three stages, with their constants",
        engines=AT_LIMIT,
    ),
    outputs=method.Outputs(OUTPUTS, coords=lambda times: {"quantile": np.array(PROBABILITIES)}),
    cost=method.Cost(seconds=lambda system, n, last: 0.5),
    scope=method.Scope(refuses=method.refusal(_check_moments), ignores=ANY_SIGN),
    run=_traverse,
)
METHODS = (TWO_PHASE, TRAVERSE)
